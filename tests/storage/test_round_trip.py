"""What is written is what is read: any keys in any order, NaN, infinities, steps that go back."""

import tempfile
from pathlib import Path

import numpy as np
from effort import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from native_runs import points

from rlvitals.storage import columns, reader, typed
from rlvitals.storage.blocks import Writer, scan
from rlvitals.storage.compact import compact
from rlvitals.storage.query import View
from rlvitals.storage.run_folder import About, RunFolder
from rlvitals.types import Series

KEYS = st.sampled_from(["loss", "kl", "a/b", "é", "\ud800", ""])
NUMBERS = st.floats(allow_nan=True, allow_infinity=True)
ROWS = st.lists(
    st.tuples(
        st.integers(-(2**63), 2**63 - 1),
        NUMBERS,
        st.dictionaries(KEYS, NUMBERS, max_size=4),
        st.booleans(),  # flush behind it
    ),
    max_size=30,
)


def written(writer, rows):
    """Write rows one at a time; return the series that they make."""
    found = {}
    for step, time, values, flushed in rows:
        numbers = np.array([[one] for one in values.values()]).reshape(len(values), 1)
        writer.scalars(tuple(values), np.array([step]), np.array([time]), numbers)
        for key, value in values.items():
            found.setdefault(key, []).append((step, time, value))
        if flushed:
            writer.flush()
    return points(
        {
            typed.text(key): Series(
                np.array([s for s, _, _ in table], np.int64),
                np.array([t for _, t, _ in table]),
                np.array([v for _, _, v in table]),
            )
            for key, table in found.items()
        }
    )


@settings(max_examples=cases(20, 60), deadline=None)
@given(ROWS)
def test_any_rows(rows):
    with tempfile.TemporaryDirectory() as folder:
        run, _, path = RunFolder.create(Path(folder), About()).begin()
        writer = Writer(path)
        expected = written(writer, rows)
        writer.close()
        assert points(columns.series(scan(path).scalars)) == expected
        assert read(run) == expected
        assert [done.why for done in compact(run.path)] == [""]
        assert read(run) == expected
        with View(run.path) as view:
            assert (
                points(dict(zip(view.keys(), map(view.series, view.keys()), strict=True)))
                == expected
            )


def read(run):
    return points(reader.series(reader.read(run.path).parts, 0))


@settings(max_examples=cases(12, 30), deadline=None)
@given(st.lists(ROWS, min_size=1, max_size=4))
def test_read_in_parts_is_read_as_a_whole(batches):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "1-0.rlv"
        writer, cursor, parts, rows = Writer(path), None, [], []
        for batch in batches:
            rows += batch
            written(writer, batch)
            writer.flush()
            found = scan(path, cursor)
            parts += found.scalars
            cursor = found.cursor
        writer.close()
        at_once = scan(path).scalars
        assert points(columns.series(parts)) == points(columns.series(at_once))


def test_a_block_without_rows_is_read(tmp_path):
    run, _, file = RunFolder.create(tmp_path / "run", About()).begin()
    writer = Writer(file)
    for steps in ([], [3, 7], []):
        count = len(steps)
        writer.scalars(("loss",), np.array(steps, np.int64), np.ones(count), np.ones((1, count)))
        writer.flush()
    writer.close()
    (part,) = reader.read(run.path).parts
    assert part.span == (3, 7)
