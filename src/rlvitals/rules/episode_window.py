"""The window of an outcome that is a mean over the last episodes, in steps and in points."""

import numpy as np

from rlvitals.metrics.catalogue.outcome import EPISODE_LENGTH
from rlvitals.signals.spread import median
from rlvitals.types import Series, Trace

POINTS = 5  # of a series that tell its level


def memory(trace: Trace, name: str, step: int) -> float:
    """Return for how many steps a mean over episodes remembers what came before; 0 for others."""
    window, lengths = episodes(trace, name), trace.get(EPISODE_LENGTH.name)
    if window <= 1 or lengths is None:
        return 0.0
    length = median(lengths.since(step).finite().values[:POINTS])
    return 0.0 if length is None else window * length


def episodes(trace: Trace, name: str) -> float:
    """Return the number of episodes that each value of an outcome is a mean over."""
    measured = trace.measured.get(name)
    return trace.number("stats_window_size") or (1 if measured is None else measured.window)


def window_points(trace: Trace, name: str, series: Series) -> float | None:
    """Return how many points of an outcome one window spans; None where that is not known."""
    lengths = trace.get(EPISODE_LENGTH.name)
    if episodes(trace, name) <= 1 or lengths is None or len(series) < POINTS:
        return None
    length, spacing = median(lengths.values), float(np.median(np.diff(series.steps)))
    if not length or length <= 0 or spacing <= 0:
        return None
    return max(episodes(trace, name) * length / spacing, 1.0)
