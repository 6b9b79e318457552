"""Levels of an outcome that is a mean over a known number of episodes.

A mean over W episodes has the standard error s / sqrt(W), where s is the standard deviation of an
episode. Where W, s and the length of episodes are known, two such means without an episode in
common are compared by that, however few rows the log has.
"""

import math
from dataclasses import dataclass

import numpy as np

from rlvitals.metrics.catalogue.outcome import EPISODE_LENGTH
from rlvitals.rules.curves import HALF
from rlvitals.rules.episode_window import episodes, episodes_per_point, scatter_of_window
from rlvitals.signals.finite import Array
from rlvitals.signals.outcome_change import MIN_GAIN_SD
from rlvitals.types import Series, Trace

MIN_EPISODES = 20  # of a mean: a log's first rows hold fewer than the window
MIN_WINDOWS = 3  # that a run's episodes fill
SURE = 5.0  # standard errors of a difference: the best of many levels is high by chance


@dataclass(frozen=True, slots=True)
class WindowLevels:
    """The first, the best and the last mean of a run, higher is better, with standard errors."""

    first: float
    best: float
    last: float
    material: float  # half the standard deviation of an episode: the least that counts
    gain_error: float  # of best - first
    loss_error: float  # of best - last

    @property
    def is_lost(self) -> bool:
        """True if half of a significant gain is lost."""
        gain, loss = self.best - self.first, self.best - self.last
        significant = gain > SURE * self.gain_error and loss > SURE * self.loss_error
        return significant and loss > self.material and loss >= HALF * gain


def window_levels(trace: Trace, name: str, series: Series) -> WindowLevels | None:
    """Return the levels of an outcome; None where window or length of episodes are not known.

    `series` are its finite points, higher is better.
    """
    window, lengths = episodes(trace, name), trace.numbers(EPISODE_LENGTH.name)
    # The scatter between points is that of means over the episodes that end between them.
    sd = scatter_of_window(trace, name) / MIN_GAIN_SD
    sd *= math.sqrt(episodes_per_point(trace, name, series))
    if window <= 1 or lengths is None or trace.step_unit == "episodes" or not sd > 0:
        return None
    ended = _count_episodes(series, lengths)
    counted = np.flatnonzero(ended >= min(MIN_EPISODES, window))
    if not counted.size or ended[-1] < MIN_WINDOWS * window:
        return None
    start = int(counted[0])
    count = min(float(ended[start]), window)
    values = series.values[start:]
    return WindowLevels(
        float(values[0]),
        float(values.max()),
        float(values[-1]),
        MIN_GAIN_SD * sd,
        sd * math.sqrt(1 / count + 1 / window),
        sd * math.sqrt(2 / window),
    )


def _count_episodes(series: Series, lengths: Series) -> Array:
    """Return how many episodes had ended at each point."""
    at = np.clip(np.searchsorted(lengths.steps, series.steps, side="right") - 1, 0, None)
    each = np.maximum(lengths.values[at], 1.0)
    return np.asarray(np.cumsum(np.diff(series.steps, prepend=0) / each))
