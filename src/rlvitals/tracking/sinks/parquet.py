"""Write Parquet files under `<run>/metrics/`: a folder for each kind, a file for each interval.

A visible file is complete: it is written under another name and then renamed. `pandas.read_parquet`
and DuckDB read the folder as one table. What a killed process had not yet written is missing
here, and is in the run's own blocks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np

from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage.safe_files import atomic_write, make_folder
from rlvitals.tracking.sinks import file_layout
from rlvitals.tracking.sinks.lazy import open_lazily
from rlvitals.tracking.sinks.sink import Opening, Rows, Sink
from rlvitals.types import Histogram, Table, Text


@dataclass(slots=True)
class _Kind:
    """The folder of one kind of row, and its pending rows."""

    folder: Path
    keys: tuple[str, ...]  # in the order of the files' columns
    thinning: file_layout.Thinning
    written: int = 0  # rows
    files: int = 0
    waiting: list[Rows] = field(default_factory=list)


class Folders:
    """The folders of one attempt of a run."""

    def __init__(self, opening: Opening) -> None:
        """Load pyarrow. Raises ImportError."""
        import pyarrow  # noqa: ICN001, PLC0415 - an extra, loaded where it is asked for
        from pyarrow import parquet  # noqa: PLC0415

        self._arrow: Any = pyarrow
        self._parquet: Any = parquet
        options = opening.options
        self._home = file_layout.rank_folder(opening.folder, opening.rank)
        self._interval = max(file_layout.count_option(options.get("interval"), 50), 1)
        self._max_rows = file_layout.count_option(options.get("subsamples"), 0)
        self._part = f"{opening.attempt:04d}-{opening.rank}"
        self._declared = file_layout.column_names(options.get("columns"))
        self._kinds: dict[tuple[str, ...], _Kind] = {}

    def scalars(self, rows: Rows) -> None:
        """Take rows; a full interval becomes a file."""
        keys = self._declared if set(rows.keys) <= set(self._declared) else rows.keys
        if keys not in self._kinds:
            self._kinds[keys] = self._open_kind(keys)
        kind = self._kinds[keys]
        selection = kind.thinning.keep(rows)
        if len(selection):
            kind.waiting.append(selection)
        # At least 1 % of the rows before, so that files stay few.
        if sum(map(len, kind.waiting)) >= max(self._interval, kind.written // 100):
            self._write(kind)

    def histogram(self, key: str, histogram: Histogram) -> None:
        """Leave histograms out: they are no rows."""

    def text(self, key: str, text: Text) -> None:
        """Leave texts out: they are no rows."""

    def table(self, key: str, table: Table) -> None:
        """Write a table into a separate file."""
        columns = {name: _cells(column) for name, column in table.columns.items()}
        step = file_layout.free_key(file_layout.STEP_COLUMN, set(columns))
        folder = self._home / f"{file_layout.plain(key)}-table"
        make_folder(folder)
        first = int(table.steps[0]) if len(table) else 0
        number = sum(1 for _ in folder.glob(f"{self._part}-*.parquet"))
        path = folder / f"{self._part}-{number:06d}-step-{first}.parquet"
        self._save(path, {step: table.steps, **columns})

    def settings(self, step: int, changed: Mapping[str, object]) -> None:
        """Leave settings out: they are in `run.json`."""

    def event(self, kind: str, step: int | None, facts: Mapping[str, object]) -> None:
        """Leave events out: they are in `events.jsonl`."""

    def flush(self) -> None:
        """Do nothing: a file is written once, when its interval is full."""

    def close(self, status: str) -> None:
        """Write what is left."""
        del status
        for kind in self._kinds.values():
            if kind.waiting:
                self._write(kind)

    def _open_kind(self, keys: tuple[str, ...]) -> _Kind:
        """Continue the folder of these columns, or begin one."""
        names, base = file_layout.columns(keys), file_layout.base(keys)
        for folder in sorted(self._home.glob(f"{base}-*/")):
            files = [] if folder.is_symlink() else sorted(folder.glob("*.parquet"))
            if files and self._parquet.read_schema(files[0]).names == names:
                row_count = sum(self._parquet.read_metadata(file).num_rows for file in files)
                thinning = file_layout.Thinning(self._max_rows, row_count)
                return _Kind(folder, keys, thinning, row_count, len(files))
        for folder in file_layout.free(self._home, base, ""):
            try:
                folder.mkdir()
            except FileExistsError:  # another process was faster
                continue
            return _Kind(folder, keys, file_layout.Thinning(self._max_rows))
        raise AssertionError  # there is always a next number

    def _write(self, kind: _Kind) -> None:
        waiting = kind.waiting
        names = file_layout.columns(kind.keys)
        steps = np.concatenate([rows.steps for rows in waiting])
        times = np.concatenate([rows.times for rows in waiting])
        values = [self._column(key, waiting) for key in kind.keys]
        columns = dict(zip(names, (steps, times, *values), strict=True))
        try:
            self._save(kind.folder / f"{kind.files:06d}-{self._part}.parquet", columns)
        except OSError:
            if (
                len(steps) * len(names) > 2**21  # numbers that wait for a full disk
            ):  # else they are tried again with the next ones
                kind.waiting = []
            raise
        kind.written, kind.files, kind.waiting = kind.written + len(steps), kind.files + 1, []

    def _column(self, key: str, waiting: Sequence[Rows]) -> object:
        """Return a key's numbers in all rows that wait; null where a row does not hold it."""
        absent = np.concatenate([np.full(len(rows), key not in rows.keys) for rows in waiting])
        pieces = [
            rows.values[:, rows.keys.index(key)] if key in rows.keys else np.zeros(len(rows))
            for rows in waiting
        ]
        return self._arrow.array(np.concatenate(pieces), mask=absent, from_pandas=False)

    def _save(self, path: Path, columns: Mapping[str, object]) -> None:
        table = self._arrow.table(
            [self._array(column) for column in columns.values()],
            names=list(columns),
        )
        with atomic_write(path) as file:  # under a name that readers of a folder skip
            self._parquet.write_table(table, file)

    def _array(self, column: object) -> object:
        is_array = isinstance(column, self._arrow.Array)
        return column if is_array else self._arrow.array(column, from_pandas=False)


def _cells(column: Sequence[object]) -> list[object]:
    """Return a column of one type: cells of several types become texts."""
    types = {type(cell) for cell in column if cell is not None}
    if len(types) <= 1 and types <= {bool, int, float, str}:
        return list(column)
    if types == {int, float}:
        return [float(cell) if isinstance(cell, int | float) else None for cell in column]
    return [None if cell is None else str(cell) for cell in column]


SINK = Sink("parquet", "Parquet files under metrics/", "pyarrow", open_lazily(Folders, "pyarrow"))
