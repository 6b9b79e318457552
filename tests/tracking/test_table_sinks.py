"""CSV, JSON lines and Parquet: the same numbers back, whatever is logged and however it ends."""

import csv
import errno
import json
import os

import numpy as np
import pandas as pd
import pytest
from openings import ODD, TABLE, TEXT, histogram, opening, rows

from rlvitals.errors import VitalsError
from rlvitals.readers import plain_csv, plain_jsonl
from rlvitals.tracking.sinks import csv as csv_sink
from rlvitals.tracking.sinks import file_layout, jsonl, parquet
from rlvitals.tracking.sinks.sink import Rows


def write(sink, folder, *batches, **changed):
    writing = sink.SINK.open(opening(folder, **changed))
    for batch in batches:
        writing.scalars(batch)
    writing.close("finished")


def files(folder):
    return sorted(p.relative_to(folder / "metrics").as_posix() for p in folder.rglob("metrics/*"))


def frame(folder, name):
    return pd.read_csv(folder / "metrics" / name)


def assert_same(found, *batches):
    """Every number of the rows is in the frame, to the last bit."""
    keys = batches[0].keys
    assert list(found.columns) == ["step", "time", *keys]
    assert found["step"].tolist() == [step for batch in batches for step in batch.steps]
    for column, key in enumerate(keys):
        logged = np.concatenate([batch.values[:, column] for batch in batches])
        np.testing.assert_array_equal(found[key].to_numpy(float).view("u8"), logged.view("u8"))
    times = np.concatenate([batch.times for batch in batches])
    np.testing.assert_array_equal(found["time"].to_numpy(), times)


def test_csv_keeps_every_bit(tmp_path):
    batch = rows(count=20_000)
    write(csv_sink, tmp_path, batch)
    assert_same(frame(tmp_path, "train-1.csv"), batch)


def test_each_kind_of_row_has_a_file_and_a_new_column_begins_one(tmp_path):
    first, second = rows(), rows(("episode/return", "loss"), 7)
    wider = rows(("train/loss", "train/return", "train/kl"), 50, first=100)
    turned = Rows(("train/return", "train/loss"), first.steps, first.times, first.values[:, ::-1])
    write(csv_sink, tmp_path, first, second, wider, turned)
    assert files(tmp_path) == ["metrics-1.csv", "train-1.csv", "train-2.csv"]
    assert_same(frame(tmp_path, "train-1.csv"), first, first)
    assert_same(frame(tmp_path, "metrics-1.csv"), second)
    assert_same(frame(tmp_path, "train-2.csv"), wider)


def test_names_are_quoted_and_none_stands_twice(tmp_path):
    keys = ("a,b", 'say "x"', "two\nlines", "step", "time", "logged/step", "ünïcode", " x")
    batch = rows(keys, 5)
    write(csv_sink, tmp_path, batch, batch)
    with (tmp_path / "metrics" / "metrics-1.csv").open(newline="") as file:
        head, *body = csv.reader(file)
    assert head == [
        *("step", "time", "a,b", 'say "x"', "two\nlines", "logged/logged/step", "logged/time"),
        *("logged/step", "ünïcode", " x"),
    ]
    assert [len(row) for row in body] == [10] * 10
    assert list(frame(tmp_path, "metrics-1.csv").columns) == head
    write(csv_sink, tmp_path, batch, attempt=2, resumed=True)
    assert len(frame(tmp_path, "metrics-1.csv")) == 15


def test_our_own_reader_reads_both(tmp_path):
    batch = rows(count=60)
    write(csv_sink, tmp_path, batch)
    write(jsonl, tmp_path, batch)
    found, _ = plain_csv.read(tmp_path / "metrics" / "train-1.csv")
    lines, _ = plain_jsonl.read(tmp_path / "metrics" / "log.jsonl", None)
    for log in (found, lines):
        for key, values in zip(batch.keys, batch.values.T, strict=True):
            np.testing.assert_array_equal(log.series[key].values, values)
            np.testing.assert_array_equal(log.series[key].steps, batch.steps)
            np.testing.assert_array_equal(log.series[key].times, batch.times)


def test_a_resumed_run_goes_on_in_the_same_file(tmp_path):
    first, second = rows(), rows(first=60, seed=1)
    write(csv_sink, tmp_path, first)
    write(csv_sink, tmp_path, second, attempt=2, resumed=True)
    assert files(tmp_path) == ["train-1.csv"]
    assert_same(frame(tmp_path, "train-1.csv"), first, second)


