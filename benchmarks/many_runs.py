"""Measure `rlvitals diagnose` on a folder of a thousand small runs on two cores.

Runs as Stable-Baselines3 writes them: event files of 20 tags x 200 steps, `progress.csv` with a
monitor of 600 episodes, and every other of each. Beside them TensorBoard's EventAccumulator reads
the same event files, in one process and without judging anything.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

RUNS, STEPS, EPISODES, CORES = 1_000, 200, 600, 2
WRITTEN = 50  # the rest are copies: writing takes longer than reading
OWN = tuple(f"custom/metric_{n}" for n in range(8))
PEER = """
import sys
from pathlib import Path
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

for path in Path(sys.argv[1]).glob("*/events*"):
    found = EventAccumulator(str(path), size_guidance={"scalars": 0})
    found.Reload()
    for tag in found.Tags()["scalars"]:
        found.Scalars(tag)
"""


def main() -> list[str]:
    """Write the folders, time each and return the table's rows."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, writers in KINDS.items():
            for n in range(RUNS):
                if n < WRITTEN:
                    writers[n % len(writers)](root / name / f"run_{n:04}", n)
                else:
                    first = root / name / f"run_{n % WRITTEN:04}"
                    shutil.copytree(first, root / name / f"run_{n:04}")
            rows.append(_row(name, ("-m", "rlvitals", "diagnose", str(root / name))))
        command = ("-m", "rlvitals", "diagnose", str(root / name), "--jobs", "1")
        rows.append(_row(f"{name}, `--jobs 1`", command))
        events = str(root / "event files")
        rows.append(_row("event files, EventAccumulator alone", ("-c", PEER, events)))
    print(f"{RUNS:,} runs on {CORES} cores, whole processes, one round")
    print("| runs | wall s | ms a run |", "| --- | --- | --- |", *rows, sep="\n")
    return rows


def _row(name: str, argv: Sequence[str]) -> str:
    start_time = time.perf_counter()
    process = subprocess.run(
        [sys.executable, *argv], check=False, stdout=subprocess.DEVNULL, preexec_fn=_on_few_cores
    )
    wall = time.perf_counter() - start_time
    if process.returncode not in {0, 1, 4}:  # 1: something was found; 4: cannot tell
        raise SystemExit(process.returncode)
    return f"| {name} | {wall:.1f} | {1e3 * wall / RUNS:.1f} |"


def _on_few_cores() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])


def columns(seed: int) -> dict[str, np.ndarray]:
    """A learning curve, or every third time a flat one, with what PPO logs beside it."""
    draw = np.random.default_rng(seed)
    t = np.arange(1, STEPS + 1)

    def noise(size: float) -> np.ndarray:
        return draw.normal(0, size, STEPS)

    rise = 400 * (1 - np.exp(-t / 60)) if seed % 3 else 0 * t
    return {
        "rollout/ep_rew_mean": 20 + rise + noise(8),
        "rollout/ep_len_mean": 20 + 100 * (1 - np.exp(-t / 60)) + noise(3),
        "train/approx_kl": np.abs(0.01 + noise(0.003)),
        "train/clip_fraction": np.abs(0.1 + noise(0.03)),
        "train/clip_range": np.full(STEPS, 0.2),
        "train/entropy_loss": -0.69 * np.exp(-t / 300) + noise(0.01),
        "train/explained_variance": np.minimum(0.9, t / 100) + noise(0.03),
        "train/learning_rate": 3e-4 * (1 - t / STEPS) + 1e-6,
        "train/loss": 20 * np.exp(-t / 80) + noise(1),
        "train/policy_gradient_loss": noise(0.004) - 0.01,
        "train/value_loss": 40 * np.exp(-t / 80) + np.abs(noise(2)),
        "time/fps": 1200 + noise(30),
        **{name: noise(1) for name in OWN},
    }


def write_events(folder: Path, seed: int) -> None:
    series = columns(seed)
    writer = EventFileWriter(str(folder))
    for i in range(STEPS):
        for tag, values in series.items():
            summary = Summary(value=[Summary.Value(tag=tag, simple_value=values[i])])
            writer.add_event(Event(wall_time=1.7e9 + 2 * i, step=2048 * (i + 1), summary=summary))
    writer.close()


def write_csv(folder: Path, seed: int) -> None:
    folder.mkdir(parents=True)
    values = columns(seed)
    table = np.column_stack([2048 * np.arange(1, STEPS + 1), *values.values()])
    header = ",".join(("time/total_timesteps", *values))
    np.savetxt(
        folder / "progress.csv", table, fmt=["%d", *(["%.17g"] * len(values))],
        delimiter=",", header=header, comments="",
    )  # fmt: skip
    lengths = 1 + np.random.default_rng(seed).poisson(200, EPISODES)
    rows = "".join(f"{float(n)},{n},{0.7 * i:.6f}\n" for i, n in enumerate(lengths))
    head = '#{"t_start": 1700000000.0, "env_id": "CartPole-v1"}\nr,l,t\n'
    (folder / "0.monitor.csv").write_text(head + rows)


Writer = Callable[[Path, int], None]
KINDS: dict[str, tuple[Writer, ...]] = {
    "event files": (write_events,),
    "progress.csv and monitor": (write_csv,),
    "every other": (write_events, write_csv),
}

if __name__ == "__main__":
    main()
