"""Which runs the benchmark is made of."""

from dataclasses import dataclass

from rlvitals.faults.catalogue import CATALOGUE
from rlvitals.faults.fault import Onset
from rlvitals.faults.folder import FRESH, FRESH_HEALTHY, TUNING
from rlvitals.faults.tasks import TASKS, Task

HEALTHY_SEEDS = FRESH_HEALTHY  # of each task: fewer cannot tell a 5th percentile
SEEDS = FRESH  # of each fault, and of each variant of a healthy run
MORE = 4  # healthy seeds of the test


@dataclass(frozen=True, slots=True)
class Planned:
    """One run to be recorded."""

    task: Task  # with the variant's settings
    seed: int
    fault: str = ""  # healthy without one
    onset: Onset | None = None
    variant: str = ""

    @property
    def name(self) -> str:
        """What its files are called, within its task's folder."""
        kind = self.fault or f"healthy{'-' if self.variant else ''}{self.variant}"
        return f"{kind}{'-mid' if self.onset is Onset.MIDDLE else ''}-s{self.seed}"


def plan() -> tuple[Planned, ...]:
    """List every run, in the order to record them: a part of it is a smaller benchmark."""
    runs = [run for seed in TUNING for task in TASKS for run in _tuning(task, seed)]
    runs += [Planned(task, task.first_seed + seed) for seed in range(2) for task in TASKS]
    for seed in range(SEEDS):
        runs += [run for task in TASKS for run in _faulty(task, task.first_seed + seed)]
        more = range(2 + 6 * seed, min(8 + 6 * seed, HEALTHY_SEEDS))  # 2-7, 8-13, 14-19
        runs += [Planned(task, task.first_seed + each) for task in TASKS for each in more]
        runs += [run for task in TASKS for run in _varied(task, task.first_seed + seed)]
    for task in TASKS:
        if not task.first_seed:  # its first seeds were looked at: these were not
            runs += _faulty(task, FRESH)
            runs += [Planned(task, FRESH_HEALTHY + each) for each in range(MORE)]
            runs += _varied(task, FRESH)
    return tuple(runs)


def _tuning(task: Task, seed: int) -> list[Planned]:
    if task.env_id != "CartPole-v1" or not task.first_seed:
        return []
    return [Planned(task, seed), *_faulty(task, seed), *_varied(task, seed)]


def _faulty(task: Task, seed: int) -> list[Planned]:
    return [
        Planned(task, seed, fault.name, onset)
        for fault in CATALOGUE
        if task.algorithm in fault.algorithms and task.env_id in fault.tasks
        for onset in fault.onsets
        if onset is Onset.START or task.both_onsets or len(fault.onsets) == 1
    ]


def _varied(task: Task, seed: int) -> list[Planned]:
    return [Planned(task.variant(name), seed, variant=name) for name in task.variants]
