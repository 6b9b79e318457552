"""What a Trainer logs is in its run folder, under its own names, at its own steps."""

import json
import subprocess
import sys

import pytest
import trl_twins as twins
from datasets import Dataset
from hf_twins import Asks
from recorded import Recorded
from trl import GRPOTrainer, SFTConfig, SFTTrainer

import rlvitals
from rlvitals.integrations import transformers as vitals

pytestmark = pytest.mark.filterwarnings("ignore", "error:::rlvitals")
WITH = {"report_to": "rlvitals"}


@pytest.fixture(autouse=True)
def registered():
    vitals.register()


def logged(folder):
    """The Trainer's own account of what it logged: its log of the last checkpoint."""
    newest = max(folder.glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]))
    return json.loads((newest / "trainer_state.json").read_text())["log_history"]


def agrees(run, history):
    """Whether every number of a Trainer's history was recorded at its step."""
    told = {(row["step"], k, v) for row in history for k, v in row.items() if k != "step"}
    kept = {(row["step"], k, v) for row in run.rows() for k, v in row.items() if k != "step"}
    return {t for t in told if t[2] is not None} <= kept


def test_grpo_is_recorded_by_its_name_in_report_to(base, tmp_path):
    out = tmp_path / "out"
    trainer = twins.trainer(
        base, out, run_name="sums", save_strategy="steps", save_steps=3, beta=0.04, **WITH
    )
    trainer.train()
    run = Recorded.read(out)
    assert agrees(run, logged(out))
    assert agrees(run, trainer.state.log_history)
    assert [step for step, _ in run.series("reward")] == [1, 2, 3]
    assert run.series("axis/tokens")[-1] == run.series("num_tokens")[-1]
    assert run.about.name == "sums"
    assert run.about.framework == "trl-grpo"
    assert run.about.settings["num_generations"] == 4
    assert run.about.settings["max_steps"] == 3
    assert run.about.settings["model_config/hidden_size"] == 64
    assert run.about.settings["trainable_parameters"] == run.about.settings["parameters"] > 100_000
    assert run.kinds()[:2] == ["start", "train_begin"]
    assert [(e.step, e.facts["folder"]) for e in run.of("checkpoint")] == [(3, "checkpoint-3")]
    assert run.of("train_end")[0].step == 3
    assert run.of("finish")[0].facts["status"] == "finished"


def test_a_secret_among_the_arguments_never_reaches_the_disk(base, tmp_path):
    token = "hf_" + "aB3" * 11
    twins.trainer(base, tmp_path / "out", hub_token=token, **WITH).train()
    for path in (tmp_path / "out").rglob("*"):
        assert not path.is_file() or token.encode() not in path.read_bytes(), path


def test_the_steps_of_a_run_that_counts_epochs_are_its_budget(base, tmp_path):
    twins.trainer(base, tmp_path, max_steps=-1, num_train_epochs=0.125, **WITH).train()
    run = Recorded.read(tmp_path)
    assert run.about.settings["max_steps"] == run.of("train_end")[0].step == 4


def test_completions_are_a_table_of_each_step_with_rewards_and_advantages(base, tmp_path):
    trainer = twins.trainer(
        base, tmp_path, rewards=(twins.letters, twins.correct), log_completions=True, **WITH
    )
    trainer.train()
    tables = Recorded.read(tmp_path).tables("completions")
    assert [table.steps.tolist() for table in tables] == [[step] * 8 for step in (1, 2, 3)]
    assert set(tables[0].columns) == {"prompt", "completion", "letters", "correct", "advantage"}
    last = tables[-1].columns
    assert list(last["letters"]) == twins.letters(last["completion"])
    assert list(last["completion"]) == list(trainer._logs["completion"])


def test_an_evaluation_s_completions_do_not_take_the_place_of_training_s(base, tmp_path):
    twins.trainer(
        base, tmp_path, log_completions=True, eval_strategy="steps", eval_steps=2,
        per_device_eval_batch_size=4, rows=4, **WITH
    ).train()  # fmt: skip
    tables = Recorded.read(tmp_path).tables("completions")
    assert [(int(t.steps[0]), len(t)) for t in tables] == [(1, 8), (2, 8), (2, 8), (3, 8), (3, 8)]
    two = [list(table.columns["completion"]) for table in tables[1:3]]
    assert two[0] != two[1]


def test_sft_with_evaluation_and_a_resume_is_one_run_of_two_attempts(base, tmp_path):
    def sft(steps):
        folder, tok = base
        rows = [{"prompt": "3+4=", "completion": "7"}, {"prompt": "1+1=", "completion": "2"}] * 8
        return SFTTrainer(
            model=str(folder),
            args=SFTConfig(
                output_dir=str(tmp_path), max_steps=steps, per_device_train_batch_size=4,
                logging_steps=1, eval_strategy="steps", eval_steps=2, save_steps=2, use_cpu=True,
                bf16=False, disable_tqdm=True, gradient_checkpointing=False, **WITH,
            ),
            train_dataset=Dataset.from_list(rows),
            eval_dataset=Dataset.from_list(rows[:4]),
            processing_class=tok,
        )  # fmt: skip

    sft(2).train()
    assert Recorded.read(tmp_path).about.framework == ""  # its keys tell: no table is SFT's own
    again = sft(4)
    again.train(resume_from_checkpoint=True)
    run = Recorded.read(tmp_path)
    assert len(run.about.attempts) == 2
    assert [(e.step, e.facts["max_steps"]) for e in run.of("train_begin")] == [(0, 2), (2, 4)]
    assert [step for step, _ in run.series("eval_loss")] == [2, 4]
    assert agrees(run, again.state.log_history)


