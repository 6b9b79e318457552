"""Index many run folders in SQLite; the index can be deleted and rebuilt at any time.

    with Index(root) as index:
        index.refresh()
        index.note({path: judge(root / path) for path in index.unjudged()})
        for run in index.search("tag:sweep lr>1e-3 ppo"): ...

The folders are authoritative; the index copies their `run.json`, events and last rows.
"""

import os
import sqlite3
import stat
import time as clock
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from rlvitals.errors import UnreadableLog
from rlvitals.storage import events, find_run_folders, search_terms, tail_index, thin_read, typed
from rlvitals.storage.downsample import Points
from rlvitals.storage.query import View, open_folder
from rlvitals.storage.run_folder import EVENTS_FILE, RUN_FILE, About, RunFolder, block_files
from rlvitals.storage.run_query import (
    Indexed,
    IndexedFinding,
    IndexRecord,
    Point,
    RunQuery,
    SettingCell,
    check_sort,
)
from rlvitals.storage.search_terms import FieldTerm, SettingTerm, TagTerm, Term, TextTerm
from rlvitals.storage.setting_cells import apply_changes, job_of_cells, setting_cells

INDEX_FILE = ".rlvitals.index"
INDEX_VERSION = 7  # of the tables: another one is made again
INDEX_SCHEMA = """
CREATE TABLE runs (path TEXT PRIMARY KEY, mark TEXT, id TEXT, name TEXT, project TEXT, grp TEXT,
  seed INTEGER, created REAL, attempts INTEGER, status TEXT, step INTEGER, time REAL,
  notes TEXT, problem TEXT DEFAULT '', wrong TEXT DEFAULT '');
CREATE TABLE verdicts (path TEXT PRIMARY KEY, verdict TEXT, mark TEXT, judge TEXT, time REAL,
  summary TEXT DEFAULT '');
CREATE TABLE tags (path TEXT, tag TEXT);
CREATE TABLE settings (path TEXT, key TEXT, value TEXT, number REAL);
CREATE TABLE findings (path TEXT, rule TEXT, severity TEXT, metric TEXT, onset INTEGER,
  last_step INTEGER, observed REAL, summary TEXT);
CREATE INDEX findings_of ON findings (path);
CREATE INDEX tags_of ON tags (path);
CREATE INDEX settings_of ON settings (path);
CREATE INDEX settings_by ON settings (key);
"""

# Both compare ASCII letters without their case; no character of the text is special.
CONTAINS = "instr(lower({}), lower(?))"
OF_TABLE = "runs.path IN (SELECT path FROM {} WHERE {})"
ORDERS = {
    "newest": "COALESCE(runs.time, created) DESC, runs.path",
    "name": "runs.path",
    "step": "step IS NULL, step DESC, runs.path",
}
FOLDER_TABLES = ("runs", "tags", "settings")  # what is made anew from a folder
INDEX_TABLES = (*FOLDER_TABLES, "verdicts", "findings")
INDEXED_TEXT_COLUMNS = (
    "runs.path", "name", "project", "grp", "notes", "status", "COALESCE(verdict, '')",
)  # fmt: skip


