"""The last line of a quick test follows from the run's numbers: one test for each ending."""

import io
import shutil

import pytest
import trained

import rlvitals
from rlvitals.cli import main
from rlvitals.trainers.language import evaluate_model
from rlvitals.trainers.language.language_harness import TrainingResult
from rlvitals.trainers.language.quick_test import Comparison, compare, last_line

pytestmark = pytest.mark.filterwarnings("ignore", "error:::rlvitals")  # transformers' own
SHORT = (
    "--vlm-name", "tiny-lm", "--quick-test", "--max-steps", "2", "--warm-start-steps", "40",
    "--batch-size", "8", "--held-out", "16", "--plots-dir", "", "--report-to", "none",
)  # fmt: skip


def comparison(gained, lost, kept=20, wrong=30):
    """Answers of which so many are gained, lost, right both times and wrong both times."""
    before = (False,) * gained + (True,) * (lost + kept) + (False,) * wrong
    after = (True,) * gained + (False,) * lost + (True,) * kept + (False,) * wrong
    return Comparison(before, after, steps=60)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run with checkpoints whose training was too short to learn."""
    folder = tmp_path_factory.mktemp("quick") / "run"
    trained.train(folder, "psr", training__max_steps=2, data__held_out=16)
    return TrainingResult(folder, "finished", 0, "")


@pytest.mark.parametrize(
    ("gained", "lost", "p"),
    [
        (0, 0, 1.0),
        (1, 0, 1.0),
        (5, 0, 2 / 32),
        (6, 0, 2 / 64),
        (0, 6, 2 / 64),
        (8, 2, 2 * (1 + 10 + 45) / 1024),
        (3, 3, 1.0),
    ],
)
def test_the_sign_test_by_hand(gained, lost, p):
    assert comparison(gained, lost).p_value() == pytest.approx(p)


def test_many_answers_do_not_overflow_the_sign_test():
    assert comparison(5000, 1000).p_value() < 1e-100


@pytest.mark.parametrize(
    ("gained", "lost", "begin", "numbers"),
    [
        (
            24, 1, "all parts ran, and 60 steps show a rise",
            ("58.7% of 75 unseen questions are answered right, 28.0% before training "
            "(24 gained, 1 lost, sign test p < 0.001)"),
        ),
        (
            0, 7, "all parts ran, and 60 steps show a fall",
            ("35.1% of 57 unseen questions are answered right, 47.4% before training "
            "(0 gained, 7 lost, sign test p = 0.016)"),
        ),
        (
            8, 2, "all parts ran; no rise in 60 steps, which may be too few to learn",
            ("46.7% of 60 unseen questions are answered right, 36.7% before training "
            "(8 gained, 2 lost, sign test p = 0.11)"),
        ),
    ],
)  # fmt: skip
def test_a_rise_a_fall_and_chance_are_told_apart(gained, lost, begin, numbers):
    assert comparison(gained, lost).sentence() == f"{begin}: {numbers}"


@pytest.mark.soak
def test_the_first_and_the_newest_policy_answer_the_same_questions(run):
    asked = compare(run.folder, questions=10)
    assert asked.steps == 2
    for step, answers in ((0, asked.before), (2, asked.after)):
        policy = evaluate_model.load(run.folder, step=step)
        assert answers == evaluate_model.evaluate(policy, questions=10, samples=0).right_questions
    assert len(compare(run.folder).after) == 16  # no more than there are


@pytest.mark.soak
def test_its_progress_is_gone_when_it_has_asked(run, monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stderr", terminal)
    compare(run.folder, questions=2)
    assert "Asking unseen questions at step 2" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_a_training_that_was_stopped_is_no_whole_test(run):
    line, all_ran = last_line(run._replace(status="stopped"))
    assert (line, all_ran) == ("Quick test: not all parts ran: the training was stopped.", False)


def test_rewards_that_failed_are_counted(run):
    line, all_ran = last_line(run._replace(failed_rewards=3))
    assert line == "Quick test: not all parts ran: 3 rewards could not be computed."
    assert not all_ran


def test_without_held_out_questions_the_log_is_judged(tmp_path, tiny):
    folder = tmp_path / "run"
    trained.train(folder, "psr", tiny, data__held_out=0, **trained.SAID)
    line, all_ran = last_line(TrainingResult(folder, "finished", 0, ""))
    verdict = rlvitals.diagnose(folder).verdict
    assert line == (
        "Quick test: all parts ran; no unseen questions were asked (its task keeps no questions "
        f"back); by its log the training is {verdict.word.value}: {verdict.why}."
    )
    assert all_ran


@pytest.mark.parametrize("broken", ["checkpoint", "base"])
def test_a_damaged_run_is_no_whole_test(run, tmp_path, broken):
    folder = shutil.copytree(run.folder, tmp_path / "run")
    damaged = [folder / "base"] if broken == "base" else folder.glob("checkpoint-*")
    for place in damaged:
        weights = place / "model.safetensors"
        weights.write_bytes(weights.read_bytes()[:-1])
    line, all_ran = last_line(run._replace(folder=folder))
    assert line.startswith("Quick test: not all parts ran: ")
    assert not all_ran


@pytest.mark.soak
@pytest.mark.parametrize(("function", "code"), [("accuracy_reward", 0), ("trained:raising", 1)])
def test_the_command_ends_with_the_line(function, code, tmp_path, capsys):
    where = ("--output-dir", str(tmp_path / "run"))
    rewards = ("--functions", function, "--correctness", function.rpartition(":")[2])
    assert main(["train", "psr", *SHORT, *rewards, *where]) == code
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("Quick test: all parts ran" if code == 0 else "Quick test: not all")


@pytest.mark.soak
def test_rlhf_ends_with_the_line_too(tmp_path, capsys):
    short = ("--quick-test", "--total-episodes", "32", "--batch-size", "16", "--held-out", "16")
    warm = ("--warm-start-steps", "40", "--report-to", "none")
    assert main(["train", "rlhf", *short, *warm, "--output-dir", str(tmp_path / "run")]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("Quick test: all parts ran")
