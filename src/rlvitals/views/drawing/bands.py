"""Bands between quantiles: what is drawn of a distribution at each step."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from rlvitals.views.drawing.themes import Theme
from rlvitals.views.figures.figure import Line, Panel

STRENGTH = (0.14, 0.26, 0.42)  # of the bands, from the outermost inwards
NAMES = ("all", "9 of 10", "half")
FEW = 30  # steps whose bands are drawn as strokes too: one step alone has no area


def draw(axes: Axes, panel: Panel, theme: Theme, pixels: int) -> Line:
    """Fill the bands of a panel, and return the line in their middle, which is drawn as others."""
    ink = theme.curve(0)
    lines = panel.lines
    for (low, high), alpha in zip(_pairs(lines), STRENGTH, strict=True):
        steps, below, above = envelope(low, high, pixels)
        axes.fill_between(steps, below, above, color=ink, alpha=alpha, lw=0)
        if len(steps) <= FEW:
            axes.vlines(steps, below, above, color=ink, alpha=alpha, lw=3)
    return lines[len(lines) // 2]


def _pairs(lines: Sequence[Line]) -> list[tuple[Line, Line]]:
    return [(lines[at], lines[-1 - at]) for at in range(len(lines) // 2)]


def envelope(
    low: Line, high: Line, pixels: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Return a band's steps and both edges, at most one for each of `pixels` columns.

    Of several steps in a column the lowest and the highest are kept: no tail is averaged away.
    """
    steps, below, above = low.series.steps, low.series.values, high.series.values
    if len(steps) <= pixels:
        return steps, below, above
    starts = np.unique(np.linspace(0, len(steps), pixels, endpoint=False).astype(np.int64))
    lowest, highest = np.fmin.reduceat(below, starts), np.fmax.reduceat(above, starts)
    return steps[starts], lowest, highest


def legend(theme: Theme) -> tuple[list[Line2D | Patch], list[str]]:
    """Return what the bands are called, the outermost first, and the line in their middle."""
    ink = theme.curve(0)
    bands: list[Line2D | Patch] = [Patch(color=ink, alpha=sum(STRENGTH[: n + 1])) for n in range(3)]
    return [*bands, Line2D([], [], color=ink, lw=3)], [*NAMES, "median"]
