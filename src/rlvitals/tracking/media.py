"""Convert histograms, texts, tables and settings of a caller to the types of the store."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import islice
from sys import getsizeof
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from rlvitals.errors import UsageError
from rlvitals.storage.typed import MAX_FLOAT_INTEGER
from rlvitals.tracking import tensors
from rlvitals.types import Histogram, Table

HISTOGRAM_BINS = 64
MAX_SETTINGS_DEPTH = 32  # levels of nested settings
MAX_COLUMN_CELLS = 1_000_000  # of a table's column, and of settings

CELL_BYTES = 16  # overhead of a value in a list or a dict
JSON_TYPES = frozenset((str, float, int, bool, type(None)))  # what `plain` leaves as it is


def histogram(
    step: int, time: float, values: object, edges: object, counts: object
) -> tuple[Callable[[], Histogram], int]:
    """Copy a histogram's data and return its size in bytes.

    The call that is returned counts the values, later and on another thread.

    Raises UsageError for what is neither values nor edges with counts.
    """
    if edges is not None or counts is not None:
        bounds, amounts = array(edges).ravel(), array(counts).ravel()
        if values is not None or len(bounds) != len(amounts) + 1 or not len(amounts):
            raise UsageError("a histogram is values, or counts [n] and edges [n + 1]")
        if not (np.diff(bounds) >= 0).all():
            raise UsageError("the edges of a histogram must ascend")
        result = Histogram(step, time, bounds, amounts)
        return (lambda: result), bounds.nbytes + amounts.nbytes
    values_copy = copy_values(values)
    return (lambda: count_values(step, time, array(values_copy).ravel())), size(values_copy)


def copy_values(values: object) -> object:
    """Copy an array or a tensor on its device: the caller may change it afterwards."""
    if hasattr(values, "detach") and hasattr(values, "clone"):
        return values.detach().clone()
    if hasattr(values, "block_until_ready"):
        return values
    return array(values)


def array(values: object) -> NDArray[np.float64]:
    """Copy numbers of any shape to float64. Raises UsageError."""
    source: Any = values
    try:
        if hasattr(source, "detach"):
            source = source.detach().double().cpu().numpy()
        if source is not None:
            return np.array(source, np.float64)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{tensors.kind(values)} holds no numbers: {error}") from None
    raise UsageError("a histogram needs values, or counts and edges")


def count_values(step: int, time: float, values: NDArray[np.float64]) -> Histogram:
    """Count values in bins: one for each integer where they are few, else 64.

    NaN is left out; infinities get separate outermost bins.
    """
    finite = values[np.isfinite(values)]
    if not len(finite):
        edges = np.array([0.0, 1.0])
    else:
        low, high = float(finite.min()), float(finite.max())
        # Up to 2**52, float64 holds every half between two whole numbers.
        small = max(-low, high) < 2.0**52
        if small and high - low < HISTOGRAM_BINS and (finite == np.round(finite)).all():
            edges = np.arange(low, high + 2) - 0.5
        elif high - low < np.inf:
            edges = np.minimum(np.linspace(low, high, HISTOGRAM_BINS + 1), high)
        else:
            # The difference exceeds float64.
            edges = np.linspace(low / 2, high / 2, HISTOGRAM_BINS + 1) * 2
    counts = np.histogram(finite, edges)[0].astype(np.float64)
    low, high = float((values == -np.inf).sum()), float((values == np.inf).sum())
    if low:
        edges, counts = np.append(-np.inf, edges), np.append(low, counts)
    if high:
        edges, counts = np.append(edges, np.inf), np.append(counts, high)
    return Histogram(step, time, edges, counts)


def table(step: int, columns: Mapping[str, object]) -> Table:
    """Make rows of one step; cells that are no text, number, truth value or None become text.

    Raises UsageError where columns are no mapping or have different lengths.
    """
    if not isinstance(columns, Mapping):
        raise UsageError(f"a table's columns must be a dict, not {tensors.kind(columns)}")
    items = islice(columns.items(), 10_000)
    cells = {text(name): _cells(column) for name, column in items}
    lengths = {name: len(column) for name, column in cells.items()}
    if len(set(lengths.values())) > 1:
        raise UsageError(f"a table's columns must have one length, not {lengths}")
    rows = next(iter(lengths.values()), 0)
    return Table(np.full(rows, step, np.int64), cells)


def _cells(column: object) -> Sequence[object]:
    source: Any = column
    if hasattr(source, "detach"):
        source = source.detach().cpu()
    if hasattr(source, "tolist"):
        source = source.tolist()
    if isinstance(source, str | bytes) or not hasattr(source, "__iter__"):
        raise UsageError(f"a table's column must be a list, not {tensors.kind(column)}")
    cells = list(islice(source, MAX_COLUMN_CELLS + 1))
    if len(cells) > MAX_COLUMN_CELLS:
        raise UsageError(f"a table's column must have at most {MAX_COLUMN_CELLS:,} cells")
    return cells if JSON_TYPES.issuperset(map(type, cells)) else [plain(cell) for cell in cells]


def settings(changed: object) -> dict[str, object]:
    """Flatten settings with "/", values as JSON has them.

    A mapping, a dataclass, an `argparse.Namespace`: what has names. Raises UsageError for others.
    """
    mapping = None if _fields(changed) is None else plain(changed)
    if not isinstance(mapping, dict):
        raise UsageError(f"settings must be a dict, not {tensors.kind(changed)}")
    flat: dict[str, object] = {}
    _flatten("", mapping, flat)
    return flat


def _flatten(prefix: str, value: object, flat: dict[str, object]) -> None:
    for key, cell in cast("dict[str, object]", value).items():
        if isinstance(cell, dict) and cell:
            _flatten(f"{prefix}{key}/", cell, flat)
        else:
            flat[prefix + key] = cell


def plain(value: object) -> object:
    """Convert a value to what JSON can represent; other objects to their text. Never raises.

    A value is cut where it contains itself, at `MAX_SETTINGS_DEPTH` and at `MAX_COLUMN_CELLS`.
    """
    return _JsonConverter().of(value, 0)


class _JsonConverter:
    """Converts one value to JSON's types and counts its cells."""

    def __init__(self) -> None:
        self._cells = 0
        self._above: set[int] = set()  # ids of what holds the value at hand

    def of(self, value: object, depth: int) -> object:
        """Return a value as JSON has it."""
        try:
            return self._of(value, depth)
        except Exception as error:  # noqa: BLE001 - a caller's object may raise anything
            return f"{tensors.kind(value)} that cannot be read ({type(error).__name__})"

    def _of(self, value: object, depth: int) -> object:
        self._cells += 1
        if value is None or type(value) is bool:
            return value
        if isinstance(value, str):
            return text(str.__str__(value))
        if isinstance(value, int):
            return int(value) if abs(value) <= MAX_FLOAT_INTEGER else text(value)
        if isinstance(value, float):
            return float(value)
        mapping = _fields(value)
        if mapping is None and not isinstance(value, list | tuple | set | frozenset):
            return _scalar(value)
        return self._container(value, mapping, depth)

    def _container(self, value: object, mapping: Mapping[Any, object] | None, depth: int) -> object:
        if id(value) in self._above:
            return f"{tensors.kind(value)} that holds itself"
        if depth >= MAX_SETTINGS_DEPTH:
            return f"{tensors.kind(value)}, nested more than {MAX_SETTINGS_DEPTH} deep"
        self._above.add(id(value))
        try:
            room = max(MAX_COLUMN_CELLS - self._cells, 0)
            if mapping is not None:
                cells = islice(mapping.items(), room)
                return {text(key): self.of(cell, depth + 1) for key, cell in cells}
            return [
                self.of(cell, depth + 1) for cell in islice(cast("Iterable[object]", value), room)
            ]
        finally:
            self._above.discard(id(value))


