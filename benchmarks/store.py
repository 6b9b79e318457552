"""Measure writing and reading a run of 50 metrics, compared with SQLite, Parquet and JSON lines.

    python benchmarks/store.py [--quick]

A run of 50 metrics x 1,000,000 rows, flushed 1,000 rows at a time, then compacted. The peers hold
the same numbers in the same flushes: SQLite one row for each number, as trackers do, indexed by
metric; Parquet one row group for each flush; JSON lines one line for each row. SQLite and JSON
lines get a sample of the rows: their cost is a constant a number, and what is read is scaled to
it as `rows` says. Writing is CPU time, reading wall time, best of several; files are in the page
cache. A flush is seen when a reader that polls all the time has it.
"""

import argparse
import json
import os
import shutil
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from rlvitals import storage
from rlvitals.storage.blocks import Writer, scan
from rlvitals.storage.compact import compact
from rlvitals.storage.run_folder import About, RunFolder

METRICS, FLUSH = 50, 1000  # columns; rows of a flush
KEYS = tuple(f"train/metric_{n}" for n in range(METRICS))
ONE = KEYS[7]
ROUNDS = 9
MS = 1e3


@dataclass
class Cost:
    """What a format costs; None: not measured."""

    name: str
    rows: int
    write: float = 0.0  # ns a number
    size: float = 0.0  # bytes a number
    last: float = 0.0  # ms, of all metrics
    one: float = 0.0  # ms, one metric


