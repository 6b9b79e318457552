"""Measure recording 20 numbers a step: time in the training loop, and in total.

Each logger runs in a process of its own, one after another. Paced: a loop that computes until the
next millisecond and then logs; told are the median, the 99th percentile and the mean of the calls
after the first second, the clock included. Two floors stand beside them: a method that does
nothing, and the least that a recorder must do, which is to copy the dict, to ask for the time and
to append both to a list that a thread empties. Saturated: a loop that does nothing but log, closing
included; told is the CPU time of all its threads and of the processes it started. Start: what
importing and starting takes once numpy is loaded, and the memory it adds.
"""

import csv
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from array import array
from collections.abc import Callable
from dataclasses import astuple, dataclass
from pathlib import Path

NUMBERS = 20
WARM = 1000  # steps of a millisecond before those that count
PACED = 4000  # steps that count
SATURATED = 5.0  # seconds at the most
MOST = 200_000  # steps
ROUNDS = 3
TRACKERS = ("tensorboard", "sb3", "wandb", "trackio")
OURS = ("rlvitals", "rlvitals python", "rlvitals durable")
FLOORS = ("empty", "least")
PEERS = (*FLOORS, "csv", "json lines", *TRACKERS)

Log = Callable[[int, dict[str, float]], object]
Close = Callable[[], object]


def rlvitals(folder: Path, **more: bool) -> tuple[Log, Close]:
    import rlvitals as ours

    run = ours.start(folder, **more)
    return run.log, run.finish


def in_python(folder: Path) -> tuple[Log, Close]:
    os.environ["RLVITALS_COMPILED"] = "off"
    return rlvitals(folder)


def durable(folder: Path) -> tuple[Log, Close]:
    return rlvitals(folder, durable=True)


copy, now = dict.copy, time.time


class Floor:
    """What no recorder in Python can do without."""

    def __init__(self) -> None:
        self.rows: list[object] = []
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def empty(self, step: int, metrics: dict[str, float], **_axes: float) -> None:
        """Take what `Run.log` takes."""

    def least(self, step: int, metrics: dict[str, float], **_axes: float) -> None:
        """Keep a row."""
        self.rows += (step, now(), copy(metrics))

    def run(self) -> None:
        while not self.ended.wait(1.0):
            del self.rows[: len(self.rows)]

    def close(self) -> None:
        self.ended.set()
        self.thread.join()


def empty(_folder: Path) -> tuple[Log, Close]:
    floor = Floor()
    return floor.empty, floor.close


def least(_folder: Path) -> tuple[Log, Close]:
    floor = Floor()
    return floor.least, floor.close


def rows_of_csv(folder: Path) -> tuple[Log, Close]:
    file = (folder / "log.csv").open("w", newline="")
    writer = csv.DictWriter(file, ["step", *row()])
    writer.writeheader()
    return lambda step, values: writer.writerow({"step": step, **values}), file.close


def lines_of_json(folder: Path) -> tuple[Log, Close]:
    file = (folder / "log.jsonl").open("w")

    def log(step: int, values: dict[str, float]) -> None:
        file.write(json.dumps({"step": step, **values}) + "\n")

    return log, file.close


def tensorboard(folder: Path) -> tuple[Log, Close]:
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(folder)

    def log(step: int, values: dict[str, float]) -> None:
        for key, value in values.items():
            writer.add_scalar(key, value, step)

    return log, writer.close


def sb3(folder: Path) -> tuple[Log, Close]:
    from stable_baselines3.common.logger import configure

    logger = configure(str(folder), ["tensorboard"])

    def log(step: int, values: dict[str, float]) -> None:
        for key, value in values.items():
            logger.record(key, value)
        logger.dump(step)

    return log, logger.close


def wandb(folder: Path) -> tuple[Log, Close]:
    import wandb as theirs

    run = theirs.init(mode="offline", dir=folder, settings=theirs.Settings(silent=True))
    return lambda step, values: run.log(values, step=step), run.finish


def trackio(folder: Path) -> tuple[Log, Close]:
    os.environ |= {"TRACKIO_DIR": str(folder), "HF_HUB_OFFLINE": "1"}
    import trackio as theirs

    theirs.init(project="bench", embed=False)
    return lambda step, values: theirs.log(values, step=step), theirs.finish


