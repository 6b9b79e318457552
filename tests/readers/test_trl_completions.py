"""TRL's completions: Parquet files written as its GRPOTrainer writes them."""

import json
import sys
from collections import deque

import log_checks
import numpy as np
import pandas as pd
import pytest
from loading import read_log
from test_sources import build, state

from rlvitals.errors import UnreadableLog
from rlvitals.metrics import canonicalize
from rlvitals.readers import select, trl_completions
from rlvitals.readers.discovery import join, sources
from rlvitals.readers.formats.lines import REPLACED_NOTE
from rlvitals.types import Log, Table

READER = trl_completions.READER
NAN = float("nan")  # what TRL has for a reward function's None


def write(output, step, rewards, completions=("a", "b", "b", " "), extra=None):
    """As `grpo_trainer.py`, log: deques into a frame, the frame into a file."""
    count = len(completions)
    table = {
        "step": [step] * count,
        "prompt": deque(["q1", "q1", "q2", "q2"][:count]),
        "completion": deque(completions),
        **{name: deque(values) for name, values in rewards.items()},
        **{name: deque(values) for name, values in (extra or {}).items()},
        "advantage": deque([0.5, -0.5, 0.0, 0.0][:count]),
    }
    path = output / "completions" / f"completions_{step:05d}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(table).to_parquet(path)
    return path


REWARDS = {"format": [1.0, 0.0, 1.0, NAN], "judge": [NAN] * 4, "length": [0.25, 0.5, 0.75, 1.0]}


def test_what_completions_amount_to(tmp_path):
    path = write(tmp_path, 10, REWARDS, extra={"tool_calls": [1, 2, 3, 4], "answer": list("wxyz")})
    assert select.may_be_log(path)
    assert select.reader_of(path) is READER
    log = read_log(path)
    assert {key: series.values.tolist() for key, series in log.series.items()} == {
        "rewards/format/mean": [pytest.approx(2 / 3)],
        "rewards/format/std": [pytest.approx(np.std([1, 0, 1], ddof=1))],
        "completions/unscored_share/format": [0.25],
        "completions/unscored_share/judge": [1.0],
        "rewards/length/mean": [0.625],
        "rewards/length/std": [pytest.approx(np.std([0.25, 0.5, 0.75, 1], ddof=1))],
        "completions/unscored_share/length": [0.0],
        "completions/zero_advantage_share": [0.5],
        "completions/unique_share": [0.75],
        "completions/empty_share": [0.25],
        "completions/mean_characters": [1.0],
    }
    assert all(series.steps.tolist() == [10] for series in log.series.values())
    table = log.tables["completions"]
    assert table.steps.tolist() == [10] * 4
    assert list(table.columns["completion"]) == ["a", "b", "b", " "]
    assert list(table.columns["format"]) == [1.0, 0.0, 1.0, None]
    assert list(table.columns["tool_calls"]) == [1, 2, 3, 4]


def test_values_are_what_pandas_reads(tmp_path):
    path = write(tmp_path, 3, REWARDS)
    frame = pd.read_parquet(path)
    log = read_log(path)
    assert log.series["rewards/format/mean"].values[0] == frame["format"].mean()
    assert log.series["rewards/format/std"].values[0] == pytest.approx(frame["format"].std())
    assert list(log.tables["completions"].columns["prompt"]) == frame["prompt"].tolist()


def test_completions_and_trainer_state_are_one_run_and_nothing_counts_twice(tmp_path):
    output = tmp_path / "out"
    for step in (1, 2, 3):
        write(output, step, {"format": [step / 4] * 4})
    row = {"loss": 0.1, "reward": 0.5, "reward_std": 0.1, "frac_reward_zero_std": 0.0}
    rows = [{**row, "step": step, "rewards/format/mean": step / 4} for step in range(1, 7)]
    files = {"out/checkpoint-6/trainer_state.json": json.dumps({"log_history": rows}).encode()}
    (run,) = sources.find(build(tmp_path, files))
    assert (run.name, len(run.files)) == ("out", 4)
    logs = sources.read(run)
    assert sorted(log.source for log in logs if log.series) == ["trainer-state", "trl-completions"]
    trace = canonicalize.trace(logs)
    assert len(trace["reward/component/format"]) == 6  # the fuller of the two
    assert trace.measured["reward/component/format"].where.endswith("trainer_state.json")
    assert trace.tables["completions"].steps.tolist() == [1] * 4 + [2] * 4 + [3] * 4


