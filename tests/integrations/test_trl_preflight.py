"""Each check catches a trainer that has just that wrong, and passes the healthy one."""

import pytest
import torch
import trl_twins as twins
from recorded import Recorded
from transformers import AutoModelForCausalLM
from trl import RLOOConfig, RLOOTrainer, SFTConfig, SFTTrainer

from rlvitals.integrations.trl import Preflight, Record

pytestmark = pytest.mark.filterwarnings("ignore", "error:::rlvitals")
OLD = {"num_iterations": 2}  # the least with which TRL computes the old policy
EXAMPLES = [{"prompt": "3+4=", "answer": "7", "right": "7", "wrong": "8"}]


@pytest.fixture
def checked(base, tmp_path):
    def run(kind=twins.GRPOTrainer, **options):
        given = {key: options.pop(key) for key in ("examples", "skip", "stop") if key in options}
        trainer = twins.trainer(base, tmp_path, kind, **options)
        preflight = Preflight(trainer, quiet=True, **given)
        trainer.add_callback(preflight)
        trainer.train()
        return preflight.report

    return run


def only(report):
    """Return the one check that failed."""
    assert [check.name for check in report.failed] == [report.failed[0].name], str(report)
    return report.failed[0]


def names(checks):
    return {check.name for check in checks}


def test_a_healthy_trainer_passes_all_that_one_process_can_show(checked):
    report = checked(
        beta=0.04, max_steps=4, rewards=(twins.letters, twins.correct), examples=EXAMPLES, **OLD
    )
    assert names(report.failed) == set(), str(report)
    assert names(report.unchecked) == {"ranks-differ"}, str(report)
    assert len(report.passed) == 8


def test_what_trl_leaves_out_is_said_and_not_counted_as_health(checked):
    report = checked()
    assert report.ok, str(report)
    why = {check.name: check.outcome.why for check in report.unchecked}
    assert set(why) == {
        "ratio-is-one", "kl-to-reference-is-zero", "ranks-differ", "right-beats-wrong"
    }  # fmt: skip
    assert "takes it to be 1" in why["ratio-is-one"]
    assert "beta is 0" in why["kl-to-reference-is-zero"]


LONG = {"max_completion_length": 24}  # some answers end before that


def again(*case):
    """One more way to fail a check that another twin fails."""
    return pytest.param(*case, marks=pytest.mark.soak)