OPEN: dict[str, Callable[[Path], tuple[Log, Close]]] = {
    "rlvitals": rlvitals,
    "rlvitals python": in_python,
    "rlvitals durable": durable,
    "empty": empty,
    "least": least,
    "csv": rows_of_csv,
    "json lines": lines_of_json,
    "tensorboard": tensorboard,
    "sb3": sb3,
    "wandb": wandb,
    "trackio": trackio,
}
TITLES = {
    "rlvitals": "`rlvitals`",
    "rlvitals python": "`rlvitals`, not compiled",
    "rlvitals durable": "`rlvitals`, durable",
    "empty": "(an empty method)",
    "least": "(copy, clock, append)",
    "csv": "`csv.DictWriter`",
    "json lines": "JSON lines",
    "tensorboard": "torch `SummaryWriter`",
    "sb3": "Stable-Baselines3's logger (TensorBoard)",
    "wandb": "W&B, offline",
    "trackio": "Trackio, local",
}


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one logger: microseconds a call, microseconds of CPU a step, bytes, seconds, MB."""

    p50: float
    p99: float
    mean: float
    cpu: float
    size: float  # bytes a number
    start: float  # seconds
    memory: float  # MB


def row() -> dict[str, float]:
    return {f"train/metric_{i}": 0.1 * i + 1 / 3 for i in range(NUMBERS)}


def paced(log: Log, values: dict[str, float]) -> tuple[float, float, float]:
    """Return the median, the 99th percentile and the mean of the calls, in microseconds."""
    clock, calls = time.perf_counter_ns, array("q", bytes(8 * (WARM + PACED)))
    next_time = clock()
    for step in range(WARM + PACED):
        while clock() < next_time:
            pass
        next_time = max(next_time + 1_000_000, clock())
        values["train/metric_0"] = float(step)
        start_time = clock()
        log(step, values)
        calls[step] = clock() - start_time
    took = sorted(calls[WARM:])
    return took[PACED // 2] / 1e3, took[PACED * 99 // 100] / 1e3, sum(took) / PACED / 1e3


def saturated(log: Log, close: Close, values: dict[str, float]) -> tuple[float, int]:
    """Return CPU microseconds a step of all threads and processes, and the steps."""
    start_time, start_spent, steps = time.perf_counter(), spent(), 0
    while steps < MOST and time.perf_counter() < start_time + SATURATED:
        for step in range(steps, steps + 500):
            log(WARM + PACED + step, values)
        steps += 500
    close()
    return (spent() - start_spent) / steps * 1e6, steps


def spent() -> float:
    return sum(
        used.ru_utime + used.ru_stime
        for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def memory() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def measure(name: str) -> Cost:
    """Measure a logger in this process."""
    import numpy as np

    assert np.ones(3).sum() == NUMBERS - 17
    values = row()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        had, start_time = memory(), time.perf_counter()
        log, close = OPEN[name](folder)
        log(0, values)
        start, added = time.perf_counter() - start_time, memory() - had
        p50, p99, mean = paced(log, values)
        cpu, steps = saturated(log, close, values)
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    rows = 1 + WARM + PACED + steps
    return Cost(p50, p99, mean, cpu, size / NUMBERS / rows, start, added)


def asked(name: str) -> Cost | None:
    """Measure a logger in processes of its own: the median of each number over some rounds."""
    costs = []
    for _ in range(ROUNDS):
        process = subprocess.run(
            [sys.executable, __file__, name], capture_output=True, text=True, check=False
        )
        if process.returncode:
            print(f"{name}: {process.stderr.strip().splitlines()[-1:]}")
            return None
        costs.append(json.loads(process.stdout.splitlines()[-1]))
    return Cost(*(statistics.median(numbers) for numbers in zip(*costs, strict=True)))


def main() -> list[str]:
    """Measure each and return the table's rows."""
    costs = {name: cost for name in (*OURS, *PEERS) if (cost := asked(name)) is not None}
    ours = costs[OURS[0]]
    rows = [
        f"| {TITLES[name]} | {cost.p50:.2f} | {cost.p99:.1f} | {cost.mean:.2f}"
        f" | {cost.p50 / ours.p50:.{int(cost.p50 < ours.p50)}f}x"
        f" | {cost.cpu:.1f} | {cost.size:.1f} | {cost.start:.2f} | {cost.memory:.0f} |"
        for name, cost in costs.items()
    ]
    print(f"{NUMBERS} numbers a step; medians of {ROUNDS} processes each; load {load()}")
    print(
        "| logger | p50 us | p99 us | mean us | p50 / ours"
        " | CPU us a step | bytes a number | start s | MB |"
    )
    print("| --- |" + " --- |" * 8, *rows, sep="\n")
    told(costs)
    return rows


def told(costs: dict[str, Cost]) -> None:
    """Print the targets and what was reached."""
    from rlvitals.tracking import fastlog

    if fastlog.load_shortcut() is None:
        print(f"`rlvitals` here is in Python; the compiled code is {fastlog.NOT_BUILT}")
    ours = costs[OURS[0]]
    trackers = [costs[name] for name in TRACKERS if name in costs]
    targets = (
        ("p50 of a call, us", ours.p50, 0.6),
        ("p99 of a call, us", ours.p99, 3.0),
        ("CPU of a step in a saturated loop, us", ours.cpu, 3.0),
        ("bytes a number", ours.size, 9.0),
        ("start, s", ours.start, 0.1),
        ("memory, MB", ours.memory, 10.0),
        ("p50 over the cheapest tracker's, %", 100 * ours.p50 / min(t.p50 for t in trackers), 1.0),
    )
    for name, reached, target in targets:
        verdict = "met" if reached <= target else "MISSED"
        print(f"{name:40} {reached:6.2f}   target {target:g}: {verdict}")
    mean = min(cost.mean for cost in trackers)
    print(f"By the means, the cheapest tracker costs the loop {mean / ours.mean:.0f} times ours.")


def load() -> str:
    return f"{os.getloadavg()[0]:.0f} on {os.cpu_count()} cores"


if __name__ == "__main__":
    if sys.argv[1:]:
        one = measure(sys.argv[1])
        print(json.dumps(astuple(one)))
    else:
        main()
