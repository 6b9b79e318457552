"""What following costs: a hundred live runs of a hundred metrics, each with a new row a second.

Files as their own writers leave them, appended to between the looks. Counted are the looks alone,
CPU time of this process; judging is `diagnosing.py`'s. Beside us TensorBoard's own
`EventAccumulator.Reload` follows the event files, and judges nothing either.
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
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

from rlvitals.store.blocks import Writer
from rlvitals.store.run_folder import About, RunFolder
from rlvitals.watch.changes import Points
from rlvitals.watch.following import EVERY, Watch

RUNS, METRICS, ROWS, LOOKS = 100, 100, 1_000, 10
KEYS = [f"train/metric_{n}" for n in range(METRICS)]
TITLES = (
    "| runs | a look with a row each, CPU ms | of a core | an idle look, CPU ms | a row seen, ms |",
    "| --- | --- | --- | --- | --- |",
)


def main() -> list[str]:
    """Write the runs, follow each kind and return the table's rows."""
    rows = []
    for name, (start, append) in KINDS.items():
        with tempfile.TemporaryDirectory() as place:
            folders = [Path(place) / "runs" / f"run_{n:03}" for n in range(RUNS)]
            _begun(folders, start)
            rows.append(_followed(name, Path(place) / "runs", folders, append))
            if name == "event files":
                rows.append(_peer(folders, append))
    print(f"{RUNS} runs x {METRICS} metrics x {ROWS:,} rows, a new row of each every {EVERY:g} s")
    print(*TITLES, *rows, sep="\n")
    return rows


def _begun(folders: list[Path], start: Callable[[Path], None]) -> None:
    """Write the first run, and the others as copies of it."""
    start(folders[0])
    for folder in folders[1:]:
        shutil.copytree(folders[0], folder)


def _followed(
    name: str, root: Path, folders: list[Path], append: Callable[[Path, int], None]
) -> str:
    now = [time.time()]
    watch = Watch({root: lambda *_: None}, clock=lambda: now[0])
    watch._judged = lambda *_, **__: iter(())  # type: ignore[method-assign]  # noqa: SLF001
    assert len(list(watch.look())) >= RUNS
    for _ in range(3):
        now[0] += 5.0
        list(watch.look())
    busy, idle, walls = [], [], []
    for look in range(LOOKS):
        for folder in folders:
            append(folder, ROWS + 1 + look)
        for costs in (busy, idle):
            now[0] += EVERY
            began, wall = time.process_time(), time.perf_counter()
            told = [one for one in watch.look() if isinstance(one, Points)]
            costs.append(time.process_time() - began)
            if costs is busy:
                walls.append(time.perf_counter() - wall)
                assert len(told) == RUNS, f"{len(told)} of {RUNS} runs grew"
                assert all(len(one.series) == METRICS for one in told)
    cost, seen = float(np.median(busy)), EVERY + float(np.median(walls))
    return (
        f"| {name} | {1e3 * cost:.0f} | {cost / EVERY:.1%} | {1e3 * np.median(idle):.0f} "
        f"| {1e3 * seen:.0f} at most |"
    )


def _peer(folders: list[Path], append: Callable[[Path, int], None]) -> str:
    """Follow the same event files with TensorBoard's accumulator."""
    found = [EventAccumulator(str(folder), size_guidance={"scalars": 0}) for folder in folders]
    for one in found:
        one.Reload()
    costs = []
    for look in range(LOOKS):
        for folder in folders:
            append(folder, ROWS + LOOKS + 1 + look)
        began = time.process_time()
        for one in found:
            one.Reload()
        costs.append(time.process_time() - began)
    cost = float(np.median(costs))
    return f"| event files, EventAccumulator | {1e3 * cost:.0f} | {cost / EVERY:.1%} | | |"


def _values(row: int) -> list[float]:
    return np.random.default_rng(row).normal(size=METRICS).tolist()


def _table(folder: Path) -> None:
    folder.mkdir(parents=True)
    with (folder / "progress.csv").open("w") as file:
        file.write(",".join(["time/total_timesteps", *KEYS]) + "\n")
    for row in range(1, ROWS + 1):
        _table_row(folder, row)


def _table_row(folder: Path, row: int) -> None:
    held = io.StringIO()
    csv.writer(held, lineterminator="\n").writerow([row, *_values(row)])
    _append(folder / "progress.csv", held.getvalue().encode())


def _lines(folder: Path) -> None:
    folder.mkdir(parents=True)
    for row in range(1, ROWS + 1):
        _line(folder, row)


def _line(folder: Path, row: int) -> None:
    said = {"step": row, **dict(zip(KEYS, _values(row), strict=True))}
    _append(folder / "metrics.jsonl", f"{json.dumps(said)}\n".encode())


def _append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


EVENTS = "events.out.tfevents.1700000000.host.1.0"


def _events(folder: Path) -> None:
    folder.mkdir(parents=True)
    with (folder / EVENTS).open("wb") as file:
        writer = RecordWriter(file)
        writer.write(Event(wall_time=1.7e9, file_version="brain.Event:2").SerializeToString())
        for row in range(1, ROWS + 1):
            _write_events(writer, row)


def _events_row(folder: Path, row: int) -> None:
    with (folder / EVENTS).open("ab") as file:
        _write_events(RecordWriter(file), row)


def _write_events(writer: RecordWriter, row: int) -> None:
    """Write an event a tag, as torch's SummaryWriter does."""
    for key, value in zip(KEYS, _values(row), strict=True):
        summary = Summary(value=[Summary.Value(tag=key, simple_value=value)])
        event = Event(wall_time=1.7e9 + row, step=row, summary=summary)
        writer.write(event.SerializeToString())


def _ours(folder: Path) -> None:
    _, _, path = RunFolder.create(folder, About()).begin()
    writer = Writer(path)
    _block(writer, range(1, ROWS + 1))
    writer.close()


def _ours_row(folder: Path, row: int) -> None:
    writer = Writer(folder / "blocks" / "1-0.rlv")
    _block(writer, range(row, row + 1))
    writer.close()


def _block(writer: Writer, rows: range) -> None:
    steps = np.array(rows, np.int64)
    values = np.array([_values(row) for row in rows]).T.copy()
    writer.scalars(tuple(KEYS), steps, 1.7e9 + steps.astype(np.float64), values)
    writer.flush()


KINDS = {
    "our own": (_ours, _ours_row),
    "SB3's progress.csv": (_table, _table_row),
    "JSON lines": (_lines, _line),
    "event files": (_events, _events_row),
}

if __name__ == "__main__":
    sys.exit(not main())
