"""`rlvitals samples`: lists, filters, pairs, findings."""

import json

import pytest
from dialect_files import lines

import rlvitals
from rlvitals import cli

STEPS = (40, 400)


@pytest.fixture
def run(tmp_path):
    """Two steps with the same prompts: q1 learns to be brief, q2 falls, q3 stays."""
    for step, scores in zip(STEPS, ((0.0, 1.0, 0.5), (1.0, 0.0, 0.5)), strict=True):
        for name, score in zip(("q1", "q2", "q3"), scores, strict=True):
            text = f"the answer of {name} at step {step} is {score:g}" + " so" * (step // 40)
            row = {"input": name, "output": text, "gts": "1", "score": score, "step": step}
            rows = [row | {"acc": score, "data_source": "easy" if name == "q1" else "hard"}] * 2
            path = tmp_path / "rollouts" / f"{step}.jsonl"
            path.parent.mkdir(exist_ok=True)
            with path.open("a") as file:
                file.write("".join(json.dumps(r) + "\n" for r in rows))
    return tmp_path / "rollouts"


def samples(capsys, *arguments):
    code = cli.main(["samples", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def as_json(capsys, *arguments):
    code, out, _ = samples(capsys, *arguments, "--json")
    assert code == 0
    return json.loads(out)


def test_the_list(run, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    code, out, _ = samples(capsys, run)
    assert code == 0
    assert "the answer of q1 at step 40 is 0" in out
    assert "12 of 12 rollouts; 12 are saved" in out


@pytest.mark.parametrize(
    ("arguments", "numbers"),
    [
        (("--step", 40), [0, 1, 2, 3, 4, 5]),
        (("--task", "easy"), [0, 1, 6, 7]),
        (("--step", 400, "--sort", "reward"), [8, 9, 10, 11, 6, 7]),
        (("--step", 400, "--sort", "reward", "--descending"), [6, 7, 10, 11, 8, 9]),
        (("--min-reward", 0.75), [2, 3, 6, 7]),
        (("--max-reward", 0.25, "--limit", 1), [0]),
        (("--sample", 7), [7]),
        (("--error",), []),
    ],
)
def test_what_the_filters_keep(run, capsys, arguments, numbers):
    assert [s["sample"] for s in as_json(capsys, run, *arguments)["samples"]] == numbers


def test_one_rollout_in_full(run, capsys):
    _, out, _ = samples(capsys, run, "--sample", 2)
    for text in ("sample 2 · step 40 · hard", "reward 1 (acc 1)", "answer: 1", "q2", "is 1 so"):
        assert text in out


def test_the_same_prompts_of_two_steps(run, capsys):
    pairs = as_json(capsys, run, "--step", 40, "--against", 400)["pairs"]
    assert [p["change"] for p in pairs] == [1.0, -1.0, 0.0]
    assert [p["before"]["sample"]["prompt"] for p in pairs] == ["q1", "q2", "q3"]
    assert pairs[0]["after"]["parts"] == {"acc": 1.0}
    _, out, _ = samples(capsys, run, "--step", 40, "--against", 400)
    assert "3 prompts at steps 40 and 400" in out
    assert "reward 0 -> 1; acc 0 -> 1" in out
    assert "[-40-]" in out
    assert "{+400+}" in out


def test_steps_without_a_common_prompt(tmp_path, capsys):
    row = {"input": "a", "output": "b", "gts": "", "score": 0.0, "step": 1}
    lines(tmp_path / "1.jsonl", row)
    lines(tmp_path / "2.jsonl", row | {"input": "c", "step": 2})
    code, _, err = samples(capsys, tmp_path, "--step", 1, "--against", 2)
    assert code == 2
    assert "steps 1 and 2 share no prompt" in err


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--step", 41), "step 41 has no rollouts"),
        (("--against", 41), "--against compares with --step"),
        (("--task", "esy"), "did you mean easy?"),
        (("--sample", 12), "no rollout has the number 12"),
    ],
)
def test_wrong_usage(run, capsys, arguments, problem):
    code, _, err = samples(capsys, run, *arguments)
    assert code == 2
    assert problem in err


def test_a_folder_without_rollouts(tmp_path, capsys):
    code, _, err = samples(capsys, tmp_path)
    assert code == 3
    assert "no rollouts are here" in err


def test_a_terminal_obeys_no_rollout(tmp_path, capsys):
    row = {"input": "a\x1b[31m", "output": "b\x1b]0;t\x07", "gts": "", "score": 0.0, "step": 1}
    path = lines(tmp_path / "1.jsonl", row)
    for arguments in ((), ("--full",)):
        _, out, _ = samples(capsys, path, *arguments)
        assert "\x1b" not in out
        assert "\x07" not in out


CALL = {"id": "c", "function": {"name": "calc", "arguments": "6*7"}}


def test_the_rollouts_that_prove_a_finding(tmp_path, capsys):
    """Tools are given up in the middle of the run."""
    with rlvitals.start(tmp_path / "run", framework="verl") as run:
        for step in range(80):
            calls = [CALL] if step < 30 else []
            reply = {"role": "assistant", "content": f"reply {step}", "tool_calls": calls}
            run.log(
                step,
                {
                    "critic/score/mean": 0.5 - 0.004 * step,
                    "critic/rewards/mean": 0.5 - 0.004 * step,
                    "actor/pg_loss": 0.1,
                    "actor/grad_norm": 1.0,
                    "num_turns/mean": 4.0 if step < 30 else 1.0,
                    "num_turns/min": 1.0,
                    "num_turns/max": 6.0,
                },
            )
            run.log_rollouts(step, [{"prompt": "q", "messages": [reply]}])
    names = [rule.name for rule, _ in rlvitals.diagnose(tmp_path / "run").findings]
    assert "tool-use-fades" in names
    shown = as_json(capsys, tmp_path / "run", "--finding", "tool-use-fades", "--limit", 3)
    assert all(s["step"] >= 30 for s in shown["samples"])
    assert len(shown["samples"]) == 3
    code, _, err = samples(capsys, tmp_path / "run", "--finding", "tool-use-fade")
    assert code == 2
    assert "did you mean tool-use-fades?" in err
