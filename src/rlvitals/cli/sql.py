"""Ask the run index in SQL: of a folder by SQLite, of a database by ClickHouse. Read-only.

SOURCE is a folder with runs, or s3://bucket/runs, or a database: clickhouse://user@host:port/name,
chdb:FOLDER.
On a folder its index is brought up to date, but no run is judged: `rlvitals index ROOT` does.
There `last_values` and `points` (run, key, step, time, value) are read from the run folders where
a query names them, NaN is NULL, and there are no `rollouts`.

examples:
  rlvitals sql runs "select path, verdict from runs where status = 'running'"
  rlvitals sql runs "select run, value from last_values where key = 'train/loss' order by value"
  rlvitals sql clickhouse://me@host/runs "select rule, count() from findings group by rule" --csv
"""

import csv
import json
import math
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlvitals.cli.command import EXIT_OK, Command
from rlvitals.clickhouse import store_tables

Answer = tuple[Sequence[str], Sequence[Sequence[Any]]]  # names of the columns, rows


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the source, the query and the output."""
    parser.add_argument(
        "source", metavar="SOURCE", help="a folder, a bucket, or a database of ClickHouse"
    )
    parser.add_argument(
        "query", nargs="?", metavar="QUERY", help="one query (default: standard input)"
    )
    output_format = parser.add_mutually_exclusive_group()
    output_format.add_argument("--csv", action="store_true", help="print CSV")
    output_format.add_argument("--json", action="store_true", help="print an object for each row")


def run(args: Namespace) -> int:
    """Answer one query."""
    from rlvitals.clickhouse.connection import READ_ONLY, is_url

    query = sys.stdin.read() if args.query is None else args.query
    names: Sequence[str]
    rows: Sequence[Sequence[Any]]
    if is_url(args.source):
        from rlvitals.clickhouse.run_store import RunStore

        with RunStore(args.source) as store:
            names, rows = store.connection.query_table(query, settings=READ_ONLY)
    else:
        from rlvitals.hosted import fetch

        root = fetch.local_path(Path(args.source))
        from rlvitals.storage import find_run_folders
        from rlvitals.storage.index import Index
        from rlvitals.storage.index_sql import ask

        find_run_folders.run_folders(root)  # raises if there is none
        with Index(root) as index:
            index.refresh()
            names, rows = ask(index, query)
    if args.json:
        cells = [[_plain(cell) for cell in row] for row in rows]
        print(json.dumps([dict(zip(names, row, strict=True)) for row in cells], indent=1))
    elif args.csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerows([names, *rows])
    else:
        from rlvitals.views import lists
        from rlvitals.views.console import emit

        emit(lists.columns(names, [["" if c is None else str(c) for c in row] for row in rows]))
    return EXIT_OK


def _plain(cell: object) -> object:
    """Return a cell as JSON can hold it: NaN and infinities as texts."""
    if isinstance(cell, float) and not math.isfinite(cell):
        return str(cell)
    if isinstance(cell, list | tuple):
        return [_plain(item) for item in cell]
    if isinstance(cell, dict):
        return {str(key): _plain(item) for key, item in cell.items()}
    return cell if isinstance(cell, str | int | float | bool | None) else str(cell)


COMMAND = Command(
    "sql", f"{__doc__}\ntables:\n{store_tables.describe_tables()}\n", add_arguments, run
)
