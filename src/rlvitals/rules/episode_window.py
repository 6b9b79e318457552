"""The window of an outcome that is a mean over the last episodes, in steps and in points.

A mean over W episodes has the standard error s / sqrt(W), where s is the standard deviation of an
episode. Where W, s and the length of episodes are known, two such means without an episode in
common are compared by that, however few rows the log has.
"""

import math
import re

import numpy as np

from rlvitals.metrics.catalogue.language import LENGTH_MEAN
from rlvitals.metrics.catalogue.outcome import EPISODE_LENGTH, RETURN
from rlvitals.signals.finite import Array
from rlvitals.signals.outcome_change import MIN_GAIN_SD, single_value_sd
from rlvitals.signals.spread import median, noise_sd
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Series, Trace

OUTCOME_LEVEL_POINTS = 5  # points whose median is a level
MIN_LEVEL_EPISODES = 20  # of a mean: the first rows of a log contain fewer than the window
MIN_FILLED_WINDOWS = 3  # that a run's episodes fill
# Standard errors of a difference: the best of many levels is high by chance.
MIN_CHANGE_ERRORS = 5.0
MEAN_WORDS = re.compile(r"mean|avg|average", re.IGNORECASE)  # of a key, or of how it is measured
# An evaluation plays a few episodes of its own between two points, not those of the training.
SEPARATE_EPISODE_WORDS = re.compile(r"test|eval|valid", re.IGNORECASE)


def memory(trace: Trace, name: str, step: int) -> float:
    """Return for how many steps a mean over episodes remembers what came before; 0 for others."""
    window, lengths = episodes(trace, name), trace.get(EPISODE_LENGTH.name)
    if window <= 1 or lengths is None:
        return 0.0
    length = median(lengths.since(step).finite().values[:OUTCOME_LEVEL_POINTS])
    return 0.0 if length is None else window * length


def episodes(trace: Trace, name: str) -> float:
    """Return the number of episodes that each value of an outcome is a mean over."""
    source = trace.measured.get(name)
    return trace.number("stats_window_size") or (1 if source is None else source.window)


def window_points(trace: Trace, name: str, series: Series) -> float | None:
    """Return how many points of an outcome one window spans; None where that is not known."""
    lengths = trace.get(EPISODE_LENGTH.name)
    if episodes(trace, name) <= 1 or lengths is None or len(series) < OUTCOME_LEVEL_POINTS:
        return None
    length, spacing = median(lengths.values), float(np.median(np.diff(series.steps)))
    if not length or length <= 0 or spacing <= 0:
        return None
    return max(episodes(trace, name) * length / spacing, 1.0)


def describe_measure(trace: Trace, name: str) -> str:
    """Return a metric's name, its key and how it is measured; empty where no table knows it."""
    source = trace.measured.get(name)
    return "" if source is None else f"{name} {source.key} {source.how}"


def episodes_per_point(trace: Trace, name: str, series: Series) -> float:
    """Return the number of episodes that end between two points of a mean; 1 where not known.

    The steps between two points over the length of an episode, or the episodes themselves where
    the log counts them. A mean over a window holds no more than the window does.
    """
    description = describe_measure(trace, name)
    is_mean = MEAN_WORDS.search(description) and not SEPARATE_EPISODE_WORDS.search(description)
    if not is_mean or len(series) < OUTCOME_LEVEL_POINTS:
        return 1.0
    count = float(np.median(np.diff(series.steps)))
    if trace.step_unit != "episodes":
        # A plain "mean_length" beside a return is that of episodes.
        plain = LENGTH_MEAN.name if RETURN.name in trace else ""
        lengths = trace.numbers(EPISODE_LENGTH.name) or trace.numbers(plain)
        if lengths is None or not (length := float(np.median(lengths.values))) > 0:
            return 1.0
        count /= length
    window = episodes(trace, name)
    return max(min(count, window) if window > 1 else count, 1.0)


def episode_sd(trace: Trace, name: str, series: Series) -> float:
    """Return the scatter of a single episode: all that is left where zero and span are not known.

    The smallest of the estimates of `single_value_sd`, over the rows up to the end of `series`.
    """
    end = int(series.steps[-1])
    logged = trace[name].finite().until(end) if name in trace else series
    sd = single_value_sd(logged.values, window_points(trace, name, logged))
    return sd * math.sqrt(episodes_per_point(trace, name, logged))


def max_episode_sd(trace: Trace, name: str) -> float:
    """Return the most that a single episode may scatter by, as windows and rows overlap.

    From the window where the log states it, else the smallest of the estimates.
    """
    logged = trace[name].finite()
    sd = 2 * scatter_of_window(trace, name) * math.sqrt(episodes_per_point(trace, name, logged))
    return sd or episode_sd(trace, name, logged)


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
        significant = (
            gain > MIN_CHANGE_ERRORS * self.gain_error
            and loss > MIN_CHANGE_ERRORS * self.loss_error
        )
        return significant and loss > self.material and loss >= gain / 2


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
    episode_counts = _count_episodes(series, lengths)
    rows = np.flatnonzero(episode_counts >= min(MIN_LEVEL_EPISODES, window))
    if not rows.size or episode_counts[-1] < MIN_FILLED_WINDOWS * window:
        return None
    start = int(rows[0])
    count = min(float(episode_counts[start]), window)
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
    length_rows = np.clip(np.searchsorted(lengths.steps, series.steps, side="right") - 1, 0, None)
    each = np.maximum(lengths.values[length_rows], 1.0)
    return np.asarray(np.cumsum(np.diff(series.steps, prepend=0) / each))
