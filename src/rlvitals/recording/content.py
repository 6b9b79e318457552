"""Histograms, texts, tables and settings, as a caller gives them, made into the store's nouns."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlvitals.errors import UsageError
from rlvitals.recording import tensors
from rlvitals.records import Histogram, Table

BINS = 64
MAX_WHOLE = 2.0**52  # up to here float64 holds every half between two whole numbers
PLAIN = frozenset((str, float, int, bool, type(None)))  # what `plain` leaves as it is


def histogram(
    step: int, time: float, values: object, edges: object, counts: object
) -> Callable[[], Histogram]:
    """Fix what was given as it is now; the call it returns counts, later and on another thread.

    Raises UsageError for what is neither values nor edges with counts.
    """
    if edges is not None or counts is not None:
        bounds, amounts = array(edges).ravel(), array(counts).ravel()
        if values is not None or len(bounds) != len(amounts) + 1 or not len(amounts):
            raise UsageError("a histogram is values, or counts [n] and edges [n + 1]")
        if not (np.diff(bounds) >= 0).all():
            raise UsageError("the edges of a histogram must ascend")
        made = Histogram(step, time, bounds, amounts)
        return lambda: made
    kept = fixed(values)
    return lambda: counted(step, time, array(kept).ravel())


def fixed(values: object) -> object:
    """Copy an array or a tensor where it lies: what the caller does with it is its own affair."""
    if hasattr(values, "detach") and hasattr(values, "clone"):
        return values.detach().clone()
    if hasattr(values, "block_until_ready"):
        return values
    return array(values)


def array(values: object) -> NDArray[np.float64]:
    """Copy numbers of any shape to float64. Raises UsageError."""
    given: Any = values
    try:
        if hasattr(given, "detach"):
            given = given.detach().double().cpu().numpy()
        if given is not None:
            return np.array(given, np.float64)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{tensors.kind(values)} holds no numbers: {error}") from None
    raise UsageError("a histogram needs values, or counts and edges")


def counted(step: int, time: float, values: NDArray[np.float64]) -> Histogram:
    """Count values in bins: one for each whole number where they are few, else 64.

    NaN is left out; infinities fall into outermost bins of their own.
    """
    known = values[np.isfinite(values)]
    edges = _edges(known)
    counts = np.histogram(known, edges)[0].astype(np.float64)
    low, high = float((values == -np.inf).sum()), float((values == np.inf).sum())
    if low:
        edges, counts = np.append(-np.inf, edges), np.append(low, counts)
    if high:
        edges, counts = np.append(edges, np.inf), np.append(counts, high)
    return Histogram(step, time, edges, counts)


def _edges(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ascending edges that span the values: at least two, at most BINS + 1."""
    if not len(values):
        return np.array([0.0, 1.0])
    low, high = float(values.min()), float(values.max())
    small = max(-low, high) < MAX_WHOLE
    if small and high - low < BINS and (values == np.round(values)).all():
        return np.arange(low, high + 2) - 0.5
    if high - low < np.inf:
        return np.minimum(np.linspace(low, high, BINS + 1), high)
    return np.linspace(low / 2, high / 2, BINS + 1) * 2  # the difference exceeds float64


def table(step: int, columns: Mapping[str, object]) -> Table:
    """Make rows of one step; cells that are no text, number, truth value or None become text.

    Raises UsageError where columns are no mapping or have different lengths.
    """
    if not isinstance(columns, Mapping):
        raise UsageError(f"a table's columns must be a dict, not {tensors.kind(columns)}")
    cells = {str(name): _cells(column) for name, column in columns.items()}
    lengths = {name: len(column) for name, column in cells.items()}
    if len(set(lengths.values())) > 1:
        raise UsageError(f"a table's columns must have one length, not {lengths}")
    rows = next(iter(lengths.values()), 0)
    return Table(np.full(rows, step, np.int64), cells)


def _cells(column: object) -> Sequence[object]:
    given: Any = column
    if hasattr(given, "detach"):
        given = given.detach().cpu()
    if hasattr(given, "tolist"):
        given = given.tolist()
    if isinstance(given, str | bytes) or not hasattr(given, "__iter__"):
        raise UsageError(f"a table's column must be a list, not {tensors.kind(column)}")
    cells = list(given)
    return cells if PLAIN.issuperset(map(type, cells)) else [plain(cell) for cell in cells]


def settings(changed: Mapping[str, object]) -> dict[str, object]:
    """Flatten settings with "/", values as JSON has them. Raises UsageError."""
    if not isinstance(changed, Mapping):
        raise UsageError(f"settings must be a dict, not {tensors.kind(changed)}")
    found: dict[str, object] = {}
    for key, value in changed.items():
        if isinstance(value, Mapping) and value:
            found |= {f"{key}/{name}": one for name, one in settings(value).items()}
        else:
            found[str(key)] = plain(value)
    return found


def plain(value: object) -> object:
    """Return a value as JSON has it; a stranger as its text."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(one) for one in value]
    number = tensors.number(value) if hasattr(value, "item") else None
    if number is not None:
        return int(number) if number.is_integer() and "int" in str(_type(value)) else number
    return str(value)


def _type(value: object) -> object:
    return getattr(value, "dtype", "")
