"""Looking into a run: last values, one metric, a range, what came since, what a plot shows."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from native_runs import points, record, write

from rlvitals import storage
from rlvitals.storage import downsample, reader, thin_read
from rlvitals.storage.blocks import Writer
from rlvitals.storage.compact import compact, pack
from rlvitals.storage.run_folder import About, RunFolder
from rlvitals.types import Series


@pytest.fixture(params=["growing", "packed", "partly packed"])
def run(request, tmp_path):
    run = record(tmp_path, rows=20, attempts=2)
    if request.param == "packed":
        compact(tmp_path)
    elif request.param == "partly packed":
        file = run.block_files()[1]
        pack(file)
        writer = Writer(file.path)
        write(writer, range(40, 50))
        writer.close()
    return run


def test_a_view_shows_what_a_whole_reading_finds(run):
    expected = reader.series(reader.read(run.path).parts, 0)
    with storage.open(str(run.path)) as view:
        assert sorted(view.keys()) == sorted(expected)
        assert points(dict(zip(view.keys(), map(view.series, view.keys()), strict=True))) == points(
            expected
        )
        for key, point in view.last().items():
            one = expected[key]
            assert point == (one.steps[-1], one.times[-1], one.values[-1])
        part = view.range("loss", 50, 120)
        assert part.steps.tolist() == [50, 70, 80, 100, 110] * 2
        with pytest.raises(KeyError):
            view.series("no such")
        everything, cursor = view.tail()
        assert points(everything) == points(expected)
        assert view.tail(cursor)[0] == {}


def test_a_view_grows_with_its_run(tmp_path):
    run = record(tmp_path, rows=5, close=False)
    writer = Writer(run.block_files()[0].path)
    with storage.open(tmp_path) as view:
        _, cursor = view.tail()
        write(writer, [7])
        view.refresh()
        assert view.last()["loss"].step == 70
        new, cursor = view.tail(cursor)
        assert {key: one.steps.tolist() for key, one in new.items()} == {"loss": [70], "kl": [70]}
        writer.close()
        compact(tmp_path)
        view.refresh()
        assert view.series("loss").steps.tolist() == [10, 20, 40, 70]
        assert view.tail(cursor)[0] == {}


def test_other_ranks_stand_below_their_own_name(tmp_path):
    run = RunFolder.create(tmp_path, About())
    for rank in (0, 1):
        writer = Writer(run.begin(rank, launch="a")[2])
        write(writer, range(rank, 6))
        writer.close()
    with storage.open(tmp_path) as view:
        assert view.keys() == ("eval/return", "loss", "kl", "rank/1/loss", "rank/1/kl",
                               "rank/1/eval/return")  # fmt: skip
        assert len(view.series("eval/return")) == 2
        assert len(view.series("rank/1/eval/return")) == 1
        assert view.last()["rank/1/loss"].step == 50


VALUES = st.sampled_from([0.0, 1.0, -1.0, 2.5, np.nan, np.inf, -np.inf])


@settings(max_examples=150, deadline=None)
@given(
    arrays(np.float64, st.integers(0, 60), elements=VALUES),
    st.integers(1, 12),
    st.data(),
)
def test_every_column_of_pixels_has_its_extremes(values, width, data):
    steps = data.draw(arrays(np.int64, len(values), elements=st.integers(-50, 50)))
    series = Series(steps, steps.astype(float), values)
    first, last = data.draw(st.sampled_from([(None, None), (-20, 30), (0, 0)]))
    with pytest.MonkeyPatch.context() as patched:  # columns all at once, and one by one
        patched.setattr(downsample, "MIN_LOOP_POINTS", data.draw(st.sampled_from([0, 1000])))
        found = downsample.points(series, width, first, last)
    ends = sorted(data.draw(st.lists(st.integers(0, len(values)), max_size=4)))
    pieces = [series.where(slice(*pair)) for pair in pairwise((0, *ends, len(values)))]
    batch_points = data.draw(st.sampled_from([0, 10, 1000]))
    in_pieces = downsample.points_of_pieces(pieces_walk(pieces), width, first, last, batch_points)
    for name in ("steps", "times", "values", "nan", "above", "below", "count"):
        np.testing.assert_array_equal(getattr(in_pieces, name), getattr(found, name))
    inside = np.ones(len(steps), bool) if first is None else (steps >= first) & (steps <= last)
    assert found.count == inside.sum()
    if not inside.any():
        assert len(found.steps) == 0
        return
    low = steps.min() if first is None else first
    high = steps.max() if last is None else last
    order = np.argsort(steps, kind="stable")
    steps, values, inside = steps[order], values[order], inside[order]
    column = np.array([_column(step, low, high, width) for step in steps])
    shown = np.array([_column(step, low, high, width) for step in found.steps])
    for at in range(width):
        here = inside & (column == at)
        numbers = values[here & np.isfinite(values)]
        points_here = found.values[shown == at] if len(shown) else np.empty(0)
        assert len(points_here) <= 4
        if len(numbers):
            assert (points_here[0], points_here[-1]) == (numbers[0], numbers[-1])
            assert (points_here.min(), points_here.max()) == (numbers.min(), numbers.max())
        for marks, bad in ((found.nan, np.isnan), (found.above, np.isposinf),
                           (found.below, np.isneginf)):  # fmt: skip
            expected = steps[here & bad(values)][:1].tolist()
            assert [s for s in marks.tolist() if _column(s, low, high, width) == at] == expected


def pieces_walk(pieces):
    def walk(add):
        for piece in pieces:
            add(piece)

    return walk


def _column(step, low, high, width):
    """The column of pixels of a step: the last one that begins at or before it."""
    span = int(high) - int(low) + 1
    begins = [int(low) + at * span // width for at in range(width)]
    return max((at for at in range(width) if begins[at] <= step), default=-1)


def test_the_widest_steps_do_not_overflow():
    steps = np.array([-(2**62), 0, 2**62])
    found = downsample.points(Series(steps, np.zeros(3), np.array([1.0, 2.0, 3.0])), 3)
    assert found.values.tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(ValueError, match="at least one"):
        downsample.points(Series(steps, np.zeros(3), np.zeros(3)), 0)


def test_the_pixels_of_a_metric_are_read_block_by_block(run):
    with storage.open(str(run.path)) as view:
        for key in ("loss", "kl"):
            for steps in ((None, None), (50, 120), (900, 1000)):
                expected = downsample.points(view.series(key), 7, *steps)
                streamed = thin_read.read_pixels(run.path, key, 7, *steps)
                for found in (view.m4(key, 7, *steps), streamed):
                    assert found.count == expected.count
                    assert found.steps.tolist() == expected.steps.tolist()
                    np.testing.assert_array_equal(found.values, expected.values)
        with pytest.raises(KeyError):
            view.m4("no such", 7)
    assert thin_read.read_pixels(run.path, "no such", 7) is None
