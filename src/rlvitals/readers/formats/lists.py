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
    steps = {key: lists[key] for key in column_guess.step_keys(lists) if _counts(lists[key])}
    points, units = Columns(), set()
    for key, values in lists.items():
        if key in steps:
            continue
        name = next((name for name, axis in steps.items() if len(axis) == len(values)), None)
        axis = np.arange(1.0, len(values) + 1) if name is None else steps[name]
        units.add("rows" if name is None else column_guess.step_unit(name))
        points.extend(key, axis.astype(np.int64), values)
    return points, units.pop() if len(units) == 1 else "rows"


def _counts(values: NDArray[np.float64]) -> bool:
    """Return True if a list counts: whole numbers that never decrease, and grow."""
    is_bounded = bool(np.isfinite(values).all() and (np.abs(values) < MAX_STEP).all())
    return is_bounded and bool((values == np.rint(values)).all() and (np.diff(values) >= 0).all()
                          and values[0] < values[-1])  # fmt: skip