def test_completions_alone_are_a_run(tmp_path):
    for step in (5, 10, 15):
        write(tmp_path / "out", step, {"format": [step / 20, 0.0]}, ("a", "b"))
    (run,) = sources.find(tmp_path)
    trace = canonicalize.trace(sources.read(run))
    assert trace["reward/component/format"].steps.tolist() == [5, 10, 15]
    assert run.name == "out"


def test_without_pyarrow_the_rest_of_the_run_is_read(tmp_path, monkeypatch):
    for step in (1, 2, 3):
        write(tmp_path, step, REWARDS)
    alone = sources.find(tmp_path)[0]
    build(tmp_path, {"trainer_state.json": state(1, 2)})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (run,) = sources.find(tmp_path)
    logs = sources.read(run)
    assert [list(log.series) for log in logs] == [["loss"], []]
    note = "completions/completions_00001.parquet and 2 more files not read: Parquet needs pyarrow"
    assert logs[-1].notes == (f"{note}: pip install 'rlvitals[parquet]'",)
    with pytest.raises(UnreadableLog, match=r"rlvitals\[parquet\]"):
        sources.read(alone)


def test_a_file_is_read_once_and_again_when_written_over(tmp_path):
    path = write(tmp_path, 10, REWARDS)
    _, cursor = READER.read(path, None)
    log, same = READER.read(path, cursor)
    assert (log.series, log.tables, same) == ({}, {}, cursor)
    write(tmp_path, 10, {"format": [0.5] * 4})
    log, _ = READER.read(path, cursor)
    assert log.series["rewards/format/mean"].values.tolist() == [0.5]
    assert REPLACED_NOTE in log.notes


def test_cuts_and_damage_are_refused_by_name(tmp_path):
    path = write(tmp_path, 10, REWARDS)
    data = path.read_bytes()
    assert log_checks.check_truncations(READER, path, data, refusals=True) == 0
    log_checks.check_damage(READER, path, data, rounds=300)


def test_too_much_is_refused(tmp_path, monkeypatch):
    path = write(tmp_path, 10, REWARDS)
    for limit in ("MAX_COMPLETIONS", "MAX_COMPLETIONS_BYTES", "MAX_PARQUET_BYTES"):
        with monkeypatch.context() as patch:
            patch.setattr(trl_completions, limit, 3)
            with pytest.raises(UnreadableLog, match="more than"):
                READER.read(path, None)


def test_the_name_says_the_step_where_no_column_does(tmp_path):
    path = write(tmp_path, 7, REWARDS)
    pd.read_parquet(path).drop(columns="step").to_parquet(path)
    assert read_log(path).series["rewards/length/mean"].steps.tolist() == [7]
    pd.DataFrame({"step": []}).to_parquet(path)
    assert read_log(path).series == {}


def test_other_parquet_is_not_claimed(tmp_path):
    path = tmp_path / "data.parquet"
    pd.DataFrame({"step": [1], "loss": [1.0]}).to_parquet(path)
    with pytest.raises(UnreadableLog, match="not a training log"):
        select.reader_of(path)


def test_the_newest_rows_of_long_tables_are_kept(monkeypatch):
    monkeypatch.setattr(join, "MAX_TABLE_ROWS_JOINED", 5)
    tables = [Table(np.full(2, n), {"text": [f"{n}a", f"{n}b"]}) for n in range(3)]
    tables.append(Table(np.full(2, 3), {"text": ["3a", "3b"], "new": [1, 2]}))
    logs = [
        Log("trl-completions", {}, where=f"completions_{n}", tables={"completions": table})
        for n, table in enumerate(tables)
    ]
    (log,) = join.join([("", log) for log in logs])
    table = log.tables["completions"]
    assert table.steps.tolist() == [1, 2, 2, 3, 3]
    assert list(table.columns["text"]) == ["1b", "2a", "2b", "3a", "3b"]
    assert list(table.columns["new"]) == [None, None, None, 1, 2]
