"""Measure reading TensorBoard event files beside three other readers, and judging a large CSV.

    python benchmarks/reading.py [--quick]

Each reader reads the same files in a process of its own and keeps every scalar (and histogram).
Measured is the CPU time of that process from before the first file to after the last, imports
left out; for tensorboard-data-server, a program, all of its CPU time until it is loaded. Peak
memory is what reading adds to the process, beside the size of what is returned: 24 bytes a
scalar, 8 bytes for each edge and count of a histogram. EventAccumulator and tbparse read a
sample of the files (and of a large one, a shorter one): their cost is a constant a scalar.
Of the CSV the whole of `rlvitals diagnose` is measured, its imports included.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import event_files
import numpy as np

ROUNDS = 3  # of ours and of the server; the others take long enough to be told by one
SERVER_TIMEOUT = 600  # seconds
MiB = 2**20


@dataclass(frozen=True)
class Case:
    """Files of one kind: `runs` of 20 tags and so many steps; for slow readers, fewer."""

    name: str
    runs: int
    steps: int
    sample_runs: int
    sample_steps: int
    histograms_every: int = 0  # steps


CASES = (
    Case("one file of 5,000,000 scalars", 1, 250_000, 1, 10_000),
    Case("200 runs of 40,000 scalars", 200, 2_000, 5, 2_000),
    Case("200 runs of 2,000 scalars", 200, 100, 50, 100),
    Case("1,000,000 scalars and 2,000 histograms", 1, 50_000, 1, 5_000, 500),
)
QUICK = (
    Case("one file of 500,000 scalars", 1, 25_000, 1, 1_000),
    Case("20 runs of 40,000 scalars", 20, 2_000, 1, 2_000),
    Case("20 runs of 2,000 scalars", 20, 100, 10, 100),
    Case("100,000 scalars and 200 histograms", 1, 5_000, 1, 1_000, 500),
)


@dataclass(frozen=True)
class Cost:
    """What reading took."""

    scalars: int
    seconds: float  # of CPU
    peak: int = 0  # bytes
    result: int = 0  # bytes


def files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("events.out.tfevents.*"))


def read_ours(folder: Path) -> tuple[int, int]:
    from rlvitals.readers import tensorboard

    logs = [tensorboard.READER.read(path, None)[0] for path in files(folder)]
    scalars = sum(len(series) for log in logs for series in log.series.values())
    histograms = [
        histogram for log in logs for series in log.histograms.values() for histogram in series
    ]
    buckets = sum(histogram.edges.nbytes + histogram.counts.nbytes for histogram in histograms)
    return scalars, 24 * scalars + buckets


def read_accumulator(folder: Path) -> tuple[int, int]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    scalars = 0
    for path in files(folder):
        accumulator = EventAccumulator(str(path), size_guidance={"scalars": 0, "histograms": 0})
        accumulator.Reload()
        for tag in accumulator.Tags()["scalars"]:
            scalars += len(np.array([event.value for event in accumulator.Scalars(tag)]))
    return scalars, 0


def read_tbparse(folder: Path) -> tuple[int, int]:
    from tbparse import SummaryReader

    runs = sorted({path.parent for path in files(folder)})
    return sum(len(SummaryReader(str(run)).scalars) for run in runs), 0


READERS: dict[str, Callable[[Path], tuple[int, int]]] = {
    "ours": read_ours,
    "accumulator": read_accumulator,
    "tbparse": read_tbparse,
}
IMPORTS = {
    "ours": "rlvitals.readers.tensorboard",
    "accumulator": "tensorboard.backend.event_processing.event_accumulator",
    "tbparse": "tbparse",
}


def in_this_process(reader: str, folder: Path) -> None:
    """Read and print the cost: what a child process does."""
    __import__(IMPORTS[reader])
    start_memory = peak_memory("self")
    start_time = time.process_time()
    scalars, result = READERS[reader](folder)
    seconds = time.process_time() - start_time
    print(json.dumps([scalars, seconds, peak_memory("self") - start_memory, result]))


def peak_memory(process: int | str) -> int:
    """Return a process's peak resident memory since it was started, in bytes (Linux)."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def measured(reader: str, folder: Path) -> Cost:
    """Return what a reader of READERS takes in a process of its own."""
    command = [sys.executable, "-W", "ignore", __file__, "--reader", reader, str(folder)]
    single = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.run(command, check=True, capture_output=True, text=True, env=single)
    return Cost(*json.loads(process.stdout.splitlines()[-1]))


def served(folder: Path, scalars: int, *flags: str) -> Cost:
    """Return what tensorboard-data-server takes to load a folder."""
    from tensorboard_data_server import server_binary

    keep = ["--samples-per-plugin", "scalars=all,histograms=all"]
    once = ["--logdir", str(folder), "--reload", "once", "--port", "0", "-v"]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen([server_binary(), *once, *keep, *flags], stderr=log)
        start_time = time.monotonic()
        while b"Finished load cycle" not in _said(log):
            assert process.poll() is None, "the server has stopped"
            assert time.monotonic() - start_time < SERVER_TIMEOUT, "the server is still loading"
            time.sleep(0.02)
        peak = peak_memory(process.pid)
        process.terminate()
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0  # waited for above
    return Cost(scalars, usage.ru_utime + usage.ru_stime, peak)


