"""Rows of blocks as the series of each key, in the order they were written."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from rlvitals.storage.blocks import Scalars
from rlvitals.types import Series, Table

Part = tuple[Scalars, int]  # rows, and which of their columns


def series(parts: Iterable[Scalars]) -> dict[str, Series]:
    """Gather the series of each key; those of one key table share their steps and times."""
    by_keys: dict[tuple[str, ...], list[Scalars]] = defaultdict(list)
    for part in parts:
        by_keys[part.keys].append(part)
    columns: dict[str, list[Part]] = defaultdict(list)
    for found in by_keys.values():
        whole = joined(found)
        for at, key in enumerate(whole.keys):
            columns[key].append((whole, at))
    return {key: _in_order(found) for key, found in columns.items()}


def one_series(parts: Iterable[Scalars], key: str) -> Series | None:
    """Gather the series of one key; None where no part has it."""
    found = [(part, part.keys.index(key)) for part in parts if key in part.keys]
    return _in_order(found) if found else None


def joined(parts: Sequence[Scalars]) -> Scalars:
    """Put rows under the same keys one after another."""
    if len(parts) == 1:
        return parts[0]
    return Scalars(
        parts[0].keys,
        np.concatenate([part.steps for part in parts]),
        np.concatenate([part.times for part in parts]),
        np.concatenate([part.values for part in parts], axis=1),
        parts[0].first,
        np.concatenate([places(part) for part in parts]),
    )


def places(part: Scalars) -> NDArray[np.int64]:
    """Return each row's place in its file, int64 [n]."""
    if part.order is not None:
        return part.order
    return np.arange(part.first, part.first + len(part.steps))


def after(part: Scalars, rows: int) -> Scalars:
    """Keep the rows that stand behind the first `rows` of the file."""
    if part.order is None and part.first >= rows:
        return part
    return cut(part, places(part) >= rows)


def cut(part: Scalars, rows: slice | NDArray[np.bool_]) -> Scalars:
    """Keep some of the rows."""
    order = places(part)[rows]
    return Scalars(part.keys, part.steps[rows], part.times[rows], part.values[:, rows], 0, order)


def _in_order(found: Sequence[Part]) -> Series:
    """Make one series of a key's columns under different key tables."""
    if len(found) == 1:
        ((part, at),) = found
        if part.order is None:
            return Series(part.steps, part.times, part.values[at])
    steps = np.concatenate([part.steps for part, _ in found])
    times = np.concatenate([part.times for part, _ in found])
    values = np.concatenate([part.values[at] for part, at in found])
    order = np.concatenate([places(part) for part, _ in found])
    if len(order) and not np.all(order[1:] > order[:-1]):
        by = np.argsort(order, kind="stable")
        steps, times, values = steps[by], times[by], values[by]
    return Series(steps, times, values)


def chained(parts: Sequence[Series]) -> Series:
    """Put series one after another: those of a run's attempts."""
    if len(parts) == 1:
        return parts[0]
    return Series(
        np.concatenate([part.steps for part in parts]),
        np.concatenate([part.times for part in parts]),
        np.concatenate([part.values for part in parts]),
    )


def stacked(tables: Sequence[Table]) -> Table:
    """Put tables' rows one after another; a cell that a table lacks is None."""
    if len(tables) == 1:
        return tables[0]
    names = dict.fromkeys(name for table in tables for name in table.columns)
    cells = {
        name: [cell for table in tables for cell in table.columns.get(name, [None] * len(table))]
        for name in names
    }
    return Table(np.concatenate([table.steps for table in tables]), cells)
