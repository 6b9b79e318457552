"""Record runs of several ranks, healthy and with a fault: `record_rank_runs.py CORPUS [NAME ...]`.

Each rank is a process with rlvitals' own recorder in one run folder. They fit one linear model to
noisy data by averaged gradients, as data-parallel training does: `loss` is each rank's own batch,
`grad_norm` is that of the averaged gradient, `step_time` ends before a rank waits for the others.
Writes CORPUS/ranks/<name>/run and, for the traces of the rules, CORPUS/ranks/<name>/rows.jsonl
with one row for each rank and step.
"""

import json
import multiprocessing
import os
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import rlvitals
from rlvitals.readers.select import reader_of

RANKS, STEPS, FEATURES, BATCH = 6, 48, 8, 16
FAULT_STEP = 18
SECONDS = 0.02  # of work at a step, in the mean


@dataclass(frozen=True)
class Case:
    """What happens to a rank of a run."""

    seed: int
    slow: float = 1.0  # x the work of rank 4
    flipped: bool = False  # rank 2 gets a wrong number in the averaged gradient, from a step on
    stops: bool = False  # rank 3 hangs
    clock: float = 0.0  # seconds that rank 1 is ahead in the rows: added to the recorded times
    waits: bool = True  # the ranks average their gradients at every step


CASES = {
    "healthy-0": Case(0),
    "healthy-1": Case(1),
    "healthy-apart-0": Case(2, waits=False),
    "healthy-apart-1": Case(3, waits=False),
    "slow": Case(4, slow=2.0),
    "corrupt": Case(5, flipped=True),
    "stopped": Case(6, stops=True, waits=False),
    "clock": Case(7, clock=42.0),
}


def main(corpus: Path, names: list[str]) -> None:
    for name, case in CASES.items():
        if names and name not in names:
            continue
        folder = corpus / "ranks" / name
        record(folder / "run", case)
        rows = list(written_rows(folder / "run", case.clock))
        (folder / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        print(f"{name}: {len(rows)} rows")


def record(folder: Path, case: Case, ranks: int = RANKS, steps: int = STEPS) -> None:
    """Train on `ranks` processes, each with the recorder in `folder`."""
    context = multiprocessing.get_context("fork")  # this program runs no threads
    shared = context.Array("d", ranks * FEATURES, lock=False)
    barrier = context.Barrier(ranks)
    os.environ |= {"WORLD_SIZE": str(ranks), "TORCHELASTIC_RUN_ID": f"{folder}-{time.time()}"}
    processes = [
        context.Process(target=train, args=(folder, case, rank, ranks, steps, shared, barrier))
        for rank in range(ranks)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert not any(process.exitcode for process in processes)


def train(  # noqa: PLR0913, PLR0917 - what the ranks share
    folder: Path, case: Case, rank: int, ranks: int, steps: int, shared: Any, barrier: Any
) -> None:
    """Run one rank."""
    os.environ["RANK"] = os.environ["LOCAL_RANK"] = str(rank)
    rng, together = np.random.default_rng((case.seed, rank)), np.random.default_rng(case.seed)
    target, weights = np.arange(FEATURES) / FEATURES, np.zeros(FEATURES)
    gradients = np.frombuffer(shared).reshape(ranks, FEATURES)
    with rlvitals.start(
        folder, settings={"ranks": ranks}, columns=("loss", "grad_norm", "step_time")
    ) as run:
        barrier.wait()
        for step in range(1, steps + 1):
            if case.stops and rank == 3 and step > FAULT_STEP:
                break  # as if it hung: no row follows
            began = time.perf_counter()
            inputs = rng.normal(size=(BATCH, FEATURES))
            errors = inputs @ (weights - target) - rng.normal(0, 0.3, BATCH)
            common = together.gamma(4.0, 0.25) if case.waits else rng.gamma(4.0, 0.25)
            slower = case.slow if rank == 4 and step > FAULT_STEP else 1.0
            time.sleep(SECONDS * common * slower)
            step_time = time.perf_counter() - began
            gradients[rank] = inputs.T @ errors / BATCH
            if case.waits:
                barrier.wait()
            mean = gradients.mean(axis=0) if case.waits else gradients[rank].copy()
            if case.waits:
                barrier.wait()
            if case.flipped and rank == 2 and step > FAULT_STEP:
                mean[3] += 0.25
            weights -= 0.2 * mean
            run.log(
                {
                    "loss": float(errors @ errors / BATCH),
                    "step_time": step_time,
                    "grad_norm": float(np.linalg.norm(mean)),
                },
                step=step,
            )


def written_rows(folder: Path, ahead: float = 0.0) -> Any:
    """Yield a row for each rank and step, with its own time."""
    log, _ = reader_of(folder / "run.json").read(folder / "run.json", None)
    rows: dict[tuple[int, int], dict[str, float]] = {}
    for key, series in log.series.items():
        match = re.fullmatch(r"rank/(\d+)/(.+)", key)
        rank = int(match[1]) if match else 0
        if (match[2] if match else key) not in {"loss", "grad_norm", "step_time"}:
            continue
        for step, moment, value in zip(series.steps, series.times, series.values, strict=True):
            moment_s = round(float(moment) + (ahead if rank == 1 else 0.0), 4)
            row = rows.setdefault((int(step), rank), {"step": int(step), "timestamp": moment_s})
            row[key] = float(f"{value:.8g}")
    return (rows[place] for place in sorted(rows))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
