"""Count the logged rows that SIGKILL loses, for each way to log.

A process logs 10 numbers at 1,000 steps a second and is killed at a random moment between 0.5 and
3 s. Every 10th step it says over a pipe, after the call, that it has logged it. The files are then
read by rlvitals. A row is lost where it was said to be logged and is not among what is read.
"""

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import rlvitals

KILLS = 10
RATE = 1_000  # steps a second
REPORT_EVERY = 10  # steps
NUMBERS = 10
FIRST_SECONDS, LAST_SECONDS = 0.5, 3.0
KEY = "loss/0"
Log = Callable[[int, dict[str, float]], object]


def log_rlvitals(folder: str, **options: bool) -> Log:
    return rlvitals.start(folder, **options).log


def log_tensorboard(folder: str) -> Log:
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(folder)

    def log(step: int, row: dict[str, float]) -> None:
        for key, value in row.items():
            writer.add_scalar(key, value, step)

    return log


def log_wandb(folder: str) -> Log:
    os.environ |= {"WANDB_MODE": "offline", "WANDB_SILENT": "true"}
    import wandb

    Path(folder).mkdir()
    run = wandb.init(project="kills", dir=folder)
    return lambda step, row: run.log(row, step=step)


def log_trackio(folder: str) -> Log:
    os.environ["TRACKIO_DIR"] = folder
    import trackio

    Path(folder).mkdir()
    trackio.init(project="kills", name="run")
    return lambda step, row: trackio.log(row, step=step)


WAYS: dict[str, tuple[str, Callable[[str], Log]]] = {
    "rlvitals": ("rlvitals", log_rlvitals),
    "rlvitals, durable": ("rlvitals", lambda folder: log_rlvitals(folder, durable=True)),
    "SummaryWriter": ("torch", log_tensorboard),
    "W&B offline": ("wandb", log_wandb),
    "Trackio": ("trackio", log_trackio),
}


def work(way: str, folder: str) -> None:
    """Log until killed, and say over stdout what was logged."""
    out = os.dup(1)
    os.dup2(2, 1)  # what a library prints is no report
    log = WAYS[way][1](folder)
    start, step = time.monotonic(), 0
    while True:
        log(step, {f"loss/{i}": step + i / 16 for i in range(NUMBERS)})
        if step % REPORT_EVERY == 0:
            os.write(out, b"%d\n" % step)
        step += 1
        time.sleep(max(start + step / RATE - time.monotonic(), 0.0))


def lost(way: str, folder: Path, seconds: float) -> tuple[int, bool]:
    """Kill a process that logs; return the rows lost, and whether those that are read are right."""
    command = [sys.executable, __file__, way, str(folder)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()  # it logs from here on
        time.sleep(seconds)
        os.killpg(process.pid, signal.SIGKILL)
        last = int(((first + process.stdout.read()).splitlines() or [b"-1"])[-1])
    try:
        steps = [
            int(step)
            for log in rlvitals.read(folder)
            for key, series in log.series.items()
            if key.endswith(KEY)
            for step in series.steps
        ]
    except rlvitals.UnreadableLog:
        steps = []
    is_complete = sorted(set(steps)) == list(range(len(set(steps))))
    return max(last - max(steps, default=-1), 0), is_complete


def main() -> list[str]:
    """Kill each way to log and return the table's rows."""
    rows = []
    for way, (package, _) in WAYS.items():
        if not find_spec(package):
            continue
        moments = np.random.default_rng(7)  # the same for each way
        with tempfile.TemporaryDirectory() as base:
            answers = [
                lost(way, Path(base, f"{i}"), moments.uniform(FIRST_SECONDS, LAST_SECONDS))
                for i in range(KILLS)
            ]
        counts, gaps = (
            [count for count, _ in answers],
            sum(not is_complete for _, is_complete in answers),
        )
        median, largest = statistics.median(counts), max(counts)
        rows.append(
            f"| {way} | {KILLS} | {median:.0f} | {largest} | {largest / RATE:.2f} | {gaps} |"
        )
    print("| way to log | kills | rows lost, median | at most | seconds | with gaps |")
    print("| --- | --- | --- | --- | --- | --- |", *rows, sep="\n")
    return rows


if __name__ == "__main__":
    if len(sys.argv) > 1:
        work(*sys.argv[1:])
    main()
