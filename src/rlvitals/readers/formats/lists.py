"""Convert named lists of numbers to columns, as scripts save them at the end of training.

The axis of a list is one of the lists of its length that counts steps and never decreases; without
one, points are numbered from 1.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from rlvitals.readers.formats import column_guess
from rlvitals.readers.formats.columns import MAX_STEP, Columns

MIN_LIST_POINTS = 2  # of a list: one number is a setting or a result
NUMBERED_NOTE = "no step-like list: points are numbered by their place"


def columns(lists: Mapping[str, NDArray[np.float64]]) -> tuple[Columns, str]:
    """Return lists [n] as columns, and what their steps are ("rows": their place)."""
    steps = {key: lists[key] for key in column_guess.step_keys(lists) if counts(lists[key])}
    step_by_length: dict[int, str] = {}
    for key, axis in steps.items():
        step_by_length.setdefault(len(axis), key)
    points, units = Columns(), set()
    for key, values in lists.items():
        if key in steps:
            continue
        name = step_by_length.get(len(values))
        axis = np.arange(1.0, len(values) + 1) if name is None else steps[name]
        units.add("rows" if name is None else column_guess.step_unit(name))
        points.extend(key, axis.astype(np.int64), values)
    return points, units.pop() if len(units) == 1 else "rows"


def counts(values: NDArray[np.float64]) -> bool:
    """Return True if a list counts: whole numbers that never decrease, and grow."""
    is_bounded = bool(np.isfinite(values).all() and (np.abs(values) < MAX_STEP).all())
    return is_bounded and bool((values == np.rint(values)).all() and (np.diff(values) >= 0).all()
                          and values[0] < values[-1])  # fmt: skip


def mean_curve(
    key: str, values: NDArray[np.float64], notes: list[str]
) -> NDArray[np.float64] | None:
    """Return an array as one number a point [n]; None where it is no curve.

    Of two dimensions the shorter one is averaged, and `notes` gets a line that says so.
    """
    values = values.squeeze()
    if values.ndim == 2 and min(values.shape) <= 256:  # a longer axis is data
        axis = int(np.argmin(values.shape))
        notes.append(f"`{key}`: mean over its axis {axis} of {values.shape[axis]}")
        with np.errstate(all="ignore"):  # infinities of both signs, and overflow
            values = values.mean(axis=axis)
    return values if values.ndim == 1 and len(values) >= MIN_LIST_POINTS else None
