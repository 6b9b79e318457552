"""The trainer's state: rows by step, totals as settings, a cut document as its rows so far."""

import json

import log_checks
import numpy as np
import pytest
from loading import read_log

from rlvitals.errors import UnreadableLog
from rlvitals.readers import trainer_state
from rlvitals.readers.formats.lines import REPLACED_NOTE
from rlvitals.readers.select import reader_of

READER = trainer_state.READER


def history(count):
    rows = []
    for step in range(1, count + 1):
        row = {"epoch": step / 10, "step": step * 10, "loss": 1 / step, "kl": float("nan")}
        rows.append(row | {"reward": None if step % 3 == 0 else step * 12.25})
        if step % 4 == 0:
            rows.append({"epoch": step / 10, "step": step * 10, "eval_loss": 2 / step})
    return rows


def state(rows, **more):
    facts = {"best_metric": None, "global_step": 10, "log_history": rows, "logging_steps": 10}
    return {**facts, "max_steps": 500, "save_steps": 100, "stateful_callbacks": {"a": [1]}, **more}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "trainer_state.json"
    path.write_text(json.dumps(state(history(12)), indent=2))
    return path


def test_rows_and_settings(path):
    assert reader_of(path) is READER
    log, _ = READER.read(path, None)
    assert log.series["loss"].steps.tolist() == list(range(10, 130, 10))
    assert log.series["eval_loss"].steps.tolist() == [40, 80, 120]
    assert log.series["reward"].steps.tolist() == [10, 20, 40, 50, 70, 80, 100, 110]
    assert np.isnan(log.series["kl"].values).all()
    assert len(log.series["kl"]) == 12
    assert "step" not in log.series
    assert log.settings == {"total_steps": 500, "logging_steps": 10, "save_steps": 100}
    assert log.notes == ("4 nulls left out: 4 under `reward`",)


def test_the_last_row_of_a_finished_training_is_no_point(path):
    last = {"step": 120, "train_runtime": 60.5, "train_loss": 0.25, "epoch": 1.2}
    path.write_text(json.dumps(state([*history(2), last])))
    log, _ = READER.read(path, None)
    assert log.settings["train_runtime"] == 60.5
    assert log.settings["train_loss"] == 0.25
    assert not {"train_runtime", "train_loss"} & set(log.series)
    assert log.series["epoch"].steps.tolist() == [10, 20]


def test_cuts_read_as_prefixes(path):
    assert path.stat().st_size < 8000
    assert log_checks.check_truncations(READER, path, path.read_bytes(), refusals=True) > 0.8


def test_a_cut_is_said(path):
    text = path.read_text()
    path.write_text(text[: text.index('"step": 50')])
    log, _ = READER.read(path, None)
    assert log.notes == (
        "the file is cut short: 5 rows before the cut",
        "1 null left out: 1 under `reward`",
    )
    assert log.series["loss"].steps.tolist() == [10, 20, 30, 40]


def test_a_later_state_reads_on(path):
    rows = history(12)
    path.write_text(json.dumps(state(rows[:7])))
    first, cursor = READER.read(path, None)
    path.write_text(json.dumps(state(rows)))
    rest, cursor = READER.read(path, cursor)
    assert first.series["loss"].steps.tolist() + rest.series["loss"].steps.tolist() == list(
        range(10, 130, 10)
    )
    again, _ = READER.read(path, cursor)
    assert log_checks.points(again) == {}


def test_a_state_of_another_training_is_read_from_its_start(path):
    _, cursor = READER.read(path, None)
    path.write_text(json.dumps(state(history(3))))
    log, _ = READER.read(path, cursor)
    assert log.notes == (REPLACED_NOTE, "1 null left out: 1 under `reward`")
    assert log.series["loss"].steps.tolist() == [10, 20, 30]


@pytest.mark.parametrize(
    "row", [[1], "x", {"loss": 1.0}, {"step": 1.5, "loss": 1.0}, {"step": None}]
)
def test_rows_without_a_step_are_refused_and_counted(path, row):
    path.write_text(json.dumps(state([*history(2), row, *history(1)])))
    log, _ = READER.read(path, None)
    assert log.notes[0].startswith("1 row refused: row 3 of log_history")
    assert log.series["loss"].steps.tolist() == [10, 20, 10]


@pytest.mark.parametrize(
    "junk", [b"{", b'{"log_history": []}', b'{"a": 1}', b'{"log_history": {}}', b"{\xff\xfe\x00"]
)
def test_junk_is_refused_by_name(path, junk):
    path.write_bytes(junk)
    with pytest.raises(UnreadableLog, match="log_history") as error:
        read_log(path)
    assert str(path) in error.value.where


def test_deep_nesting_is_no_crash(path):
    path.write_text('{"log_history": [' + "[" * 100_000)
    with pytest.raises(UnreadableLog, match="cut short"):
        READER.read(path, None)


def test_a_state_of_many_gigabytes_is_not_held(path):
    with path.open("r+b") as file:
        file.truncate(10 * 2**30)
    with pytest.raises(UnreadableLog, match="more than 1024 MiB"):
        READER.read(path, None)