class Index(RunQuery):
    """The run folders under a root."""

    def __init__(self, root: Path, file: Path | None = None, *, threads: bool = False) -> None:
        """Open the index of a root, or begin one; in memory where the root takes no file.

        `threads`: several threads use it, one at a time.
        """
        self.root = root
        self._threads = threads
        path = file or root / INDEX_FILE
        try:
            self._db = self._connect(str(path) if file or _is_plain(path) else ":memory:")
        except sqlite3.DatabaseError:  # not a database, of another version, a read-only folder
            path.unlink(missing_ok=True) if os.access(path.parent, os.W_OK) else None
            try:
                self._db = self._connect(str(path))
            except sqlite3.DatabaseError:
                self._db = self._connect(":memory:")

    def _connect(self, name: str) -> sqlite3.Connection:
        db = sqlite3.connect(name, timeout=5.0, check_same_thread=not self._threads)
        try:
            (version,) = db.execute("PRAGMA user_version").fetchone()
            if version == 0:
                db.executescript(
                    f"BEGIN; {INDEX_SCHEMA} PRAGMA user_version = {INDEX_VERSION}; COMMIT;"
                )
                version = INDEX_VERSION
        except BaseException:
            db.close()
            raise
        if version != INDEX_VERSION:
            db.close()
            raise sqlite3.DatabaseError(f"index of version {version}")
        return db

    def __enter__(self) -> Self:
        """Return the index."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self._db.close()

    def refresh(self) -> None:
        """Update the entries of folders that changed or are being written; remove missing ones.

        Raises OSError for a root that cannot be listed.
        """
        folders = {
            path.relative_to(self.root).as_posix(): path
            for path in find_run_folders.iter_run_folders(self.root)
        }
        with self._db:
            # No file records that a process ended without a word.
            marks = dict(
                self._db.execute(
                    "SELECT path, CASE status WHEN 'running' THEN '' ELSE mark END FROM runs"
                )
            )
            for path in marks.keys() - folders.keys():
                self._forget(path, INDEX_TABLES)
            for path, folder in folders.items():
                mark = _fingerprint(folder)
                if marks.get(path) != mark:
                    self._forget(path, FOLDER_TABLES)
                    self._add(path, folder, mark)

    def unjudged(self, judge: str = "") -> tuple[str, ...]:
        """Return the runs without a verdict of `judge` on their current content."""
        grace = 86_400.0  # seconds after the last row in which a silence may change its meaning
        # A run whose process may be alive is also judged by its silence, which no file records.
        query = """SELECT runs.path FROM runs LEFT JOIN verdicts USING (path)
  WHERE verdict IS NULL OR verdicts.mark != runs.mark OR judge != ? OR status = 'running'
  OR (status = 'stopped' AND verdicts.time < COALESCE(runs.time, created) + ?)"""
        return tuple(path for (path,) in self._db.execute(query, (judge, grace)))

    def note(
        self,
        verdicts: Mapping[str, str],
        judge: str = "",
        summaries: Mapping[str, str] | None = None,
        findings: Mapping[str, Sequence[IndexedFinding]] | None = None,
    ) -> None:
        """Store verdicts, by path within the root, on the state that `refresh` last read.

        `judge` identifies what made them: verdicts of another judge are stale. `summaries`: a text
        to store with each; `findings`: the worst first.
        """
        time = clock.time()
        with self._db:
            self._db.executemany(
                "INSERT OR REPLACE INTO verdicts SELECT path, ?, mark, ?, ?, ? FROM runs"
                " WHERE path = ?",
                [
                    (verdict, judge, time, (summaries or {}).get(path, ""), path)
                    for path, verdict in verdicts.items()
                ],
            )
            for path, rows in (findings or {}).items():
                self._forget(path, ("findings",))
                marks = ", ".join("?" * (1 + len(IndexedFinding._fields)))
                self._db.executemany(
                    f"INSERT INTO findings VALUES ({marks})",  # noqa: S608
                    [(path, *row) for row in rows],
                )

    def summaries(self, judge: str = "") -> dict[str, str]:
        """Return the texts that `note` stored with the verdicts of a judge, current or stale.

        Those of any judge for an empty one.
        """
        query = "SELECT path, summary FROM verdicts WHERE ? IN (judge, '') AND summary != ''"
        return dict(self._db.execute(query, (judge,)))

    @property
    def connection(self) -> sqlite3.Connection:
        """The database."""
        return self._db

    def rebuild(self) -> None:
        """Delete all entries and read every run folder."""
        with self._db:
            for table in INDEX_TABLES:
                self._db.execute(f"DELETE FROM {table}")  # noqa: S608 - our own names
        self.refresh()

    def _forget(self, path: str, tables: Sequence[str]) -> None:
        for table in tables:
            self._db.execute(f"DELETE FROM {table} WHERE path = ?", (path,))  # noqa: S608

    def _add(self, path: str, folder: Path, mark: str) -> None:
        try:
            info = RunFolder.open(folder).about
        except UnreadableLog as error:
            info, problem = About(), error.problem
        else:
            problem = ""
        newest = tail_index.newest_row(folder) or (None, None)
        try:
            history = events.read(folder / EVENTS_FILE).events
        except (OSError, UnreadableLog):
            history = ()
        info = apply_changes(replace(info, name=info.name or folder.name), history)
        state = (len(info.attempts), _status(folder, info, history), *newest)
        self._insert(path, mark, info, state, problem)

    def add_entry(self, path: str, info: About, state: tuple[object, ...]) -> None:
        """Add a run that is no folder here; `state`: its attempts, status, last step and time."""
        with self._db:
            self._insert(path, "", info, state, "")

    def _insert(
        self, path: str, mark: str, info: About, state: tuple[object, ...], problem: str
    ) -> None:
        fits_int64 = info.seed is not None and info.seed in typed.INT64_RANGE
        seed = info.seed if fits_int64 else None  # the settings hold a larger one
        values = (path, mark, info.id, info.name, info.project, info.group, seed, info.created,
                  *state, info.notes, problem, "\n".join(typed.summary(info.wrong)))  # fmt: skip
        marks = ", ".join("?" * len(values))
        self._db.execute(f"INSERT INTO runs VALUES ({marks})", values)  # noqa: S608
        self._db.executemany("INSERT INTO tags VALUES (?, ?)", [(path, t) for t in info.tags])
        rows = [(path, *cell) for cell in setting_cells(info)]
        self._db.executemany("INSERT INTO settings VALUES (?, ?, ?, ?)", rows)

    def __len__(self) -> int:
        """Count the runs."""
        return int(self._db.execute("SELECT COUNT(*) FROM runs").fetchone()[0])

    def search(
        self, terms: str = "", sort: str = "newest", limit: int | None = None
    ) -> tuple[Indexed, ...]:
        """Return the runs that fit every word: see `RunQuery`. Raises UsageError."""
        clauses: list[str] = ["1"]
        values: list[str | float] = []
        for term in search_terms.parse(terms):
            clause, arguments = _compile(term)
            clauses.append(clause)
            values += arguments
        select = """SELECT runs.path, id, name, project, grp, seed, created, attempts, status, step,
  runs.time, COALESCE(verdict, ''), problem, wrong FROM runs LEFT JOIN verdicts USING (path)"""
        query = f"{select} WHERE {' AND '.join(clauses)} ORDER BY {ORDERS[check_sort(sort)]}"
        rows = self._db.execute(f"{query} LIMIT ?", [*values, -1 if limit is None else limit])
        tags = self._texts_by_path("SELECT path, tag FROM tags ORDER BY rowid")
        jobs = self._texts_by_path(  # 0 follows /: by the table's index
            "SELECT path, key, value FROM settings WHERE key >= 'job/' AND key < 'job0'"
        )
        return tuple(
            replace(
                Indexed(*row),
                tags=tuple(tag for (tag,) in tags.get(row[0], ())),
                job=job_of_cells(jobs.get(row[0], ())),
            )
            for row in rows
        )

    def records(self) -> Iterator[IndexRecord]:
        """Yield all that is known of each run, in order of their paths."""
        columns = ", ".join(("path", *IndexedFinding._fields))
        findings, settings = defaultdict(list), defaultdict(list)
        for path, *row in self._db.execute(f"SELECT {columns} FROM findings ORDER BY rowid"):  # noqa: S608
            findings[path].append(IndexedFinding(*row))
        for path, *cell in self._db.execute("SELECT * FROM settings ORDER BY rowid"):
            settings[path].append(SettingCell(*cell))
        query = """SELECT path, notes, runs.mark, COALESCE(judge, ''), COALESCE(summary, '')
            FROM runs LEFT JOIN verdicts USING (path)"""
        texts = {path: row for path, *row in self._db.execute(query)}
        for entry in self.search(sort="name"):
            path = entry.path
            notes, mark, judge, summary = texts[path]
            cells, rows = tuple(settings[path]), tuple(findings[path])
            yield IndexRecord(entry, notes, mark, judge, summary, cells, rows)

    def _texts_by_path(self, query: str) -> dict[str, list[Any]]:
        rows: dict[str, list[Any]] = defaultdict(list)
        for path, *texts in self._db.execute(query):
            rows[path].append(tuple(texts))
        return rows

    def last(self, path: str) -> dict[str, Point]:
        """Return the newest point of every metric of a run, read from its folder."""
        try:
            with View(self.root / path) as view:
                return view.last()
        except UnreadableLog:
            return {}

    def points(
        self, path: str, key: str, width: int, first: int | None = None, last: int | None = None
    ) -> Points:
        """Return what a plot shows of a metric, read from its folder. Raises KeyError."""
        try:
            folder = open_folder(self.root / path)
            points = thin_read.read_pixels(folder.path, key, width, first, last)
            if points is not None:
                return points
            with View(folder.path) as view:
                return view.m4(key, width, first, last)
        except (OSError, UnreadableLog):
            raise KeyError(key) from None

    def findings(self, path: str) -> tuple[IndexedFinding, ...]:
        """Return the findings of a run's last judgement, the worst first."""
        columns = ", ".join(IndexedFinding._fields)
        query = f"SELECT {columns} FROM findings WHERE path = ? ORDER BY rowid"  # noqa: S608
        return tuple(IndexedFinding(*row) for row in self._db.execute(query, (path,)))


