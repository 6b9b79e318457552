"""Copy the index of a root and the points of its runs to ClickHouse: what is new since the last.

    with Index(root) as index, RunStore.create("chdb:runs.chdb", str(root)) as store:
        index.refresh()
        Filler(index, store).fill()

A run's row is written after its points: a fill that dies is repeated for that run from the number
of points that are stored, and a point that is inserted again takes its own place.
"""

import math
from collections import defaultdict
from contextlib import suppress
from dataclasses import field
from hashlib import blake2b
from typing import Any

import numpy as np

from rlvitals.clickhouse.run_store import ENTRY_COLUMNS, RunStore
from rlvitals.clickhouse.store_tables import POINT_TABLE, ROLLOUT_TABLE, RUN_TABLE, RUN_TABLES
from rlvitals.errors import UnreadableLog
from rlvitals.rollouts import rollout_index
from rlvitals.rollouts.rollout_columns import Rollouts
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage import columns, reader
from rlvitals.storage.index import Index
from rlvitals.storage.reader import RunCursor
from rlvitals.storage.run_query import IndexRecord
from rlvitals.types import Series

MAX_BATCH_POINTS = 500_000  # of an insert: the engine stores up to 1,048,449 rows as one part

Counts = dict[tuple[int, str], int]  # points that are stored, by attempt and key
Heads = dict[str, str]


@dataclass(slots=True)
class FillCounts:
    """What a fill wrote."""

    runs: int = 0
    points: int = 0
    rollouts: int = 0
    removed: int = 0


@dataclass(slots=True)
class _RunState:
    """What is stored of a run. With a cursor the counts are those of the rows before it."""

    counts: Counts
    heads: Heads
    cursor: RunCursor | None = None


@dataclass(slots=True)
class _StoredRow:
    """The row of a run as the last fill wrote it."""

    digest: str = ""
    mark: str = ""
    heads: Heads = field(default_factory=dict)


