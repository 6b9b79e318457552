"""List the runs of the benchmark."""

from dataclasses import dataclass

from rlvitals.faults.catalogue import FAULTS
from rlvitals.faults.fault import Onset
from rlvitals.faults.folder import FIRST_HEALTHY_TEST_SEED, FIRST_TEST_SEED, TUNING_SEEDS
from rlvitals.faults.tasks import FAULT_TASKS, Task

HEALTHY_TEST_SEEDS = 4


@dataclass(frozen=True, slots=True)
class Planned:
    """A run to record."""

    task: Task  # with the variant's settings
    seed: int
    fault: str = ""  # healthy without one
    onset: Onset | None = None
    variant: str = ""

    @property
    def name(self) -> str:
        """The base name of its files in the task's folder."""
        kind = self.fault or f"healthy{'-' if self.variant else ''}{self.variant}"
        return f"{kind}{'-mid' if self.onset is Onset.MIDDLE else ''}-s{self.seed}"


def plan() -> tuple[Planned, ...]:
    """List every run in recording order; a prefix of the list is a smaller benchmark."""
    runs = [
        run for seed in TUNING_SEEDS for task in FAULT_TASKS for run in _tuning_runs(task, seed)
    ]
    runs += [Planned(task, task.first_seed + seed) for seed in range(2) for task in FAULT_TASKS]
    for seed in range(FIRST_TEST_SEED):  # of each fault, and of each variant of a healthy run
        runs += [run for task in FAULT_TASKS for run in _fault_runs(task, task.first_seed + seed)]
        more = range(2 + 6 * seed, min(8 + 6 * seed, FIRST_HEALTHY_TEST_SEED))  # 2-7, 8-13, 14-19
        runs += [Planned(task, task.first_seed + each) for task in FAULT_TASKS for each in more]
        runs += [run for task in FAULT_TASKS for run in _variant_runs(task, task.first_seed + seed)]
    for task in FAULT_TASKS:
        if not task.first_seed:  # its first seeds were looked at: these were not
            runs += _fault_runs(task, FIRST_TEST_SEED)
            runs += [
                Planned(task, FIRST_HEALTHY_TEST_SEED + each) for each in range(HEALTHY_TEST_SEEDS)
            ]
            runs += _variant_runs(task, FIRST_TEST_SEED)
    return tuple(runs)


def _tuning_runs(task: Task, seed: int) -> list[Planned]:
    if task.env_id != "CartPole-v1" or not task.first_seed:
        return []
    return [Planned(task, seed), *_fault_runs(task, seed), *_variant_runs(task, seed)]


def _fault_runs(task: Task, seed: int) -> list[Planned]:
    return [
        Planned(task, seed, fault.name, onset)
        for fault in FAULTS
        if task.algorithm in fault.algorithms and task.env_id in fault.tasks
        for onset in fault.onsets
        if onset is Onset.START or task.both_onsets or len(fault.onsets) == 1
    ]


def _variant_runs(task: Task, seed: int) -> list[Planned]:
    return [Planned(task.variant(name), seed, variant=name) for name in task.variants]
