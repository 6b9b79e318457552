"""List the runs that were recorded under a folder, the newest first.

A plain word matches names, tags and notes; tag:x, project:x, group:x, status:x and
verdict:x match one field; lr=1e-3 or "lr<1e-3" matches a setting, job/id=7 the scheduler's job.
A run is judged if it is new, has changed or may be running. The results are stored in an index in
ROOT, which may be deleted.

Runs in a bucket (s3://bucket/runs) are listed from the index in the bucket, without verdicts, with
the same words. Without an index their manifests are listed, of the first 1,000 names: then steps
and status are not known.

examples:
  rlvitals runs runs
  rlvitals runs s3://bucket/runs
  rlvitals runs runs --search tag:sweep lr=1e-3
  rlvitals runs runs --search verdict:learning --sort step --limit 20
  rlvitals runs --index clickhouse://host/runs --search "lr<1e-3"
"""

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rlvitals.cli import flags, judging
from rlvitals.cli.command import Command
from rlvitals.errors import UnreadableLog, UsageError, harmless

if TYPE_CHECKING:
    from rlvitals.storage.run_query import Indexed


MIN_PACK_BYTES = 64 << 20  # reading the last values of so many bytes takes 0.1 s


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the root and the search."""
    parser.add_argument(
        "root", type=Path, nargs="?", default=Path(), metavar="ROOT",
        help="a folder with run folders, or a URL (default: the working folder)",
    )  # fmt: skip
    parser.add_argument(
        "--search", nargs="+", default=[], metavar="WORD", help="only runs that match every word"
    )
    parser.add_argument(
        "--sort", choices=("newest", "name", "step"), default="newest",
        help="last row first, by path, or most steps first (default: newest)",
    )  # fmt: skip
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N runs")
    flags.add_index(parser)
    freshness = parser.add_mutually_exclusive_group()
    freshness.add_argument("--diagnose", action="store_true", help="judge every run again")
    freshness.add_argument(
        "--quick", action="store_true", help="judge no run: show stored verdicts"
    )
    parser.add_argument("--rebuild", action="store_true", help="rebuild the index")
    parser.add_argument("--json", action="store_true", help="print the runs as JSON")


def run(args: Namespace) -> int:
    """Update the index and list the runs that match."""
    from rlvitals.hosted import address as hosted
    from rlvitals.storage import find_run_folders
    from rlvitals.storage.index import Index

    if args.index:
        return _list_from_store(args)
    root: Path = args.root
    if (bucket := hosted.parse(root)) is not None:
        if bucket.kind != hosted.Source.FILES or bucket.location.startswith(("sftp:", "hf:")):
            hint = f"rlvitals triage {root}"
            raise UsageError("neither a folder nor a bucket", where=str(root), hint=hint)
        return _list_bucket(bucket.location, args)
    find_run_folders.run_folders(root)  # raises if there is none
    with Index(root) as index:
        (index.rebuild if args.rebuild else index.refresh)()
        if not args.quick:
            judging.judge_index(index, judge_all=args.diagnose)
        entries = index.search(" ".join(args.search), args.sort, args.limit)
        count = len(index)
    _print_entries(entries, count, as_json=args.json)
    if args.json:
        return 0
    for entry in entries:
        for line in entry.wrong.splitlines():
            sys.stderr.write(f"{entry.path}: {harmless(line)}\n")
    large = [
        entry
        for entry in entries
        if entry.status != "running" and _count_unpacked_bytes(root / entry.path) > MIN_PACK_BYTES
    ]
    if large:
        are = "1 run is" if len(large) == 1 else f"{len(large)} runs are"
        print(f"{are} large and read faster once packed: rlvitals compact {root}")
    return 0


def _list_from_store(args: Namespace) -> int:
    """List the runs that ClickHouse knows: no folder is read, no run is judged."""
    from rlvitals.clickhouse.run_store import RunStore

    if args.diagnose or args.rebuild:
        hint = f"rlvitals index ROOT --to {args.index}"
        raise UsageError("--index reads no folder", where="--diagnose, --rebuild", hint=hint)
    with RunStore(args.index) as store:
        entries = store.search(" ".join(args.search), args.sort, args.limit)
        count = len(store)
    _print_entries(entries, count, as_json=args.json)
    return 0


def _print_entries(entries: "Sequence[Indexed]", count: int, *, as_json: bool) -> None:
    """Print the runs that fit, of how many they are, and the job of each where one has any."""
    from rlvitals.views import lists
    from rlvitals.views.console import emit

    if as_json:
        print(json.dumps([asdict(entry) for entry in entries], indent=1))
        return
    heads = ["run", "status", "step", "verdict", "attempts", "tags"]
    columns = {"group": [entry.group for entry in entries], "job": [entry.job for entry in entries]}
    filled = {head: texts for head, texts in columns.items() if any(texts)}
    rows = [[*_row(entry), *cells] for entry, *cells in zip(entries, *filled.values(), strict=True)]
    emit(lists.columns([*heads, *filled], rows))
    if len(entries) < count:
        print(f"{len(entries)} of {count} runs fit")


def _count_unpacked_bytes(folder: Path) -> int:
    """Count the bytes of a run's block files that are not compacted."""
    from rlvitals.storage.run_folder import block_files

    return sum(block.path.stat().st_size for block in block_files(folder) if block.path.exists())


def _list_bucket(url: str, args: Namespace) -> int:
    """List the runs of a bucket by its index: a request for each shard, none for a run.

    Without an index, by the manifests of the runs: three requests for each.
    """
    from rlvitals.bucket import run_index
    from rlvitals.bucket.object_store import ObjectStore
    from rlvitals.hosted.remote_files import naming_errors

    store = ObjectStore(url, tries=5)
    with naming_errors(url):
        entries, name_count = run_index.read(store), 0
        if not entries:
            entries, name_count = run_index.read_manifests(store, run_index.MAX_LISTED_RUNS)
    if entries and name_count:
        cut = f", of the first {run_index.MAX_LISTED_RUNS:,} of {name_count:,} names"
        is_cut = name_count > run_index.MAX_LISTED_RUNS
        sys.stderr.write(
            "no index of runs is in this bucket: listed by their manifests, without steps and "
            f"status{cut if is_cut else ''}\n"
        )
    if not entries:
        hint = "rlvitals triage reads the logs that lie there"
        raise UnreadableLog("no index of runs is in this bucket", where=url, hint=hint)
    matches = run_index.search(entries, " ".join(args.search), args.sort, args.limit)
    if args.json:
        listed = [{"path": match.path, **entries[match.path]} for match in matches]
        print(json.dumps(listed, indent=1))
        return 0
    _print_entries(matches, len(entries), as_json=False)
    return 0


def _row(entry: "Indexed") -> tuple[str, ...]:
    step = "" if entry.step is None else f"{entry.step:,}"
    name = (
        entry.path
        if entry.name in {entry.path, Path(entry.path).name}
        else f"{entry.path} ({entry.name})"
    )
    status = entry.problem or entry.status
    return name, status, step, entry.verdict, str(entry.attempts), ", ".join(entry.tags)


COMMAND = Command("runs", __doc__, add_arguments, run)
