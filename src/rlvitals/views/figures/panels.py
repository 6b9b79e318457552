"""Build panels from metrics of runs, and pictures from figures."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from math import isfinite

import numpy as np

from rlvitals import metrics as catalogue
from rlvitals.errors import join_first, quantity
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

RUN_ORIGIN = "the run's "  # prefix of a limit's origin that is the run's own setting


def picture(figure: Figure, subjects: Sequence[Subject]) -> Picture | None:
    """Return the picture of a figure; None if none of its metrics is logged."""
    if not has(figure, subjects):
        return None
    panels = tuple(figure.panels(subjects))
    if not any(panel.lines or panel.across for panel in panels):
        return None
    spans = [(subject.trace.first_step, subject.trace.last_step) for subject in subjects]
    seams = {seam for subject in subjects for seam in subject.trace.lifecycle.seams}
    units = sorted({subject.trace.step_unit for subject in subjects})
    x_label = units[0] if len(units) == 1 else f"each run's own steps: {', '.join(units)}"
    if len(subjects) > 1:
        subtitle = quantity(len(subjects), "run")
    else:
        diagnosis = subjects[0].found
        subtitle = f"{subjects[0].label} · {diagnosis.verdict.word.value}: {diagnosis.verdict.why}"
    return Picture(
        name=figure.name,
        title=figure.title,
        about=subtitle,
        runs=tuple(subject.label for subject in subjects),
        x_label=x_label,
        first=min(first for first, _ in spans),
        last=max(last for _, last in spans),
        panels=panels,
        columns=figure.columns,
        seams=tuple(sorted(seams)) if len(subjects) == 1 else (),
    )


def has(figure: Figure, subjects: Sequence[Subject]) -> bool:
    """Return whether any metric of a figure is logged."""
    if figure.logged is not None:
        return any(figure.logged(subject.trace) for subject in subjects)
    return any(has_metric(subject.trace, metric) for subject in subjects for metric in figure.needs)


def missing(figure: Figure, subjects: Sequence[Subject]) -> str:
    """Return a figure's metrics, named as in the run's framework."""
    trace = subjects[0].trace
    return join_first([phrases.to_know(trace, metric.name) for metric in figure.needs], 4)


def has_metric(trace: Trace, metric: Metric) -> bool:
    """Return whether a metric, or a member of a family, is logged."""
    if metric.family:
        return any(len(series) for series in trace.family(metric.name).values())
    metric_series = trace.get(metric.name)
    return metric_series is not None and len(metric_series) > 0


def first_of(  # noqa: PLR0913 - the fields of a panel, each named at its call
    subjects: Sequence[Subject],
    *metrics: Metric,
    title: str = "",
    low: float | None = None,
    high: float | None = None,
    smooth: bool = True,
    linear: bool = False,
) -> Panel:
    """Return a panel with the first of the metrics that each run logs."""
    lines = [
        Line(metric.title, metric.name, subject.trace[metric.name], run, smooth=smooth)
        for run, subject in enumerate(subjects)
        if (metric := next((m for m in metrics if has_metric(subject.trace, m)), None))
    ]
    metric_drawn = next((m for m in metrics if lines and m.name == lines[0].metric), metrics[0])
    panel = Panel(
        title or metric_drawn.title,
        metric_drawn.unit,
        tuple(lines),
        low=low,
        high=high,
        linear=linear,
    )
    return annotate(subjects, panel, metrics)


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
    """Return a panel with all logged metrics under their labels."""
    lines = [
        Line(label, metric.name, subject.trace[metric.name], run, index, smooth)
        for run, subject in enumerate(subjects)
        for index, (metric, label) in enumerate(pairs)
        if has_metric(subject.trace, metric)
    ]
    metrics = [metric for metric, _ in pairs]
    panel = Panel(title, unit or metrics[0].unit, tuple(lines), low=low, high=high)
    return annotate(subjects, panel, metrics)


def members(subjects: Sequence[Subject], metric: Metric) -> tuple[Line, ...]:
    """Return the curves of a family's members, with a part for each name."""
    names = sorted(
        {name for subject in subjects for name in subject.trace.family(metric.name)}, key=natural
    )
    return tuple(
        Line(name.replace("_", " "), f"{metric.name}/{name}", series, run, names.index(name))
        for run, subject in enumerate(subjects)
        for name, series in subject.trace.family(metric.name).items()
        if len(series)
    )


def natural(name: str) -> list[tuple[bool, int, str]]:
    """Return a sort key that orders "replica_2" before "replica_10"."""
    pieces = ["".join(group) for _, group in groupby(name, str.isdecimal)]
    return [(not p.isdecimal(), int(p) if p.isdecimal() else 0, p) for p in pieces]


def annotate(subjects: Sequence[Subject], panel: Panel, metrics: Sequence[Metric]) -> Panel:
    """Add limits and findings to a panel, or a message if nothing is logged."""
    if not panel.lines:
        return replace(panel, absent="not logged")
    limits: list[Limit] = []  # those on which the settings of all runs agree
    for metric in metrics:
        traces = [subjects[line.run].trace for line in panel.lines if line.metric == metric.name]
        for side in (Band.ceiling, Band.floor):
            bounds = {_set_by_run(side(metric.band(trace.profile), trace)) for trace in traces}
            if len(bounds) == 1 and (bound := bounds.pop()) is not None:
                origin = bound.origin.removeprefix(RUN_ORIGIN)
                limits.append(Limit(bound.value, f"{origin} {phrases.number(bound.value)}"))
    marks: list[Mark] = []
    curves = {(line.run, line.metric) for line in panel.lines}
    findings = [
        (run, case.rule.name, case.finding)
        for run, subject in enumerate(subjects)
        for case in subject.found.every
        if (run, case.finding.metric) in curves
    ]
    for run, name, finding in sorted(findings, key=lambda each: -each[2].severity):
        marks.append(Mark(finding.began, finding.ended, name, finding.severity, run))
    return replace(
        panel,
        limits=(*panel.limits, *limits),
        marks=tuple(marks),
    )


def _set_by_run(bound: Bound | None) -> Bound | None:
    return bound if bound is not None and bound.origin.startswith(RUN_ORIGIN) else None


def healthy_band(name: str, trace: Trace) -> list[float | None] | None:
    """Return the ends of the range in which a run's metric is healthy; None without one."""
    metric = catalogue.find(name)
    if metric is None:
        return None
    band = metric.band(trace.profile)
    ends = [
        bound.value if bound is not None and isfinite(bound.value) else None
        for bound in (band.floor(trace), band.ceiling(trace))
    ]
    return ends if any(end is not None for end in ends) else None


def stretches(series: Series, run: int = 0) -> tuple[Stretch, ...]:
    """Return the steps during which a switch is on."""
    on = np.nan_to_num(series.values) > 0.5  # half of a 0/1 switch
    edges = np.flatnonzero(np.diff(np.concatenate(([False], on, [False])).astype(np.int8)))
    return tuple(
        Stretch(int(series.steps[begin]), int(series.steps[min(end, len(series) - 1)]), run)
        for begin, end in zip(edges[::2], edges[1::2], strict=True)
    )


def worst(marks: Sequence[Mark]) -> Severity | None:
    """Return the highest severity of the marks; None without marks."""
    return max((mark.severity for mark in marks), default=None)
