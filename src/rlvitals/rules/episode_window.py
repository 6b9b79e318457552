"""The window of an outcome that is a mean over the last episodes, in steps and in points."""

import math

import numpy as np

from rlvitals.metrics.catalogue.outcome import EPISODE_LENGTH
from rlvitals.signals.outcome_change import MIN_GAIN_SD
from rlvitals.signals.spread import median, noise_sd
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


def scatter_of_window(trace: Trace, name: str) -> float:
    """Return half the standard deviation of a single episode where the mean's window is known.

    A mean over 100 episodes wanders by five times its standard error without a change of the
    policy, in swings so slow that its scatter from point to point does not show them. Half the
    standard deviation of an episode is as much. 0 where no window is known.
    """
    logged = trace.numbers(name)
    window = None if logged is None else window_points(trace, name, logged)
    if logged is None or window is None:
        return 0.0
    noise = noise_sd(logged.values, order=2) or 0.0
    # Second differences of a mean over w points scatter 2 w / sqrt(6) times less than one point.
    sd = noise * min(window, len(logged)) * math.sqrt(6) / 2
    return MIN_GAIN_SD * sd
