"""Find values far above the median of the values before them."""

import math

import numpy as np

from rlvitals.signals.finite import Array
from rlvitals.signals.rolling import medians_ending_at
from rlvitals.startup.fast_dataclass import dataclass

MIN_BASELINE_POINTS = 5  # finite values before a point


@dataclass(frozen=True, slots=True)
class Spike:
    """One value far above its baseline."""

    index: int  # into the input
    value: float  # an infinity where +inf was logged
    baseline: float  # median of the window before it
    ratio: float  # value / baseline; infinite where the baseline is not above 0


def spikes(values: Array, *, factor: float, floor: float, window: int = 50) -> tuple[Spike, ...]:
    """Return the values above `floor` and above `factor` x the median of the `window` before.

    Causal: later values have no influence. All spikes are returned, in order; the caller decides
    whether one is an outlier and five in a row are a fault. For non-negative metrics (KL,
    gradient norm, loss magnitude). The baseline uses the finite values of the window and needs 5
    of them: earlier points are not tested. NaN is no spike; +inf is one.
    """
    column = np.asarray(values, dtype=np.float64).ravel()
    # No spike is below: a median of the past is at least the least value of all.
    known_values = column[np.isfinite(column)]
    lower_bound = (
        factor * float(known_values.min()) if known_values.size and factor > 0 else -np.inf
    )
    above = np.flatnonzero(column > max(floor, lower_bound))
    baselines = medians_ending_at(
        column, above - 1, max(int(window), MIN_BASELINE_POINTS), MIN_BASELINE_POINTS
    )
    with np.errstate(over="ignore", invalid="ignore"):
        hits = np.isfinite(baselines) & (column[above] > factor * baselines)
        return tuple(
            Spike(
                index,
                float(column[index]),
                baseline,
                float(column[index] / baseline) if baseline > 0 else math.inf,
            )
            for index, baseline in zip(above[hits].tolist(), baselines[hits].tolist(), strict=True)
        )
