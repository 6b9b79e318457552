"""Define the tables of the run index, for ClickHouse and for the command `sql` on a folder.

A row of `points` is a point of a series: run, key, attempt and its ordinal in the attempt. The same
rows may be inserted again: ReplacingMergeTree keeps one of them, and what the views make of them is
a minimum or a maximum, which a repetition does not change.
"""

from rlvitals.startup.fast_dataclass import dataclass

BUCKET_POINTS = 128  # consecutive points of an attempt that a row of `pixels` sums up
SCHEMA_VERSION = 1  # of the tables: a database of another one is refused


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its type and codec in ClickHouse, and its meaning; "": internal."""

    name: str
    kind: str
    doc: str
    codec: str = ""
    settings: str = ""

    def create(self) -> str:
        """Return the column's part of a statement that creates its table."""
        codec = f" CODEC({self.codec})" if self.codec else ""
        return f"`{self.name}` {self.kind}{codec}{self.settings and f' SETTINGS ({self.settings})'}"


@dataclass(frozen=True, slots=True)
class Table:
    """A table with its engine; `is_public`: shown by the help of the command `sql`."""

    name: str
    doc: str
    columns: tuple[Column, ...]
    engine: str
    is_public: bool = True

    def create(self) -> str:
        """Return the statement that creates the table."""
        columns = ", ".join(column.create() for column in self.columns)
        return f"CREATE TABLE IF NOT EXISTS `{self.name}` ({columns}) ENGINE = {self.engine}"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)


NAME_TYPE = "LowCardinality(String)"
DELTA_CODEC, STEP_CODEC = "Delta, ZSTD", "DoubleDelta, ZSTD"
RUN_COLUMN = Column("run", NAME_TYPE, "path of the run below the root")
# Compared from the left: the first of a column of pixels, and its lowest point.
ORDERED_POINT = "Tuple(Int64, UInt32, UInt64, Float64, Float64)"  # step, attempt, ordinal, ...
LOWEST_POINT = "Tuple(Float64, Int64, UInt32, UInt64, Float64)"  # value, step, attempt, ...

