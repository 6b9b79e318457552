"""A large table is thinned while it is read: rules judge the points of a whole one."""

import csv
import gzip
import io
import json
import tracemalloc
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from effort import sampled

from rlvitals.diagnosis import engine
from rlvitals.metrics import canonicalize
from rlvitals.readers import plain_csv, plain_jsonl, rllib, sb3_csv, sb3_json, select, thin_columns
from rlvitals.readers.discovery import sources
from rlvitals.signals.thin import MAX_THIN_POINTS
from rlvitals.storage import thin_read
from rlvitals.views import diagnosis_json

ROWS = 30_000


def table(steps):
    """Return rows with gaps, NaN and a text; the return rises, falls, and has a spike."""
    rng = np.random.default_rng(1)
    returns = np.minimum(np.arange(len(steps)) / 100, 200) + rng.normal(size=len(steps))
    returns[len(steps) // 2 :] -= 150
    returns[len(steps) // 3] = 5000
    rows = ["step,return,approx_kl,entropy,phase"]
    for n, (step, value) in enumerate(zip(steps, returns, strict=True)):
        kl = "" if n % 7 == 0 else "nan" if n % 5000 == 1 else f"{0.01 * rng.random():.5f}"
        cells = (step, f"{value:.3f}", kl, f"{1 / (1 + n / 1000):.4f}", "train")
        rows.append(",".join(map(str, cells)))
    return "\n".join(rows) + "\n"


def objects(step_key, steps):
    """Return the same rows as JSON lines, with nested numbers, nulls and a text."""
    lines = []
    for row in csv.DictReader(io.StringIO(table(steps))):
        step, phase = int(row.pop("step")), row.pop("phase")
        numbers = {key: float(text) if text else None for key, text in row.items()}
        lines.append(json.dumps({step_key: step, "phase": phase, "train": numbers}))
    return "\n".join(lines) + "\n"


def rows_of(step_key, steps):
    """Return the same rows as a table of another tool, without the text."""
    lines = [line.rpartition(",")[0] for line in table(steps).splitlines()]
    lines[0] = lines[0].replace("step", step_key)
    return "\n".join(lines) + "\n"


@pytest.fixture
def large(monkeypatch):
    monkeypatch.setattr(thin_read, "LARGE_RUN_BYTES", 1000)


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize(
    ("reader", "name", "write"),
    [
        (plain_jsonl.READER, "metrics.jsonl", partial(objects, "step")),
        (sb3_csv.READER, "progress.csv", partial(rows_of, "time/total_timesteps")),
        (sb3_json.READER, "progress.json", partial(objects, "time/total_timesteps")),
        (rllib.READER, "progress.csv", partial(rows_of, "training_iteration")),
        (rllib.READER, "result.json", partial(objects, "training_iteration")),
    ],
    ids=["JSON lines", "SB3's table", "SB3's JSON lines", "RLlib's table", "RLlib's JSON lines"],
)
def test_a_thinned_log_of_a_tool_holds_the_same_points(tmp_path, monkeypatch, reader, name, write):
    monkeypatch.setattr(thin_columns.ThinColumns, "chunk_points", 500)
    path = tmp_path / name
    path.write_text(write(list(range(1, 2000))))
    assert select.reader_of(path) == reader
    whole, cursor = reader.read(path, None)
    reading = reader.read_thin(path)
    thinned = reading.whole_log()
    assert reading.cursor == cursor
    assert replace(thinned, series={}) == replace(whole, series={})
    assert list(thinned.series) == list(whole.series)
    for key, each in whole.series.items():
        np.testing.assert_array_equal(thinned.series[key].steps, each.steps)
        np.testing.assert_array_equal(thinned.series[key].values, each.values)
    path.write_text(write([*range(1, 2000), 7]))
    assert reader.read_thin(path) is None


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("column", sampled(["step", "colour"], 2))  # counted by it, and by rows
def test_a_thinned_table_is_the_whole_one_to_rules(tmp_path, column):
    path = tmp_path / "metrics.csv"
    text = table(3 * np.arange(ROWS))
    path.write_text(text.replace("step", column, 1))
    whole, cursor = plain_csv.read(path)
    reading = plain_csv.READER.read_thin(path)
    thinned = reading.whole_log()
    assert reading.cursor == cursor
    assert replace(thinned, series={}) == replace(whole, series={})
    assert thinned.settings == {"phase": "train"}
    assert [(key, each.count) for key, each in thinned.series.items()] == [
        (key, len(each)) for key, each in whole.series.items()
    ]
    assert max(map(len, thinned.series.values())) <= 1.2 * MAX_THIN_POINTS
    first, second = (
        diagnosis_json.diagnosis(engine.diagnose(canonicalize.trace([log])))
        for log in (whole, thinned)
    )
    assert first == second
    path.write_text(path.read_text() + "90000,1.0,0.01,0.1,train\n")
    assert len(plain_csv.read(path, reading.cursor)[0].series["return"]) == 1


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize(
    "odd", sampled([5, ROWS - 1], 2), ids=["steps go back", "a step is logged twice"]
)
def test_a_table_whose_steps_do_not_rise_is_read_whole(tmp_path, odd):
    path = tmp_path / "metrics.csv"
    path.write_text(table([*range(ROWS), odd]))
    assert plain_csv.READER.read_thin(path) is None
    (run,) = sources.find(tmp_path)
    (log,) = sources.read(run, thin=True)
    assert len(log.series["return"]) == ROWS + 1


@pytest.mark.soak
@pytest.mark.usefixtures("large")
def test_small_packed_and_shared_tables_are_read_whole(tmp_path, monkeypatch):
    path = tmp_path / "metrics.csv"
    path.write_text(table(range(ROWS)))
    (tmp_path / "metrics.jsonl").write_text(
        "".join(f'{{"step": {n}, "loss": 0.5}}\n' for n in range(20))
    )
    (run,) = sources.find(tmp_path)
    assert max(len(log.series.get("return", ())) for log in sources.read(run, thin=True)) == ROWS
    monkeypatch.setattr(thin_read, "LARGE_RUN_BYTES", 2**25)
    assert plain_csv.READER.read_thin(path) is None
    assert plain_csv.READER.read_thin(tmp_path / "gone.csv") is None
    packed = tmp_path / "packed.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert select.reader_of(packed).read_thin is None


@pytest.mark.soak
@pytest.mark.usefixtures("large")
@pytest.mark.parametrize(
    ("reader", "write"),
    [
        (plain_csv.READER, table),
        (plain_jsonl.READER, partial(objects, "step")),
    ],
    ids=["table", "JSON lines"],
)
def test_memory_does_not_grow_with_the_rows(tmp_path, monkeypatch, reader, write):
    monkeypatch.setattr("rlvitals.storage.thinner.MAX_THIN_POINTS", 256)
    monkeypatch.setattr(thin_columns, "Thinner", partial(thin_columns.Thinner, 512, 512))
    monkeypatch.setattr(thin_columns.ThinColumns, "chunk_points", 2**12)
    monkeypatch.setattr("rlvitals.readers.formats.lines.LINE_CHUNK_BYTES", 2**14)
    peaks = []
    for count in (9000, 18_000):
        path = tmp_path / f"metrics.{count}"
        path.write_text(write(list(range(count))))
        tracemalloc.start()
        assert reader.read_thin(path) is not None
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]