def _is_plain(path: Path) -> bool:
    """Return whether a database can be opened there without following a link."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_nlink == 1


def _fingerprint(folder: Path) -> str:
    """Return the sizes and times of a run's files: they differ where anything changed."""
    files = [folder / RUN_FILE, folder / EVENTS_FILE]
    files += [path for block_file in block_files(folder) for path in block_file.paths]
    states = []
    for file in files:
        try:
            status = file.stat()
        except OSError:
            continue
        states.append(f"{file.name} {status.st_size} {status.st_mtime_ns}")
    return "; ".join(states)


def _status(folder: Path, info: About, history: Sequence[events.Event]) -> str:
    if tail_index.has_writer(folder):
        return "running"
    newest = max((attempt.number for attempt in info.attempts), default=1)
    statuses = [
        str(event.facts.get("status") or ("failed" if _is_failure(event) else "finished"))
        for event in history
        if event.kind in {"finish", "exit", "crash"}
        and event.facts.get("attempt", newest) == newest
    ]
    return statuses[-1] if statuses else "stopped"


def _is_failure(event: events.Event) -> bool:
    """Return whether an event without a status reports a failure."""
    return event.kind == "crash" or any(
        event.facts.get(name) for name in ("exit_code", "traceback", "signal")
    )


def _compile(term: Term) -> tuple[str, list[str | float]]:
    """Return the condition of a term and its bound values."""
    match term:
        case TextTerm(text):
            conditions = [CONTAINS.format(name) for name in INDEXED_TEXT_COLUMNS]
            conditions.append(OF_TABLE.format("tags", CONTAINS.format("tag")))
            return f"({' OR '.join(conditions)})", [text] * (len(INDEXED_TEXT_COLUMNS) + 1)
        case TagTerm(tag):
            return OF_TABLE.format("tags", "tag = ?"), [tag]
        case FieldTerm(field, text):
            search_columns = {"group": "grp", "verdict": "COALESCE(verdict, '')"}
            return CONTAINS.format(search_columns.get(field, field)), [text]
        case SettingTerm(key, operator, operand):
            column = "value" if isinstance(operand, str) else "number"
            condition = (
                f"(key = ? OR substr(lower(key), -length(?)) = lower(?)) AND {column} {operator} ?"
            )
            suffix = f"/{key}"
            return OF_TABLE.format("settings", condition), [key, suffix, suffix, operand]
