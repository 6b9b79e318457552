"""Measure writing TensorBoard event files, compared with torch's SummaryWriter.

Both write the same scalars: 20 keys at each step. What is compared is the CPU time of the whole
process, threads included, for a scalar on the disk, from the first row to the closed file. Ours
takes rows as the recorder hands them over, so many at a time: 1,000 is a second of a fast loop,
10 of a slower one, and 1 a loop that logs once a second. That both files hold the same records,
byte for byte, and that TensorBoard loads both to the same values, is checked first.
"""

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from event_files import STARTED, TAGS

from rlvitals.tracking.sinks import tensorboard
from rlvitals.tracking.sinks.sink import Opening, Rows

STEPS, PEER_STEPS, ROUNDS = 50_000, 2_000, 5
BATCHES = (1000, 10, 1)  # rows at a time
AROUND = (2, 1)  # events before and after our scalars: the head and the settings, the end


def main() -> list[str]:
    """Time both and return the table's rows."""
    check()
    peer = best(partial(write_torch, steps=PEER_STEPS), PEER_STEPS)
    rows = [f"| torch's SummaryWriter | {peer:,.0f} | 1 |"]
    for batch in BATCHES:
        steps = max(STEPS * batch // BATCHES[0], 500)
        ours = best(
            lambda folder, steps=steps, batch=batch: write_ours(folder, steps, batch), steps
        )
        rows.append(f"| rlvitals, {batch:,} rows at a time | {ours:,.0f} | {peer / ours:,.0f} |")
    print(f"{len(TAGS)} keys a step, best of {ROUNDS}; the files hold the same records")
    print("| writer | CPU ns a scalar | times cheaper |", "| --- | --- | --- |", *rows, sep="\n")
    return rows


def logged(first: int, count: int) -> Rows:
    """Return rows as the recorder hands them over: columns lie together in memory."""
    steps = np.arange(first, first + count)
    values = np.random.default_rng(first).standard_normal((len(TAGS), count)).T
    return Rows(TAGS, steps, STARTED + steps * 0.01, values)


def write_ours(folder: Path, steps: int, batch: int) -> float:
    """Return the CPU seconds of writing."""
    batches = [logged(first, batch) for first in range(0, steps, batch)]
    facts = {"run_id": "r", "name": "r", "project": "", "group": "", "settings": {}}
    start_time = time.process_time()
    opening = Opening(folder, **facts, attempt=1, rank=0, resumed=False)
    sink = tensorboard.SINK.open(opening)
    for rows in batches:
        sink.scalars(rows)
    sink.close("finished")
    return time.process_time() - start_time


def write_torch(folder: Path, steps: int) -> float:
    """Return the CPU seconds of writing."""
    from torch.utils.tensorboard import SummaryWriter

    rows = logged(0, steps)
    content = list(zip(rows.steps.tolist(), rows.times.tolist(), rows.values.tolist(), strict=True))
    start_time = time.process_time()
    with SummaryWriter(str(folder / "torch")) as writer:
        for step, moment, row in content:
            for key, value in zip(TAGS, row, strict=True):
                writer.add_scalar(key, value, step, walltime=moment)
    return time.process_time() - start_time


def best(write: Callable[[Path], float], steps: int) -> float:
    """Return the least CPU nanoseconds a scalar of ROUNDS writings."""
    seconds = []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            seconds.append(write(Path(folder)))
    return min(seconds) / steps / len(TAGS) * 1e9


def check() -> None:
    """Compare the records of both, and what TensorBoard loads from them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_ours(folder, 500, 500)
        write_torch(folder, 500)
        first, last = AROUND
        assert records(folder / "tensorboard")[first:-last] == records(folder / "torch")[1:]
        ours, theirs = loaded(folder / "tensorboard"), loaded(folder / "torch")
        assert ours == theirs
        assert len(ours) == len(TAGS)


def records(folder: Path) -> list[bytes]:
    """Return the payloads of a folder's one file, as TensorBoard's own reader finds them."""
    from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader

    (path,) = folder.iterdir()
    return list(RawEventFileLoader(str(path)).Load())


def loaded(folder: Path) -> dict[str, list[tuple[int, float, float]]]:
    """Return each tag's steps, times and values as TensorBoard loads them."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    accumulator = EventAccumulator(str(folder), size_guidance={"scalars": 0}).Reload()
    return {
        tag: [(event.step, event.wall_time, event.value) for event in accumulator.Scalars(tag)]
        for tag in accumulator.Tags()["scalars"]
    }


if __name__ == "__main__":
    main()
