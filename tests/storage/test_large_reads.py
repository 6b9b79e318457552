"""A compacted run is read into one set of columns, whatever was logged between its rows."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import rlvitals
from rlvitals.storage import columns
from rlvitals.storage.blocks import Scalars
from rlvitals.storage.compact import compact
from rlvitals.storage.compacted import PackedFile
from rlvitals.storage.run_folder import block_files


def packed_rows(folder, between):
    """Record 400 rows with rows of other keys after those of `between`, and pack them."""
    run = rlvitals.start(str(folder), flush_seconds=0.01)
    for row in range(400):
        run.log(row, {"a": float(row), "b": -float(row)})
        if row in between:
            run.log(row, {"c": 1.0})
    run.finish()
    compact(folder)
    return block_files(folder)[0].packed


def test_rows_between_cost_no_copy(tmp_path):
    with PackedFile(packed_rows(tmp_path / "run", {100, 250})) as packed:
        series = columns.series(packed.all_scalars())
    np.testing.assert_array_equal(series["a"].values, np.arange(400.0))
    np.testing.assert_array_equal(series["b"].values, -np.arange(400.0))
    assert series["c"].steps.tolist() == [100, 250]
    assert series["a"].steps is series["b"].steps


@settings(deadline=None)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=6), st.permutations(range(6)))
def test_parts_of_one_array_are_joined_in_the_order_of_their_places(sizes, order):
    """Rows of ascending places are the array itself; others are put in order, as ever."""
    count = sum(sizes)
    steps, times, values = np.arange(count), np.arange(count) / 2, np.arange(count)[None] * 1.0
    ends = np.cumsum([0, *sizes])
    ranks = [place for place in order if place < len(sizes)]
    chunks = [
        Scalars(("a",), steps[begin:end], times[begin:end], values[:, begin:end], 10 * rank)
        for begin, end, rank in zip(ends[:-1], ends[1:], ranks, strict=True)
    ]
    expected = np.argsort(
        np.concatenate(
            [10 * rank + np.arange(size) for rank, size in zip(ranks, sizes, strict=True)]
        )
    )
    series = columns.series(chunks)["a"]
    np.testing.assert_array_equal(series.steps, expected)
    np.testing.assert_array_equal(series.values, expected)
    is_ascending = ranks == sorted(ranks)
    assert np.shares_memory(series.steps, steps) == is_ascending
