"""Reading a TensorBoard event file: this project's reader beside TensorBoard's EventAccumulator.

Both read the same file of 40,000 scalars (20 tags x 2,000 steps) that TensorBoard's own writer
wrote, and are asked for every value; what they read is compared before anything is printed.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from rlvitals.readers import tensorboard

TAGS, STEPS, ROUNDS = 20, 2_000, 5
Columns = dict[str, np.ndarray]


def main() -> list[str]:
    """Time both and return the table's rows."""
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder))
        ours, peer = best(read_ours, path), best(read_peer, path)
        for tag, values in read_peer(path).items():
            np.testing.assert_array_equal(read_ours(path)[tag], values)
        size = path.stat().st_size
    scalars = TAGS * STEPS
    print(f"{scalars:,} scalars, {size / 1e6:.1f} MB, best of {ROUNDS}")
    rows = [
        f"| rlvitals | {ours / scalars * 1e9:,.0f} | 1 |",
        f"| TensorBoard's EventAccumulator | {peer / scalars * 1e9:,.0f} | {peer / ours:.1f} |",
    ]
    print("| reader | ns a scalar | times ours |", "| --- | --- | --- |", *rows, sep="\n")
    return rows


def write(folder: Path) -> Path:
    writer = EventFileWriter(str(folder))
    generator = np.random.default_rng(0)
    for step in range(STEPS):
        for tag in range(TAGS):
            value = Summary.Value(tag=f"train/metric_{tag}", simple_value=generator.normal())
            writer.add_event(
                Event(wall_time=1.7e9 + step, step=step, summary=Summary(value=[value]))
            )
    writer.close()
    return next(folder.glob("events.out.tfevents.*"))


def read_ours(path: Path) -> Columns:
    log, _ = tensorboard.READER.read(path, None)
    return {tag: series.values for tag, series in log.series.items()}


def read_peer(path: Path) -> Columns:
    found = EventAccumulator(str(path), size_guidance={"scalars": 0})
    found.Reload()
    return {
        tag: np.array([event.value for event in found.Scalars(tag)])
        for tag in found.Tags()["scalars"]
    }


def best(read: Callable[[Path], Columns], path: Path) -> float:
    """Return the shortest of some rounds, in seconds of CPU."""
    seconds = []
    for _ in range(ROUNDS):
        began = time.process_time()
        read(path)
        seconds.append(time.process_time() - began)
    return min(seconds)


if __name__ == "__main__":
    main()
