"""Scale the values of a series, or translate its steps; the outline of a thinned one as well."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rlvitals.types import Outline, Series

Steps = NDArray[np.int64]


def scale(series: Series, factor: float) -> Series:
    """Multiply the values by a factor other than 0."""
    if factor == 1.0:
        return series
    outline = series.outline
    if outline is not None:
        nan, above, below = outline.bad
        points, means = scale(outline.points, factor), scale(outline.means, factor)
        bad = (nan, above, below) if factor > 0 else (nan, below, above)
        outline = Outline(points, means, outline.count, bad)
    return replace(series, values=factor * series.values, outline=outline)


def move(series: Series, translate: Callable[[Steps], Steps]) -> Series:
    """Translate the steps, in ascending order."""
    outline = series.outline
    if outline is not None:
        points, means = move(outline.points, translate), move(outline.means, translate)
        outline = replace(outline, points=points, means=means)
    return replace(series, steps=translate(series.steps), outline=outline)
