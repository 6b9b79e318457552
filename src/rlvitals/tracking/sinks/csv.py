"""Write CSV files under `<run>/metrics/`: always rectangular, whatever is logged when.

A file for each kind of row (`file_layout.py`), and one for all rows of declared columns. No row is
ever shifted or rewritten: a new column begins a new file. Numbers are written so that reading them
gives the same float64; NaN and infinities as `nan`, `inf`, `-inf`. Quoting: RFC 4180.
"""

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path

from rlvitals.errors import VitalsError
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.tracking.sinks import file_layout
from rlvitals.tracking.sinks.append_file import AppendFile
from rlvitals.tracking.sinks.lazy import open_lazily
from rlvitals.tracking.sinks.sink import Opening, Rows, Sink
from rlvitals.types import Histogram, Table, Text

MAX_OPEN_FILES = 200  # open at once: a process may open 1,024 files, and is here for something else


@dataclass(slots=True)
class _Kind:
    """The file of one kind of row, and its pending lines."""

    keys: tuple[str, ...]  # in the order of the file's columns
    file: AppendFile
    thinning: file_layout.Thinning
    waiting: list[str] = field(default_factory=list)


class Tables:
    """The open files of one run."""

    def __init__(
        self, folder: Path, interval: int, max_rows: int, declared: tuple[str, ...] = ()
    ) -> None:
        """Write into a folder: `interval` rows together, thinned out above `most`.

        Rows of no other keys than those `declared` share a file, which has all of these columns.
        """
        self._declared = declared
        self._folder, self._interval, self._max_rows = folder, max(interval, 1), max_rows
        self._kinds: dict[frozenset[str], _Kind] = {}
        self._tables: dict[tuple[str, ...], AppendFile] = {}

    def scalars(self, rows: Rows) -> None:
        """Write rows of one kind into their file."""
        keys = rows.keys
        if set(keys) <= set(self._declared):
            keys = self._declared
        names = frozenset(keys)
        if names not in self._kinds:
            self._room()
            self._kinds[names] = self._open_kind(keys)
        kind = self._kinds[names]
        rows = kind.thinning.keep(rows)
        columns = {key: i for i, key in enumerate(rows.keys)}
        order = [columns.get(key, -1) for key in kind.keys]
        cells = zip(rows.steps.tolist(), rows.times.tolist(), rows.values.tolist(), strict=True)
        kind.waiting += [
            f"{step},{time!r},{','.join('' if i < 0 else repr(row[i]) for i in order)}\r\n"
            for step, time, row in cells
        ]
        if len(kind.waiting) >= self._interval:
            _write(kind)

    def histogram(self, key: str, histogram: Histogram) -> None:
        """Leave histograms out: they are no rows."""

    def text(self, key: str, text: Text) -> None:
        """Leave texts out: they are no rows."""

    def table(self, key: str, table: Table) -> None:
        """Write a table into separate files, which only this attempt writes."""
        names = (key, *table.columns)
        file = self._tables.get(names)
        if file is None:
            self._room()
            file = _new(
                self._folder, file_layout.plain(key), [file_layout.STEP_COLUMN, *table.columns]
            )
            self._tables[names] = file
        rows = zip(table.steps.tolist(), *table.columns.values(), strict=True)
        file.write(_lines(rows).encode())

    def settings(self, step: int, changed: Mapping[str, object]) -> None:
        """Leave settings out: they are in `run.json`."""

    def event(self, kind: str, step: int | None, facts: Mapping[str, object]) -> None:
        """Leave events out: they are in `events.jsonl`."""

    def flush(self) -> None:
        """Write all rows that wait."""
        for kind in self._kinds.values():
            if kind.waiting:
                _write(kind)

    def close(self, status: str) -> None:
        """Write what is left and close every file."""
        del status
        try:
            self.flush()
        finally:
            for file in (*(kind.file for kind in self._kinds.values()), *self._tables.values()):
                file.close()

    def _open_kind(self, keys: tuple[str, ...]) -> _Kind:
        """Continue a file that has this header, or begin a new one."""
        head, base = file_layout.columns(keys), file_layout.base(keys)
        start = _lines([head]).encode()
        for path in sorted(self._folder.glob(f"{base}-*.csv")):
            if path.is_symlink() or not path.is_file():
                continue
            with path.open("rb") as file:
                is_same = file.read(len(start)) == start
            if is_same and (appended := AppendFile.lines(path)):
                rows = _count_lines(path) - start.count(b"\n")
                return _Kind(keys, appended, file_layout.Thinning(self._max_rows, rows))
        return _Kind(keys, _new(self._folder, base, head), file_layout.Thinning(self._max_rows))

    def _room(self) -> None:
        """Refuse the next file where very many are open."""
        if len(self._kinds) + len(self._tables) >= MAX_OPEN_FILES:
            raise VitalsError(
                f"{MAX_OPEN_FILES} kinds of rows have files: the next ones get none",
                where=str(self._folder),
                hint="log the same names at each step, or fewer different ones",
            )


def _write(kind: _Kind) -> None:
    data = "".join(kind.waiting)
    try:
        kind.file.write(data.encode())
    except OSError:
        if len(data) < file_layout.MAX_WAITING_LETTERS:  # tried again with the next rows
            raise
        kind.waiting = []
        raise
    kind.waiting = []


def _new(folder: Path, base: str, head: Iterable[object]) -> AppendFile:
    for path in file_layout.free(folder, base, ".csv"):
        try:
            file = AppendFile.new(path)
        except FileExistsError:  # another process was faster
            continue
        try:
            file.write(_lines([head]).encode())
        except OSError:  # a file without its header would be no table
            file.close()
            path.unlink()
            raise
        return file
    raise AssertionError  # there is always a next number


def _count_lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(2**20), b""))


def _lines(rows: Iterable[Iterable[object]]) -> str:
    """Return rows as RFC 4180 has them."""
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()


def _open_sink(opening: Opening) -> Tables:
    options = opening.options
    return Tables(
        file_layout.rank_folder(opening.folder, opening.rank),
        file_layout.count_option(options.get("interval"), 50),
        file_layout.count_option(options.get("subsamples"), 0),
        file_layout.column_names(options.get("columns")),
    )


SINK = Sink("csv", "CSV files under metrics/", "", open_lazily(_open_sink))
