"""Reduce lines to the points visible at a picture's width, and average noisy ones."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rlvitals.signals.ema import ema
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage import downsample
from rlvitals.types import Series
from rlvitals.views.figures.figure import Kind, Line, Panel

Numbers = NDArray[np.float64]
Scale = Literal["linear", "log", "asinh"]

MAX_SPIKE_RATIO = 30.0  # of the 5 to 95 % range; a higher spike flattens a linear axis


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """The drawn points of a line; NaN among the values is a gap."""

    line: Line
    steps: NDArray[np.int64]  # [m]
    values: Numbers  # [m]
    nan: NDArray[np.int64]  # steps with a mark
    above: NDArray[np.int64]
    below: NDArray[np.int64]
    counts: tuple[int, int, int]  # points that are NaN, +inf, -inf
    smooth: tuple[NDArray[np.int64], Numbers] | None


def curves(panel: Panel, width: int, first: int, last: int) -> tuple[Curve, ...]:
    """Reduce a panel's lines to the points visible in `width` pixel columns."""
    return tuple(curve(line, width, first, last) for line in panel.lines)


def curve(line: Line, width: int, first: int, last: int) -> Curve:
    """Reduce a line to the points visible in `width` pixel columns."""
    outline = line.series.outline
    series = line.series if outline is None else outline.points
    points = downsample.points(series, width, first, last)
    values = series.values
    bad_count = len(points.nan) + len(points.above) + len(points.below)
    counts = (0, 0, 0) if outline is None else outline.bad
    if bad_count and outline is None:
        counts = (
            int(np.isnan(values).sum()),
            int((values == np.inf).sum()),
            int((values == -np.inf).sum()),
        )
    gaps = np.unique(np.concatenate((points.nan, points.above, points.below)))
    insert_at = points.steps.searchsorted(gaps)
    smooth = average(line.series, max(2 * width, 100)) if line.smooth else None
    return Curve(
        line,
        np.insert(points.steps, insert_at, gaps),
        np.insert(points.values, insert_at, np.nan),
        points.nan,
        points.above,
        points.below,
        counts,
        smooth if smooth and _noisy(points, smooth) else None,
    )


def average(series: Series, max_points: int) -> tuple[NDArray[np.int64], Numbers] | None:
    """Return the steps and a moving average over 5 % of the points; None for few points.

    A series of more than `max_points` points is first reduced to group means.
    """
    finite = (series if series.outline is None else series.outline.means).finite()
    if len(finite) < 40:
        return None
    group = -(-len(finite) // max_points)
    starts = np.arange(0, len(finite), group)
    sizes = np.diff(np.append(starts, len(finite)))
    with np.errstate(over="ignore"):
        means = np.add.reduceat(finite.values, starts) / sizes
    steps = finite.steps[starts + sizes - 1]
    # The average spans 5 % of the points.
    return steps, ema(means, min(1.0, 2 / (0.05 * len(means) + 1)))


def _noisy(points: downsample.Points, smooth: tuple[NDArray[np.int64], Numbers]) -> bool:
    steps, values = smooth
    if not np.isfinite(values).all():
        return False
    distance = np.abs(points.values / 2 - np.interp(points.steps, steps, values) / 2)
    rounding = 1e-12 * float(np.abs(values / 2).max())  # of a mean of equal numbers
    # noisy: the median distance exceeds 4 % of the average's range
    return bool(np.median(distance) > max(0.04 * np.ptp(values / 2), rounding))


def scale(panel: Panel, curves: Sequence[Curve]) -> tuple[Scale, float]:
    """Return the scale of the y-axis, linear unless a spike flattens it, and its linear width."""
    if panel.linear or panel.kind not in {Kind.LINES, Kind.BANDS}:
        return "linear", 1.0
    finite = [values[np.isfinite(values)] for values in (curve.values for curve in curves)]
    values = np.concatenate(finite) if finite else np.empty(0)
    if len(values) < 3:  # nothing to flatten
        return "linear", 1.0
    low, high = np.percentile(values, (5, 95))
    full_range = float(values.max() / 2 - values.min() / 2)
    lowest, middle, top = (float(f(values)) for f in (np.min, np.median, np.max))
    flattened = high > low and full_range > MAX_SPIKE_RATIO * float(high / 2 - low / 2)
    if lowest > 0 and (flattened or top / 2 > MAX_SPIKE_RATIO * middle / 2):
        # A log scale covers a factor of a million at most.
        return ("log", 1.0) if top / 1e6 < lowest else ("asinh", middle)
    if flattened:
        return "asinh", float(max(abs(low), abs(high)))
    return "linear", 1.0
