"""Measure `rlvitals diagnose` of a small run as a complete process.

Beside it the time in which the tools people log with are imported, before they have read a byte.
Wall time and CPU time are the medians of some rounds, each a new process.
"""

import compileall
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import rlvitals

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "healthy"
ROUNDS = 15
OURS = ("-m", "rlvitals", "diagnose", str(EXAMPLE), "--fail-on", "never")
PEERS = {
    "tensorboard": "tensorboard.backend.event_processing.event_accumulator",
    "wandb": "wandb",
    "mlflow": "mlflow",
}


def main() -> list[str]:
    """Time each and return the table's rows."""
    # An installed package is compiled, also where this environment writes no bytecode.
    compileall.compile_dir(str(Path(rlvitals.__file__).parent), quiet=1)
    rows = [_row("`rlvitals diagnose examples/healthy`", OURS)]
    rows += [
        _row(f"`import {module}`", ("-c", f"import {module}"))
        for package, module in PEERS.items()
        if find_spec(package)
    ]
    print(f"whole processes, medians of {ROUNDS}")
    print("| process | wall s | CPU s |", "| --- | --- | --- |", *rows, sep="\n")
    return rows


def _row(name: str, argv: Sequence[str]) -> str:
    wall, cpu = measure(argv)
    return f"| {name} | {wall:.2f} | {cpu:.2f} |"


def measure(argv: Sequence[str]) -> tuple[float, float]:
    """Run Python with these arguments and return the medians of wall and CPU time, in seconds."""
    walls, cpus = [], []
    for _ in range(ROUNDS + 1):
        start_cpu, start_time = os.times(), time.perf_counter()
        subprocess.run([sys.executable, *argv], check=True, stdout=subprocess.DEVNULL)
        after = os.times()
        walls.append(time.perf_counter() - start_time)
        cpus.append(
            after.children_user + after.children_system
            - start_cpu.children_user - start_cpu.children_system
        )  # fmt: skip
    return statistics.median(walls[1:]), statistics.median(cpus[1:])  # the first fills caches


if __name__ == "__main__":
    main()
