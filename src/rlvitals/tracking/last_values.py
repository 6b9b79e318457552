"""The last value of each metric of a run, found when it is asked for: `log` pays nothing."""

from collections.abc import Sequence

from rlvitals.tracking import tensors
from rlvitals.tracking.row_batches import ROW_FIELDS, unpack_row
from rlvitals.tracking.sinks.sink import AXIS_PREFIX, Rows


class LastValues:
    """Keeps the last row of each batch that the writer thread lays out; reads what still waits.

    Rows are held where they go before they leave where they were: a reader on another thread, who
    looks in the order of their way and takes no lock, misses none.
    """

    def __init__(self) -> None:
        """Begin without a value."""
        self.taken: Sequence[Sequence[object]] = ()  # lists of rows that are being laid out
        self._values: dict[str, object] = {}

    def keep(self, rows: Rows) -> None:
        """Keep the last of some rows of one layout."""
        self._values.update(zip(rows.keys, rows.values[-1].tolist(), strict=True))

    def keep_flat(self, flat: Sequence[object]) -> None:
        """Keep the last values of rows in a flat list."""
        _merge(self._values, flat)

    def read(self, waiting: Sequence[object]) -> dict[str, float]:
        """Return the last value of each metric; rows `waiting` for the thread are the newest."""
        lists = (*self.taken, waiting)
        values = dict(self._values)
        for flat in lists:
            _merge(values, flat)
        numbers = {
            name: tensors.number(value)
            for name, value in values.items()
            if not str(name).startswith((AXIS_PREFIX, "machine/"))
        }
        return {name: number for name, number in numbers.items() if number is not None}


def _merge(values: dict[str, object], flat: Sequence[object]) -> None:
    """Update values with the last row of each layout in a flat list, in their order."""
    newest: dict[object, object] = {}
    # Not strict: the thread may add a row of the machine's between the two slices.
    for row, names in zip(flat[2::ROW_FIELDS], flat[3::ROW_FIELDS], strict=False):
        layout = tuple(row) if names is None else names  # type: ignore[arg-type]
        newest.pop(layout, None)
        newest[layout] = row
    for layout, row in newest.items():
        cells = unpack_row(row) if isinstance(row, bytes) else row.values()  # type: ignore[attr-defined]
        values.update(zip(layout, cells, strict=True))  # type: ignore[call-overload]
