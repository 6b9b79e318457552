"""Score every tool on the same runs with the same definitions.

An alarm is a warning or worse; a tool's repeated alarms of one id in one run are one alarm. An
alarm that names a step before the fault set in, by more than a twentieth of the run, did not find
it.

*Any alarm*: of the broken runs. *Named right*: one of the run's alarms means what the fault is, by
the table of meanings; rlvitals is held to the rules that the fault expects. It is counted over the
broken runs whose log can show the fault, and over all. *Informative*: the same over those that can,
of alarms whose id rings on at most a tenth of the tool's own healthy runs. *Delay*: from the onset
to the first alarm that names the fault, as a share of the run, where the tool tells a step.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from peers.exchange import ERROR, Alarm, worst
from peers.runs import Run

Z = 1.959964  # two-sided 95 %
RARE = 0.1  # share of healthy runs on which an informative alarm may ring
RESAMPLES = 2_000
EARLY = 0.05  # share of the run by which a step may precede the fault's


@dataclass(frozen=True)
class Share:
    """So many of so many, with Wilson's 95 % interval."""

    hits: int
    of: int

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's interval."""
        if not self.of:
            return 0.0, 1.0
        share, square = self.hits / self.of, Z**2 / self.of
        centre = (share + square / 2) / (1 + square)
        half = Z * (share * (1 - share) / self.of + square / (4 * self.of)) ** 0.5 / (1 + square)
        return max(0.0, centre - half), min(1.0, centre + half)

    def __str__(self) -> str:
        """Say it as a table does."""
        low, high = self.interval
        return f"{self.hits}/{self.of} ({low:.2f}-{high:.2f})" if self.of else "-"


@dataclass(frozen=True)
class Rate:
    """A mean number per run, with a 95 % bootstrap interval over tasks."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        """Say it as a table does."""
        return "-" if np.isnan(self.mean) else f"{self.mean:.2f} ({self.low:.2f}-{self.high:.2f})"


@dataclass(frozen=True)
class Score:
    """One tool's row."""

    healthy: Share  # healthy runs with an alarm
    warnings: Rate  # per healthy run
    errors: Rate  # the same
    any: Share  # broken runs with an alarm
    named: Share
    informative: Share
    named_of_all: Share
    delay: float | None  # median
    rings: Mapping[str, Share]  # per alarm id, over healthy runs
    found: Mapping[str, Share]  # per fault, named right


def rate(counts: Mapping[str, Sequence[int]], seed: int = 0) -> Rate:
    """Average counts of runs by task; runs of one task are drawn together."""
    tasks = [np.asarray(each, float) for each in counts.values() if len(each)]
    if not tasks:
        return Rate(np.nan, np.nan, np.nan)
    sums, sizes = (np.array([f(task) for task in tasks]) for f in (np.sum, len))
    draws = np.random.default_rng(seed).integers(len(tasks), size=(RESAMPLES, len(tasks)))
    means = sums[draws].sum(axis=1) / sizes[draws].sum(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return Rate(float(sums.sum() / sizes.sum()), float(low), float(high))


def score(
    runs: Sequence[Run],
    alarms: Mapping[str, Sequence[Alarm]],  # by the run's name
    right: Callable[[Run, str], bool | None],  # whether an alarm's id names a run's fault
) -> Score:
    """Score one tool. `right` gives None where nothing is known to expect of a run."""
    healthy = [run for run in runs if run.healthy]
    broken = [run for run in runs if run.broken]
    ids = sorted({alarm.id for run in runs for alarm in alarms[run.name]})
    rung = [{alarm.id for alarm in alarms[run.name]} for run in healthy]
    rings = {name: Share(sum(name in names for names in rung), len(rung)) for name in ids}
    rare = {name for name, share in rings.items() if share.hits <= RARE * share.of}
    judged = [run for run in broken if right(run, "") is not None]
    visible_runs = [run for run in judged if run.visible]
    naming = {run.name: _naming(run, alarms[run.name], right) for run in judged}
    informative = [run for run in visible_runs if any(a.id in rare for a in naming[run.name])]
    return Score(
        healthy=Share(sum(bool(alarms[run.name]) for run in healthy), len(healthy)),
        warnings=rate(_counts(healthy, alarms, error=False)),
        errors=rate(_counts(healthy, alarms, error=True)),
        any=Share(sum(bool(_since(run, alarms[run.name])) for run in broken), len(broken)),
        named=Share(sum(bool(naming[run.name]) for run in visible_runs), len(visible_runs)),
        informative=Share(len(informative), len(visible_runs)),
        named_of_all=Share(sum(bool(naming[run.name]) for run in judged), len(judged)),
        delay=_delay(visible_runs, naming),
        rings=rings,
        found=_by_fault(judged, naming),
    )


def _since(run: Run, alarms: Sequence[Alarm]) -> list[Alarm]:
    """Drop what rang before the fault was there."""
    begins = run.onset - EARLY * run.steps
    return [alarm for alarm in alarms if alarm.step is None or alarm.step >= begins]


def _naming(
    run: Run, alarms: Sequence[Alarm], right: Callable[[Run, str], bool | None]
) -> list[Alarm]:
    return [alarm for alarm in _since(run, alarms) if right(run, alarm.id)]


def _counts(
    healthy: Sequence[Run], alarms: Mapping[str, Sequence[Alarm]], *, error: bool
) -> dict[str, list[int]]:
    """Count a severity's alarms per run, by task."""
    counts: dict[str, list[int]] = {}
    for run in healthy:
        each = worst(alarms[run.name])
        some = [alarm for alarm in each if (alarm.severity == ERROR) is error]
        counts.setdefault(run.task, []).append(len(some))
    return counts


def _delay(judged: Sequence[Run], naming: Mapping[str, Sequence[Alarm]]) -> float | None:
    delays = []
    for run in judged:
        steps = [alarm.step for alarm in naming[run.name] if alarm.step is not None]
        if steps:
            delays.append(max(0, min(steps) - run.onset) / run.steps)
    return median(delays) if delays else None


def _by_fault(judged: Sequence[Run], naming: Mapping[str, Sequence[Alarm]]) -> dict[str, Share]:
    faults = sorted({run.fault for run in judged})
    return {
        fault: Share(
            sum(bool(naming[run.name]) for run in judged if run.fault == fault),
            sum(run.fault == fault for run in judged),
        )
        for fault in faults
    }