RUN_TABLE = Table(
    "runs",
    "one row for each run",
    (
        Column("path", "String", "path of the run below the root"),
        Column("id", "String", "identity in run.json"),
        Column("name", "String", "name"),
        Column("project", NAME_TYPE, "project"),
        Column("group", NAME_TYPE, "group"),
        Column("seed", "Nullable(Int64)", "seed"),
        Column("created", "Float64", "seconds since the epoch"),
        Column("attempts", "UInt32", "number of attempts"),
        Column("status", NAME_TYPE, "running, finished, failed, killed, stopped, ..."),
        Column("step", "Nullable(Int64)", "last step that was logged"),
        Column("time", "Nullable(Float64)", "when it was logged, seconds since the epoch"),
        Column("verdict", NAME_TYPE, "word of the last judgement; empty: not judged"),
        Column("problem", "String", "why the folder cannot be read"),
        Column("wrong", "String", "fields of run.json that were dropped"),
        Column("tags", "Array(String)", "tags"),
        Column("notes", "String", "notes"),
        Column("judge", "String", "identity of what judged"),
        Column("summary", "String", "JSON of the last judgement"),
        Column("setting_keys", "Array(String)", ""),
        Column("setting_values", "Array(String)", ""),
        Column("setting_numbers", "Array(Nullable(Float64))", ""),
        Column(
            "findings",
            "Array(Tuple(rule String, severity String, metric String, onset Int64, last_step Int64,"
            " observed Nullable(Float64), summary String))",
            "",
        ),
        Column("mark", "String", ""),  # state of the files whose points are stored
        Column("heads", "Map(String, String)", ""),  # identity of the block files and rollout files
        Column("digest", "String", ""),  # hash of this row
        Column("version", "UInt64", ""),  # a row of a higher version replaces this one
        Column("is_deleted", "UInt8", ""),  # 1: the folder is gone
    ),
    "ReplacingMergeTree(version, is_deleted) ORDER BY path",
)
POINT_TABLE = Table(
    "points",
    "one row for each logged number",
    (
        RUN_COLUMN,
        Column("key", NAME_TYPE, "name of the metric, as logged"),
        Column("attempt", "UInt32", "number of the attempt", DELTA_CODEC),
        Column("ordinal", "UInt64", "number of the point in its series and attempt", STEP_CODEC),
        Column("step", "Int64", "step", STEP_CODEC),
        # The series of a run repeat its times: ZSTD finds them again in blocks of 64 KiB.
        Column(
            "time",
            "Float64",
            "seconds since the epoch",
            DELTA_CODEC,
            "min_compress_block_size = 65536",
        ),
        Column("value", "Float64", "value; NaN and infinities as logged", DELTA_CODEC),
    ),
    # A column of pixels reads its edges: small granules.
    "ReplacingMergeTree ORDER BY (run, key, attempt, ordinal) SETTINGS index_granularity = 256,"
    " min_compress_block_size = 8192",
)
SERIES_TABLE = Table(
    "series",
    "one row for each metric of an attempt",
    (
        RUN_COLUMN,
        Column("key", NAME_TYPE, "name of the metric, as logged"),
        Column("attempt", "UInt32", "number of the attempt"),
        Column("points", "SimpleAggregateFunction(max, UInt64)", "number of points"),
        Column(
            "last",
            "SimpleAggregateFunction(max, Tuple(UInt32, UInt64, Int64, Float64, Float64))",
            "newest point: attempt, ordinal, step, time, value",
        ),
    ),
    "AggregatingMergeTree ORDER BY (run, key, attempt)",
    is_public=False,
)
PIXEL_TABLE = Table(
    "pixels",
    "one row for each bucket of points of one kind: finite, NaN, +inf, -inf",
    (
        RUN_COLUMN,
        Column("key", NAME_TYPE, "name of the metric, as logged"),
        Column("attempt", "UInt32", "number of the attempt"),
        Column("bucket", "UInt64", f"ordinal / {BUCKET_POINTS}"),
        Column("kind", "UInt8", "0: finite, 1: NaN, 2: +inf, 3: -inf"),
        Column("first", f"SimpleAggregateFunction(min, {ORDERED_POINT})", "first point"),
        Column("last", f"SimpleAggregateFunction(max, {ORDERED_POINT})", "last point"),
        Column("low", f"SimpleAggregateFunction(min, {LOWEST_POINT})", "lowest point"),
        Column("high", f"SimpleAggregateFunction(min, {LOWEST_POINT})", "highest, value negated"),
        Column("begin", "SimpleAggregateFunction(min, UInt64)", "lowest ordinal"),
        Column("end", "SimpleAggregateFunction(max, UInt64)", "highest ordinal"),
    ),
    "AggregatingMergeTree ORDER BY (run, key, attempt, bucket, kind)",
    is_public=False,
)
ROLLOUT_TABLE = Table(
    "rollouts",
    "one row for each rollout: its numbers, not its texts",
    (
        RUN_COLUMN,
        Column("file", NAME_TYPE, "file below the run's folder"),
        Column("offset", "Int64", "place of the record in the file, bytes", DELTA_CODEC),
        Column("size", "Int64", "bytes of the record", DELTA_CODEC),
        Column("row", "Int32", "row within the record", DELTA_CODEC),
        Column("item", "Int32", "number of the sample within the row", DELTA_CODEC),
        Column("step", "Int64", "step; -1: not recorded", STEP_CODEC),
        Column("split", "UInt8", "1: of an evaluation"),
        Column("task", NAME_TYPE, "task"),
        Column("stop_reason", NAME_TYPE, "why the response ended"),
        Column("error", NAME_TYPE, "first line of the error"),
        Column("reward", "Float64", "reward", "Gorilla, ZSTD"),
        Column("advantage", "Float64", "advantage", "Gorilla, ZSTD"),
        Column("seconds", "Float32", "time the rollout took", "Gorilla, ZSTD"),
        Column("policy_version", "Int64", "version of the policy; -1: not recorded", DELTA_CODEC),
        Column("turns", "Int32", "turns of the policy"),
        Column("tool_calls", "Int32", "calls of tools"),
        Column("failed_calls", "Int32", "calls that failed"),
        Column("characters", "Int32", "length of the policy's text"),
        Column("token_count", "Int32", "tokens; -1: not recorded"),
        Column("looping", "UInt8", "1: the text ends in one phrase over and over"),
        Column("prompt", "UInt64", "hash of the prompt"),
        Column("group", "UInt64", "hash of the group"),
        Column("parts", f"Map({NAME_TYPE}, Float64)", "score of each reward part"),
    ),
    "ReplacingMergeTree ORDER BY (run, file, offset, row, item)",
)
ORIGIN_TABLE = Table(
    "origin",
    "the root whose runs the database holds",
    (
        Column("root", "String", "folder"),
        Column("version", "UInt32", "version of the tables"),
        Column("bucket_points", "UInt32", "points of a bucket"),
    ),
    "MergeTree ORDER BY version",
    is_public=False,
)
RUN_TABLES = (POINT_TABLE, SERIES_TABLE, PIXEL_TABLE, ROLLOUT_TABLE)  # whose rows belong to a run

