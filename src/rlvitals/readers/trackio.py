"""Read Trackio's database: `<project>.db` contains every run of a project.

`metrics(id, run_id, timestamp, run_name, step, metrics)` has a row for each `log` call, its
numbers as a JSON object with "NaN" and "Infinity" as text; before 0.24 there was no `run_id` and
a run was its name. `configs` holds each run's settings, `system_metrics` what the machine did,
with a time and no step, `alerts` what the run said. Source: `trackio/sqlite_storage.py`,
`trackio/utils.py` (`serialize_values`), as of 0.43.
"""

import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rlvitals.readers import multi_run
from rlvitals.readers.formats import column_guess, sqlite
from rlvitals.readers.formats.columns import NAN, json_number, to_step
from rlvitals.readers.formats.json_lines import flatten, parse_object
from rlvitals.readers.formats.lines import REPLACED_NOTE
from rlvitals.readers.formats.rows import Refusals
from rlvitals.readers.reader import Cursor, Reader
from rlvitals.readers.trackio_values import Values
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Log, Setting, Text

if TYPE_CHECKING:
    from sqlite3 import Connection


@dataclass(frozen=True, slots=True)
class _Run:
    """A run of the database: the name it was given, and what its rows are found by."""

    name: str
    column: str  # "run_id"; "run_name" in a database of before 0.24
    value: str


@dataclass(frozen=True, slots=True)
class _Cursor:
    """The last rows that were read, by their ids, and what the last one held."""

    metrics: int = 0
    mark: int = 0
    system: int = 0
    alerts: int = 0


def claims(path: Path, head: bytes) -> bool:
    """Claim a database that has Trackio's tables."""
    return sqlite.has_columns(
        path,
        head,
        {
            "metrics": frozenset({"run_name", "step", "metrics", "timestamp"}),
            "configs": frozenset({"run_name", "config"}),
        },
    )


def runs(path: Path) -> dict[str, Reader]:
    """Return a reader for each run, in the order they were started. Raises UnreadableLog."""
    return multi_run.readers(READER, sqlite.read_database(path, _runs), _read)


def read(path: Path, previous: Cursor | None = None) -> tuple[Log, Cursor]:
    """Read the only run of a database. Raises UnreadableLog where there are several."""
    return _read(path, previous, run=multi_run.only(path, sqlite.read_database(path, _runs)))


def _read(path: Path, previous: Cursor | None = None, *, run: _Run) -> tuple[Log, Cursor]:
    resume = previous if isinstance(previous, _Cursor) else _Cursor()
    return sqlite.read_database(path, lambda db: _log(db, str(path), run, resume))


def _runs(db: "Connection") -> dict[str, _Run]:
    column = "run_id" if "run_id" in sqlite.columns(db, "metrics") else "run_name"
    query = (
        f"SELECT {column}, run_name FROM metrics GROUP BY {column}"  # noqa: S608 - one of two
        " ORDER BY MIN(timestamp), MIN(rowid)"
    )
    # The column holds text: anything else is damage.
    titles = {value: str(name) for value, name in sqlite.rows(db, query) if isinstance(value, str)}
    names = multi_run.unique((name, value) for value, name in titles.items())
    return {name: _Run(titles[value], column, value) for name, value in names.items()}


def _log(db: "Connection", location: str, run: _Run, resume: _Cursor) -> tuple[Log, Cursor]:
    replaced = resume.metrics and _mark(db, run, resume.metrics) != resume.mark
    if replaced:
        resume = _Cursor()
    values, refused = Values(), Refusals(position_noun="metrics row")
    last = resume.metrics
    query = f"SELECT rowid, timestamp, step, metrics FROM metrics WHERE {run.column} = ?"  # noqa: S608
    for row in sqlite.rows(
        db, f"{query} AND rowid > ? ORDER BY rowid", (run.value, resume.metrics)
    ):
        last = int(str(row[0]))
        item, step = _item(row[3]), _step(row[2])
        if item is None or step is None:
            problem = "has no step" if item is not None else "is not a JSON object"
            refused.add(last, problem)
        else:
            values.add(step, _time(row[1]), item)
    clock = _Clock(db, run)
    system = clock.add_system(db, run, resume.system, values)
    texts, alerts = clock.alerts(db, run, resume.alerts)
    log = Log(
        source="trackio",
        series=values.columns.series(),
        settings=_settings(db, run),
        notes=(*([REPLACED_NOTE] if replaced else []), *refused.notes(), *values.notes()),
        where=location,
        histograms=values.histograms,
        tables=values.tables(),
        texts={"alerts": texts} if texts else {},
    )
    return log, _Cursor(last, _mark(db, run, last), system, alerts)


