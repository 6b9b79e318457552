"""Evaluate the diagnosis of growing runs: delays, alarms and retractions.

Every run is diagnosed at each twentieth of it, with unknown budget. A rule is raised where a prefix
has it at warning or above, folded or not, and the previous prefix has not. It is taken back where
the next prefix has it no longer.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

import rlvitals
from rlvitals.faults.catalogue import find_fault
from rlvitals.faults.fault import FAILED_VERDICT
from rlvitals.faults.folder import Recorded
from rlvitals.faults.ground_truth import Label, Level, label, looks_healthy
from rlvitals.faults.run_diagnosis import is_visible, load, map_parallel
from rlvitals.faults.score import Share, share


@dataclass(frozen=True, slots=True)
class Heard:
    """The diagnosis of one prefix."""

    step: int
    verdict: str
    first: str  # rule of the first case, if that is a warning or an error; else empty
    loud: frozenset[str]  # rules at a warning or above, folded or not


@dataclass(frozen=True, slots=True)
class Watched:
    """The diagnoses of a run's prefixes, the complete run last."""

    run: Recorded
    visible: bool
    updates: int  # logged
    heard: tuple[Heard, ...]

    @property
    def raised(self) -> Counter[str]:
        """The number of times that each rule rose to a warning or an error."""
        silent = Heard(0, "", "", frozenset())
        pairs = pairwise((silent, *self.heard))
        return Counter(rule for previous, current in pairs for rule in current.loud - previous.loud)

    @property
    def taken_back(self) -> Counter[str]:
        """The number of times that each rule fell below a warning."""
        pairs = pairwise(self.heard)
        return Counter(rule for previous, current in pairs for rule in previous.loud - current.loud)

    def names_it(self, heard: Heard) -> bool:
        """Return whether a prefix names the root cause, after its onset."""
        expects = find_fault(self.run.fault).expects
        failed = FAILED_VERDICT in expects and heard.verdict == FAILED_VERDICT
        return heard.step > (self.run.onset or 0) and (failed or heard.first in expects)

    def delay(self) -> float | None:
        """Return the share of the run from onset to the first correct prefix, or None."""
        right = next((heard.step for heard in self.heard if self.names_it(heard)), None)
        return None if right is None else (right - (self.run.onset or 0)) / self.run.steps


@dataclass(frozen=True, slots=True)
class Bell:
    """The counts of one rule on growing runs: times raised and taken back."""

    raised: int
    taken_back: int
    healthy: int  # raised on healthy runs: all of them false alarms
    healthy_back: int


@dataclass(frozen=True, slots=True)
class Live:
    """The scores of growing runs."""

    runs: int
    healthy: int
    visible: int  # broken, and the log can show it
    updates: int  # of the healthy runs
    named: Share  # of the visible ones: by the first case of any prefix
    at_the_end: Share  # of the visible ones: by the first case of the complete run
    delay: float  # median share of the run from onset to the first right naming
    taken_back: Share  # of all runs: something was
    flips: Share  # times something was taken back, per run
    rung: Share  # of the healthy runs: something was raised
    alarms: Share  # times something was raised, per healthy run
    per_thousand: float  # of the same, per 1,000 updates
    by_rule: Mapping[str, Bell]


def watch(root: Path, runs: Sequence[Recorded], jobs: int | str) -> tuple[Watched, ...]:
    """Diagnose every prefix of every run, in `jobs` processes."""
    return map_parallel(_watch, [(root, run) for run in runs], jobs, chunk=4)


def _watch(arguments: tuple[Path, Recorded]) -> Watched:
    root, run = arguments
    trace = load(root, run)
    update_counts = [len(s) for name, s in trace.series.items() if name.startswith("optimiser/")]
    heard = tuple(_diagnose_prefix(prefix) for prefix in rlvitals.lab.prefixes(trace))
    return Watched(run, is_visible(run, trace), max(update_counts, default=0), heard)


def _diagnose_prefix(prefix: rlvitals.Trace) -> Heard:
    diagnosis = rlvitals.diagnose(prefix)
    first_rule = next((c.rule.name for c in diagnosis.cases if _is_alarm(c.finding)), "")
    loud = frozenset(rule.name for rule, finding in diagnosis.findings if _is_alarm(finding))
    return Heard(prefix.last_step, str(diagnosis.verdict.word), first_rule, loud)


def _is_alarm(finding: rlvitals.Finding) -> bool:
    return finding.severity > rlvitals.Severity.NOTE


def summarise(watched: Sequence[Watched], levels: Mapping[str, Level]) -> Live:
    """Summarise the runs of tasks with enough healthy seeds."""
    labelled = [
        (run, label(run.run, levels[run.run.task])) for run in watched if run.run.task in levels
    ]
    runs = [run for run, _ in labelled]
    healthy = [run for run, run_label in labelled if run_label is Label.HEALTHY]
    broken = [run for run, run_label in labelled if run_label is Label.BROKEN]
    visible = [
        run for run in broken if run.visible and not looks_healthy(run.run, levels[run.run.task])
    ]
    delays = [delay for run in visible if (delay := run.delay()) is not None]
    raised, updates = _sum_counts(healthy, "raised").total(), sum(run.updates for run in healthy)
    rules, taken_back = _sum_counts(runs, "raised"), _sum_counts(runs, "taken_back")
    healthy_raised = _sum_counts(healthy, "raised")
    healthy_taken_back = _sum_counts(healthy, "taken_back")
    return Live(
        runs=len(runs),
        healthy=len(healthy),
        visible=len(visible),
        updates=updates,
        named=_share(visible, [run.delay() is not None for run in visible]),
        at_the_end=_share(visible, [run.names_it(run.heard[-1]) for run in visible]),
        delay=float(np.median(delays)) if delays else float("nan"),
        taken_back=_share(runs, [run.taken_back.total() > 0 for run in runs]),
        flips=_share(runs, [run.taken_back.total() for run in runs]),
        rung=_share(healthy, [run.raised.total() > 0 for run in healthy]),
        alarms=_share(healthy, [run.raised.total() for run in healthy]),
        per_thousand=1000 * raised / updates if updates else float("nan"),
        by_rule={
            rule: Bell(
                rules[rule], taken_back[rule], healthy_raised[rule], healthy_taken_back[rule]
            )
            for rule in sorted(rules)
        },
    )


def _share(runs: Sequence[Watched], values: Sequence[float]) -> Share:
    return share([(run.run.task, float(v)) for run, v in zip(runs, values, strict=True)])


def _sum_counts(runs: Sequence[Watched], attribute: str) -> Counter[str]:
    total: Counter[str] = Counter()
    for run in runs:
        total.update(getattr(run, attribute))
    return total
