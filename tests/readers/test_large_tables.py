"""A large table is thinned while it is read: rules judge the points of a whole one."""

import gzip
import tracemalloc
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from rlvitals.diagnosis import engine
from rlvitals.metrics import canonicalize
from rlvitals.readers import plain_csv, plain_jsonl, select
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


@pytest.fixture
def large(monkeypatch):
    monkeypatch.setattr(thin_read, "LARGE_RUN_BYTES", 1000)


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("column", ["step", "colour"])  # counted by it, and by rows
def test_a_thinned_table_is_the_whole_one_to_rules(tmp_path, column):
    path = tmp_path / "metrics.csv"
    text = table(3 * np.arange(ROWS))
    path.write_text(text.replace("step", column, 1))
    whole, cursor = plain_csv.read(path)
    reading = plain_csv.read_thin(path)
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
@pytest.mark.parametrize("odd", [5, ROWS - 1], ids=["steps go back", "a step is logged twice"])
def test_a_table_whose_steps_do_not_rise_is_read_whole(tmp_path, odd):
    path = tmp_path / "metrics.csv"
    path.write_text(table([*range(ROWS), odd]))
    assert plain_csv.read_thin(path) is None
    (run,) = sources.find(tmp_path)
    (log,) = sources.read(run, thin=True)
    assert len(log.series["return"]) == ROWS + 1


@pytest.mark.usefixtures("large")
def test_small_packed_and_shared_tables_are_read_whole(tmp_path, monkeypatch):
    path = tmp_path / "metrics.csv"
    path.write_text(table(range(ROWS)))
    (tmp_path / "metrics.jsonl").write_text(
        "".join(f'{{"step": {n}, "loss": 0.5}}\n' for n in range(20))
    )
    assert plain_jsonl.READER.read_thin is None
    (run,) = sources.find(tmp_path)
    assert max(len(log.series.get("return", ())) for log in sources.read(run, thin=True)) == ROWS
    monkeypatch.setattr(thin_read, "LARGE_RUN_BYTES", 2**25)
    assert plain_csv.read_thin(path) is None
    assert plain_csv.read_thin(tmp_path / "gone.csv") is None
    packed = tmp_path / "packed.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert select.reader_of(packed).read_thin is None


@pytest.mark.usefixtures("large")
def test_memory_does_not_grow_with_the_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("rlvitals.storage.thinner.MAX_THIN_POINTS", 256)
    monkeypatch.setattr(plain_csv, "Thinner", partial(plain_csv.Thinner, 512, 512))
    monkeypatch.setattr("rlvitals.readers.formats.lines.LINE_CHUNK_BYTES", 2**14)
    peaks = []
    for count in (9000, 18_000):
        path = tmp_path / f"{count}.csv"
        path.write_text(table(range(count)))
        tracemalloc.start()
        plain_csv.read_thin(path, chunk_rows=512)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]
