"""Ask a run index in ClickHouse: runs by the words of a search, last values, pixels, findings."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from rlvitals.clickhouse import store_tables
from rlvitals.clickhouse.connection import Connection
from rlvitals.errors import UsageError
from rlvitals.storage import search_terms
from rlvitals.storage.downsample import Points
from rlvitals.storage.run_query import Indexed, IndexedFinding, Point, RunQuery, check_sort
from rlvitals.storage.search_terms import FieldTerm, SettingTerm, TagTerm, Term, TextTerm
from rlvitals.storage.setting_cells import JOB_SETTING, job_of_cells

ENTRY_COLUMNS = (
    "path", "id", "name", "project", "group", "seed", "created", "attempts", "status", "step",
    "time", "verdict", "problem", "wrong", "tags",
)  # fmt: skip
MAX_INT64 = 2**63 - 1
# A row of `pixels` that lies in one column of pixels is taken as it is; the points of others are
# read. Rows that were not put together yet do no harm: each is of points of its own.
EXTREMES = """
SELECT column, kind, argMin(f, {first_key}), argMax(l, {last_key}), argMin(lo, {low_key}),
  argMin(hi, {high_key})
FROM (
  SELECT {column_of_first} AS column, kind, first AS f, last AS l, low AS lo, high AS hi
  FROM pixels WHERE run = {{run:String}} AND key = {{key:String}} AND {is_inner}
  UNION ALL
  SELECT {column_of_step} AS column, {kind} AS kind,
    (step, attempt, ordinal, time, value) AS f, f AS l,
    (value, step, attempt, ordinal, time) AS lo, (-value, step, attempt, ordinal, time) AS hi
  FROM points
  WHERE run = {{run:String}} AND key = {{key:String}}
    AND step >= {{first:Int64}} AND step <= {{last:Int64}}
    AND (attempt, intDiv(ordinal, {{size:UInt64}})) IN (
      SELECT attempt, bucket FROM pixels
      WHERE run = {{run:String}} AND key = {{key:String}} AND NOT ({is_inner})
        AND last.1 >= {{first:Int64}} AND first.1 <= {{last:Int64}}))
GROUP BY column, kind ORDER BY column"""
# The points of buckets inside of a range of steps, and those inside of the buckets at its edges.
COUNT_INSIDE = """
WITH (
  SELECT (sumIf(points, is_inner), groupArrayIf((attempt, bucket), NOT is_inner)) FROM (
    SELECT attempt, bucket, max(end) - min(begin) + 1 AS points,
      min(first.1) >= {first:Int64} AND max(last.1) <= {last:Int64} AS is_inner FROM pixels
    WHERE run = {run:String} AND key = {key:String} AND (attempt, bucket) IN (
      SELECT attempt, bucket FROM pixels WHERE run = {run:String} AND key = {key:String}
        AND last.1 >= {first:Int64} AND first.1 <= {last:Int64})
    GROUP BY attempt, bucket)) AS inside
