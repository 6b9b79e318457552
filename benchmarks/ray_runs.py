"""Measure `rlvitals diagnose --ray` on 2,000 runs: one process, and Ray with two workers.

Wall time shows a speed-up only on a machine with two idle cores, so that CPU time is told beside
it: of the process that asks, of the workers, and of Ray's own processes. Needs
`pip install 'rlvitals[soak]'`; it is not part of `make bench`.
"""

import argparse
import contextlib
import io
import os
import shutil
import tempfile
import time
from pathlib import Path

import psutil
from many_runs import KINDS, WRITTEN

from rlvitals.cli import main as rlvitals

WORKERS = 2


def main() -> None:
    """Write the runs, judge them both ways and print the table."""
    import ray

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2_000)
    run_count = parser.parse_args().runs
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write(root, run_count)
        print("| way | wall s | CPU s asking | CPU s workers | CPU s Ray |")
        print("| --- | --- | --- | --- | --- |", flush=True)
        alone = measure("one process", root, "--jobs", "1")
        start = time.perf_counter()
        ray.init(num_cpus=WORKERS, include_dashboard=False, log_to_driver=False)
        print(f"| Ray starts | {time.perf_counter() - start:.1f} | | | |", flush=True)
        assert measure("Ray, two workers", root, "--ray") == alone  # the same answers
        ray.shutdown()


def write(root: Path, run_count: int) -> None:
    """Write runs as Stable-Baselines3 does: event files, and tables with a monitor."""
    writers = KINDS["every other"]
    for n in range(run_count):
        path = root / f"run_{n:04}"
        if n < WRITTEN:
            writers[n % len(writers)](path, n)
        else:
            shutil.copytree(root / f"run_{n % WRITTEN:04}", path)


def measure(name: str, root: Path, *options: str) -> str:
    """Judge the runs; print the row and return what was printed."""
    before, start, own = spent(), time.perf_counter(), time.process_time()
    with contextlib.redirect_stdout(io.StringIO()) as said:
        rlvitals(["diagnose", str(root), "--json", "--now", "2026-01-31", *options])
    own, wall = time.process_time() - own, time.perf_counter() - start
    workers, others = (after - early for after, early in zip(spent(), before, strict=True))
    print(f"| {name} | {wall:.1f} | {own:.1f} | {workers:.1f} | {others:.1f} |", flush=True)
    return said.getvalue()


def spent() -> tuple[float, float]:
    """Return the CPU seconds of the workers below this process, and of all others there."""
    workers = others = 0.0
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            used = sum(process.cpu_times()[:2])
            is_worker = process.name().startswith("ray::")
            workers, others = (workers + used, others) if is_worker else (workers, others + used)
    return workers, others


if __name__ == "__main__":
    main()
