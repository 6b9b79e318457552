"""What the figures build their panels from: which metric of which run, under which label."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from rlvitals.metrics.metric import Band, Bound, Metric
from rlvitals.rules.rule import Severity
from rlvitals.types import Series, Trace
from rlvitals.views import phrases
from rlvitals.views.figures.figure import (
    Figure,
    Limit,
    Line,
    Mark,
    Panel,
    Picture,
    Stretch,
    Subject,
)

ABSENT = "not logged"
OWN = "the run's "  # how the origin of a limit begins that a run has set itself
NAMED = 4  # metrics that are named as looked for


def picture(figure: Figure, subjects: Sequence[Subject]) -> Picture | None:
    """Make the data of a figure; None where nothing that it shows is logged."""
    if not has(figure, subjects):
        return None
    panels = tuple(figure.panels(subjects))
    if not any(panel.lines or panel.across for panel in panels):
        return None
    spans = [(one.trace.first_step, one.trace.last_step) for one in subjects]
    seams = {seam for one in subjects for seam in one.trace.lifecycle.seams}
    return Picture(
        name=figure.name,
        title=figure.title,
        about=_about(subjects),
        runs=tuple(one.label for one in subjects),
        x_label=_x_label(subjects),
        first=min(first for first, _ in spans),
        last=max(last for _, last in spans),
        panels=panels,
        columns=figure.columns,
        seams=tuple(sorted(seams)) if len(subjects) == 1 else (),
    )


def has(figure: Figure, subjects: Sequence[Subject]) -> bool:
    """Tell whether anything that a figure needs is logged."""
    if figure.logged is not None:
        return any(figure.logged(one.trace) for one in subjects)
    return any(logged(one.trace, metric) for one in subjects for metric in figure.needs)


def missing(figure: Figure, subjects: Sequence[Subject]) -> str:
    """Say what was looked for, as the run's own framework calls it."""
    trace = subjects[0].trace
    names = [phrases.to_know(trace, metric.name) for metric in figure.needs[:NAMED]]
    more = f" and {len(figure.needs) - NAMED} more" if len(figure.needs) > NAMED else ""
    return f"{', '.join(names)}{more}"


def logged(trace: Trace, metric: Metric) -> bool:
    """Tell whether a metric, or one member of a family, is logged."""
    if metric.family:
        return any(len(series) for series in trace.family(metric.name).values())
    found = trace.get(metric.name)
    return found is not None and len(found) > 0


def _about(subjects: Sequence[Subject]) -> str:
    if len(subjects) > 1:
        return f"{len(subjects)} runs"
    found = subjects[0].found
    return f"{subjects[0].label} · {found.verdict.word.value}: {found.verdict.why}"


def _x_label(subjects: Sequence[Subject]) -> str:
    units = sorted({one.trace.step_unit for one in subjects})
    return units[0] if len(units) == 1 else f"each run's own steps: {', '.join(units)}"


def first_of(  # noqa: PLR0913 - the fields of a panel, each named at its call
    subjects: Sequence[Subject],
    *wanted: Metric,
    title: str = "",
    low: float | None = None,
    high: float | None = None,
    smooth: bool = True,
    linear: bool = False,
) -> Panel:
    """Draw of each run the first of the metrics that it logs."""
    lines = [
        Line(metric.title, metric.name, one.trace[metric.name], run, smooth=smooth)
        for run, one in enumerate(subjects)
        if (metric := next((m for m in wanted if logged(one.trace, m)), None))
    ]
    drawn = next((m for m in wanted if lines and m.name == lines[0].metric), wanted[0])
    panel = Panel(title or drawn.title, drawn.unit, tuple(lines), low=low, high=high, linear=linear)
    return finished(subjects, panel, wanted)


