"""Thinned metrics: exact extremes and counts in each bucket, and all points or these at a crash."""

import os
from pathlib import Path

import numpy as np
import pytest
from effort import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from native_runs import read, record, write

from rlvitals.readers import native
from rlvitals.storage import holds, query, reader, thin_file, tiers
from rlvitals.storage.blocks import Writer
from rlvitals.storage.compact import compact
from rlvitals.storage.compacted import PackedFile
from rlvitals.storage.run_folder import RUN_FILE, block_files
from rlvitals.storage.verify import verify
from rlvitals.types import Series

VALUES = st.lists(
    st.floats(-10, 10, width=16) | st.sampled_from([np.nan, np.inf, -np.inf]),
    min_size=1, max_size=120,
)  # fmt: skip


def series_of(values):
    steps = np.arange(len(values))
    return Series(steps, steps * 1.0, np.array(values))


def summarize(values):
    """Return what a bucket must keep of its points, bit by bit."""
    numbers = values[np.isfinite(values)]
    extremes = (numbers[0], numbers[-1], numbers.min(), numbers.max()) if len(numbers) else ()
    ends = np.array([values[0], values[-1]]).tobytes()
    return ends, extremes, np.isnan(values).any(), {*values[np.isinf(values)]}


def check(values, left, tier):
    """Compare each bucket with all the points that it stands for."""
    start = stored = 0
    for i in range(len(tier)):
        bucket = values[start : start + tier.points[i]]
        part = left[stored : stored + tier.stored[i]]
        start, stored = start + tier.points[i], stored + tier.stored[i]
        assert summarize(part) == summarize(bucket)
        assert tier.nan[i] == np.isnan(bucket).sum()
        assert tier.above[i] == (bucket == np.inf).sum()
        assert tier.below[i] == (bucket == -np.inf).sum()
    assert (start, stored) == (len(values), len(left))


@settings(max_examples=cases(60, 400), deadline=None)
@given(VALUES, st.integers(1, 30), st.integers(1, 30))
def test_each_bucket_keeps_its_extremes_and_its_counts(values, buckets, fewer):
    """Thinned once, and the thinned once more: the second tier is as exact as the first."""
    series = series_of(values)
    rows, tier = tiers.thin("a", series, buckets)
    assert len(tier) <= buckets
    check(series.values, series.values[rows], tier)
    left = series.where(rows)
    again, coarse = tiers.thin("a", left, fewer, tier)
    assert len(coarse) <= max(fewer, 1)
    check(series.values, left.values[again], coarse)


def record_long(folder, rows=400):
    """Record a run of two metrics with NaN and infinities, and pack it."""
    run = record(folder, rows=6, close=False)
    (file,) = run.block_files()
    writer = Writer(file.path)
    write(writer, range(6, rows))
    writer.close()
    compact(folder)
    return block_files(folder)[0].packed


def test_a_thinned_run_is_read_by_every_reader(tmp_path):
    path = record_long(tmp_path)
    (before, _), size = native.read(tmp_path / RUN_FILE, None), path.stat().st_size
    thin_file.thin(path, 8)
    after, _ = native.read(tmp_path / RUN_FILE, None)
    assert path.stat().st_size < size / 2
    with PackedFile(path) as packed:
        assert set(packed.tiers) == set(before.series) == set(after.series)
        for key, tier in packed.tiers.items():
            check(before.series[key].values, after.series[key].values, tier)
            assert tier.points.sum() == len(before.series[key])
    for key, series in before.series.items():
        assert {*after.series[key].steps.tolist()} <= {*series.steps.tolist()}
    assert after.texts == before.texts
    assert after.histograms.keys() == before.histograms.keys()
    with query.View(tmp_path) as view:
        assert view.last()["loss"].value == before.series["loss"].values[-1]
        assert view.m4("loss", 4).values.max() == before.series["loss"].finite().values.max()
    assert all(report.is_intact for report in verify(tmp_path))
    (note,) = [note for note in after.notes if "thinned" in note]
    assert "8 buckets" in note


def test_who_reads_by_cursor_sees_no_row_twice_after_thinning(tmp_path):
    path = record_long(tmp_path)
    scan = reader.read(tmp_path)
    thin_file.thin(path, 4)
    later = reader.read(tmp_path, scan.cursor)
    assert not later.replaced
    assert not later.parts[0].scan.scalars


def test_a_flipped_bit_in_a_tier_is_named(tmp_path):
    path = record_long(tmp_path)
    thin_file.thin(path, 4)
    with PackedFile(path) as packed:
        frame = packed.tiers["loss"].to_frame()
    data = path.read_bytes()
    path.write_bytes(data.replace(frame, frame[:-3] + b"\x07" + frame[-2:]))
    assert not all(report.is_intact for report in verify(tmp_path))
    with pytest.raises(thin_file.NotThinnedError, match="damaged"):
        thin_file.thin(path, 2)


class Crash(BaseException):
    """What stands for a process that is killed."""


def test_a_crash_at_any_moment_leaves_all_points_or_the_thinned(tmp_path, monkeypatch):
    """Every call to the system that changes something is the last one, in turn."""
    outcomes = []
    for moment in range(9):
        folder = tmp_path / f"{moment}"
        path = record_long(folder, rows=60)
        full = read(folder)
        calls = [moment]

        def die(real, calls=calls):
            def call(*args, **kwargs):
                if calls[0] <= 0:
                    raise Crash
                calls[0] -= 1
                return real(*args, **kwargs)

            return call

        with monkeypatch.context() as patch:
            for owner, name in ((Path, "replace"), (Path, "unlink"), (os, "fsync")):
                patch.setattr(owner, name, die(getattr(owner, name)))
            try:
                thin_file.thin(path, 4)
            except Crash:
                outcomes.append(read(folder) == full)
            else:
                outcomes.append(None)
        thin_file.thin(path, 4)
        assert read(folder) != full
        compact(folder)
    assert {True, False, None} <= set(outcomes)


def test_a_run_on_hold_is_not_compacted(tmp_path):
    run = record(tmp_path, rows=9)
    holds.add(tmp_path, "audit")
    (report,) = compact(tmp_path)
    assert "on hold" in report.why
    assert run.block_files()[0].path.exists()
    assert holds.read_reason(tmp_path) == "audit"
    assert holds.release(tmp_path)
    assert not holds.release(tmp_path)
    assert [done.why for done in compact(tmp_path)] == [""]