SETTING_VIEW = Table(
    "settings",
    "one row for each setting of a run",
    (
        RUN_COLUMN,
        Column("key", "String", "name, its parts joined by /"),
        Column("value", "String", "text"),
        Column("number", "Nullable(Float64)", "value of a number"),
    ),
    "SELECT path AS run, key, value, number FROM runs FINAL ARRAY JOIN setting_keys AS key,"
    " setting_values AS value, setting_numbers AS number",
)
FINDINGS_VIEW = Table(
    "findings",
    "one row for each finding of a run's last judgement",
    (
        RUN_COLUMN,
        Column("rule", "String", "rule"),
        Column("severity", "String", "error, warning or note"),
        Column("metric", "String", "metric that shows it"),
        Column("onset", "Int64", "step at which the fault began"),
        Column("last_step", "Int64", "last step that shows it"),
        Column("observed", "Nullable(Float64)", "number that was judged"),
        Column("summary", "String", "sentence with the numbers"),
    ),
    "SELECT path AS run, f.rule AS rule, f.severity AS severity, f.metric AS metric,"
    " f.onset AS onset, f.last_step AS last_step, f.observed AS observed, f.summary AS summary"
    " FROM runs FINAL ARRAY JOIN findings AS f",
)
LAST_VALUES_VIEW = Table(
    "last_values",
    "the newest point of each metric of a run",
    (
        RUN_COLUMN,
        Column("key", NAME_TYPE, "name of the metric, as logged"),
        Column("step", "Int64", "step"),
        Column("time", "Float64", "seconds since the epoch"),
        Column("value", "Float64", "value"),
    ),
    "SELECT run, key, newest.3 AS step, newest.4 AS time, newest.5 AS value"
    " FROM (SELECT run, key, max(last) AS newest FROM series GROUP BY run, key)",
)
STORE_VIEWS = (SETTING_VIEW, FINDINGS_VIEW, LAST_VALUES_VIEW)
PUBLIC_TABLES = (RUN_TABLE, *STORE_VIEWS, POINT_TABLE, ROLLOUT_TABLE)


def point_key(step: str, attempt: str, ordinal: str) -> str:
    """Return a number that sorts as the tuple does: it is compared 20 times as fast."""
    steps = f"toUInt128(bitXor(reinterpretAsUInt64({step}), 9223372036854775808))"
    return f"bitShiftLeft({steps}, 64) + {place_key(attempt, ordinal)}"


def place_key(attempt: str, ordinal: str) -> str:
    """Return a number that sorts as attempt and ordinal, the latter below 2 ** 40."""
    return f"bitShiftLeft(toUInt64({attempt}), 40) + {ordinal}"


def value_key(value: str, step: str, attempt: str, ordinal: str) -> str:
    """Return a number that sorts as the tuple does, whose value is finite."""
    bits = f"reinterpretAsUInt64({value} + 0.)"  # + 0.: -0.0 is 0.0
    ordered = f"if({bits} >= 9223372036854775808, bitNot({bits}), {bits} + 9223372036854775808)"
    return (
        f"bitShiftLeft(toUInt256({ordered}), 128) + toUInt256({point_key(step, attempt, ordinal)})"
    )


POINT_KIND = "multiIf(isFinite(value), 0, isNaN(value), 1, value > 0, 2, 3)::UInt8"
PLACE_NAMES = ("step", "attempt", "ordinal")
# Of points that are read: as what the columns of `pixels` hold.
POINT_EXTREMES = f"""
    argMin((step, attempt, ordinal, time, value), {point_key(*PLACE_NAMES)}) AS first,
    argMax((step, attempt, ordinal, time, value), {point_key(*PLACE_NAMES)}) AS last,
    argMin((value, step, attempt, ordinal, time), {value_key("value", *PLACE_NAMES)}) AS low,
    argMin((-value, step, attempt, ordinal, time), {value_key("-value", *PLACE_NAMES)}) AS high"""


def create_statements() -> tuple[str, ...]:
    """Return the statements that create all tables and views where they are missing."""
    series = f"""SELECT run, key, attempt, max(ordinal) + 1 AS points,
    argMax((attempt, ordinal, step, time, value), {place_key("attempt", "ordinal")}) AS last
  FROM points GROUP BY run, key, attempt"""  # noqa: S608 - our own names
    pixels = f"""SELECT run, key, attempt, intDiv(ordinal, {BUCKET_POINTS}) AS bucket,
    {POINT_KIND} AS kind, {POINT_EXTREMES}, min(ordinal) AS begin, max(ordinal) AS end
  FROM points GROUP BY run, key, attempt, bucket, kind"""  # noqa: S608 - the same
    feeds = {SERIES_TABLE: series, PIXEL_TABLE: pixels}
    view = "CREATE MATERIALIZED VIEW IF NOT EXISTS"
    tables = (RUN_TABLE, POINT_TABLE, SERIES_TABLE, PIXEL_TABLE, ROLLOUT_TABLE, ORIGIN_TABLE)
    return (
        *(table.create() for table in tables),
        *(f"CREATE VIEW IF NOT EXISTS `{table.name}` AS {table.engine}" for table in STORE_VIEWS),
        *(f"{view} `{table.name}_feed` TO `{table.name}` AS {feeds[table]}" for table in feeds),
    )


def describe_tables() -> str:
    """Return the public tables and their columns as text, one column a line."""
    lines = []
    for table in PUBLIC_TABLES:
        lines.append(f"  {table.name}: {table.doc}")
        width = max(map(len, table.names))
        lines += [
            f"  {column.name:{width}}  {column.doc}" for column in table.columns if column.doc
        ]
    return "\n".join(lines)
