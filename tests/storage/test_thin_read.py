"""A large run is read block by block: the points that rules judge, and what charts draw of it."""

import tracemalloc
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from effort import cases
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvitals.diagnosis import engine
from rlvitals.metrics import canonicalize
from rlvitals.readers import native
from rlvitals.signals.thin import MAX_THIN_POINTS, thin
from rlvitals.storage import downsample, frames, thin_read
from rlvitals.storage.blocks import Writer
from rlvitals.storage.compact import compact, pack
from rlvitals.storage.compacted import PackedFile
from rlvitals.storage.run_folder import RUN_FILE, About, RunFolder, block_files
from rlvitals.storage.thinner import Thinner
from rlvitals.types import Series
from rlvitals.views import diagnosis_json

LOSS, RETURN = "train/loss", "rollout/ep_rew_mean"


def noise(count, seed, odd=0.0):
    """Return noisy values, a share of them NaN or infinite, with a spike and a dip."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=count).round(2)
    for value in (np.nan, np.inf, -np.inf):
        values[rng.random(count) < odd] = value
    values[[count // 3, count // 2]] = 500.0, -500.0
    return values


def series_of(values):
    steps = 3 * np.arange(len(values))
    return Series(steps, steps / 2, values)


def add_in_pieces(series, sizes):
    thinner, begin = Thinner(), 0
    while begin < len(series):
        size = sizes[begin % len(sizes)]
        thinner.add(series.where(slice(begin, begin + size)))
        begin += size
    return thinner.series()


@pytest.mark.soak
@settings(max_examples=cases(15, 100), deadline=None)
@given(
    st.integers(4, 120_000),
    st.integers(0, 1000),
    st.sampled_from([0.0, 1e-4, 0.3, 0.95]),
    st.lists(st.integers(1, 30_000), min_size=1, max_size=5),
)
def test_a_thinner_keeps_the_judged_points_and_each_extreme(count, seed, odd, sizes):
    whole = series_of(noise(count, seed, odd))
    thinned, judged = add_in_pieces(whole, sizes), whole.where(thin(whole.values))
    for column in ("steps", "times", "values"):
        np.testing.assert_array_equal(getattr(thinned, column), getattr(judged, column))
    assert (thinned.count, thinned.bad_count) == (count, whole.bad_count)
    if count <= MAX_THIN_POINTS:
        assert thinned.outline is None
        return
    outline = thinned.outline
    bad = (np.isnan(whole.values), whole.values == np.inf, whole.values == -np.inf)
    assert outline.bad == tuple(int(mask.sum()) for mask in bad)
    means = iter(outline.means.values)
    for begin in range(0, count, thinned.every):
        bucket = whole.where(slice(begin, begin + thinned.every))
        left = outline.points.since(int(bucket.steps[0])).until(int(bucket.steps[-1]))
        assert (left.steps[[0, -1]] == bucket.steps[[0, -1]]).all()
        numbers, left_numbers = bucket.finite().values, left.finite().values
        assert {*left.values[np.isinf(left.values)]} == {*bucket.values[np.isinf(bucket.values)]}
        assert np.isnan(left.values).any() == np.isnan(bucket.values).any()
        if len(numbers):
            assert left_numbers.max() == numbers.max()
            assert left_numbers.min() == numbers.min()
            np.testing.assert_allclose(next(means), numbers.mean(), atol=1e-9)
    assert next(means, None) is None


def write(folder, attempts, rows=25, packed_blocks=-1):
    """Record attempts with these steps: LOSS in each row, RETURN in every second block.

    `packed_blocks`: after so many, what was written of an attempt is compacted.
    """
    run = RunFolder.create(folder, About(framework="sb3"))
    for number, steps in enumerate(attempts):
        run, attempt, path = run.begin()
        writer = Writer(path)
        values = noise(len(steps), number, 0.001)
        for block, begin in enumerate(range(0, len(steps), rows)):
            chunk, numbers = steps[begin : begin + rows], values[begin : begin + rows]
            keys = (LOSS, RETURN) if block % 2 else (LOSS,)
            columns = np.array([numbers, -numbers][: len(keys)])
            writer.scalars(keys, chunk, 1e9 + chunk, columns)
            if block == packed_blocks:
                writer.flush()
                assert pack(block_files(folder)[-1])[0] == ""
            if block % 200 == 7:
                writer.scalars(("machine/cpu",), chunk[-1:], 1e9 + chunk[-1:], np.ones((1, 1)))
        writer.close()
        run.events.append("finish", attempt=attempt, status="finished")
    return folder / RUN_FILE


RUNS = {
    "one attempt": [np.arange(50_000)],
    "goes on": [np.arange(30_000), np.arange(30_000, 60_000)],
    "resumed": [np.arange(40_000), np.arange(39_990, 70_000)],
    "resumed far back": [np.arange(40_000), np.arange(20_000, 50_000)],
}


@pytest.fixture(params=["packed", "half packed", "as written"])
def state(request):
    return request.param


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Record each run of RUNS once for all tests, which only read it."""
    root = tmp_path_factory.mktemp("runs")
    return cache(lambda name, state: record(root / f"{name} {state}", state, RUNS[name]))


def record(folder, state, attempts):
    path = write(folder, attempts, packed_blocks=700 if state == "half packed" else -1)
    if state == "packed":
        compact(folder)
    return path


def both_logs(path, monkeypatch):
    monkeypatch.setattr(thin_read, "LARGE_RUN_BYTES", 1000)
    whole, cursor = native.read(path, None)
    reading = native.read_thin(path)
    if reading is None:
        return whole, None
    assert reading.cursor == cursor  # both continue at the same row
    return whole, reading.whole_log()


