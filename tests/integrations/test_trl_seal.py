"""A GRPO training that is resumed goes on to the bit: it is cut where a generation ends."""

import os
import shutil
import signal
from types import SimpleNamespace

import forked
import hf_twins as plain
import pytest
import trl_twins as twins
from effort import sampled
from trl import RLOOConfig, RLOOTrainer

import rlvitals
from rlvitals.checkpoints import manifest
from rlvitals.integrations import grpo_boundaries
from rlvitals.integrations import transformers as vitals

pytestmark = [
    pytest.mark.filterwarnings("ignore", "error:::rlvitals"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
]
STEPS = 9


@pytest.fixture(autouse=True)
def registered():
    vitals.register()


def grpo(base, out, *callbacks, **options):
    said = {"max_steps": STEPS, "save_strategy": "steps", "save_steps": 3, "report_to": "rlvitals"}
    trainer = twins.trainer(base, out, **said | options)
    for one in callbacks:
        trainer.add_callback(one)
    return trainer


def saved(out):
    return sorted(int(path.name.split("-")[1]) for path in out.glob("checkpoint-*"))


def resumed_at(step, straight, out, make):
    """Go on from one checkpoint of a training, in a folder where there is no later one."""
    out.mkdir()
    shutil.copytree(straight / f"checkpoint-{step}", out / f"checkpoint-{step}")
    trainer = make(out)
    assert plain.go(trainer) == str(out / f"checkpoint-{step}")
    return forked.state(out / f"checkpoint-{trainer.state.global_step}")


WAYS = {  # the first has all of it
    "both, and accumulation": (
        {
            "num_iterations": 2,
            "steps_per_generation": 4,
            "gradient_accumulation_steps": 2,
            "per_device_train_batch_size": 2,
        },
        [4, 8, 9],
    ),
    "one step a generation": ({}, [3, 6, 9]),
    "num_iterations": ({"num_iterations": 2}, [4, 6, 9]),
    "steps_per_generation": (
        {"steps_per_generation": 4, "per_device_train_batch_size": 2},
        [4, 8, 9],
    ),
    "no multiple of each other": (
        {
            "steps_per_generation": 3,
            "gradient_accumulation_steps": 2,
            "per_device_train_batch_size": 4,
        },
        [3, 6, 9],
    ),
}


@pytest.mark.parametrize("way", sampled(WAYS, 6))
def test_resumed_where_it_saves_it_ends_to_the_bit_as_it_would_have(base, tmp_path, way, capsys):
    options, steps = WAYS[way]
    straight = tmp_path / "straight"
    grpo(base, straight, **options).train()
    assert saved(straight) == steps
    said = capsys.readouterr().err
    assert ("TRL goes on exactly only where a generation ends" in said) == (steps[0] != 3)
    end = forked.state(straight / f"checkpoint-{STEPS}")
    for step in steps[:-1]:
        went = resumed_at(
            step, straight, tmp_path / f"from-{step}", lambda out: grpo(base, out, **options)
        )
        assert went == end, step
        assert f"resumed at step {step} from checkpoint-{step}: bit-exact" in (
            capsys.readouterr().err
        )


@pytest.mark.soak
def test_killed_with_sigkill_and_run_again_it_ends_the_same(base, tmp_path, capfd):
    straight, out = tmp_path / "straight", tmp_path / "out"
    options = {"num_iterations": 2, "beta": 0.04}
    grpo(base, straight, **options).train()

    def die():
        plain.go(grpo(base, out, plain.Dies(7), **options))

    assert forked.apart(die) == -signal.SIGKILL
    assert forked.apart(lambda: plain.go(grpo(base, out, **options))) == 0
    assert "resumed at step 6 from checkpoint-6: bit-exact" in capfd.readouterr().err
    end = f"checkpoint-{STEPS}"
    assert forked.state(out / end) == forked.state(straight / end)


@pytest.mark.soak
def test_a_later_epoch_has_its_own_order_of_the_data(base, tmp_path, capsys):
    options = {"per_device_train_batch_size": 32, "max_steps": 19, "save_steps": 17}  # 8 an epoch
    straight = tmp_path / "straight"
    grpo(base, straight, **options).train()
    end = forked.state(straight / "checkpoint-19")
    left = grpo(base, tmp_path / "trl", **options, report_to="none")
    left.train(resume_from_checkpoint=str(straight / "checkpoint-17"))
    assert forked.state(tmp_path / "trl" / "checkpoint-19") != end  # TRL by itself
    went = resumed_at(17, straight, tmp_path / "ours", lambda out: grpo(base, out, **options))
    assert went == end
    assert "the order of the data is that of epoch 3 again" in capsys.readouterr().err


def test_a_save_within_a_generation_says_what_it_lost(base, tmp_path, capsys):
    out = tmp_path / "out"
    grpo(base, out, num_iterations=2).train()
    assert manifest.verify(out / "checkpoint-6").facts["not_saved"] == []
    assert manifest.verify(out / "checkpoint-9").facts["not_saved"] == [
        grpo_boundaries.GENERATION_LOSS
    ]
    longer = grpo(base, out, num_iterations=2, max_steps=11)
    capsys.readouterr()
    plain.go(longer)
    said = capsys.readouterr().err
    assert "the generation that was being trained on was not saved" in said
    assert saved(out) == [4, 6, 9, 11]  # the new process generates at 9, and so ends at 11


def test_a_save_that_is_asked_for_waits_too(base, tmp_path):
    asks = plain.Asks(tmp_path, "save", during=5)
    trainer = grpo(base, tmp_path, num_iterations=3, max_steps=8, save_steps=50, report_to="none")
    for one in (vitals.Record(flush_seconds=0.01), asks):
        trainer.add_callback(one)
    trainer.train()
    assert saved(tmp_path) == [6, 8]


def test_an_evaluation_that_saves_go_by_waits_with_them(base, tmp_path):
    trainer = grpo(
        base, tmp_path, num_iterations=2, rows=4, per_device_eval_batch_size=4, max_steps=8,
        eval_strategy="steps", eval_steps=3, load_best_model_at_end=True,
        metric_for_best_model="reward", greater_is_better=True, save_total_limit=1,
    )  # fmt: skip
    trainer.train()
    assert [r["step"] for r in trainer.state.log_history if "eval_reward" in r] == [4, 6, 8]
    assert trainer.state.best_global_step in saved(tmp_path)
    assert "eval_reward" in manifest.read(tmp_path / "checkpoint-8").metrics


def test_a_reference_that_moves_is_not_in_a_checkpoint_and_this_is_said(base, tmp_path, capsys):
    options = {"beta": 0.04, "sync_ref_model": True, "ref_model_sync_steps": 2, "max_steps": 6}
    straight = tmp_path / "straight"
    grpo(base, straight, **options).train()
    went = resumed_at(3, straight, tmp_path / "out", lambda out: grpo(base, out, **options))
    assert went != forked.state(straight / "checkpoint-6")
    said = capsys.readouterr().err
    assert "not bit-exact because the reference model that sync_ref_model moves" in said


def test_rloo_waits_as_well(base, tmp_path):
    folder, tok = base
    args = RLOOConfig(
        output_dir=str(tmp_path), per_device_train_batch_size=8, num_generations=4,
        max_completion_length=6, max_steps=5, save_steps=3, num_iterations=2, use_cpu=True,
        bf16=False, gradient_checkpointing=False, disable_tqdm=True, report_to="rlvitals",
    )  # fmt: skip
    RLOOTrainer(
        model=str(folder), args=args, reward_funcs=[twins.letters], processing_class=tok,
        train_dataset=twins.Dataset.from_list(twins.problems(16, 7)),
    ).train()  # fmt: skip
    assert saved(tmp_path) == [4, 5]


@pytest.mark.parametrize(
    ("passes", "accumulation", "epoch", "began", "ends"),
    [
        (1, 1, None, 0, [1, 2, 3, 4, 5, 6, 7, 8]),
        (2, 1, None, 0, [2, 4, 6, 8]),
        (2, 1, None, 3, [1, 3, 5, 7]),
        (3, 2, None, 0, [3, 6]),
        (4, 8, None, 0, [1, 2, 3, 4, 5, 6, 7, 8]),
        (3, 2, 9, 0, [3, 5, 8]),  # an epoch is five steps, the last of one forward pass
    ],
)
def test_where_generations_end(passes, accumulation, epoch, began, ends):
    cuts = grpo_boundaries.Generations(passes, accumulation, epoch, began)
    assert [step for step in range(1, 9) if cuts.ends_at(step)] == ends
    assert cuts.next_end(began + 1) in range(began + 1, began + cuts.cycle + 1)


def test_a_trainer_that_draws_nothing_has_no_generations():
    assert (
        grpo_boundaries.read_generations(SimpleNamespace(gradient_accumulation_steps=2), [1], 0)
        is None
    )


def test_the_resolver_takes_a_trainer_its_arguments_or_a_folder(base, tmp_path):
    trainer = grpo(base, tmp_path, max_steps=3)
    trainer.train()
    for where in (trainer, trainer.args, tmp_path, str(tmp_path)):
        assert rlvitals.resume_from(where) == str(tmp_path / "checkpoint-3")
    with pytest.raises(rlvitals.UsageError, match="int names no output folder"):
        rlvitals.resume_from(3)
