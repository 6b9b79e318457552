"""The two runs that the project ships: what `make demo` shows."""

from pathlib import Path

import pytest

import rlvitals
from rlvitals.cli import main
from rlvitals.diagnosis.verdict import Word

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def names(case):
    yield case.rule.name
    for symptom in case.symptoms:
        yield from names(symptom)


def test_the_failing_run_is_explained_by_its_learning_rate():
    found = rlvitals.diagnose(EXAMPLES / "failing")
    assert found.verdict.word is Word.COLLAPSED
    cause = found.cases[0]
    assert cause.rule.name == "learning-rate-jump"
    assert {"entropy-collapse", "kl-spike", "return-collapse"} <= set(names(cause))
    # The rate was raised at half of the run, 61,440 steps, in force until the next row's end.
    assert cause.finding.began == 31_744


def test_nothing_is_found_in_the_healthy_run():
    found = rlvitals.diagnose(EXAMPLES / "healthy")
    assert not found.cases
    assert found.verdict.word in (Word.LEARNING, Word.CONVERGED)


@pytest.mark.parametrize(("run", "code"), [("failing", 1), ("healthy", 0)])
def test_exit_codes(run, code, capsys):
    assert main(["diagnose", str(EXAMPLES / run)]) == code
    assert capsys.readouterr().out


def test_a_run_that_has_just_begun_is_never_a_pass(tmp_path, capsys):
    rows = (EXAMPLES / "healthy" / "progress.csv").read_text().splitlines(keepends=True)
    (tmp_path / "progress.csv").write_text("".join(rows[:6]))
    assert main(["diagnose", str(tmp_path)]) == 4
    said = capsys.readouterr().out
    assert "UNKNOWN" in said
    assert "Log " in said