class Filler:
    """Fills a store from an index, once or again and again."""

    def __init__(self, index: Index, store: RunStore) -> None:
        """Read what the store has of each run."""
        self._index, self._store = index, store
        query = "SELECT path, digest, mark, heads FROM runs FINAL"
        rows = store.connection.query(query)
        self._stored = {path: _StoredRow(*row) for path, *row in rows}
        ((version,),) = store.connection.query("SELECT max(version) FROM runs")
        self._version = int(version)
        filled = store.connection.query("SELECT DISTINCT run FROM series")
        self._filled = {path for (path,) in filled}  # by this fill or one that died
        self._states: dict[str, _RunState] = {}  # of runs that are being written
        self._batch: list[tuple[str, str, int, int, Series]] = []
        self._batch_points = 0
        self._rows: list[tuple[Any, ...]] = []
        self.counts = FillCounts()

    def fill(self) -> FillCounts:
        """Copy what changed since the last call, or since the last fill of the store.

        The index must have been refreshed. Raises UsageError where the store refuses.
        """
        self.counts = FillCounts()
        self._version += 1
        paths = set()
        for record in self._index.records():
            paths.add(record.entry.path)
            self._copy_run(record)
        self._flush()
        for path in self._stored.keys() - paths:
            # The folder of the run is gone.
            self._delete(path)
            blank: dict[str, Any] = dict.fromkeys(RUN_TABLE.names, "") | {
                "path": path, "seed": None, "created": 0.0, "attempts": 0, "step": None,
                "time": None, "tags": [], "setting_keys": [], "setting_values": [],
                "setting_numbers": [], "findings": [], "heads": {}, "version": self._version,
                "is_deleted": 1,
            }  # fmt: skip
            self._store.connection.insert(
                "runs", RUN_TABLE.names, [[value] for value in blank.values()]
            )
            self._stored.pop(path)
            self._states.pop(path, None)
            self.counts.removed += 1
        return self.counts

    def _copy_run(self, record: IndexRecord) -> None:
        path, stored = record.entry.path, self._stored.get(record.entry.path, _StoredRow())
        digest = blake2b(repr(record).encode("utf-8", "replace"), digest_size=16).hexdigest()
        if digest == stored.digest:
            return
        heads = stored.heads
        if record.mark != stored.mark:
            with suppress(UnreadableLog, OSError):  # the row names the problem
                heads = self._copy_points(path, stored)
            heads = heads | self._copy_rollouts(path, heads)
        if record.entry.status != "running":
            self._states.pop(path, None)
        entry = {name: getattr(record.entry, name) for name in ENTRY_COLUMNS}
        cells: dict[str, list[Any]] = defaultdict(list)
        for setting in record.settings:
            cells["setting_keys"].append(setting.key)
            cells["setting_values"].append(setting.text)
            cells["setting_numbers"].append(setting.number)
        values = {
            **entry,
            "created": math.nan if record.entry.created is None else record.entry.created,
            "tags": list(record.entry.tags),
            "notes": record.notes,
            "judge": record.judge,
            "summary": record.summary,
            "findings": [tuple(row) for row in record.findings],
            "mark": record.mark,
            "heads": dict(heads),
            "digest": digest,
            "version": self._version,
            "is_deleted": 0,
        }
        self._rows.append(tuple(values.get(name, cells[name]) for name in RUN_TABLE.names))
        self._stored[path] = _StoredRow(digest, record.mark, heads)
        self.counts.runs += 1
        if len(self._rows) >= 1_000:
            self._flush()

    def _copy_points(self, path: str, stored: _StoredRow) -> Heads:
        """Batch the points of a run that are not stored; return the identities of its files."""
        folder = self._index.root / path
        state = self._states.get(path)
        if state is None:
            state = _RunState(self._count_points(path), stored.heads)
        scan = reader.read(folder, state.cursor)
        # What must stay the same for stored points to hold: the files, and the main rank.
        heads = {
            f"{rank_scan.file.attempt}-{rank_scan.file.rank}": rank_scan.scan.cursor.head.hex()
            for rank_scan in scan.parts
        }
        heads = {**heads, "main": str(reader.main_rank(scan.parts))}
        identities = {name: head for name, head in state.heads.items() if not name.startswith("/")}
        if scan.replaced or any(heads.get(name, "") not in {head, ""} or name not in heads
                                for name, head in identities.items()):  # fmt: skip
            self._flush()
            self._delete(path)
            state, scan = _RunState({}, {}), reader.read(folder)
        main, is_complete = reader.main_rank(scan.parts), state.cursor is None
        for rank_scan in scan.parts:
            attempt = rank_scan.file.attempt
            for key, series in columns.series(rank_scan.scan.scalars).items():
                name = reader.key_of(key, rank_scan.file.rank, main)
                begin = state.counts.get((attempt, name), 0)
                points = series.where(slice(begin, None)) if is_complete else series
                self._add_points(path, name, attempt, begin, points)
                state.counts[attempt, name] = begin + len(points)
        state.heads, state.cursor = heads, scan.cursor
        self._filled.add(path)
        self._states[path] = state
        rollout_heads = {n: head for n, head in stored.heads.items() if n.startswith("/")}
        return heads | rollout_heads

    def _count_points(self, path: str) -> Counts:
        """Return the number of points that all tables have of each series.

        A process that died may have left points without their rows of the views.
        """
        query = """SELECT attempt, key, min(points) FROM (
              SELECT attempt, key, max(points) AS points FROM series
              WHERE run = {run:String} GROUP BY attempt, key
              UNION ALL
              SELECT attempt, key, max(end) + 1 AS points FROM pixels
              WHERE run = {run:String} GROUP BY attempt, key)
            GROUP BY attempt, key HAVING count() = 2"""
        if path not in self._filled:
            return {}
        rows = self._store.connection.query(query, {"run": path})
        return {(attempt, key): int(count) for attempt, key, count in rows}

    def _add_points(self, path: str, key: str, attempt: int, begin: int, points: Series) -> None:
        offset = 0
        while offset < len(points):
            free = MAX_BATCH_POINTS - self._batch_points
            piece = points.where(slice(offset, offset + free))
            self._batch.append((path, key, attempt, begin + offset, piece))
            self._batch_points += len(piece)
            offset += len(piece)
            if self._batch_points >= MAX_BATCH_POINTS:
                self._flush_points()

    def _flush(self) -> None:
        """Write the points, then the rows of their runs."""
        self._flush_points()
        if self._rows:
            self._store.connection.insert(
                "runs", RUN_TABLE.names, list(zip(*self._rows, strict=True))
            )
            self._rows.clear()

    def _flush_points(self) -> None:
        if not self._batch:
            return
        runs: list[str] = []
        keys: list[str] = []
        for path, key, _, _, points in self._batch:
            runs += [path] * len(points)
            keys += [key] * len(points)
        pieces = [points for *_, points in self._batch]
        attempts = [np.full(len(p), attempt, np.uint32) for _, _, attempt, _, p in self._batch]
        ordinals = [np.arange(n, n + len(p), dtype=np.uint64) for _, _, _, n, p in self._batch]
        arrays = (
            attempts,
            ordinals,
            [piece.steps for piece in pieces],
            [piece.times for piece in pieces],
            [piece.values for piece in pieces],
        )
        content = [runs, keys, *(np.concatenate(column) for column in arrays)]
        self._store.connection.insert("points", POINT_TABLE.names, content)
        self.counts.points += self._batch_points
        self._batch.clear()
        self._batch_points = 0

    def _copy_rollouts(self, path: str, heads: Heads) -> Heads:
        """Insert the rollouts of a run that are not stored; return the sizes of their files."""
        try:
            rollouts = rollout_index.of_run(self._index.root / path)
        except (UnreadableLog, OSError):
            return {}
        if rollouts is None:
            return {}
        sizes = {f"/{name}": (rollouts.root / name).stat().st_size for name in rollouts.files}
        stored = {name: int(head) for name, head in heads.items() if name.startswith("/")}
        if any(sizes.get(name, 0) < size for name, size in stored.items()):  # others than before
            query = "DELETE FROM rollouts WHERE run = {run:String}"
            self._store.connection.command(query, {"run": path})
            stored = {}
        rows = rollouts.rows
        ends = np.array([stored.get(f"/{name}", 0) for name in rollouts.files])[rows["file"]]
        changed = np.array([sizes[f"/{name}"] != stored.get(f"/{name}") for name in rollouts.files])
        # A row of a table has no place in bytes: the table is inserted again.
        is_new = changed[rows["file"]] & (
            (rows["size"] == 0) | (rows["offset"] + rows["size"] > ends)
        )
        places = np.flatnonzero(is_new)
        for start in range(0, len(places), MAX_BATCH_POINTS):
            chunk = places[start : start + MAX_BATCH_POINTS]
            content = _rollout_columns(path, rollouts, chunk)
            self._store.connection.insert("rollouts", ROLLOUT_TABLE.names, content)
        self.counts.rollouts += len(places)
        return {name: str(size) for name, size in sizes.items()}

    def _delete(self, path: str) -> None:
        self._filled.discard(path)
        for table in RUN_TABLES:
            statement = f"DELETE FROM {table.name} WHERE run = {{run:String}}"  # noqa: S608
            self._store.connection.command(statement, {"run": path})


def _rollout_columns(path: str, rollouts: Rollouts, places: np.ndarray) -> list[Any]:
    """Return the columns of the table of rollouts for some rows."""
    rows = rollouts.rows[places]
    columns_by_name: dict[str, Any] = {
        "run": [path] * len(rows),
        "file": [rollouts.files[number] for number in rows["file"].tolist()],
        "parts": [
            {name: float(scores[row]) for name, scores in rollouts.parts.items()
             if not np.isnan(scores[row])}
            for row in places.tolist()
        ],
    }  # fmt: skip
    for name in ("task", "stop_reason", "error"):  # stored as numbers of texts
        columns_by_name[name] = [rollouts.texts[number] for number in rows[name].tolist()]
    return [
        columns_by_name[name] if name in columns_by_name else np.ascontiguousarray(rows[name])
        for name in ROLLOUT_TABLE.names
    ]