def _scalar(value: object) -> object:
    """Return an array's only number; anything else as its text."""
    number = tensors.number(value) if hasattr(value, "item") else None
    if number is None:
        return text(value)
    return (
        int(number) if number.is_integer() and "int" in str(getattr(value, "dtype", "")) else number
    )


def _fields(value: object) -> Mapping[Any, object] | None:
    """Return what a value names: a mapping's items, an object's fields; None for others."""
    try:
        if isinstance(value, Mapping):
            return value
        if is_dataclass(value) and not isinstance(value, type):
            return {field.name: getattr(value, field.name) for field in fields(value)}
        is_namespace = type(value).__module__ == "argparse" or isinstance(value, SimpleNamespace)
        return dict(vars(value)) if is_namespace else None
    except Exception:  # noqa: BLE001 - a caller's property may raise anything
        return None


def text(value: object) -> str:
    """Return the text of anything, one that every file can hold; nothing is raised."""
    try:
        raw = str(value) if type(value) is not str else value
        return raw.encode("utf-8", "backslashreplace").decode()
    except Exception as error:  # noqa: BLE001 - a caller's __str__ may raise anything
        return f"{tensors.kind(value)} without a text ({type(error).__name__})"


def size(value: object) -> int:
    """Return about how many bytes a text, a table, settings or numbers take in memory."""
    if isinstance(value, Table):
        return sum(map(size, value.columns.values()))
    if isinstance(value, dict):
        return sum(size(key) + size(cell) for key, cell in value.items())
    if isinstance(value, list):
        return sum(map(size, value)) + CELL_BYTES
    if type(value) in JSON_TYPES:
        return getsizeof(value) + CELL_BYTES
    nbytes = getattr(value, "nbytes", 0)
    return nbytes if isinstance(nbytes, int) else 0
