"""Score the diagnoses of labelled runs."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rlvitals.faults.catalogue import find_fault
from rlvitals.faults.fault import FAILED_VERDICT
from rlvitals.faults.ground_truth import (
    VERDICTS_BY_COURSE,
    Course,
    Label,
    Level,
    course,
    label,
    levels,
    looks_healthy,
)
from rlvitals.faults.run_diagnosis import Judged, Said

WARNING, EXIT_ERROR = 1, 2


@dataclass(frozen=True, slots=True)
class Share:
    """A share of runs, or a count per run, with a 95 % interval clustered by task."""

    value: float
    low: float
    high: float
    count: int  # runs


@dataclass(frozen=True, slots=True)
class Scored:
    """A diagnosed run with its label."""

    judged: Judged
    label: Label
    course: Course
    hidden: bool = False  # it learned, and its log looks like a healthy one's

    @property
    def verdict_right(self) -> bool:
        """True if the run's course allows the verdict."""
        return self.judged.verdict in VERDICTS_BY_COURSE[self.course]

    @property
    def is_tampered(self) -> bool:
        """True if the logged outcome is not the true one."""
        fault = self.judged.run.fault
        return bool(fault) and find_fault(fault).tampers

    @property
    def visible(self) -> bool:
        """True if the log can show the cause."""
        return self.judged.visible and not self.hidden

    @property
    def alarms(self) -> tuple[Said, ...]:
        """Root findings at warning or above, in the order of the diagnosis."""
        return tuple(s for s in self.judged.said if s.root and s.severity >= WARNING)

    @property
    def has_alarm(self) -> bool:
        """True for a finding at warning or above, or the verdict `failed`."""
        return bool(self.alarms) or self.judged.verdict == FAILED_VERDICT

    def names_it(self, first: int) -> bool:
        """Return whether one of the first `first` cases is the root cause."""
        expects = find_fault(self.judged.run.fault).expects
        if FAILED_VERDICT in expects and self.judged.verdict == FAILED_VERDICT:
            return True
        onset = self.judged.run.onset or 0
        # A finding from before the onset does not count.
        return any(
            finding.rule in expects and finding.known >= onset for finding in self.alarms[:first]
        )

    def delay(self) -> float | None:
        """Return the share of the run from onset to the first correct finding, or None."""
        expects = find_fault(self.judged.run.fault).expects
        run, onset = self.judged.run, self.judged.run.onset or 0
        steps = [finding.known for finding in self.alarms if finding.rule in expects]
        later_steps = [step for step in steps if step >= onset]
        return (min(later_steps) - onset) / run.steps if later_steps else None


@dataclass(frozen=True, slots=True)
class Score:
    """All scores."""

    healthy: int
    broken: int
    visible: int
    benign: int
    own_failures: int
    recall_1: Share  # of the visible broken ones: the first case is the root cause
    recall_3: Share
    recall_1_all: Share  # of all broken ones, whether visible or not
    any_alarm: Share  # of all broken ones
    precision: Share  # of the runs with an alarm, broken or failed on their own
    errors: Share  # per healthy run
    warnings: Share  # per healthy run
    delay: float  # median share of the run from onset to the first right naming
    verdicts: Share  # of the runs whose logged outcome is the one they earned
    verdicts_all: Share
    by_fault: Mapping[str, "Row"]
    by_task: Mapping[str, "Row"]
    by_rule: Mapping[str, "Ring"]


@dataclass(frozen=True, slots=True)
class Row:
    """The counts of a fault or a task."""

    broken: int
    visible: int
    first: int  # of the visible ones, named by the first case
    third: int
    alarmed: int  # of the broken ones
    benign: int
    healthy: int
    rung: int  # healthy runs with an alarm
    verdicts: float


@dataclass(frozen=True, slots=True)
class Ring:
    """The counts of a rule on healthy runs, and on broken ones that expect it."""

    healthy: int
    warned: int
    errors: int
    broken: int
    caught: int
    first: int


def label_runs(
    judged: Sequence[Judged], levels_by_task: Mapping[str, Level] | None = None
) -> list[Scored]:
    """Label every run of a task that has enough healthy seeds."""
    all_levels = levels([run.run for run in judged]) if levels_by_task is None else levels_by_task
    return [
        Scored(run, label(run.run, level), course(run.run, level), looks_healthy(run.run, level))
        for run in judged
        if (level := all_levels.get(run.run.task)) is not None
    ]