@pytest.mark.parametrize(
    ("twin", "options", "check", "variable"),
    [
        (twins.MaskShifted, LONG, "loss-covers-generated", "loss weight["),
        again(twins.MaskLate, {}, "loss-covers-generated", "loss weight[0, 0]"),
        again(twins.MaskOverPadding, LONG, "loss-covers-generated", "loss weight["),
        (twins.NotCentred, {}, "group-advantages-centred", "mean of advantages in group"),
        again(
            twins.CentredOverBatch, {}, "group-advantages-centred", "mean of advantages in group"
        ),
        (twins.GroupsMixed, {}, "group-advantages-centred", "prompts of group 0"),
        (twins.OldPolicyIsOff, OLD, "ratio-is-one", "ratio["),
        (twins.ShiftedByOne, {}, "logps-of-tokens", "exp(logp in the loss - logp)["),
        (twins.OtherReference, {"beta": 0.04}, "kl-to-reference-is-zero", "kl (k3"),
        (twins.StaleSampler, {}, "sampler-has-weights", "the sampler's model."),
        (twins.Forgotten, {}, "weights-moved", "change of model.layers.0.mlp.up_proj.weight["),
        again(twins.NoStep, {}, "weights-moved", "change of model."),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_a_broken_twin_is_caught_by_its_own_check(checked, twin, options, check, variable):
    failed = only(checked(twin, **options))
    assert failed.name == check
    assert failed.outcome.variable.startswith(variable), failed
    assert failed.outcome.value


def test_inverted_scores_are_told_by_part(checked):
    failed = only(checked(rewards=(twins.letters, twins.inverted), examples=EXAMPLES))
    assert failed.outcome.value == "1"
    assert "the wrong answer gets 2" in failed.outcome.why
    assert "inverted 0, 1" in failed.outcome.why


def test_a_reward_function_that_cannot_score_an_example_is_a_failure(checked):
    report = checked(rewards=(twins.letters,), examples=[{"prompt": "3+4=", "right": "7"}])
    assert "KeyError" in only(report).outcome.why


def test_what_the_examples_logged_is_not_in_the_run(base, tmp_path):
    def logs(completions, log_metric, **_):
        log_metric("asked", float(len(completions)))
        return twins.letters(completions)

    trainer = twins.trainer(base, tmp_path, rewards=(logs,))
    trainer.add_callback(Preflight(trainer, examples=EXAMPLES, quiet=True))
    trainer.train()
    assert [row["asked"] for row in trainer.state.log_history if "asked" in row] == [8.0] * 3


def test_dropout_in_the_loss_is_named(base, tmp_path):
    folder, _ = base
    model = AutoModelForCausalLM.from_pretrained(folder, attention_dropout=0.5)
    model.model.layers[0].mlp.register_module("drop", torch.nn.Dropout(0.5))
    model.model.layers[0].mlp.register_forward_hook(lambda mlp, _, out: mlp.drop(out))
    trainer = twins.trainer(base, tmp_path, model=model, **OLD)
    preflight = Preflight(trainer, quiet=True)
    trainer.add_callback(preflight)
    trainer.train()
    failed = {check.name: check.outcome.why for check in preflight.report.failed}
    assert set(failed) == {"ratio-is-one", "logps-of-tokens"}
    assert all("dropout of 0.5 is on" in why for why in failed.values())


def test_an_update_that_bfloat16_cannot_hold_is_named(base, tmp_path):
    folder, _ = base
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
    trainer = twins.trainer(base, tmp_path, model=model, learning_rate=1e-9)
    preflight = Preflight(trainer, quiet=True)
    trainer.add_callback(preflight)
    trainer.train()
    failed = only(preflight.report)
    assert failed.name == "weights-moved"
    assert "rounding of bfloat16" in failed.outcome.why


def test_bfloat16_s_own_rounding_is_no_failure(base, tmp_path):
    folder, _ = base
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
    trainer = twins.trainer(base, tmp_path, model=model, beta=0.04, max_steps=4, **LONG, **OLD)
    preflight = Preflight(trainer, quiet=True)
    trainer.add_callback(preflight)
    trainer.train()
    assert preflight.report.ok, str(preflight.report)
    assert names(preflight.report.unchecked) == {"ranks-differ", "right-beats-wrong"}


def test_the_modules_that_ran_count_not_the_model_they_were_called_through(checked):
    report = checked(twins.DeepCopied)
    assert "sampler-has-weights" in names(report.passed), str(report)


def test_a_step_that_warms_up_from_zero_is_waited_for(checked):
    report = checked(lr_scheduler_type="linear", warmup_steps=2, max_steps=4)
    assert {"weights-moved", "sampler-has-weights"} <= names(report.passed), str(report)


def test_a_check_that_a_method_means_otherwise_can_be_left_out(checked):
    report = checked(twins.NotCentred, skip=["group-advantages-centred"])
    assert report.ok
    assert "group-advantages-centred" not in names(report.checks)


@pytest.mark.parametrize(
    ("kind", "stop", "steps"),
    [
        (twins.GRPOTrainer, "never", 5),
        (twins.GRPOTrainer, "failed", 5),
        (twins.GRPOTrainer, "always", 2),
        (twins.NotCentred, "failed", 2),
    ],
)
def test_a_rehearsal_ends_when_it_knows(base, tmp_path, kind, stop, steps):
    trainer = twins.trainer(base, tmp_path, kind, max_steps=5)
    trainer.add_callback(Preflight(trainer, stop=stop, quiet=True))
    trainer.train()
    assert trainer.state.global_step == steps


def test_training_goes_exactly_as_it_would_without(base, tmp_path):
    def weights(*, looked_at):
        trainer = twins.trainer(base, tmp_path, beta=0.04, max_steps=4, **OLD)
        before = set(vars(trainer))
        if looked_at:
            trainer.add_callback(Preflight(trainer, examples=EXAMPLES, quiet=True))
        trainer.train()
        assert {name for name in vars(trainer) if name.startswith("_comp")} <= before | {
            "_compiled_call_impl"
        }
        return [p.detach().clone() for p in trainer.model.parameters()]

    plain, watched = weights(looked_at=False), weights(looked_at=True)
    assert all(torch.equal(a, b) for a, b in zip(plain, watched, strict=True))


def test_rloo_is_checked_too(base, tmp_path):
    folder, tok = base
    trainer = RLOOTrainer(
        model=str(folder),
        args=RLOOConfig(
            output_dir=str(tmp_path), per_device_train_batch_size=8, num_generations=4,
            max_completion_length=6, learning_rate=1e-3, lr_scheduler_type="constant", max_steps=3,
            beta=0.05, report_to="none", use_cpu=True, bf16=False, gradient_checkpointing=False,
            disable_tqdm=True,
        ),
        reward_funcs=[twins.letters],
        train_dataset=twins.Dataset.from_list(twins.problems(64, 7)),
        processing_class=tok,
    )  # fmt: skip
    preflight = Preflight(trainer, quiet=True)
    trainer.add_callback(preflight)
    trainer.train()
    report = preflight.report
    assert report.ok, str(report)
    assert names(report.unchecked) == {
        "kl-to-reference-is-zero", "ranks-differ", "right-beats-wrong"
    }  # fmt: skip


def test_a_trainer_without_samples_has_its_weights_checked_and_says_so(base, tmp_path):
    folder, tok = base
    trainer = SFTTrainer(
        model=str(folder),
        args=SFTConfig(
            output_dir=str(tmp_path), max_steps=2, per_device_train_batch_size=2, use_cpu=True,
            bf16=False, report_to="none", disable_tqdm=True, gradient_checkpointing=False,
        ),
        train_dataset=twins.Dataset.from_list([{"prompt": "3+4=", "completion": "7"}] * 8),
        processing_class=tok,
    )  # fmt: skip
    preflight = Preflight(trainer, quiet=True)
    trainer.add_callback(preflight)
    trainer.train()
    assert names(preflight.report.passed) == {"weights-moved"}
    why = {check.outcome.why for check in preflight.report.unchecked}
    assert "SFTTrainer does not train on samples of its own" in why


def test_the_report_is_printed_once_and_is_an_event_of_the_run(base, tmp_path, capsys):
    trainer = twins.trainer(base, tmp_path, twins.NotCentred)
    trainer.add_callback(Record(trainer))
    trainer.add_callback(Preflight(trainer))
    trainer.train()
    assert capsys.readouterr().err.count("preflight: not ready") == 1
    run = Recorded.read(tmp_path)
    facts = run.of("preflight")[0].facts
    assert [text.split(":")[0] for text in facts["failed"]] == ["group-advantages-centred"]
    assert "ranks-differ" in facts["not_checked"]
    assert "weights-moved" in facts["passed"]
    # With the trainer in hand TRL need not print the completions for them to be recorded.
    assert [table.steps.tolist() for table in run.tables("completions")] == [
        [step] * 8 for step in (1, 2, 3)
    ]


class Engine:
    """An engine with its own weights, out of sight, which reports its log-probabilities."""

    def __init__(self, *, updates):
        self.updates = updates
        self.model = None

    @torch.no_grad()
    def __call__(self, prompts, trainer):
        if self.model is None or self.updates:
            self.model = twins.copied(trainer.model)
            self.model.can_generate = lambda: False
        tok = trainer.processing_class
        prompt_ids = tok(prompts, add_special_tokens=False)["input_ids"]
        ids = torch.tensor(prompt_ids)
        drawn, logprobs = [], []
        for _ in range(4):
            logps = self.model(ids).logits[:, -1].log_softmax(-1)
            token = logps.exp().multinomial(1)
            drawn.append(token)
            logprobs.append(logps.gather(1, token))
            ids = torch.cat([ids, token], dim=1)
        return {
            "prompt_ids": prompt_ids,
            "completion_ids": torch.cat(drawn, dim=1).tolist(),
            "logprobs": torch.cat(logprobs, dim=1).tolist(),
        }


@pytest.mark.parametrize(("updates", "kind"), [(True, "passed"), (False, "failed")])
def test_an_engine_out_of_sight_is_judged_by_its_log_probabilities(base, tmp_path, updates, kind):
    class WithEngine(twins.GRPOTrainer):
        def __init__(self, **said):
            super().__init__(**said, rollout_func=Engine(updates=updates))

    def varied(completions, **_):
        return [float(sum(map(ord, c)) % 7) for c in completions]

    trainer = twins.trainer(base, tmp_path, WithEngine, rewards=(varied,), learning_rate=1e-2)
    preflight = Preflight(trainer, quiet=True)
    trainer.add_callback(preflight)
    trainer.train()
    assert "sampler-has-weights" in names(getattr(preflight.report, kind)), str(preflight.report)
    assert kind == "passed" or only(preflight.report)