def test_an_evaluation_after_training_is_recorded_and_closed(base, tmp_path):
    trainer = twins.trainer(
        base, tmp_path, eval_strategy="no", rows=4, per_device_eval_batch_size=4, **WITH
    )
    trainer.train()
    found = trainer.evaluate()
    run = Recorded.read(tmp_path)
    assert run.series("eval_reward") == [(3, found["eval_reward"])]
    assert [e.facts["status"] for e in run.of("finish")] == ["finished", "finished"]


def test_what_someone_outside_asks_for_is_done_after_the_step(base, tmp_path):
    trainer = twins.trainer(base, tmp_path, max_steps=5, save_strategy="steps")
    trainer.add_callback(vitals.Record(flush_seconds=0.01))
    trainer.add_callback(Asks(tmp_path, "save", "stop"))
    trainer.train()
    assert trainer.state.global_step == 2
    assert (tmp_path / "checkpoint-2").is_dir()


@pytest.mark.parametrize("schedule", ["linear", "constant"])
def test_the_learning_rate_is_lowered_from_the_next_step_on(base, tmp_path, schedule):
    def rates(out, *callbacks):
        trainer = twins.trainer(base, out, max_steps=5, lr_scheduler_type=schedule, **WITH)
        for callback in callbacks:
            trainer.add_callback(callback)
        trainer.train()
        return [value for _, value in Recorded.read(out).series("learning_rate")]

    plain = rates(tmp_path / "plain")
    lowered = rates(
        tmp_path / "lowered", Asks(tmp_path / "lowered", "lower-rate", during=2, factor=0.25)
    )
    expected = [*plain[:2], *(rate / 4 for rate in plain[2:])]
    assert lowered == pytest.approx(expected)


def test_it_is_diagnosed_as_the_trainer_s_own_log_is(base, tmp_path):
    out = tmp_path / "out"
    twins.trainer(base, out, max_steps=6, save_strategy="steps", save_steps=6, **WITH).train()
    theirs = rlvitals.trace(out / "checkpoint-6" / "trainer_state.json")
    ours = rlvitals.trace(out / "run.json")
    assert ours.profile == theirs.profile == "grpo"
    assert set(theirs.series) <= set(ours.series)
    for name, series in theirs.series.items():
        assert ours[name].steps.tolist()[: len(series)] == series.steps.tolist(), name
        assert ours[name].values.tolist()[: len(series)] == series.values.tolist(), name
    assert ours.budget.steps == theirs.budget.steps == 6
    assert ours.number("num_generations") == 4
    assert ours.lifecycle.over


def test_a_run_that_is_open_already_is_recorded_into_and_left_open(base, tmp_path):
    with rlvitals.start(tmp_path / "mine", settings={"judge": "v2"}) as run:
        trainer = twins.trainer(base, tmp_path / "out")
        trainer.add_callback(vitals.Record(run=run))
        trainer.train()
        run.log(4, {"mine": 1.0})
    found = Recorded.read(tmp_path / "mine")
    assert found.series("mine") == [(4, 1.0)]
    assert len(found.series("reward")) == 3
    assert found.about.settings["judge"] == "v2"
    assert found.of("settings")[0].facts["changed"]["num_generations"]["to"] == 4
    assert len(found.of("finish")) == 1


CRASH = """
import sys; sys.path[:0] = sys.argv[2:]
import trl_twins, tiny_language
from pathlib import Path
from rlvitals.integrations import transformers as vitals

def breaks(completions, trainer_state, **_):
    if trainer_state.global_step == 2:
        raise ZeroDivisionError("the judge is down")
    return [float(len(c)) for c in completions]

vitals.register()
base = tiny_language.warm_folder(Path(sys.argv[1]) / "base", steps=0)
trl_twins.trainer(base, Path(sys.argv[1]) / "out", rewards=(breaks,), report_to="rlvitals").train()
"""


@pytest.mark.soak
def test_an_exception_ends_the_run_with_its_traceback(tmp_path):
    paths = [p for p in sys.path if p.endswith(("integrations", "scripts"))]
    done = subprocess.run(
        [sys.executable, "-c", CRASH, str(tmp_path), *paths], capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert "ZeroDivisionError: the judge is down" in done.stderr
    run = Recorded.read(tmp_path / "out")
    assert [step for step, _ in run.series("reward")] == [1, 2]
    facts = run.of("finish")[-1].facts
    assert facts["status"] == "failed"
    assert "the judge is down" in facts["traceback"]


def test_training_again_after_an_exception_closes_the_first_attempt_as_failed(base, tmp_path):
    def breaks(completions, trainer_state, **_):
        if trainer_state.global_step == 1 and not fixed:
            raise ZeroDivisionError
        return twins.letters(completions)

    fixed = []
    trainer = twins.trainer(base, tmp_path, GRPOTrainer, rewards=(breaks,), **WITH)
    with pytest.raises(ZeroDivisionError):
        trainer.train()
    fixed.append(True)
    trainer.train()
    run = Recorded.read(tmp_path)
    assert [e.facts["status"] for e in run.of("finish")] == ["failed", "finished"]
