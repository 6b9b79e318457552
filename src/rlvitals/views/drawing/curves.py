"""Lines as they are drawn: what a picture of some width shows of them, and an average over them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rlvitals.signals.ema import ema
from rlvitals.storage import downsample
from rlvitals.types import Series
from rlvitals.views.figures.figure import Kind, Line, Panel

Numbers = NDArray[np.float64]
Scale = Literal["linear", "log", "asinh"]

SPAN = 0.05  # of the run: what the average is over
FEWEST = 100  # means that an average is made of, of a longer series
ENOUGH = 40  # points below which an average says no more than they do
NOISY = 0.04  # of the average's range, by which points must lie off it
ROUNDING = 1e-12  # relative error of a mean of equal numbers, with room
FLATTENED = 30.0  # times its usual range: a spike as high flattens a linear axis
DECADES = 1e6  # that a log scale shows at most
MIDDLE = (5, 95)  # per cent of the points that make up the usual range


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """What is drawn of one line: NaN among the values is a gap."""

    line: Line
    steps: NDArray[np.int64]  # [m]
    values: Numbers  # [m]
    nan: NDArray[np.int64]  # steps that are marked
    above: NDArray[np.int64]
    below: NDArray[np.int64]
    counts: tuple[int, int, int]  # points that are NaN, +inf, -inf
    smooth: tuple[NDArray[np.int64], Numbers] | None


def curves(panel: Panel, width: int, first: int, last: int) -> tuple[Curve, ...]:
    """Reduce a panel's lines to what `width` columns of pixels show."""
    return tuple(curve(line, width, first, last) for line in panel.lines)


def curve(line: Line, width: int, first: int, last: int) -> Curve:
    """Reduce one line to what `width` columns of pixels show."""
    points = downsample.points(line.series, width, first, last)
    values = line.series.values
    bad = len(points.nan) + len(points.above) + len(points.below)
    counts = (0, 0, 0)
    if bad:
        counts = (
            int(np.isnan(values).sum()),
            int((values == np.inf).sum()),
            int((values == -np.inf).sum()),
        )
    gaps = np.unique(np.concatenate((points.nan, points.above, points.below)))
    at = points.steps.searchsorted(gaps)
    smooth = average(line.series, max(2 * width, FEWEST)) if line.smooth else None
    return Curve(
        line,
        np.insert(points.steps, at, gaps),
        np.insert(points.values, at, np.nan),
        points.nan,
        points.above,
        points.below,
        counts,
        smooth if smooth and _noisy(points, smooth) else None,
    )


def average(series: Series, most: int) -> tuple[NDArray[np.int64], Numbers] | None:
    """Return a moving average over a twentieth of the run's points; None for a few.

    Of more than `most` points their means are averaged: nobody sees the difference.
    """
    found = series.finite()
    if len(found) < ENOUGH:
        return None
    group = -(-len(found) // most)
    starts = np.arange(0, len(found), group)
    sizes = np.diff(np.append(starts, len(found)))
    with np.errstate(over="ignore"):
        means = np.add.reduceat(found.values, starts) / sizes
    steps = found.steps[starts + sizes - 1]
    return steps, ema(means, min(1.0, 2 / (SPAN * len(means) + 1)))


def _noisy(points: downsample.Points, smooth: tuple[NDArray[np.int64], Numbers]) -> bool:
    steps, values = smooth
    if not np.isfinite(values).all():
        return False
    off = np.abs(points.values / 2 - np.interp(points.steps, steps, values) / 2)
    rounding = ROUNDING * float(np.abs(values / 2).max())  # of the mean of a constant
    return bool(np.median(off) > max(NOISY * np.ptp(values / 2), rounding))


def scale(panel: Panel, drawn: Sequence[Curve]) -> tuple[Scale, float]:
    """Choose the y-axis: linear, unless a spike would flatten all the rest; its linear width."""
    if panel.linear or panel.kind not in {Kind.LINES, Kind.BANDS}:
        return "linear", 1.0
    parts = [values[np.isfinite(values)] for values in (curve.values for curve in drawn)]
    values = np.concatenate(parts) if parts else np.empty(0)
    if len(values) < 3:  # noqa: PLR2004 - nothing to flatten
        return "linear", 1.0
    low, high = np.percentile(values, MIDDLE)
    whole = float(values.max() / 2 - values.min() / 2)
    lowest, middle, top = (float(f(values)) for f in (np.min, np.median, np.max))
    flattened = high > low and whole > FLATTENED * float(high / 2 - low / 2)
    if lowest > 0 and (flattened or top / 2 > FLATTENED * middle / 2):
        return ("log", 1.0) if top / DECADES < lowest else ("asinh", middle)
    if flattened:
        return "asinh", float(max(abs(low), abs(high)))
    return "linear", 1.0