SELECT inside.1 + (SELECT uniqExact(attempt, ordinal) FROM points
  WHERE run = {run:String} AND key = {key:String}
    AND step >= {first:Int64} AND step <= {last:Int64}
    AND (attempt, intDiv(ordinal, {size:UInt64})) IN inside.2)"""


class RunStore(RunQuery):
    """The run index of a database. One thread at a time."""

    def __init__(self, url: str) -> None:
        """Connect to a database that the command `index` has filled. Raises UsageError."""
        self.connection = Connection(url)
        self.bucket_points = 0
        query = "SELECT 1 FROM system.tables WHERE database = {name:String} AND name = 'origin'"
        connection = self.connection
        if not (
            connection.use_database()
            and bool(connection.query(query, {"name": connection.database}))
        ):
            self.connection.close()
            hint = f"rlvitals index ROOT --to {self.connection.name}"
            raise UsageError("no run index is here", where=self.connection.name, hint=hint)
        ((self.root, version, self.bucket_points),) = self.connection.query(
            "SELECT root, version, bucket_points FROM origin LIMIT 1"
        )
        if version != store_tables.SCHEMA_VERSION:
            problem = f"a run index of version {version}, not {store_tables.SCHEMA_VERSION}"
            hint = "fill another database: the folders have everything"
            raise UsageError(problem, where=self.connection.name, hint=hint)

    @classmethod
    def create(cls, url: str, root: str) -> Self:
        """Connect to a database; make its tables where they are missing.

        Raises UsageError where it holds the runs of another root.
        """
        with Connection(url) as connection:
            connection.create_database()
            for statement in store_tables.create_statements():
                connection.command(statement)
            if not connection.query("SELECT 1 FROM origin"):
                columns = [[root], [store_tables.SCHEMA_VERSION], [store_tables.BUCKET_POINTS]]
                connection.insert("origin", store_tables.ORIGIN_TABLE.names, columns)
        store = cls(url)
        if store.root != root:
            hint = "a database for each root"
            problem = f"this database holds the runs of {store.root}"
            raise UsageError(problem, where=store.connection.name, hint=hint)
        return store

    def __enter__(self) -> Self:
        """Return the store."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        self.connection.close()

    def __len__(self) -> int:
        """Count the runs."""
        return int(self.connection.query("SELECT count() FROM runs FINAL")[0][0])

    def search(
        self, terms: str = "", sort: str = "newest", limit: int | None = None
    ) -> tuple[Indexed, ...]:
        """Return the runs that fit every word: see `RunQuery`. Raises UsageError."""
        statement, values = compile_search(terms, sort, limit)
        return tuple(_entry(row) for row in self.connection.query(statement, values))

    def last(self, path: str) -> dict[str, Point]:
        """Return the newest point of every metric of a run; none of an unknown run."""
        query = "SELECT key, max(last) FROM series WHERE run = {run:String} GROUP BY key"
        rows = self.connection.query(query, {"run": path})
        return {key: Point(*newest[2:]) for key, newest in rows}

    def points(
        self, path: str, key: str, width: int, first: int | None = None, last: int | None = None
    ) -> Points:
        """Return what `width` columns of pixels show of a metric (M4). Raises KeyError."""
        if width < 1:
            raise ValueError("a plot has at least one column")
        values: dict[str, object] = {"run": path, "key": key, "size": self.bucket_points}
        query = """
SELECT min(first.1), max(last.1), (
    SELECT sum(points) FROM (
      SELECT max(points) AS points FROM series
      WHERE run = {run:String} AND key = {key:String} GROUP BY attempt))
FROM pixels WHERE run = {run:String} AND key = {key:String} HAVING count() > 0"""
        rows = self.connection.query(query, values)
        if not rows:
            raise KeyError(key)
        ((low_step, high_step, count),) = rows
        low = low_step if first is None else _clamp(first)
        high = high_step if last is None else _clamp(last)
        values |= {"first": low, "last": high}
        if low > low_step or high < high_step:
            ((count,),) = self.connection.query(COUNT_INSIDE, values)
        if not count:
            return _build_points([], 0)
        # As `downsample.points`: the columns divide the range that was asked for.
        low = low_step if first is None else first
        high = high_step if last is None else last
        statement = compile_extremes(low, high, width)
        return _build_points(self.connection.query(statement, values), int(count))

    def findings(self, path: str) -> tuple[IndexedFinding, ...]:
        """Return the findings of a run's last judgement, the worst first."""
        columns = ", ".join(IndexedFinding._fields)
        query = f"SELECT {columns} FROM findings WHERE run = {{run:String}}"  # noqa: S608 - our own
        rows = self.connection.query(query, {"run": path})
        return tuple(IndexedFinding(*row) for row in rows)

    def summaries(self, judge: str = "") -> dict[str, str]:
        """Return the texts stored with the verdicts of a judge, or of any for an empty one."""
        query = """SELECT path, summary FROM runs FINAL
            WHERE summary != '' AND ({judge:String} = '' OR judge = {judge:String})"""
        return dict(self.connection.query(query, {"judge": judge}))


def compile_search(terms: str, sort: str, limit: int | None) -> tuple[str, dict[str, object]]:
    """Return the query of a search and its bound values. Raises UsageError."""
    clauses, values = ["1"], dict[str, object]()
    for number, term in enumerate(search_terms.parse(terms)):
        clause, term_values = _compile_term(term, f"p{number}")
        clauses.append(clause)
        values |= term_values
    columns = ", ".join(f"`{name}`" for name in ENTRY_COLUMNS)
    cells = "arrayZip(setting_keys, setting_values)"
    job = f"arrayFilter(cell -> startsWith(cell.1, '{JOB_SETTING}/'), {cells})"
    orders = {
        "newest": "coalesce(time, created) DESC, path",
        "name": "path",
        "step": "isNull(step), step DESC, path",
    }
    statement = (
        f"SELECT {columns}, {job} FROM runs FINAL"  # noqa: S608 - our own names; texts are bound
        f" WHERE {' AND '.join(clauses)} ORDER BY {orders[check_sort(sort)]}"
    )
    if limit is not None:
        statement += " LIMIT {limit:UInt64}"
        values["limit"] = limit
    return statement, values


