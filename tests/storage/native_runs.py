"""Makes run folders, and looks at what is read of them."""

import os

import numpy as np

from rlvitals.storage import columns, reader
from rlvitals.storage.blocks import Writer
from rlvitals.storage.run_folder import About, RunFolder
from rlvitals.types import Histogram, Table, Text

KEYS = (("loss", "kl"), ("eval/return",))


def record(path, *, attempts=1, rows=6, others=True, close=True, **about):
    """Record a run: two key tables in turn, NaN and infinities among the numbers."""
    run = RunFolder.create(path, About(**about))
    for attempt in range(attempts):
        run, number, block_file = run.begin()
        run.events.append("start", attempt=number)
        writer = Writer(block_file)
        write(writer, range(4 * attempt, 4 * attempt + rows))
        if others:
            edges = np.array([0.0, 1.0, 2.0])
            writer.histogram("weights", Histogram(1, 2.0, edges, np.array([3.0, attempt])))
            writer.text("sample", Text(2, 3.0, f"attempt {attempt}"))
            writer.table("rows", Table(np.array([1]), {"a": [f"{attempt}"]}))
            writer.settings(3, 4.0, {"lr": 0.5 / (attempt + 1)})
            writer.flush()
        if close:
            writer.close()
            run.events.append("finish", attempt=number, status="finished")
        else:  # as if it was killed
            os.close(writer._fd)
    return RunFolder.open(path)


def write(writer, steps):
    """Write rows one by one, each a block and a flush."""
    odd = {2: float("nan"), 3: float("inf"), 4: -float("inf")}
    for n in steps:
        keys = KEYS[n % 3 == 0]
        values = np.array([[odd.get(n, n / 7)], [-n]][: len(keys)])
        writer.scalars(keys, np.array([10 * n]), np.array([1e9 + n]), values)
        writer.flush()


def points(series):
    """Return series as arrays [3, n], bit by bit comparable."""
    return {
        key: np.array([one.steps, one.times, one.values.view(np.int64)]).tobytes()
        for key, one in series.items()
        if len(one)
    }


def read(folder):
    """Read a run folder's series."""
    found = reader.read(folder)
    return points(reader.series(found.parts, reader.main_rank(found.parts)))


def rows_of(scan):
    """Return each row that a scan holds, as bytes, by its key."""
    found = set()
    for key, one in columns.series(scan.scalars).items():
        table = zip(one.steps.tolist(), one.times.tolist(), one.values.view(np.int64).tolist(),
                    strict=True)  # fmt: skip
        found |= {(key, *row) for row in table}
    return found