def _said(log: "tempfile._TemporaryFileWrapper[bytes]") -> bytes:
    return os.pread(log.fileno(), MiB, 0)


def write(case: Case, folder: Path, runs: int, steps: int) -> Path:
    for run in range(runs):
        event_files.write_run(folder / f"run_{run:03d}", steps, run, case.histograms_every)
    return folder


def compare(case: Case, folder: Path) -> list[str]:
    """Return a table's rows for one case."""
    runs_folder = write(case, folder / "whole", case.runs, case.steps)
    sample = write(case, folder / "sample", case.sample_runs, case.sample_steps)
    ours = best(lambda: measured("ours", runs_folder))
    assert ours.scalars == case.runs * case.steps * len(event_files.TAGS)
    rows = {
        "rlvitals": ours,
        "tensorboard-data-server": best(lambda: served(runs_folder, ours.scalars)),
        "tensorboard-data-server --checksum": best(
            lambda: served(runs_folder, ours.scalars, "--checksum")
        ),
        "EventAccumulator": measured("accumulator", sample),
        "tbparse": measured("tbparse", sample),
    }
    return [row(case, name, cost, ours) for name, cost in rows.items()]


def best(cost: Callable[[], Cost]) -> Cost:
    """Return the cheapest of some rounds."""
    return min((cost() for _ in range(ROUNDS)), key=lambda cost: cost.seconds)


def row(case: Case, name: str, cost: Cost, ours: Cost) -> str:
    each, our_seconds = cost.seconds / cost.scalars, ours.seconds / ours.scalars
    sampled = f"{cost.scalars:,}" if cost.scalars != ours.scalars else "all"
    peak = f"{cost.peak / MiB:,.0f} MiB"
    if cost.result:
        peak += f" ({cost.peak / cost.result:.2f} x result)"
    nanoseconds, ratio = f"{each * 1e9:,.0f}", f"{each / our_seconds:.1f}"
    return f"| {case.name} | {name} | {sampled} | {nanoseconds} | {ratio} | {peak} |"


def diagnose_table(folder: Path, rows: int) -> str:
    """Return a row on `rlvitals diagnose` of a CSV with a step and nine noisy columns."""
    folder.mkdir()
    path, names = folder / "metrics.csv", ("return", "approx_kl", *(f"m{i}" for i in range(7)))
    rng = np.random.default_rng(0)
    with path.open("w") as file:
        file.write(f"step,{','.join(names)}\n")
        for first in range(0, rows, 10_000):
            for step, row in enumerate(rng.random((10_000, len(names))), first):
                file.write(f"{step},{','.join(f'{value:.7f}' for value in row)}\n")
    command = [sys.executable, "-m", "rlvitals", "diagnose", str(path)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = 0  # waited for above
    size, peak = path.stat().st_size / MiB, usage.ru_maxrss * 1024 / MiB
    return (
        f"| {rows:,} | {size:,.0f} MiB | {usage.ru_utime + usage.ru_stime:.1f} | {peak:,.0f} MiB |"
    )


def check(folder: Path) -> None:
    """Assert that TensorBoard's own reader reads what the generator writes, as we do."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    from rlvitals.readers import tensorboard

    path = event_files.write_run(folder, 300, 1, 100)
    log = tensorboard.READER.read(path, None)[0]
    peer = EventAccumulator(str(path), size_guidance={"scalars": 0, "histograms": 0}).Reload()
    assert sorted(peer.Tags()["scalars"]) == sorted(log.series) == sorted(event_files.TAGS)
    for tag, series in log.series.items():
        events = peer.Scalars(tag)
        np.testing.assert_array_equal(series.steps, [event.step for event in events])
        np.testing.assert_array_equal(series.times, [event.wall_time for event in events])
        np.testing.assert_array_equal(series.values, [event.value for event in events])
    for tag, histograms in log.histograms.items():
        assert [histogram.step for histogram in histograms] == [
            event.step for event in peer.Histograms(tag)
        ]


def main(arguments: tuple[str, ...] = ()) -> list[str]:
    """Compare the readers on every case and return the table's rows."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="a tenth of the size")
    parser.add_argument("--reader", nargs=2, metavar=("READER", "FOLDER"), help="used by itself")
    options = parser.parse_args(arguments)
    if options.reader:
        in_this_process(options.reader[0], Path(options.reader[1]))
        return []
    names = ("tensorboard", "tensorboard-data-server", "tbparse")
    print(", ".join(f"{name} {version(name)}" for name in names))
    rows = ["| files | reader | scalars read | CPU ns a scalar | times ours | peak memory |"]
    rows.append("| --- | --- | --- | --- | --- | --- |")
    print(*rows, sep="\n")
    with tempfile.TemporaryDirectory() as folder:
        check(Path(folder) / "check")
        for index, case in enumerate(QUICK if options.quick else CASES):
            costs = compare(case, Path(folder) / str(index))
            print(*costs, sep="\n", flush=True)
            rows += costs
        table_rows = 300_000 if options.quick else 3_000_000
        table = ["| rows of a CSV | size | CPU s of `diagnose` | peak memory |"]
        table += ["| --- | --- | --- | --- |", diagnose_table(Path(folder) / "csv", table_rows)]
        print(*table, sep="\n", flush=True)
    return [*rows, *table]


if __name__ == "__main__":
    main(tuple(sys.argv[1:]))
