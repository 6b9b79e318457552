"""The benchmark of agents' answers: what counts as a cause, and what each tool is given."""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "benchmarks"))

import agents  # noqa: E402 - a script, not installed
from peers import meanings  # noqa: E402


@pytest.fixture
def questions(tmp_path):
    sources = (ROOT / "examples/failing", ROOT / "examples/healthy")
    return [agents._write(tmp_path / "runs" / f"run-{i}", path) for i, path in enumerate(sources)]


def test_a_folder_gives_neither_fault_nor_source_away(questions):
    for question in questions:
        text = "".join(file.read_text() for file in question.folder.iterdir())
        assert not any(word in text for word in ("fault", "spike", "healthy", "failing", "made_by"))


def test_the_server_and_the_command_name_the_cause_within_two_kilobytes(questions):
    for answers in (agents.ask_mcp(questions), agents.ask_brief(questions)):
        failing, healthy = (answers[question.folder.name] for question in questions)
        assert (failing.named, failing.alarm) == (True, True)
        assert (healthy.named, healthy.alarm) == (False, False)
        assert 0 < failing.size <= agents.WANTED_BYTES
        assert agents.raw_size(questions[0].folder) > 5 * failing.size


def test_a_rule_that_the_fault_does_not_expect_is_an_alarm_and_no_cause(questions):
    text = json.dumps({"causes": [{"rule": "plateau", "severity": "warning"}]})
    answer = agents.judge_ours(questions[0], text)
    assert (answer.named, answer.alarm) == (False, True)
    note = json.dumps({"causes": [{"rule": "kl-spike", "severity": "note"}]})
    answer = agents.judge_ours(questions[0], note)
    assert (answer.named, answer.alarm) == (True, False)


def test_a_peer_names_a_fault_by_any_meaning_of_it_or_of_the_rules_it_expects(questions):
    failing, healthy = questions
    assert meanings.LARGE in failing.meaning
    assert healthy.meaning == frozenset()
    assert not agents.WANDB_MEANINGS["nan"] & meanings.of_fault("policy-frozen")


def test_rows_hold_every_number_of_the_log(questions):
    rows = agents.list_rows(questions[0].folder)
    lines = (questions[0].folder / "progress.csv").read_text().splitlines()
    assert len([row for row in rows if "train/approx_kl" in row]) == len(lines) - 2  # no update yet
    assert [row["_step"] for row in rows] == sorted(row["_step"] for row in rows)


@pytest.mark.soak
def test_trackio_is_asked_by_its_command(questions, tmp_path, monkeypatch):
    pytest.importorskip("trackio")
    monkeypatch.setenv("TRACKIO_DIR", "")  # restored after the test
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    summaries, values = agents.ask_trackio(questions, tmp_path / "trackio").values()
    for question in questions:
        name = question.folder.name
        assert not summaries[name].alarm
        assert summaries[name].size < values[name].size
        assert values[name].size > agents.RAW_BYTES