def _item(cell: object) -> dict[str, object] | None:
    """Return the object that a cell holds as JSON, text or bytes."""
    if isinstance(cell, bytes):
        cell = cell.decode(errors="replace")
    return parse_object(cell) if isinstance(cell, str) else None


def _step(cell: object) -> int | None:
    return to_step(cell) if isinstance(cell, int | float) else None


def _time(cell: object) -> float:
    time = column_guess.seconds(cell) if isinstance(cell, str | int | float) else None
    return NAN if time is None else time


def _mark(db: "Connection", run: _Run, row: int) -> int:
    """Return a fingerprint of the row at a cursor; 0 if the row is gone."""
    query = f"SELECT timestamp, step, metrics FROM metrics WHERE rowid = ? AND {run.column} = ?"  # noqa: S608
    row_values = next(sqlite.rows(db, query, (row, run.value)), None)
    return zlib.crc32(repr(row_values).encode()) if row_values else 0


def _settings(db: "Connection", run: _Run) -> dict[str, Setting]:
    """Return the run's settings without what Trackio adds (`_Username`, `_Created`, `_Group`)."""
    column = run.column if run.column in sqlite.columns(db, "configs") else "run_name"
    value = run.value if column == run.column else run.name
    query = f"SELECT config FROM configs WHERE {column} = ?"  # noqa: S608 - one of two
    settings: dict[str, Setting] = {}
    for (cell,) in sqlite.rows(db, query, (value,)):
        for key, leaf in flatten(_item(cell) or {}):
            if not key.startswith("_") and isinstance(leaf, bool | int | float | str):
                special = json_number(leaf) if isinstance(leaf, str) else None
                settings[key] = leaf if special is None else special
    return settings


class _Clock:
    """Gives what has a time and no step the step of the run's last row before it.

    Rows from the last one on have no settled step yet: they are left for the next reading, so
    that reading on gives what reading it all at once does.
    """

    def __init__(self, db: "Connection", run: _Run) -> None:
        query = f"SELECT timestamp, step FROM metrics WHERE {run.column} = ? ORDER BY rowid"  # noqa: S608
        self._points = (db, query, run.value)
        self._known: tuple[np.ndarray[tuple[int], np.dtype[np.float64]], list[int]] | None = None

    def step(self, time: float) -> int | None:
        """Return the step at a time; None where it is not settled."""
        if self._known is None:
            db, query, value = self._points
            pairs = [(_time(t), _step(s)) for t, s in sqlite.rows(db, query, (value,))]
            points = [(t, s) for t, s in pairs if t == t and s is not None]  # noqa: PLR0124 - NaN
            ends = np.maximum.accumulate(np.array([t for t, _ in points], np.float64))
            self._known = ends, [s for _, s in points]
        times, steps = self._known
        if not len(times) or not time < times[-1]:
            return None
        index = int(np.searchsorted(times, time, side="right")) - 1
        return steps[max(index, 0)]

    def add_system(self, db: "Connection", run: _Run, last_row: int, values: Values) -> int:
        """Add what the machine did since a row; return the last row that was added."""
        if not {"timestamp", run.column, "metrics"} <= sqlite.columns(db, "system_metrics"):
            return last_row
        query = f"SELECT rowid, timestamp, metrics FROM system_metrics WHERE {run.column} = ?"  # noqa: S608
        for row in sqlite.rows(db, f"{query} AND rowid > ? ORDER BY rowid", (run.value, last_row)):
            time = _time(row[1])
            step, item = self.step(time), _item(row[2])
            if step is None:
                break
            last_row = int(str(row[0]))
            # Before the machine's keys.
            values.add(step, time, {f"system/{key}": value for key, value in (item or {}).items()})
        return last_row

    def alerts(self, db: "Connection", run: _Run, last_row: int) -> tuple[list[Text], int]:
        """Return what the run said since a row, and the last row of it."""
        required = {"timestamp", run.column, "level", "title", "text", "step"}
        texts: list[Text] = []
        if not required <= sqlite.columns(db, "alerts"):
            return texts, last_row
        query = (
            f"SELECT rowid, timestamp, step, level, title, text FROM alerts WHERE {run.column} = ?"  # noqa: S608
        )
        for row in sqlite.rows(db, f"{query} AND rowid > ? ORDER BY rowid", (run.value, last_row)):
            time, step = _time(row[1]), _step(row[2])
            if step is None:
                step = self.step(time)
            if step is None:
                break
            last_row = int(str(row[0]))
            text = ": ".join(str(cell) for cell in row[3:] if cell)
            texts.append(Text(step, time, text))
        return texts, last_row


READER = Reader(
    name="trackio",
    title="Trackio project",
    looks_for="*.db of Trackio",
    example="trackio/my-project.db",
    files=("*.db",),
    claims=claims,
    read=read,
    runs=runs,
    sums_up=True,
    grows=sqlite.wal_files,
)
