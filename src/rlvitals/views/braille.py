"""Draw a series with braille characters: 2 x 4 dots in each."""

import numpy as np
from numpy.typing import NDArray

from rlvitals.types import Series

# Bits of a character's dots: [4 rows, 2 columns], as Unicode numbers them.
DOT_BITS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])


def draw(series: Series, columns: int, rows: int) -> list[str]:
    """Return `rows` lines of `columns` characters, the highest value above.

    A column of dots spans the least and the greatest value of its steps and the last value before
    them, so that the line is closed and a single spike is drawn. Values that are not finite are
    left out.
    """
    dot_rows, dot_columns = DOT_BITS.shape
    dots = np.zeros((rows * dot_rows, columns * dot_columns), dtype=np.bool_)
    finite = series.finite()
    if len(finite):
        lows, highs = _spans(finite, dots.shape[1])
        heights = [_height(values, finite.values, dots.shape[0]) for values in (lows, highs)]
        for column in np.flatnonzero(np.isfinite(lows)):
            dots[heights[0][column] : heights[1][column] + 1, column] = True
    blocks = dots[::-1].reshape(rows, dot_rows, columns, dot_columns)
    # The blank Braille pattern.
    codes = 0x2800 + np.einsum("rdcx,dx->rc", blocks.astype(np.int64), DOT_BITS)
    return ["".join(map(chr, line)) for line in codes.tolist()]


def _spans(series: Series, width: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the least and the greatest value of each column [width]; NaN where there is none."""
    first, last = int(series.steps[0]), int(series.steps[-1])
    columns = np.clip((series.steps - first) * width // max(last - first + 1, 1), 0, width - 1)
    lows, highs = np.full(width, np.inf), np.full(width, -np.inf)
    np.minimum.at(lows, columns, series.values)
    np.maximum.at(highs, columns, series.values)
    is_empty = np.isinf(lows)
    ends = np.zeros(width)
    ends[columns] = series.values  # the last value of a column is written last
    source = np.maximum.accumulate(np.where(is_empty, 0, np.arange(width)))
    previous = np.concatenate((series.values[:1], ends[source][:-1]))
    lows, highs = np.minimum(lows, previous), np.maximum(highs, previous)
    is_outside = np.arange(width) > columns.max()
    lows[is_outside] = highs[is_outside] = np.nan
    return lows, highs


def _height(
    values: NDArray[np.float64], scale: NDArray[np.float64], rows: int
) -> NDArray[np.int64]:
    """Return the row of each value, 0 at the bottom; a constant lies in the middle."""
    low, high = float(scale.min()), float(scale.max())
    span = high / 2 - low / 2  # halves: the full range may overflow float64
    if span <= 0:
        return np.full(len(values), rows // 2, dtype=np.int64)
    shares = (np.nan_to_num(values, nan=low) / 2 - low / 2) / span
    return np.clip((shares * rows).astype(np.int64), 0, rows - 1)
