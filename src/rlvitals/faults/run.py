"""Record the missing runs of the plan, several at a time."""

import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path

from rlvitals.faults import folder
from rlvitals.faults.record import record
from rlvitals.faults.run_list import plan


def run(root: Path, jobs: int, report: Callable[[str], None], only: str = "") -> int:
    """Record the runs missing under `root`; return their number. Can be stopped at any time."""
    recorded_names = {(run.task, run.name) for run in folder.read(root)}
    planned_runs = [p for p in plan() if only in f"{p.task.name}/{p.name}"]
    missing = [p for p in planned_runs if (p.task.name, p.name) not in recorded_names]
    report(f"{len(planned_runs) - len(missing)} of {len(planned_runs)} runs are there")
    os.environ["OMP_NUM_THREADS"] = "1"  # a tiny network is slower on several
    with multiprocessing.get_context("spawn").Pool(jobs, maxtasksperchild=40) as pool:
        for recorded, text in pool.imap_unordered(record, missing):
            folder.write(root, recorded, text)
            report(f"{recorded.task}/{recorded.name}: {recorded.ended}, return {recorded.outcome}")
    return len(missing)