def score(runs: Sequence[Scored]) -> Score:
    """Compute all scores."""
    healthy = [run for run in runs if run.label is Label.HEALTHY]
    broken = [run for run in runs if run.label is Label.BROKEN]
    visible = [run for run in broken if run.visible]
    own_failures = [run for run in runs if run.label is Label.OWN_FAILURE]
    alarmed = [run for run in runs if run.alarms and run.label is not Label.BENIGN]
    delays = [d for run in visible if (d := run.delay()) is not None]
    return Score(
        healthy=len(healthy),
        broken=len(broken),
        visible=len(visible),
        benign=sum(run.label is Label.BENIGN for run in runs),
        own_failures=len(own_failures),
        recall_1=_share(visible, lambda run: run.names_it(1)),
        recall_3=_share(visible, lambda run: run.names_it(3)),
        recall_1_all=_share(broken, lambda run: run.names_it(1)),
        any_alarm=_share(broken, lambda run: run.has_alarm),
        precision=_share(alarmed, lambda run: run.label is not Label.HEALTHY),
        errors=_share(healthy, lambda run: sum(s.severity >= EXIT_ERROR for s in run.alarms)),
        warnings=_share(healthy, lambda run: sum(s.severity == WARNING for s in run.alarms)),
        delay=float(np.median(delays)) if delays else float("nan"),
        verdicts=_share([r for r in runs if not r.is_tampered], lambda run: run.verdict_right),
        verdicts_all=_share(runs, lambda run: run.verdict_right),
        by_fault=_rows(runs, lambda run: run.judged.run.fault or "(none)"),
        by_task=_rows(runs, lambda run: run.judged.run.task),
        by_rule=_count_by_rule(runs),
    )


def _share(runs: Sequence[Scored], value: Callable[[Scored], float]) -> Share:
    return share([(run.judged.run.task, float(value(run))) for run in runs])


def share(values: Sequence[tuple[str, float]]) -> Share:
    """Return the mean of (task, value) pairs with a bootstrap interval clustered by task."""
    if not values:
        return Share(float("nan"), float("nan"), float("nan"), 0)
    tasks = sorted({task for task, _ in values})
    index_by_task = {task: i for i, task in enumerate(tasks)}
    sums, counts = np.zeros(len(tasks)), np.zeros(len(tasks))
    for task, value in values:
        sums[index_by_task[task]] += value
        counts[index_by_task[task]] += 1
    # The bootstrap is over tasks.
    draws = np.random.default_rng(0).integers(0, len(tasks), (2_000, len(tasks)))
    means = sums[draws].sum(axis=1) / counts[draws].sum(axis=1)
    low, high = np.percentile(means, (2.5, 97.5))
    return Share(float(sums.sum() / counts.sum()), float(low), float(high), len(values))


def _rows(runs: Sequence[Scored], key: Callable[[Scored], str]) -> dict[str, Row]:
    return {
        name: _row([run for run in runs if key(run) == name])
        for name in sorted({key(run) for run in runs})
    }


def _row(runs: Sequence[Scored]) -> Row:
    broken = [run for run in runs if run.label is Label.BROKEN]
    visible = [run for run in broken if run.visible]
    healthy = [run for run in runs if run.label is Label.HEALTHY]
    return Row(
        broken=len(broken),
        visible=len(visible),
        first=sum(run.names_it(1) for run in visible),
        third=sum(run.names_it(3) for run in visible),
        alarmed=sum(run.has_alarm for run in broken),
        benign=sum(run.label is Label.BENIGN for run in runs),
        healthy=len(healthy),
        rung=sum(bool(run.alarms) for run in healthy),
        verdicts=float(np.mean([run.verdict_right for run in runs])),
    )


def _count_by_rule(runs: Sequence[Scored]) -> dict[str, Ring]:
    """Count the runs of each rule; folded findings count as well."""
    count: dict[str, Counter[str]] = {}
    for run in runs:
        loud = {s.rule: s.severity for s in run.judged.said if s.severity >= WARNING}
        if run.label is Label.HEALTHY:
            for rule in run.judged.judged:
                tally = count.setdefault(rule, Counter())
                tally["healthy"] += 1
                tally["warned"] += rule in loud
                tally["errors"] += loud.get(rule, 0) >= EXIT_ERROR
        if run.label is Label.BROKEN and run.visible:
            for rule in find_fault(run.judged.run.fault).expects:
                tally = count.setdefault(rule, Counter())
                tally["broken"] += 1
                tally["caught"] += rule in loud
                tally["first"] += bool(run.alarms) and run.alarms[0].rule == rule
    keys = ("healthy", "warned", "errors", "broken", "caught", "first")
    return {rule: Ring(*(count[rule][key] for key in keys)) for rule in sorted(count)}
