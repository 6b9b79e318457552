"""Speeds that a log does not hold as such, from its steps and times."""

from collections.abc import Sequence

import numpy as np

from rlvitals.metrics.catalogue import optimiser, progress, throughput
from rlvitals.metrics.metric import Metric
from rlvitals.types import Series, Trace
from rlvitals.views.figures.figure import Line, Panel, Subject
from rlvitals.views.figures.panels import finished, logged

COUNTED = (optimiser.UPDATES, progress.ITERATION)  # that may grow by each update
WINDOWS = 60  # of the run, at most, whose speeds are drawn
ROWS = 4  # of a window, at least: a clock may count whole seconds


def speed(subjects: Sequence[Subject], metric: Metric) -> Panel:
    """Draw steps or updates per second: as logged, else by the times of the log's rows."""
    lines = tuple(
        Line(metric.title, metric.name, series, run)
        for run, one in enumerate(subjects)
        if (series := _speed(one.trace, metric)) is not None
    )
    return finished(subjects, Panel(metric.title, metric.unit, lines, low=0.0), (metric,))


def _speed(trace: Trace, metric: Metric) -> Series | None:
    if logged(trace, metric):
        return trace[metric.name]
    if metric is throughput.UPDATES_PER_SECOND:
        return next((found for one in COUNTED if (found := _rate(_count(trace, one)))), None)
    timed = max(trace.series.values(), key=len, default=None)
    return None if timed is None else _rate(_of_steps(timed))


def _of_steps(series: Series) -> Series:
    return Series(series.steps, series.times, series.steps.astype(np.float64))


def _count(trace: Trace, metric: Metric) -> Series | None:
    """Return a count since the start; None for one that starts anew with each row."""
    series = trace.numbers(metric.name, least=2 * ROWS)
    rises = series is not None and bool((np.diff(series.values) > 0).all())
    return series if rises else None


def _rate(count: Series | None) -> Series | None:
    """Return how much a count grows a second, by stretches of the run; None without a clock."""
    if count is None:
        return None
    timed = count.where(np.isfinite(count.times))
    windows = min(WINDOWS, len(timed) // ROWS)
    if windows < 2:  # noqa: PLR2004 - no course
        return None
    edges = np.linspace(0, len(timed) - 1, windows + 1).astype(np.int64)
    seconds = np.diff(timed.times[edges])
    grown = np.diff(timed.values[edges])
    fair = (seconds > 0) & (grown >= 0)  # not over the seam of a resumed run
    if np.count_nonzero(fair) < 2:  # noqa: PLR2004 - the same
        return None
    ends = edges[1:][fair]
    return Series(timed.steps[ends], timed.times[ends], grown[fair] / seconds[fair])
