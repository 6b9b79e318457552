"""Tell which columns count steps, by the order of their numbers.

columns_without_order({"Episode": numbers, "Total_Steps": numbers})     # frozenset({"Total_Steps"})
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray


def columns_without_order(by_name: Mapping[str, NDArray[np.float64]]) -> frozenset[str]:
    """Return the columns that are in no order, and those that another one tells apart.

    These count within another one, or are constant while it moves. The arrays of one length are a
    row's numbers side by side.
    """
    in_no_order = {name for name, values in by_name.items() if _goes_back(values)}
    constant = {name for name, values in by_name.items() if len(values) > 1 and not np.ptp(values)}
    is_counted = any(len(values) > 1 for name, values in by_name.items() if name not in constant)
    return frozenset(in_no_order | _inner_counters(by_name) | (constant if is_counted else set()))


def _inner_counters(by_name: Mapping[str, NDArray[np.float64]]) -> set[str]:
    """Return the names that restart while another continues: steps of an episode."""
    inner = set()
    for name, values in by_name.items():
        falls = np.flatnonzero(np.diff(values) < 0)
        for outer_name, outer in by_name.items():
            if len(falls) and outer_name != name and len(outer) == len(values):
                rises = np.diff(outer)
                if (rises >= 0).all() and (rises[falls] > 0).all():
                    inner.add(name)
    return inner


def _goes_back(values: NDArray[np.float64]) -> bool:
    """Return True if numbers [n] fall often, and stand far from where order would put them.

    A run that was resumed falls once or a few times; rows that several processes wrote are only a
    little out of order.
    """
    count = len(values)
    # A counter that was resumed falls less often than in a fifth of the rows.
    if count < 8 or (np.diff(values) < 0).mean() <= 0.2:
        return False
    places = np.empty(count)
    places[np.argsort(values, kind="stable")] = np.arange(count)
    # The mean distance of a number from its place in order.
    return float(np.abs(places - np.arange(count)).mean()) > 0.1 * count
