"""The diagnosis of a run that goes on: what its watcher is told, when, and what is taken back.

Every run is diagnosed as it stood at each twentieth of it, with its budget unknown. A rule is
raised where a prefix has it at a warning or above, folded or not, and the one before has not; it is
taken back where the next one has it no longer.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

import rlvitals
from rlvitals.faults.catalogue import named
from rlvitals.faults.fault import FAILED
from rlvitals.faults.folder import Recorded
from rlvitals.faults.ground_truth import Label, Level, hidden, label
from rlvitals.faults.run_diagnosis import load, several, shown
from rlvitals.faults.score import Share, share

UPDATES = "optimiser/"  # what is logged once an update
THOUSAND = 1_000


@dataclass(frozen=True, slots=True)
class Heard:
    """What was said of one prefix."""

    step: int
    verdict: str
    first: str  # rule of the first case, if that is a warning or an error; else empty
    loud: frozenset[str]  # rules at a warning or above, folded or not


@dataclass(frozen=True, slots=True)
class Watched:
    """What was said of a run as it grew, the whole of it last."""

    run: Recorded
    visible: bool
    updates: int  # as many as are logged
    heard: tuple[Heard, ...]

    @property
    def raised(self) -> Counter[str]:
        """How often each rule went from less to a warning or an error."""
        silent = Heard(0, "", "", frozenset())
        pairs = pairwise((silent, *self.heard))
        return Counter(rule for before, now in pairs for rule in now.loud - before.loud)

    @property
    def taken_back(self) -> Counter[str]:
        """How often each rule went from a warning or an error to less."""
        pairs = pairwise(self.heard)
        return Counter(rule for before, now in pairs for rule in before.loud - now.loud)

    def names_it(self, heard: Heard) -> bool:
        """Tell whether a prefix names the root cause; before its onset there is none."""
        expects = named(self.run.fault).expects
        failed = FAILED in expects and heard.verdict == FAILED
        return heard.step > (self.run.onset or 0) and (failed or heard.first in expects)

    def delay(self) -> float | None:
        """Return from onset to the first right naming as a share of the run; None: never."""
        right = next((one.step for one in self.heard if self.names_it(one)), None)
        return None if right is None else (right - (self.run.onset or 0)) / self.run.steps


@dataclass(frozen=True, slots=True)
class Bell:
    """How one rule does on growing runs: times raised and taken back."""

    raised: int
    taken_back: int
    healthy: int  # raised on healthy runs: all of them false alarms
    healthy_back: int


@dataclass(frozen=True, slots=True)
class Live:
    """The whole table."""

    runs: int
    healthy: int
    visible: int  # broken, and the log can show it
    updates: int  # of the healthy runs
    named: Share  # of the visible ones: by the first case of some prefix
    at_the_end: Share  # of the visible ones: by the first case of the whole
    delay: float  # median share of the run from onset to the first right naming
    taken_back: Share  # of all runs: something was
    flips: Share  # times something was taken back, per run
    rung: Share  # of the healthy runs: something was raised
    alarms: Share  # times something was raised, per healthy run
    per_thousand: float  # of the same, per 1,000 updates
    by_rule: Mapping[str, Bell]


def watch(root: Path, runs: Sequence[Recorded], jobs: int) -> tuple[Watched, ...]:
    """Diagnose every prefix of every run, several runs at a time."""
    return several(_watch, [(root, run) for run in runs], jobs, chunk=4)


def _watch(asked: tuple[Path, Recorded]) -> Watched:
    root, run = asked
    trace = load(root, run)
    logged = [len(s) for name, s in trace.series.items() if name.startswith(UPDATES)]
    heard = tuple(_heard(one) for one in rlvitals.prefixes(trace))
    return Watched(run, shown(run, trace), max(logged, default=0), heard)


def _heard(prefix: rlvitals.Trace) -> Heard:
    found = rlvitals.diagnose(prefix)
    first = next((c.rule.name for c in found.cases if _grave(c.finding)), "")
    loud = frozenset(rule.name for rule, finding in found.findings if _grave(finding))
    return Heard(prefix.last_step, str(found.verdict.word), first, loud)


def _grave(finding: rlvitals.Finding) -> bool:
    return finding.severity > rlvitals.Severity.NOTE


def live(watched: Sequence[Watched], known: Mapping[str, Level]) -> Live:
    """Count; runs of a task that has too few healthy seeds are left out."""
    kept = [(one, label(one.run, known[one.run.task])) for one in watched if one.run.task in known]
    runs = [one for one, _ in kept]
    healthy = [one for one, is_ in kept if is_ is Label.HEALTHY]
    broken = [one for one, is_ in kept if is_ is Label.BROKEN]
    visible = [one for one in broken if one.visible and not hidden(one.run, known[one.run.task])]
    delays = [d for one in visible if (d := one.delay()) is not None]
    raised, updates = _total(healthy, "raised").total(), sum(one.updates for one in healthy)
    return Live(
        runs=len(runs),
        healthy=len(healthy),
        visible=len(visible),
        updates=updates,
        named=_share(visible, [one.delay() is not None for one in visible]),
        at_the_end=_share(visible, [one.names_it(one.heard[-1]) for one in visible]),
        delay=float(np.median(delays)) if delays else float("nan"),
        taken_back=_share(runs, [one.taken_back.total() > 0 for one in runs]),
        flips=_share(runs, [one.taken_back.total() for one in runs]),
        rung=_share(healthy, [one.raised.total() > 0 for one in healthy]),
        alarms=_share(healthy, [one.raised.total() for one in healthy]),
        per_thousand=THOUSAND * raised / updates if updates else float("nan"),
        by_rule=_bells(runs, healthy),
    )


def _share(runs: Sequence[Watched], values: Sequence[float]) -> Share:
    return share([(one.run.task, float(v)) for one, v in zip(runs, values, strict=True)])


def _bells(runs: Sequence[Watched], healthy: Sequence[Watched]) -> dict[str, Bell]:
    raised, back = _total(runs, "raised"), _total(runs, "taken_back")
    own, own_back = _total(healthy, "raised"), _total(healthy, "taken_back")
    return {
        rule: Bell(raised[rule], back[rule], own[rule], own_back[rule]) for rule in sorted(raised)
    }


def _total(runs: Sequence[Watched], which: str) -> Counter[str]:
    total: Counter[str] = Counter()
    for one in runs:
        total.update(getattr(one, which))
    return total
