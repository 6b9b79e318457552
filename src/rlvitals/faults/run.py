"""Record every run of the plan that is not there yet, several at a time."""

import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path

from rlvitals.faults import folder
from rlvitals.faults.record import record
from rlvitals.faults.run_list import Planned, plan


def run(root: Path, jobs: int, said: Callable[[str], None], only: str = "") -> int:
    """Record what is missing under `root`; return how many runs were. May be stopped any time."""
    done = {(run.task, run.name) for run in folder.read(root)}
    wanted = [p for p in plan() if only in f"{p.task.name}/{p.name}"]
    missing = [p for p in wanted if (p.task.name, p.name) not in done]
    said(f"{len(wanted) - len(missing)} of {len(wanted)} runs are there")
    os.environ["OMP_NUM_THREADS"] = "1"  # a tiny network is slower on several
    with multiprocessing.get_context("spawn").Pool(jobs, maxtasksperchild=40) as pool:
        for recorded, text in pool.imap_unordered(_record, missing):
            folder.write(root, recorded, text)
            said(f"{recorded.task}/{recorded.name}: {recorded.ended}, return {recorded.outcome}")
    return len(missing)


def _record(planned: Planned) -> tuple[folder.Recorded, str]:
    return record(planned)
