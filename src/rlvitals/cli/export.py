"""Write a run's numbers as a table, or any readable run as an rlvitals run folder.

The suffix of TARGET selects the format. .csv, .jsonl, .parquet and .xlsx give one table with a
column for each key and a row for each step. Any other name is a run folder to create.

examples:
  rlvitals export runs/my_run numbers.csv
  rlvitals export runs/my_run numbers.xlsx
  rlvitals export runs/my_run numbers.parquet --keys train/loss,rollout/ep_rew_mean
  rlvitals export tb_logs/PPO_1 runs/imported
"""

from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rlvitals.cli.command import Command
from rlvitals.errors import UsageError, nearest, quantity

if TYPE_CHECKING:  # they load numpy
    from collections.abc import Sequence

    from rlvitals.types import Log


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the source, the target and the keys."""
    parser.add_argument("path", type=Path, metavar="PATH", help="a log or a run's folder")
    parser.add_argument(
        "target", type=Path, metavar="TARGET", help="the table or run folder to write"
    )
    parser.add_argument("--keys", metavar="KEY,...", help="only these keys, by their logged names")
    parser.add_argument("--force", action="store_true", help="replace an existing table")


def run(args: Namespace) -> int:
    """Read the run and write it."""
    from rlvitals import api
    from rlvitals.storage import import_log
    from rlvitals.storage.export import WRITERS, export

    suffix = args.target.suffix.lower()
    is_table = suffix in WRITERS
    # A file by its name: a run folder of that name is not what was meant.
    if suffix in {".arrow", ".feather", ".h5", ".json", ".ods", ".pq", ".tsv", ".txt", ".xls"}:
        hint = ", ".join(args.target.with_suffix(ending).name for ending in WRITERS)
        raise UsageError(f"no table is written as {suffix}", where=str(args.target), hint=hint)
    if is_table and args.target.exists() and not args.force:
        raise UsageError("a file is there already", where=str(args.target), hint="--force")
    logs = _select_keys(api.read(args.path), args.keys)
    if not is_table:
        name = args.target.resolve().name
        import_log.write(logs, args.target, name)
        count = sum(len(log.series) for log in logs)
        print(f"{args.target}: {quantity(count, 'key')}, rlvitals diagnose {args.target}")
        return 0
    series = import_log.merge_series(logs)
    rows = export(series, args.target)
    print(f"{args.target}: {quantity(rows, 'row')}, {quantity(len(series), 'key')}")
    return 0


def _select_keys(logs: "Sequence[Log]", keys_text: str | None) -> "list[Log]":
    """Return the logs with the requested keys only. Raises UsageError for a key not logged."""
    if keys_text is None:
        return list(logs)
    logged_keys = {key for log in logs for key in log.series}
    keys = {key.strip() for key in keys_text.split(",")}
    for key in sorted(keys - logged_keys):
        hint = nearest(key, logged_keys) or "rlvitals metrics PATH"
        raise UsageError(f"{key!r} is not logged", where="--keys", hint=hint)
    return [
        replace(log, series={key: series for key, series in log.series.items() if key in keys})
        for log in logs
    ]


COMMAND = Command("export", __doc__, add_arguments, run)