@pytest.mark.parametrize("sink", [csv_sink, jsonl])
def test_a_torn_last_line_is_taken_away_on_resume(tmp_path, sink):
    write(sink, tmp_path, rows(count=20))
    (path,) = (tmp_path / "metrics").iterdir()
    whole = path.read_bytes()
    for cut in range(len(whole) - len(whole.splitlines(keepends=True)[-1]) + 1, len(whole)):
        path.write_bytes(whole[:cut])
        write(sink, tmp_path, rows(count=1, first=50), attempt=2, resumed=True)
        lines = path.read_bytes().splitlines(keepends=True)
        assert b"".join(lines[:-1]) == b"".join(whole.splitlines(keepends=True)[:-1])
        assert b"50" in lines[-1]


def test_a_header_that_is_not_whole_is_no_table(tmp_path):
    write(csv_sink, tmp_path, rows())
    path = tmp_path / "metrics" / "train-1.csv"
    path.write_bytes(b"step,time,tr")
    write(csv_sink, tmp_path, rows())
    assert path.read_bytes() == b"step,time,tr"
    assert_same(frame(tmp_path, "train-2.csv"), rows())


@pytest.mark.parametrize("sink", [csv_sink, jsonl])
def test_two_processes_never_write_the_same_file(tmp_path, sink):
    one, two = (sink.SINK.open(opening(tmp_path, attempt=attempt)) for attempt in (1, 2))
    for _ in range(3):
        for writing in (one, two):
            writing.scalars(rows(count=60))
            writing.flush()
    for writing in (one, two):
        writing.close("finished")
    assert len(files(tmp_path)) == 2
    sizes = {path.stat().st_size for path in (tmp_path / "metrics").iterdir()}
    assert len(sizes) == 1


def test_rows_wait_for_the_interval_or_a_flush(tmp_path):
    writing = csv_sink.SINK.open(opening(tmp_path, options={"interval": 50}))
    writing.scalars(rows(count=49))
    assert len(frame(tmp_path, "train-1.csv")) == 0
    writing.scalars(rows(count=1))
    assert len(frame(tmp_path, "train-1.csv")) == 50
    writing.scalars(rows(count=2))
    writing.flush()
    assert len(frame(tmp_path, "train-1.csv")) == 52
    writing.scalars(rows(count=3))
    writing.close("failed")
    assert len(frame(tmp_path, "train-1.csv")) == 55


@pytest.mark.parametrize("sink", [csv_sink, jsonl])
def test_a_full_disk_leaves_no_half_line_and_loses_nothing(tmp_path, sink, monkeypatch):
    writing = sink.SINK.open(opening(tmp_path))
    writing.scalars(rows(count=60))
    writing.flush()
    real, room = os.write, [10]

    def full(descriptor, data):
        if not room:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, bytes(data[: room.pop()]))

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        writing.scalars(rows(count=60, first=60)), writing.flush()
    (path,) = (tmp_path / "metrics").iterdir()
    assert path.read_bytes().endswith(b"\n")
    monkeypatch.setattr(os, "write", real)
    writing.scalars(rows(count=60, first=120))
    writing.close("finished")
    log, _ = (plain_csv if sink is csv_sink else plain_jsonl).read(path, None)
    assert log.series["train/loss"].steps.tolist() == list(range(180))


def test_very_many_kinds_do_not_open_very_many_files(tmp_path):
    writing = csv_sink.SINK.open(opening(tmp_path))
    for number in range(csv_sink.MAX_OPEN_FILES):
        writing.scalars(rows((f"k{number}",), 1))
    with pytest.raises(VitalsError, match="200 kinds of rows"):
        writing.scalars(rows(("one/more",), 1))
    writing.scalars(rows(("k0",), 1))
    writing.close("finished")
    assert len(frame(tmp_path, "metrics-1.csv")) == 2


@pytest.mark.parametrize("sink", [csv_sink, parquet])
@pytest.mark.parametrize("batch", [7, 1000])
def test_long_files_are_thinned_out_evenly_across_a_resume(tmp_path, sink, batch):
    options = {"subsamples": 100, "interval": 50}
    for attempt, first in ((1, 0), (2, 1050)):
        batches = [rows(count=batch, first=at) for at in range(first, first + 1050, batch)][:150]
        cut = [Rows(b.keys, *(x[: first + 1050 - b.steps[0]] for x in (b.steps, b.times, b.values)))
               for b in batches]  # fmt: skip
        write(sink, tmp_path, *cut, attempt=attempt, options=options)
    path = tmp_path / "metrics" / ("train-1.csv" if sink is csv_sink else "train-1")
    found = pd.read_csv(path) if sink is csv_sink else pd.read_parquet(path)
    steps = found["step"].to_numpy()
    expected = [*range(100), *range(100, 300, 2), *range(300, 700, 4), *range(704, 1500, 8)]
    expected += range(1504, 2100, 16)
    np.testing.assert_array_equal(steps[:344], expected[:344])  # the first attempt's
    # How many rows came before is known from those that were kept: to one distance.
    assert abs(len(steps) - len(expected)) <= 2
    assert set(np.diff(steps[345:380])) == {8}
    assert set(np.diff(steps[-30:])) == {16}


