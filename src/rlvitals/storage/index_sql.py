"""Answer SQL over the index of a folder, under the names that a database of ClickHouse has."""

import re
import sqlite3
from collections.abc import Iterator, Sequence

from rlvitals.errors import UnreadableLog, UsageError
from rlvitals.storage.index import Index
from rlvitals.storage.query import View

MAX_SQL_POINTS = 20_000_000  # read into memory for one query, 100 bytes each


def ask(index: Index, query: str) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
    """Return the names of the columns and the rows of one query, which can only read.

    `last_values` and `points` are read from the run folders where the query names them; SQLite has
    no NaN: there it is NULL. Raises UsageError.
    """
    db = index.connection
    if re.search(r"\blast_values\b", query):
        db.execute("CREATE TEMP TABLE last_values (run, key, step, time, value)")
        db.executemany("INSERT INTO last_values VALUES (?, ?, ?, ?, ?)", _last_values(index))
    if re.search(r"\bpoints\b", query):
        db.execute("CREATE TEMP TABLE points (run, key, step, time, value)")
        db.executemany("INSERT INTO points VALUES (?, ?, ?, ?, ?)", _points(index))
    # Last: the views hide the tables that a search reads.
    db.executescript("""
CREATE TEMP VIEW runs AS SELECT runs.path, id, name, project, grp AS "group", seed, created,
  attempts, status, step, runs.time, COALESCE(verdict, '') AS verdict, problem, wrong,
  (SELECT json_group_array(tag) FROM main.tags WHERE tags.path = runs.path) AS tags, notes,
  COALESCE(judge, '') AS judge, COALESCE(summary, '') AS summary
  FROM main.runs LEFT JOIN main.verdicts USING (path);
CREATE TEMP VIEW settings AS SELECT path AS run, key, value, number FROM main.settings;
CREATE TEMP VIEW findings AS SELECT path AS run, rule, severity, metric, onset, last_step, observed,
  summary FROM main.findings;
""")
    db.set_authorizer(_allow_reading)
    try:
        cursor = db.execute(query)
        if cursor.description is None:
            raise UsageError("not a query", where=query[:200], hint="select ... from runs")
        return tuple(column[0] for column in cursor.description), cursor.fetchall()
    except (sqlite3.Error, sqlite3.Warning) as error:
        hint = "the help of the command sql lists tables and columns"
        raise UsageError(f"SQLite: {error}", where=query[:200], hint=hint) from error


def _allow_reading(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    is_loading = action == sqlite3.SQLITE_FUNCTION and second == "load_extension"
    actions = {
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_RECURSIVE,
    }
    allowed = action in actions and not is_loading and first != "sqlite_master"
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


def _last_values(index: Index) -> Iterator[Sequence[object]]:
    for entry in index.search(sort="name"):
        for key, point in index.last(entry.path).items():
            yield (entry.path, key, *point)


def _points(index: Index) -> Iterator[Sequence[object]]:
    count = 0
    for entry in index.search(sort="name"):
        try:
            with View(index.root / entry.path) as view:
                for key in view.keys():  # noqa: SIM118 - a method of the view
                    series = view.series(key)
                    count += len(series)
                    if count > MAX_SQL_POINTS:
                        raise UsageError(
                            f"the runs have more than {MAX_SQL_POINTS:,} points",
                            where="points",
                            hint="rlvitals index ROOT --to clickhouse://host/db, and ask that",
                        )
                    columns = series.steps.tolist(), series.times.tolist(), series.values.tolist()
                    for row in zip(*columns, strict=True):
                        yield (entry.path, key, *row)
        except UnreadableLog:
            continue
