"""Draw a distribution over the steps as bands between quantiles."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from rlvitals.views.drawing.themes import Theme
from rlvitals.views.figures.figure import Line, Panel

BAND_ALPHAS = (0.14, 0.26, 0.42)  # from the outermost band inwards


def draw(axes: Axes, panel: Panel, theme: Theme, pixels: int) -> Line:
    """Fill the bands of a panel and return the middle line, which is drawn like a curve."""
    ink = theme.curve(0)
    lines = [line for line in panel.lines if line.quantile]
    pairs = [(lines[index], lines[-1 - index]) for index in range(len(lines) // 2)]
    for (low, high), alpha in zip(pairs, BAND_ALPHAS, strict=True):
        steps, below, above = envelope(low, high, pixels)
        axes.fill_between(steps, below, above, color=ink, alpha=alpha, lw=0)
        if len(steps) <= 30:  # strokes: a single step has no area
            axes.vlines(steps, below, above, color=ink, alpha=alpha, lw=3)
    return lines[len(lines) // 2]


def envelope(
    low: Line, high: Line, pixels: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Return a band's steps and edges, at most one of each per pixel column.

    A column with several steps gets their minimum and maximum, not their mean.
    """
    steps, below, above = low.series.steps, low.series.values, high.series.values
    if len(steps) <= pixels:
        return steps, below, above
    starts = np.unique(np.linspace(0, len(steps), pixels, endpoint=False).astype(np.int64))
    lowest, highest = np.fmin.reduceat(below, starts), np.fmax.reduceat(above, starts)
    return steps[starts], lowest, highest


def legend(theme: Theme) -> tuple[list[Line2D | Patch], list[str]]:
    """Return the legend's handles and labels, the outermost band first, the median last."""
    ink = theme.curve(0)
    bands: list[Line2D | Patch] = [
        Patch(color=ink, alpha=sum(BAND_ALPHAS[: n + 1])) for n in range(3)
    ]
    return [*bands, Line2D([], [], color=ink, lw=3)], ["all", "9 of 10", "half", "median"]