def _compile_term(term: Term, name: str) -> tuple[str, dict[str, object]]:
    """Return the condition of a term and its values, whose names begin with `name`."""
    match term:
        case TextTerm(text):
            text_fields = ("path", "name", "project", "group", "notes", "status", "verdict")
            conditions = [f"position(lower(`{field}`), lower({{{name}:String}})) > 0"
                     for field in text_fields]  # fmt: skip
            conditions.append(
                f"arrayExists(t -> position(lower(t), lower({{{name}:String}})) > 0, tags)"
            )
            return f"({' OR '.join(conditions)})", {name: text}
        case TagTerm(tag):
            return f"has(tags, {{{name}:String}})", {name: tag}
        case FieldTerm(field, text):
            return f"position(lower(`{field}`), lower({{{name}:String}})) > 0", {name: text}
        case SettingTerm(key, operator, operand):
            kind = "String" if isinstance(operand, str) else "Float64"
            column = "v" if isinstance(operand, str) else "n"
            condition = (
                f"(k = {{{name}_key:String}} OR endsWith(lower(k), lower({{{name}_end:String}})))"
                f" AND ifNull({column} {operator} {{{name}:{kind}}}, 0)"
            )
            lists = "setting_keys, setting_values, setting_numbers"
            values: dict[str, object] = {
                f"{name}_key": key,
                f"{name}_end": f"/{key}",
                name: operand,
            }
            return f"arrayExists((k, v, n) -> {condition}, {lists})", values


def compile_extremes(low: int, high: int, width: int) -> str:
    """Return the query of the first, last, lowest and highest point of each column of pixels.

    The columns divide the steps `low` to `high`, as `downsample.points` does.
    """
    span = high - low + 1  # Python's own integers: no overflow

    def column(step: str) -> str:
        shifted = f"(toInt256({step}) - toInt256('{low}') + 1) * {width} - 1"
        if max(abs(low), abs(high), (span + 1) * width) < MAX_INT64 // 4:
            shifted = f"({step} - ({low}) + 1) * {width} - 1"
        return f"toInt64(intDiv({shifted}, toInt256('{span}')))" if "256" in shifted else (
            f"intDiv({shifted}, {span})"
        )  # fmt: skip

    is_inner = (
        "first.1 >= {first:Int64} AND last.1 <= {last:Int64}"
        f" AND {column('first.1')} = {column('last.1')}"
    )
    return EXTREMES.format(
        is_inner=is_inner,
        column_of_first=column("f.1"),
        column_of_step=column("step"),
        kind=store_tables.POINT_KIND,
        first_key=store_tables.point_key("f.1", "f.2", "f.3"),
        last_key=store_tables.point_key("l.1", "l.2", "l.3"),
        low_key=store_tables.value_key("lo.1", "lo.2", "lo.3", "lo.4"),
        high_key=store_tables.value_key("hi.1", "hi.2", "hi.3", "hi.4"),
    )


def _build_points(rows: Sequence[Sequence[Any]], count: int) -> Points:
    """Return the points of all columns of pixels in the order of a plot."""
    points: dict[tuple[int, int, int], tuple[float, float]] = {}  # step, attempt, ordinal
    bad_steps: dict[int, list[int]] = {1: [], 2: [], 3: []}
    for _, kind, first, last, low, high in rows:
        if kind:
            bad_steps[kind].append(first[0])
            continue
        for step, attempt, ordinal, time, value in (first, last):
            points[step, attempt, ordinal] = time, value
        for value, step, attempt, ordinal, time in (low, (-high[0], *high[1:])):
            points[step, attempt, ordinal] = time, value
    places = sorted(points)
    numbers = np.array([points[item] for item in places], np.float64).reshape(-1, 2)
    nan, above, below = (np.array(steps, np.int64) for steps in bad_steps.values())
    steps = np.array([step for step, _, _ in places], np.int64)
    return Points(steps, numbers[:, 0], numbers[:, 1], nan, above, below, count)


def _entry(row: Sequence[Any]) -> Indexed:
    *fields, tags, job = row
    entry = replace(Indexed(*fields), tags=tuple(tags), job=job_of_cells(job))
    # SQLite keeps no NaN.
    return replace(entry, created=None) if math.isnan(entry.created) else entry  # type: ignore[arg-type]


def _clamp(step: int) -> int:
    return max(-MAX_INT64, min(step, MAX_INT64))