def together(  # noqa: PLR0913 - the fields of a panel, each named at its call
    subjects: Sequence[Subject],
    pairs: Sequence[tuple[Metric, str]],
    title: str,
    *,
    unit: str = "",
    low: float | None = None,
    high: float | None = None,
    smooth: bool = True,
) -> Panel:
    """Draw all of the metrics that are logged, each under its label."""
    lines = [
        Line(label, metric.name, one.trace[metric.name], run, part, smooth)
        for run, one in enumerate(subjects)
        for part, (metric, label) in enumerate(pairs)
        if logged(one.trace, metric)
    ]
    metrics = [metric for metric, _ in pairs]
    panel = Panel(title, unit or metrics[0].unit, tuple(lines), low=low, high=high)
    return finished(subjects, panel, metrics)


def members(subjects: Sequence[Subject], metric: Metric) -> tuple[Line, ...]:
    """Return the curves of a family's members, a part for each name in any run."""
    known = sorted(
        {name for one in subjects for name in one.trace.family(metric.name)}, key=natural
    )
    return tuple(
        Line(name.replace("_", " "), f"{metric.name}/{name}", series, run, known.index(name))
        for run, one in enumerate(subjects)
        for name, series in one.trace.family(metric.name).items()
        if len(series)
    )


def natural(name: str) -> list[tuple[bool, int, str]]:
    """Return what sorts "replica_2" before "replica_10"."""
    parts = ["".join(group) for _, group in groupby(name, str.isdecimal)]
    return [(not p.isdecimal(), int(p) if p.isdecimal() else 0, p) for p in parts]


def finished(subjects: Sequence[Subject], panel: Panel, wanted: Sequence[Metric]) -> Panel:
    """Add what stands on the curves: limits, findings, and what is said where none is logged."""
    if not panel.lines:
        return replace(panel, absent=ABSENT)
    return replace(
        panel,
        limits=(*panel.limits, *_limits(subjects, panel.lines, wanted)),
        marks=tuple(_marks(subjects, panel.lines)),
    )


def _limits(
    subjects: Sequence[Subject], lines: Sequence[Line], wanted: Sequence[Metric]
) -> Iterable[Limit]:
    """Return the limits that runs have set themselves; of several runs, where all agree."""
    for metric in wanted:
        drawn = [subjects[line.run].trace for line in lines if line.metric == metric.name]
        for side in (Band.ceiling, Band.floor):
            said = {_own(side(metric.band(trace.profile), trace)) for trace in drawn}
            if len(said) == 1 and (bound := said.pop()) is not None:
                origin = bound.origin.removeprefix(OWN)
                yield Limit(bound.value, f"{origin} {phrases.number(bound.value)}")


def _own(bound: Bound | None) -> Bound | None:
    return bound if bound is not None and bound.origin.startswith(OWN) else None


def _marks(subjects: Sequence[Subject], lines: Sequence[Line]) -> Iterable[Mark]:
    """Return the stretches that findings about these curves speak of, the gravest first."""
    drawn = {(line.run, line.metric) for line in lines}
    found = [
        (run, case.rule.name, case.finding)
        for run, one in enumerate(subjects)
        for case in one.found.every
        if (run, case.finding.metric) in drawn
    ]
    for run, name, finding in sorted(found, key=lambda each: -each[2].severity):
        yield Mark(finding.began, finding.ended, name, finding.severity, run)


def stretches(series: Series, run: int = 0) -> tuple[Stretch, ...]:
    """Return where a switch is on."""
    on = np.nan_to_num(series.values) > 0.5  # noqa: PLR2004 - half of a 0/1 switch
    edges = np.flatnonzero(np.diff(np.concatenate(([False], on, [False])).astype(np.int8)))
    return tuple(
        Stretch(int(series.steps[begin]), int(series.steps[min(end, len(series) - 1)]), run)
        for begin, end in zip(edges[::2], edges[1::2], strict=True)
    )


def worst(marks: Sequence[Mark]) -> Severity | None:
    """Return the gravest of some marks."""
    return max((mark.severity for mark in marks), default=None)