def test_a_table_has_a_file_of_its_own(tmp_path):
    for attempt in (1, 2):
        writing = csv_sink.SINK.open(opening(tmp_path, attempt=attempt))
        writing.table("completions", TABLE)
        writing.table("completions", TABLE)
        writing.histogram("h", histogram())
        writing.text("t", TEXT)
        writing.settings(1, {"a": 1})
        writing.event("note", 1, {})
        writing.close("finished")
    assert files(tmp_path) == ["completions-1.csv", "completions-2.csv"]
    with (tmp_path / "metrics" / "completions-2.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [
            ["step", "completion", "reward", "n"],
            *2 * [["5", 'say, "hi"\n', "0.5", "1"], ["5", "b", "", "2"], ["6", "", "1.0", "3"]],
        ]


def test_json_lines_hold_everything_and_are_json(tmp_path):
    writing = jsonl.SINK.open(opening(tmp_path))
    writing.scalars(rows(("a%s", 'q"'), len(ODD)))
    writing.histogram("weights", histogram())
    writing.text("sample", TEXT)
    writing.table("completions", TABLE)
    writing.settings(7, {"lr": np.inf, "net": {"width": 64}, "path": tmp_path, "layers": (1, 2)})
    writing.event("note", None, {"text": "hello"})
    writing.close("finished")

    def refuse(word):
        raise AssertionError(f"{word} is not JSON")

    text = (tmp_path / "metrics" / "log.jsonl").read_text()
    lines = [json.loads(line, parse_constant=refuse) for line in text.splitlines()]
    found = [float(line["a%s"]) for line in lines[: len(ODD)]]
    assert np.array(found).tobytes() == np.array(ODD).tobytes()
    assert [lines[at]["a%s"] for at in range(3)] == ["NaN", "Infinity", "-Infinity"]
    assert lines[len(ODD) :] == [
        {
            "histogram": "weights", "step": 3, "time": 1.7e9,
            "edges": [-1.0, 0.0, 0.5, 2.0], "counts": [1.0, 0.0, 5.0],
        },
        {"text": "sample", "step": 4, "time": 1.7e9, "content": TEXT.text},
        {"table": "completions", "step": 5,
         "row": {"completion": 'say, "hi"\n', "reward": 0.5, "n": 1}},
        {"table": "completions", "step": 5, "row": {"completion": "b", "reward": None, "n": 2}},
        {"table": "completions", "step": 6, "row": {"completion": None, "reward": 1.0, "n": 3}},
        {"settings": "changed", "step": 7, "changed": {
            "lr": "Infinity", "net": {"width": 64},
            "path": str(tmp_path), "layers": [1, 2],
        }},
        {"event": "note", "step": None, "facts": {"text": "hello"}},
    ]  # fmt: skip


def test_json_lines_of_20_000_rows(tmp_path):
    batch = rows(count=20_000)
    write(jsonl, tmp_path, batch)
    text = (tmp_path / "metrics" / "log.jsonl").read_text()
    found = [json.loads(line) for line in text.splitlines()]
    for key, values in zip(batch.keys, batch.values.T, strict=True):
        read = np.array([float(line[key]) for line in found])
        np.testing.assert_array_equal(read.view("u8"), np.ascontiguousarray(values).view("u8"))


def test_parquet_keeps_every_bit_in_few_files(tmp_path):
    pytest.importorskip("pyarrow")
    batches = [rows(count=20, first=20 * i, seed=i) for i in range(1000)]
    write(parquet, tmp_path, *batches, options={"interval": 50})
    parts = sorted((tmp_path / "metrics" / "train-1").iterdir())
    assert len(parts) < 400
    assert len(pd.read_parquet(parts[0])) == 60  # the interval, by whole batches
    assert_same(pd.read_parquet(tmp_path / "metrics" / "train-1"), *batches)


