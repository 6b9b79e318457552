"""Index the runs of a folder, here or in ClickHouse, for `runs`, `triage`, `serve` and `sql`.

Without --to the index lies next to the runs, in SQLite. With --to the database gets each run, its
settings, findings and rollouts, and every logged number: what is new since the last time alone.
A database holds the runs of one ROOT. The password is the URL's or that of CLICKHOUSE_PASSWORD.
ROOT may be a bucket (s3://bucket/runs): what is new there is copied into the cache first.

examples:
  rlvitals index runs
  rlvitals index runs --to clickhouse://me@host:8123/runs
  rlvitals index runs --to clickhouse://me@host:8443/runs?secure=1 --follow
  rlvitals index runs --to chdb:runs.chdb
  rlvitals index s3://bucket/runs --to clickhouse://me@host/runs --follow
"""

import time
from argparse import ArgumentParser, Namespace
from contextlib import ExitStack
from pathlib import Path

from rlvitals.cli import judging
from rlvitals.cli.command import EXIT_OK, Command
from rlvitals.errors import quantity

JUDGING_INTERVAL = 60.0  # seconds between two judgements of runs that are being written


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the root, the database and how long to follow."""
    parser.add_argument(
        "root", type=Path, metavar="ROOT", help="a folder with run folders, or a bucket's URL"
    )
    parser.add_argument(
        "--to", default="", metavar="URL",
        help="clickhouse://user@host:port/database?secure=1, or chdb:FOLDER",
    )  # fmt: skip
    parser.add_argument("--follow", action="store_true", help="go on until Ctrl-C")
    parser.add_argument(
        "--every", type=float, default=5.0, metavar="SECONDS",
        help="pause between two looks with --follow (default: 5)",
    )  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="judge no run")


def run(args: Namespace) -> int:
    """Refresh the index, judge what changed and copy what is new."""
    from rlvitals.hosted import fetch
    from rlvitals.storage import find_run_folders
    from rlvitals.storage.index import Index

    find = fetch.keep_up_to_date if args.follow else fetch.local_path
    folder = find(args.root)
    find_run_folders.run_folders(folder)  # raises if there is none
    judging_time = -JUDGING_INTERVAL
    with ExitStack() as stack:
        index = stack.enter_context(Index(folder))
        filler = None
        if args.to:
            from rlvitals.clickhouse.fill import Filler
            from rlvitals.clickhouse.run_store import RunStore

            store = RunStore.create(args.to, fetch.root_name(args.root))
            filler = Filler(index, stack.enter_context(store))
        while True:
            index.refresh()
            if not args.quick and time.monotonic() - judging_time >= JUDGING_INTERVAL:
                judging.judge_index(index)
                judging_time = time.monotonic()
            if filler is None:
                print(quantity(len(index), "run"))
            else:
                counts = filler.fill()
                print(
                    f"{quantity(counts.runs, 'run')} written, {quantity(counts.points, 'point')},"
                    f" {quantity(counts.rollouts, 'rollout')},"
                    f" {quantity(counts.removed, 'run')} removed",
                    flush=True,
                )
            if not args.follow:
                return EXIT_OK
            time.sleep(args.every)


COMMAND = Command("index", __doc__, add_arguments, run)
