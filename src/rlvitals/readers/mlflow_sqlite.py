"""Read MLflow's database, `mlflow.db`: the runs of every experiment.

`metrics` has a row for each point. SQL knows neither NaN nor infinity: a NaN is 0 with `is_nan`
set, an infinity the largest float64. Runs and experiments that were deleted stay, marked so, and
are left out. Source: `mlflow/store/tracking/sqlalchemy_store.py` (`sanitize_metric_value`) and
`dbmodels/models.py`, 3.17; databases of before 1.0 have no `step`, older ones no `is_nan`.
"""

import math
import sys
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rlvitals.readers import mlflow_values, multi_run
from rlvitals.readers.formats import sqlite
from rlvitals.readers.formats.columns import MAX_STEP, NAN
from rlvitals.readers.formats.lines import REPLACED_NOTE
from rlvitals.readers.formats.rows import Refusals
from rlvitals.readers.reader import Cursor, Reader
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Log, Series

if TYPE_CHECKING:
    from sqlite3 import Connection


@dataclass(frozen=True, slots=True)
class _Cursor:
    """The last row that was read, and what it held."""

    row: int = 0
    mark: int = 0


def claims(path: Path, head: bytes) -> bool:
    """Claim a database that has MLflow's tables."""
    columns = {
        "metrics": frozenset({"key", "value", "timestamp", "run_uuid"}),
        "runs": frozenset({"run_uuid", "name", "status", "lifecycle_stage", "experiment_id"}),
        "experiments": frozenset({"experiment_id", "name", "lifecycle_stage"}),
    }
    return sqlite.has_columns(path, head, columns)


def runs(path: Path) -> dict[str, Reader]:
    """Return a reader for each run, in the order they were started. Raises UnreadableLog."""
    return multi_run.readers(READER, sqlite.read_database(path, _runs), _read)


def read(path: Path, previous: Cursor | None = None) -> tuple[Log, Cursor]:
    """Read the only run of a database. Raises UnreadableLog where there are several."""
    return _read(path, previous, run=multi_run.only(path, sqlite.read_database(path, _runs)))


def _read(path: Path, previous: Cursor | None = None, *, run: str) -> tuple[Log, Cursor]:
    resume = previous if isinstance(previous, _Cursor) else _Cursor()
    return sqlite.read_database(path, lambda db: _log(db, str(path), run, resume))


def _runs(db: "Connection") -> dict[str, str]:
    logged = {run for (run,) in sqlite.rows(db, "SELECT DISTINCT run_uuid FROM metrics")}
    every: list[tuple[str, str]] = []
    with_points: list[tuple[str, str]] = []
    query = """
    SELECT e.name, r.name, r.run_uuid, r.status,
        (SELECT t.value FROM tags AS t WHERE t.run_uuid = r.run_uuid AND t.key = 'mlflow.runName')
    FROM runs AS r JOIN experiments AS e ON e.experiment_id = r.experiment_id
    WHERE r.lifecycle_stage = 'active' AND e.lifecycle_stage = 'active'
    ORDER BY r.start_time, r.rowid
    """
    for experiment, name, run, status, tag in sqlite.rows(db, query):
        if isinstance(run, str):
            every.append((f"{experiment}/{name or tag or run}", run))
            # One that is done and logged no point is the parent of others, or an evaluation.
            if run in logged or status != mlflow_values.FINISHED_STATUS:
                with_points.append(every[-1])
    return multi_run.unique(with_points or every)


def _log(db: "Connection", location: str, run: str, resume: _Cursor) -> tuple[Log, Cursor]:
    replaced = resume.row and _mark(db, run, resume.row) != resume.mark
    if replaced:
        resume = _Cursor()
    columns = sqlite.columns(db, "metrics")
    step, is_nan = ((name if name in columns else "0") for name in ("step", "is_nan"))
    query = (
        f"SELECT rowid, key, value, timestamp, {step}, {is_nan} FROM metrics"  # noqa: S608
        " WHERE run_uuid = ? AND rowid > ? ORDER BY rowid"
    )
    points = _Points(resume.row)
    points.take(sqlite.rows(db, query, (run, resume.row)))
    status = next(sqlite.rows(db, "SELECT status FROM runs WHERE run_uuid = ?", (run,)), (None,))
    ending, ending_notes = mlflow_values.ending(status[0])
    log = Log(
        source="mlflow-sqlite",
        series=points.series(),
        settings=mlflow_values.settings(_texts(db, "params", run), _texts(db, "tags", run)),
        notes=(*([REPLACED_NOTE] if replaced else []), *points.refused.notes(), *ending_notes),
        where=location,
        ending=ending,
    )
    return log, _Cursor(points.last, _mark(db, run, points.last))


class _Points:
    """The points of a run by their keys, in the order of their rows."""

    def __init__(self, last: int) -> None:
        self.last = last  # row
        self.refused = Refusals(position_noun="metrics row")
        self._held: dict[str, tuple[list[int], list[float], list[float]]] = {}

    def take(self, rows: Iterable[sqlite.Row]) -> None:
        """Take rows (id, key, value, milliseconds, step, is NaN)."""
        for number, key, value, time, step, is_nan in rows:
            self.last = int(str(number))
            if (
                not isinstance(key, str)
                or not isinstance(value, float | int)
                or not isinstance(step, int)
                or not -MAX_STEP <= step <= MAX_STEP
            ):
                self.refused.add(self.last, "is no point")
                continue
            steps, times, values = self._held.setdefault(key, ([], [], []))
            steps.append(step)
            times.append(time if isinstance(time, int | float) else NAN)
            values.append(NAN if is_nan else value)

    def series(self) -> dict[str, Series]:
        """Return the points as columns."""
        by_key = {}
        for key, (steps, times, values) in self._held.items():
            numbers = np.array(values, np.float64)
            numbers[np.abs(numbers) == sys.float_info.max] *= math.inf
            seconds = np.array(times, np.float64) / 1000.0
            by_key[key] = Series(np.array(steps, np.int64), seconds, numbers)
        return by_key


def _texts(db: "Connection", table: str, run: str) -> dict[str, str]:
    if not {"key", "value", "run_uuid"} <= sqlite.columns(db, table):
        return {}
    query = f"SELECT key, value FROM {table} WHERE run_uuid = ? ORDER BY key"  # noqa: S608 - ours
    return {str(key): str(value) for key, value in sqlite.rows(db, query, (run,))}


def _mark(db: "Connection", run: str, row: int) -> int:
    """Return a fingerprint of the row at a cursor; 0 if the row is gone."""
    query = "SELECT key, value, timestamp FROM metrics WHERE rowid = ? AND run_uuid = ?"
    row_values = next(sqlite.rows(db, query, (row, run)), None)
    return zlib.crc32(repr(row_values).encode()) if row_values else 0


READER = Reader(
    name="mlflow-sqlite",
    title="MLflow database",
    looks_for="mlflow.db",
    example="mlflow.db",
    files=("*.db", "*.sqlite", "*.sqlite3"),
    claims=claims,
    read=read,
    runs=runs,
    sums_up=True,
    grows=sqlite.wal_files,
)
