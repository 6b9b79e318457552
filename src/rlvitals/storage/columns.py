"""Convert the rows of blocks to the series of each key, in the order they were written."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from rlvitals.storage.blocks import Scalars
from rlvitals.types import Series, Table

Kind = TypeVar("Kind", np.int64, np.float64)
Words = NDArray[np.int64] | NDArray[np.float64]
Arrays = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]
Column = tuple[Scalars, int]  # rows, and which of their columns


def series(chunks: Iterable[Scalars]) -> dict[str, Series]:
    """Return the series of each key; those of one key table share their steps and times."""
    by_keys: dict[tuple[str, ...], list[Scalars]] = defaultdict(list)
    for chunk in chunks:
        by_keys[chunk.keys].append(chunk)
    table_counts = Counter(key for keys in by_keys for key in keys)
    columns: dict[str, list[Column]] = defaultdict(list)
    for keys, group in by_keys.items():
        is_alone = all(table_counts[key] == 1 for key in keys)
        merged = (_join_ascending(group) if is_alone else None) or concatenate(group)
        for index, key in enumerate(keys):
            columns[key].append((merged, index))
    return {key: _sort_rows(group) for key, group in columns.items()}


def _join_ascending(chunks: Sequence[Scalars]) -> Scalars | None:
    """Return rows that follow on one another in the file and in memory, without their places.

    None where rows are not in ascending places, or not consecutive parts of the same arrays.
    """
    last = -1
    for chunk in chunks:
        ends = (
            chunk.order
            if chunk.order is not None
            else (chunk.first, chunk.first + len(chunk.steps) - 1)
        )
        is_ascending = chunk.order is None or bool(np.all(chunk.order[1:] > chunk.order[:-1]))
        if ends[0] <= last or not is_ascending:
            return None
        last = int(ends[-1])
    steps = _whole_array([chunk.steps for chunk in chunks])
    times = _whole_array([chunk.times for chunk in chunks])
    values = _whole_array([chunk.values for chunk in chunks])
    if steps is None or times is None or values is None:
        return None
    return Scalars(chunks[0].keys, steps, times, values, chunks[0].first)


def _whole_array(pieces: Sequence[NDArray[Kind]]) -> NDArray[Kind] | None:
    """Return the array that is made up of all its consecutive pieces; None where it is not."""
    base, address = pieces[0].base, pieces[0].ctypes.data
    if not isinstance(base, np.ndarray) or base.dtype != pieces[0].dtype:
        return None
    for piece in pieces:
        if piece.base is not base or piece.shape[:-1] != base.shape[:-1]:
            return None
        if piece.ctypes.data != address:
            return None
        address += piece.itemsize * piece.shape[-1]
    is_whole = (
        pieces[0].ctypes.data == base.ctypes.data
        and address == base.ctypes.data + base.itemsize * base.shape[-1]
    )
    return base if is_whole else None


def allocate(keys: tuple[str, ...], rows: int) -> Arrays:
    """Return empty steps [rows], times [rows] and values [keys, rows]."""
    return np.empty(rows, "<i8"), np.empty(rows, "<f8"), np.empty((len(keys), rows), "<f8")


def one_series(chunks: Iterable[Scalars], key: str) -> Series | None:
    """Return the series of one key; None where no chunk has it."""
    columns = [(chunk, chunk.keys.index(key)) for chunk in chunks if key in chunk.keys]
    return _sort_rows(columns) if columns else None


def concatenate(chunks: Sequence[Scalars]) -> Scalars:
    """Concatenate rows with the same keys."""
    if len(chunks) == 1:
        return chunks[0]
    is_contiguous = all(
        chunk.order is None
        and after.order is None
        and chunk.first + len(chunk.steps) == after.first
        for chunk, after in pairwise(chunks)
    )
    return Scalars(
        chunks[0].keys,
        np.concatenate([chunk.steps for chunk in chunks]),
        np.concatenate([chunk.times for chunk in chunks]),
        np.concatenate([chunk.values for chunk in chunks], axis=1),
        chunks[0].first,
        None if is_contiguous else np.concatenate([places(chunk) for chunk in chunks]),
    )


def places(chunk: Scalars) -> NDArray[np.int64]:
    """Return the position of each row in its file, int64 [n]."""
    if chunk.order is not None:
        return chunk.order
    return np.arange(chunk.first, chunk.first + len(chunk.steps))


def rows_from(chunk: Scalars, rows: int) -> Scalars:
    """Return the rows that follow the first `rows` of the file."""
    if not rows or (chunk.order is None and chunk.first >= rows):
        return chunk
    return select_rows(chunk, places(chunk) >= rows)


def select_rows(chunk: Scalars, rows: slice | NDArray[np.bool_]) -> Scalars:
    """Return a selection of the rows."""
    order = places(chunk)[rows]
    return Scalars(
        chunk.keys, chunk.steps[rows], chunk.times[rows], chunk.values[:, rows], 0, order
    )


def _sort_rows(columns: Sequence[Column]) -> Series:
    """Make one series of a key's columns under different key tables."""
    if len(columns) == 1:
        ((chunk, index),) = columns
        if chunk.order is None or np.all(chunk.order[1:] > chunk.order[:-1]):
            return Series(chunk.steps, chunk.times, chunk.values[index])
    steps = np.concatenate([chunk.steps for chunk, _ in columns])
    times = np.concatenate([chunk.times for chunk, _ in columns])
    values = np.concatenate([chunk.values[index] for chunk, index in columns])
    order = np.concatenate([places(chunk) for chunk, _ in columns])
    if len(order) and not np.all(order[1:] > order[:-1]):
        by_place = np.argsort(order, kind="stable")
        steps, times, values = steps[by_place], times[by_place], values[by_place]
    return Series(steps, times, values)


def concatenate_series(pieces: Sequence[Series]) -> Series:
    """Concatenate series: those of a run's attempts."""
    if len(pieces) == 1:
        return pieces[0]
    return Series(
        np.concatenate([piece.steps for piece in pieces]),
        np.concatenate([piece.times for piece in pieces]),
        np.concatenate([piece.values for piece in pieces]),
    )


def concatenate_tables(tables: Sequence[Table]) -> Table:
    """Concatenate the rows of tables; a cell that a table lacks is None."""
    if len(tables) == 1:
        return tables[0]
    names = dict.fromkeys(name for table in tables for name in table.columns)
    cells = {
        name: [cell for table in tables for cell in table.columns.get(name, [None] * len(table))]
        for name in names
    }
    return Table(np.concatenate([table.steps for table in tables]), cells)