@pytest.mark.parametrize("name", RUNS)
def test_a_thinned_run_is_the_whole_run_to_rules(name, state, recorded, monkeypatch):
    path = recorded(name, state)
    whole, thinned = both_logs(path, monkeypatch)
    assert replace(thinned, series={}) == replace(whole, series={})
    assert thinned.series.keys() == whole.series.keys()
    for key, series in whole.series.items():
        assert thinned.series[key].count == len(series)
        assert len(thinned.series[key]) <= 1.2 * MAX_THIN_POINTS
    traces = [canonicalize.trace([log]) for log in (whole, thinned)]
    assert traces[0].notes == traces[1].notes
    assert traces[0].lifecycle.seams == traces[1].lifecycle.seams
    assert traces[0].last_step == traces[1].last_step
    if "resumed" in name:  # what was run again is left out after it was counted
        assert traces[1].lifecycle.seams == (int(RUNS[name][1][0]),)
        return
    texts = [diagnosis_json.diagnosis(engine.diagnose(trace)) for trace in traces]
    assert texts[0] == texts[1]


def test_small_damaged_and_shuffled_runs_are_read_whole(tmp_path, monkeypatch):
    small = write(tmp_path / "small", [np.arange(1000)])
    assert native.read_thin(small) is None
    shuffled = write(tmp_path / "shuffled", [np.append(np.arange(20_000), [5, 6, 7])])
    assert both_logs(shuffled, monkeypatch)[1] is None
    for state in ("packed", "as written"):
        path = record(tmp_path / state, state, [np.arange(20_000)])
        (file,) = [file for folder in block_files(path.parent) for file in folder.paths]
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(data)
        assert both_logs(path, monkeypatch)[1] is None


@pytest.mark.parametrize("steps", [(12_000, 12_100), (39_000, 41_000), (0, 10**9), (-5, -1)])
@pytest.mark.parametrize("name", ["one attempt", "goes on", "resumed"])
def test_a_range_is_read_with_all_its_points(name, steps, state, recorded):
    path = recorded(name, state)
    whole, _ = native.read(path, None)
    for key in (LOSS, RETURN):
        inside = (whole.series[key].steps >= steps[0]) & (whole.series[key].steps <= steps[1])
        expected = whole.series[key].where(inside)
        series = thin_read.read_range(path.parent, key, steps)
        np.testing.assert_array_equal(series.steps, expected.steps)
        np.testing.assert_array_equal(series.values, expected.values)


def test_of_a_range_the_other_blocks_are_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr("rlvitals.storage.compact.PACKED_BLOCK_BYTES", 40_000)
    path = record(tmp_path / "run", "packed", [np.arange(50_000)])
    read_blocks = []
    metrics = PackedFile.metrics
    monkeypatch.setattr(
        PackedFile, "metrics", lambda *args: read_blocks.append(args[1]) or metrics(*args)
    )
    assert thin_read.read_range(path.parent, LOSS, (12_000, 12_100)).count == 101
    with PackedFile(block_files(path.parent)[0].packed) as packed:
        assert 1 <= len(read_blocks) <= 4 < len(packed.blocks)


def test_new_rows_are_read_without_the_rows_before_them(tmp_path, monkeypatch):
    path = record(tmp_path / "run", "as written", [np.arange(50_000)])
    size = block_files(path.parent)[0].path.stat().st_size
    places, bytes_read, read = thin_read.Places(40_000), [], frames.read
    monkeypatch.setattr(frames, "read", lambda *args: bytes_read.append(args[1]) or read(*args))
    whole = native.read(path, None)[0].series[LOSS]
    for steps in ((0, 10**9), (49_990, 49_999), (25_000, 25_010), (0, 10)):
        bytes_read.clear()
        series = thin_read.read_range(path.parent, LOSS, steps, places)
        inside = (whole.steps >= steps[0]) & (whole.steps <= steps[1])
        np.testing.assert_array_equal(series.steps, whole.steps[inside])
        np.testing.assert_array_equal(series.values, whole.values[inside])
        assert (sum(bytes_read) < size / 4) == (steps[1] < 10**9)


def test_a_large_range_is_thinned_and_keeps_its_extremes(tmp_path, monkeypatch):
    monkeypatch.setattr(thin_read, "MAX_WHOLE_POINTS", 20_000)
    path = record(tmp_path / "run", "packed", [np.arange(100_000)])
    series = thin_read.read_range(path.parent, LOSS, (10_000, 90_000))
    assert (series.count, len(series.outline.points) < 60_000) == (80_001, True)
    whole = native.read(path, None)[0].series[LOSS].since(10_000).until(90_000)
    shown = downsample.points(series.outline.points, 100)
    assert (shown.values.max(), shown.values.min()) == (500.0, -500.0)
    assert whole.finite().values.max() == 500.0


@pytest.mark.soak
def test_no_column_is_ever_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("rlvitals.storage.compact.PACKED_BLOCK_BYTES", 1 << 20)
    path = record(tmp_path / "run", "packed", [np.arange(1_000_000)])
    monkeypatch.setattr(thin_read, "LARGE_RUN_BYTES", 1000)
    peaks = []
    for read in (lambda: native.read(path, None), lambda: native.read_thin(path)):
        tracemalloc.start()
        assert read() is not None
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    column_bytes = 24 * 1_000_000
    assert peaks[0] > column_bytes > 2 * peaks[1]
