"""Measure following a hundred live runs of a hundred metrics, each with a new row per second.

Files as their own writers leave them, appended to between the looks. Counted are the looks alone,
CPU time of this process; judging is `diagnosing.py`'s. A row is seen at most a rest and a look
after it was written. Beside us TensorBoard's own `EventAccumulator.Reload` follows a tenth of the
event files, and judges nothing either.
"""

import csv
import io
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from rlvitals.following.changes import Points
from rlvitals.following.loop import LOOK_SECONDS, Watch
from rlvitals.storage.blocks import Writer
from rlvitals.storage.run_folder import About, RunFolder
from rlvitals.tracking.sinks.event_files.scalars import encode

RUNS, METRICS, ROWS, LOOKS = 100, 100, 1_000, 20
SHARE, SEEN = 0.10, 1.5  # of a core, at most; seconds until a row is seen, at most
PEERS = 10  # of the runs: the peer needs minutes to load them all
KEYS = tuple(f"train/metric_{n}" for n in range(METRICS))
BEGAN = 1.7e9  # seconds since the epoch
TITLES = (
    "| runs | a look with a row each, CPU ms | of a core | an idle look, CPU ms | a row seen, ms |",
    "| --- | --- | --- | --- | --- |",
    f"| wanted | | < {SHARE:.0%} | | < {1e3 * SEEN:,.0f} |",
)


def main() -> list[str]:
    """Write the runs, follow each kind and return the table's rows."""
    rows = []
    for name, (begin, append) in KINDS.items():
        with tempfile.TemporaryDirectory() as folder:
            folders = [Path(folder) / "runs" / f"run_{n:03}" for n in range(RUNS)]
            _begun(folders, begin)
            rows.append(_followed(name, Path(folder) / "runs", folders, append))
            if name == "event files":
                rows.append(_peer(folders[:PEERS], append))
    print(
        f"{RUNS} runs x {METRICS} metrics x {ROWS:,} rows, "
        f"a new row of each every {LOOK_SECONDS:g} s"
    )
    print(*TITLES, *rows, sep="\n")
    return rows


def _begun(folders: list[Path], begin: Callable[[Path], None]) -> None:
    """Write the first run, and the others as copies of it."""
    begin(folders[0])
    for folder in folders[1:]:
        shutil.copytree(folders[0], folder)


def _followed(
    name: str, root: Path, folders: list[Path], append: Callable[[Path, range], None]
) -> str:
    clock_time = [time.time()]
    watch = Watch({root: lambda *_: None}, clock=lambda: clock_time[0])
    watch._judged = lambda *_, **__: iter(())  # type: ignore[method-assign]  # noqa: SLF001
    assert len(list(watch.look())) >= RUNS
    for _ in range(3):
        clock_time[0] += 5.0
        list(watch.look())
    busy, idle, walls = [], [], []
    for row in range(ROWS + 1, ROWS + 1 + LOOKS):
        for folder in folders:
            append(folder, range(row, row + 1))
        for costs in (busy, idle):
            clock_time[0] += EVERY
            start_time, wall = time.process_time(), time.perf_counter()
            updates = [update for update in watch.look() if isinstance(update, Points)]
            costs.append(time.process_time() - start_time)
            if costs is busy:
                walls.append(time.perf_counter() - wall)
                assert len(updates) == RUNS, f"{len(updates)} of {RUNS} runs grew"
                assert all(len(update.series) == METRICS for update in updates)
    cost, latency = float(np.median(busy)), EVERY + float(np.median(walls))
    return (
        f"| {name} | {1e3 * cost:.0f} | {cost / EVERY:.1%} | {1e3 * np.median(idle):.0f} "
        f"| {1e3 * latency:,.0f} at most |"
    )


def _peer(folders: list[Path], append: Callable[[Path, range], None]) -> str:
    """Follow some of the same event files with TensorBoard's accumulator."""
    accumulators = [
        EventAccumulator(str(folder), size_guidance={"scalars": 0}) for folder in folders
    ]
    for accumulator in accumulators:
        accumulator.Reload()
    costs = []
    for look in range(LOOKS):
        row = ROWS + LOOKS + 1 + look
        for folder in folders:
            append(folder, range(row, row + 1))
        start_time = time.process_time()
        for accumulator in accumulators:
            accumulator.Reload()
        costs.append(time.process_time() - start_time)
    cost = float(np.median(costs)) * RUNS / len(folders)
    return f"| event files, EventAccumulator | {1e3 * cost:,.0f} | {cost / LOOK_SECONDS:.1%} | | |"


def _values(rows: range) -> NDArray[np.float64]:
    """Return what is logged in some rows: [rows, metrics]."""
    return np.random.default_rng(rows.start).normal(size=(len(rows), METRICS))


def _append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def _begin_table(folder: Path) -> None:
    folder.mkdir(parents=True)
    _append(folder / "progress.csv", ",".join(["time/total_timesteps", *KEYS]).encode() + b"\n")
    _add_to_table(folder, range(1, ROWS + 1))


def _add_to_table(folder: Path, rows: range) -> None:
    buffer = io.StringIO()
    cells = ([row, *values] for row, values in zip(rows, _values(rows).tolist(), strict=True))
    csv.writer(buffer, lineterminator="\n").writerows(cells)
    _append(folder / "progress.csv", buffer.getvalue().encode())


def _begin_lines(folder: Path) -> None:
    folder.mkdir(parents=True)
    _add_lines(folder, range(1, ROWS + 1))


def _add_lines(folder: Path, rows: range) -> None:
    records = (
        {"step": row, **dict(zip(KEYS, values, strict=True))}
        for row, values in zip(rows, _values(rows).tolist(), strict=True)
    )
    _append(folder / "metrics.jsonl", "".join(f"{json.dumps(row)}\n" for row in records).encode())


def _begin_events(folder: Path) -> None:
    folder.mkdir(parents=True)
    _add_events(folder, range(1, ROWS + 1))


def _add_events(folder: Path, rows: range) -> None:
    """Write an event a tag, as torch's SummaryWriter does, and byte for byte."""
    steps, path = np.array(rows, np.int64), folder / "events.out.tfevents.1700000000.host.1.0"
    _append(path, b"".join(encode(KEYS, steps, BEGAN + steps, _values(rows))))


def _begin_blocks(folder: Path) -> None:
    RunFolder.create(folder, About()).begin()
    _add_block(folder, range(1, ROWS + 1))


def _add_block(folder: Path, rows: range) -> None:
    writer, steps = Writer(folder / "blocks" / "1-0.rlv"), np.array(rows, np.int64)
    writer.scalars(KEYS, steps, BEGAN + steps, _values(rows).T.copy())
    writer.flush()
    writer.close()


KINDS = {
    "our own": (_begin_blocks, _add_block),
    "SB3's progress.csv": (_begin_table, _add_to_table),
    "JSON lines": (_begin_lines, _add_lines),
    "event files": (_begin_events, _add_events),
}

if __name__ == "__main__":
    sys.exit(not main())
