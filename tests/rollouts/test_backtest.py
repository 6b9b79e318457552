"""`rlvitals backtest`: rollouts scored again, in functions that may do anything."""

import json

import pytest
from dialect_files import lines

from rlvitals import cli

REWARDS = """
WEIGHTS = {"brief": 0.1}

def correct(completions, answer, **columns):
    print("scoring")
    return [float(text == right) for text, right in zip(completions, answer)]

def brief(prompts, completions):
    return [None if not text else -len(text) for text in completions]

def _helper(completions):
    raise RuntimeError
"""


@pytest.fixture
def run(tmp_path):
    """A parser that missed every right answer: all groups are paid alike."""
    rows = [
        {"input": name, "output": text, "gts": "42", "score": 0.0, "step": step}
        for step in (1, 2)
        for name, texts in (("q1", ("42", "41")), ("q2", ("42", "42")))
        for text in texts
    ]
    for step in (1, 2):
        lines(tmp_path / "rollouts" / f"{step}.jsonl", *(r for r in rows if r["step"] == step))
    return tmp_path / "rollouts"


def backtest(capsys, *arguments):
    code = cli.main(["backtest", *map(str, arguments)])
    return code, *capsys.readouterr()


def test_who_gains_and_which_groups_get_a_signal(run, tmp_path, capsys):
    file = tmp_path / "rewards.py"
    file.write_text(REWARDS)
    code, out, _ = backtest(capsys, file, run, "--json")
    assert code == 0
    result = json.loads(out)  # what the file prints is not among it
    assert result["groups"] == 4
    assert result["groups_with_signal"] == {"paid": 0, "would_pay": 2}
    assert (result["groups_gained"], result["groups_lost"]) == (2, 0)
    assert result["changed"] == 8
    assert result["samples"][0]["would_pay"] == pytest.approx(0.8)
    assert result["samples"][0]["parts"] == {"correct": 1.0, "brief": -2.0}
    (task,) = result["tasks"]
    assert task["would_pay"] == pytest.approx((6 * 0.8 - 2 * 0.2) / 8)


def test_the_report_says_that_code_is_executed(run, tmp_path, capsys):
    file = tmp_path / "rewards.py"
    file.write_text(REWARDS)
    code, out, _ = backtest(capsys, file, run)
    assert code == 0
    assert out.startswith(f"executing {file}")
    assert "groups with a signal: 0 -> 2 of 4 (2 gained, 0 lost)" in out


WRONG = {
    "x = 1": "no function takes completions",
    "def f(completions): return [1.0]": "f gives 1 rewards for 8 completions",
    "def f(completions): return 1 / 0": "f fails: ZeroDivisionError",
    "def f(completions): exit(3)": "f fails: SystemExit",
    "def f(completions, tools): return []": "f fails: TypeError",
    "def f(completions): return ['much'] * 8": "f fails: ValueError",
    "WEIGHTS = {'g': 2}\ndef f(completions): return []": "WEIGHTS names no function: g",
    "import nothing_of_that_name": "the file fails: ModuleNotFoundError",
    "def f(": "the file fails: SyntaxError",
}


@pytest.mark.parametrize("source", WRONG)
def test_files_that_do_not_work(run, tmp_path, capsys, source):
    file = tmp_path / "rewards.py"
    file.write_text(source)
    code, _, err = backtest(capsys, file, run)
    assert code == 2
    assert WRONG[source] in err


def test_a_file_that_is_not_there(run, tmp_path, capsys):
    code, _, err = backtest(capsys, tmp_path / "none.py", run)
    assert code == 2
    assert "no Python file of reward functions is here" in err


def test_nan_is_no_reward(run, tmp_path, capsys):
    file = tmp_path / "rewards.py"
    file.write_text("def f(completions): return [float('nan')] * len(completions)")
    _, out, _ = backtest(capsys, file, run, "--json")
    result = json.loads(out)
    assert result["changed"] == 0
    assert result["tasks"][0]["would_pay"] is None