def test_parquet_of_several_kinds_attempts_and_tables(tmp_path):
    pytest.importorskip("pyarrow")
    first, other = rows(), rows(("train/kl",), 10)
    again = rows(first=100, seed=1)
    for attempt, batch in ((1, first), (2, again)):
        writing = parquet.SINK.open(opening(tmp_path, attempt=attempt))
        writing.scalars(batch)
        writing.scalars(other)
        writing.table("completions", TABLE)
        writing.flush()
        writing.close("finished")
    assert_same(pd.read_parquet(tmp_path / "metrics" / "train-1"), first, again)
    assert_same(pd.read_parquet(tmp_path / "metrics" / "train-2"), other, other)
    table = pd.read_parquet(tmp_path / "metrics" / "completions-table")
    assert table["completion"].tolist()[:2] == ['say, "hi"\n', "b"]
    assert table["n"].tolist() == [1, 2, 3, 1, 2, 3]
    np.testing.assert_array_equal(table["reward"], [0.5, np.nan, 1.0] * 2)


def test_a_parquet_file_is_whole_when_it_is_seen(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    writing = parquet.SINK.open(opening(tmp_path, options={"interval": 10}))
    real = os.replace

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        writing.scalars(rows(count=10))
    assert list((tmp_path / "metrics" / "train-1").iterdir()) == []
    monkeypatch.setattr(os, "replace", real)
    writing.close("finished")
    assert_same(pd.read_parquet(tmp_path / "metrics" / "train-1"), rows(count=10))


def test_files_of_other_ranks_lie_apart(tmp_path):
    for rank in (0, 2):
        write(csv_sink, tmp_path, rows(seed=rank), rank=rank)
    assert_same(frame(tmp_path, "rank-2/train-1.csv"), rows(seed=2))


@pytest.mark.parametrize(
    ("keys", "name"),
    [
        (("train/loss", "train/a/b"), "train"),
        (("train/loss", "eval/loss"), "metrics"),
        (("train/loss", "loss"), "metrics"),
        (("loss",), "metrics"),
        (("../../etc/x", "../y"), "metrics"),
        (("a b:c/x",), "a_b_c"),
        (("é/x",), "metrics"),
    ],
)
def test_what_a_file_is_called(keys, name):
    assert file_layout.base(keys) == name


DECLARED = {"columns": ("loss", "return", "entropy")}


def part(step, **values):
    return Rows(
        tuple(values), np.array([step]), np.array([100.0 + step]), np.array([[*values.values()]])
    )


PARTS = (
    part(0, entropy=0.7),
    part(1, **{"return": 3.0, "loss": float("nan")}),
    part(2, loss=1.0, entropy=0.5, **{"return": 4.0}),
)


def test_rows_of_declared_columns_share_one_csv_file(tmp_path):
    write(csv_sink, tmp_path, *PARTS[:2], options=DECLARED)
    write(csv_sink, tmp_path, PARTS[2], options=DECLARED, attempt=2, resumed=True)
    assert files(tmp_path) == ["metrics-1.csv"]
    with (tmp_path / "metrics" / "metrics-1.csv").open(newline="") as file:
        head, *cells = csv.reader(file)
    assert head == ["step", "time", "loss", "return", "entropy"]
    assert [row[2:] for row in cells] == [
        ["", "", "0.7"],
        ["nan", "3.0", ""],
        ["1.0", "4.0", "0.5"],
    ]
    log = plain_csv.READER.read(tmp_path / "metrics" / "metrics-1.csv", None)[0]
    assert {k: s.steps.tolist() for k, s in log.series.items() if k != "time"} == {
        "loss": [1, 2], "return": [1, 2], "entropy": [0, 2]
    }  # fmt: skip


def test_rows_of_declared_columns_share_one_parquet_table(tmp_path):
    write(parquet, tmp_path, *PARTS, options=DECLARED)
    assert {name.partition("/")[0] for name in files(tmp_path)} == {"metrics-1"}
    found = pd.read_parquet(tmp_path / "metrics" / "metrics-1", dtype_backend="pyarrow")
    assert list(found.columns) == ["step", "time", "loss", "return", "entropy"]
    assert found["return"].isna().tolist() == [True, False, False]
    assert found["entropy"].tolist()[::2] == [0.7, 0.5]


@pytest.mark.parametrize("sink", [csv_sink, parquet])
def test_a_name_that_was_not_declared_is_not_lost(tmp_path, sink):
    write(sink, tmp_path, *PARTS, part(3, loss=0.5, other=9.0), options=DECLARED)
    assert len({name.split("/")[0] for name in files(tmp_path)}) == 2