def flushes(rows: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield steps [n], times [n] and values [k, n] of each flush."""
    chance = np.random.default_rng(0)
    values = chance.normal(size=(METRICS, FLUSH))
    for begin in range(0, rows, FLUSH):
        steps = np.arange(begin, begin + FLUSH)
        yield steps, 1.7e9 + steps * 0.01, values


def timed(rows: int, write: Callable[[Iterator], None]) -> float:
    """Return ns a number of writing, without making the numbers."""
    batches = list(flushes(min(rows, 20 * FLUSH)))
    batch_cycle = (batches[n % len(batches)] for n in range(rows // FLUSH))
    start = time.process_time()
    write(batch_cycle)
    return (time.process_time() - start) / (rows * METRICS) * 1e9


def best(read: Callable[[], object]) -> float:
    """Return ms of the fastest of several readings."""
    spent = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        read()
        spent.append((time.perf_counter() - start) * MS)
    return min(spent)


def size_of(path: Path) -> int:
    """Count the bytes of a file or folder."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files)


def ours(folder: Path, rows: int) -> tuple[Cost, Cost, dict[str, float]]:
    """Measure the store, growing and compacted."""
    run, _, path = RunFolder.create(folder, About()).begin()
    writer = Writer(path)

    def write(blocks: Iterator) -> None:
        for steps, times, values in blocks:
            writer.scalars(KEYS, steps, times, values)
            writer.flush()

    numbers = rows * METRICS
    growing = Cost("rlvitals, as written", rows, timed(rows, write))
    writer.close()
    growing.size = path.stat().st_size / numbers
    growing.last, growing.one = looking(run.path)
    start = time.perf_counter()
    compact(run.path)
    packed = Cost("rlvitals, compacted", rows, growing.write)
    more = {"compact": (time.perf_counter() - start) * 1e9 / numbers}
    packed.size = size_of(run.path / "blocks") / numbers
    packed.last, packed.one = looking(run.path)
    with storage.open(run.path) as view:
        more["m4"] = best(lambda: view.m4(ONE, 1000))
    return growing, packed, more


def looking(folder: Path) -> tuple[float, float]:
    """Measure opening a run for its last values, and reading one metric of an open one."""

    def last() -> None:
        with storage.open(folder) as view:
            assert len(view.last()) == METRICS

    with storage.open(folder) as view:
        return best(last), best(lambda: view.series(ONE))


def sqlite(folder: Path, rows: int) -> Cost:
    """Measure one row for each number, as trackers keep them."""
    db = sqlite3.connect(folder / "run.db")
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("CREATE TABLE m (key INTEGER, step INTEGER, time REAL, value REAL)")
    db.execute("CREATE INDEX by_key ON m (key, step)")

    def write(blocks: Iterator) -> None:
        for steps, times, values in blocks:
            s, t = steps.tolist(), times.tolist()
            for key, column in enumerate(values.tolist()):
                db.executemany(
                    "INSERT INTO m VALUES (?, ?, ?, ?)",
                    zip([key] * FLUSH, s, t, column, strict=True),
                )
            db.commit()

    cost = Cost("SQLite, a row a number", rows, timed(rows, write))
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    cost.size = size_of(folder) / (rows * METRICS)
    latest = "SELECT step, time, value FROM m WHERE key = ? ORDER BY step DESC LIMIT 1"
    cost.last = best(lambda: [db.execute(latest, (n,)).fetchone() for n in range(METRICS)])
    query = "SELECT step, time, value FROM m WHERE key = 7 ORDER BY step"
    cost.one = best(lambda: np.array(db.execute(query).fetchall()))
    db.close()
    return cost


def by_parquet(folder: Path, rows: int) -> Cost:
    """Measure a row group for each flush; it can be read only when it is closed."""
    path = folder / "run.parquet"
    names = ["step", "time", *KEYS]

    def write(blocks: Iterator) -> None:
        writer = None
        for steps, times, values in blocks:
            table = pa.Table.from_arrays([steps, times, *values], names=names)
            writer = writer or parquet.ParquetWriter(path, table.schema)
            writer.write_table(table)
        if writer:
            writer.close()

    cost = Cost("Parquet, a row group a flush", rows, timed(rows, write))
    cost.size = path.stat().st_size / (rows * METRICS)

    def last() -> None:
        file = parquet.ParquetFile(path)
        file.read_row_group(file.num_row_groups - 1)

    cost.last = best(last)
    cost.one = best(lambda: parquet.read_table(path, columns=["step", "time", ONE]))
    return cost


def json_lines(folder: Path, rows: int) -> Cost:
    """Measure a line for each row."""
    path = folder / "run.jsonl"

    def write(blocks: Iterator) -> None:
        with path.open("w") as file:
            for steps, times, values in blocks:
                rows_of = zip(steps.tolist(), times.tolist(), values.T.tolist(), strict=True)
                for step, time, row in rows_of:
                    record = {"step": step, "time": time, **dict(zip(KEYS, row, strict=True))}
                    file.write(json.dumps(record) + "\n")
                file.flush()

    cost = Cost("JSON lines", rows, timed(rows, write))
    cost.size = path.stat().st_size / (rows * METRICS)

    def one() -> np.ndarray:
        with path.open() as file:
            return np.array([json.loads(line)[ONE] for line in file])

    def last() -> object:
        with path.open("rb") as file:
            file.seek(-(1 << 16), os.SEEK_END)
            return json.loads(file.read().rstrip().rpartition(b"\n")[2])

    cost.last, cost.one = best(last), best(one)
    return cost


def seen(folder: Path, count: int = 200) -> tuple[float, float]:
    """Measure ms from the return of a flush until a reader that polls has it: median, p99."""
    _, _, path = RunFolder.create(folder, About()).begin()
    writer = Writer(path)
    wrote, read_times, stop = {}, {}, threading.Event()

    def follow() -> None:
        cursor = None
        while not stop.is_set():
            new = scan(path, cursor)
            read_time, cursor = time.perf_counter(), new.cursor
            for series in new.scalars:
                read_times[int(series.steps[-1])] = read_time
            time.sleep(0)

    reader = threading.Thread(target=follow)
    reader.start()
    values = np.zeros((20, 1))
    for step in range(count):
        writer.scalars(KEYS[:20], np.array([step]), np.array([0.0]), values)
        writer.flush()
        wrote[step] = time.perf_counter()
        time.sleep(0.005)
    stop.set()
    reader.join()
    writer.close()
    waits = sorted(max(0.0, read_times[step] - wrote[step]) * MS for step in wrote)
    return waits[len(waits) // 2], waits[int(0.99 * len(waits))]


@contextmanager
def folder() -> Iterator[Path]:
    """Make a folder for one measurement."""
    path = Path(tempfile.mkdtemp(prefix="store-", dir=os.environ.get("TMPDIR")))
    try:
        yield path
    finally:
        shutil.rmtree(path)


def main() -> None:
    """Measure, and print the numbers beside the targets."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    rows = 100_000 if parser.parse_args().quick else 1_000_000
    with folder() as path:
        growing, packed, more = ours(path, rows)
    costs = [growing, packed]
    for peer, share in ((by_parquet, 1), (sqlite, 50), (json_lines, 20)):
        with folder() as path:
            costs.append(peer(path, rows // share))
    with folder() as path:
        median, slow = seen(path)
    print(f"{METRICS} metrics, flushes of {FLUSH:,} rows\n")
    heads = ("format", "rows", "write ns/number", "B/number", "last of all ms", "one metric ms")
    print(f"{heads[0]:30}" + "".join(f"{head:>17}" for head in heads[1:]))
    for cost in costs:
        scale = rows / cost.rows
        cells = (f"{cost.rows:,}", f"{cost.write:.1f} ({cost.write / growing.write:.0f}x)",
                 f"{cost.size:.2f}", f"{cost.last:.2f}",
                 f"{cost.one * scale:.1f} ({cost.one * scale / packed.one:.0f}x)")  # fmt: skip
        print(f"{cost.name:30}" + "".join(f"{cell:>17}" for cell in cells))
    print()
    told(rows, growing, packed)
    print(f"a flush is seen by a polling reader after {median:.2f} ms, p99 {slow:.2f}: target 1 ms")
    print(f"compacting costs {more['compact']:.0f} ns a number; M4 of 1,000 columns of pixels from")
    print(f"{rows:,} points {more['m4']:.0f} ms, with reading them")


def told(rows: int, growing: Cost, packed: Cost) -> None:
    """Print the targets and what was reached."""
    targets = (
        ("write, ns a number", growing.write, 15.0),
        ("raw size, bytes a number", growing.size, 9.0),
        (f"last values of {rows * METRICS:,} numbers, ms", packed.last, 5.0),
        (f"one metric of {rows:,} points, ms", packed.one, 20.0),
    )
    for name, reached, target in targets:
        verdict = "met" if reached <= target else "MISSED"
        print(f"{name:45} {reached:8.2f}   target {target:g}: {verdict}")


if __name__ == "__main__":
    main()
