"""Compute speeds from the steps and times of a log."""

from collections.abc import Sequence

import numpy as np

from rlvitals.metrics.catalogue import optimiser, progress, throughput
from rlvitals.metrics.metric import Metric
from rlvitals.types import Series, Trace
from rlvitals.views.figures.figure import Line, Panel, Subject
from rlvitals.views.figures.panels import annotate, has_metric

MIN_ROWS_PER_WINDOW = 4  # a clock may count full seconds


def speed(subjects: Sequence[Subject], metric: Metric) -> Panel:
    """Return steps or updates per second, as logged or computed from the row times."""
    lines = tuple(
        Line(metric.title, metric.name, series, run)
        for run, subject in enumerate(subjects)
        if (series := _speed(subject.trace, metric)) is not None
    )
    return annotate(subjects, Panel(metric.title, metric.unit, lines, low=0.0), (metric,))


def _speed(trace: Trace, metric: Metric) -> Series | None:
    if has_metric(trace, metric):
        return trace[metric.name]
    if metric is throughput.UPDATES_PER_SECOND:
        update_counters = (optimiser.UPDATES, progress.ITERATION)  # cumulative counts of updates
        return next(
            (rate for counter in update_counters if (rate := _rate(_count(trace, counter)))), None
        )
    timed = max(trace.series.values(), key=len, default=None)
    return (
        None
        if timed is None
        else _rate(Series(timed.steps, timed.times, timed.steps.astype(np.float64)))
    )


def _count(trace: Trace, metric: Metric) -> Series | None:
    """Return a cumulative count; None if it does not increase with each row."""
    series = trace.numbers(metric.name, least=2 * MIN_ROWS_PER_WINDOW)
    rises = series is not None and bool((np.diff(series.values) > 0).all())
    return series if rises else None


def _rate(count: Series | None) -> Series | None:
    """Return the growth of a count per second in windows of the run; None without times."""
    if count is None:
        return None
    timed = count.where(np.isfinite(count.times))
    windows = min(60, len(timed) // MIN_ROWS_PER_WINDOW)
    if windows < 2:  # no course
        return None
    edges = np.linspace(0, len(timed) - 1, windows + 1).astype(np.int64)
    seconds = np.diff(timed.times[edges])
    grown = np.diff(timed.values[edges])
    fair = (seconds > 0) & (grown >= 0)  # excludes the gap before a resumed attempt
    if np.count_nonzero(fair) < 2:  # the same
        return None
    ends = edges[1:][fair]
    return Series(timed.steps[ends], timed.times[ends], grown[fair] / seconds[fair])
