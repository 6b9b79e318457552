"""List the runs that were recorded under a folder, the newest first.

A plain word is looked for in names, tags and notes; tag:x, project:x, group:x,
status:x and verdict:x ask for one; lr=1e-3 or "lr<1e-3" for a setting.
A run is judged when it is new, has changed or may be running; what is known of the folders is kept
in an index beside them, which may be deleted.

A bucket's runs (s3://bucket/runs) are listed by the index that lies there, without a judgement;
words alone are looked for.

examples:
  rlvitals runs runs
  rlvitals runs s3://bucket/runs
  rlvitals runs runs --search tag:sweep lr=1e-3
  rlvitals runs runs --search verdict:learning
"""

import json
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rlvitals import settings
from rlvitals.cli.command import Command
from rlvitals.errors import UnreadableLog, UsageError, harmless
from rlvitals.storage import toml_files

if TYPE_CHECKING:
    from rlvitals.readers.discovery.sources import Run
    from rlvitals.storage.index import Indexed


LARGE_RUN_BYTES = 64 << 20  # reading the last values of so many bytes takes 0.1 s


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the root and the search."""
    parser.add_argument(
        "root", type=Path, metavar="ROOT", help="a folder with run folders, or a URL"
    )
    parser.add_argument(
        "--search", nargs="+", default=[], metavar="WORD", help="only runs that fit every word"
    )
    judging = parser.add_mutually_exclusive_group()
    judging.add_argument("--diagnose", action="store_true", help="judge every run again")
    judging.add_argument(
        "--quick", action="store_true", help="judge none: show the verdicts that are known"
    )
    parser.add_argument("--rebuild", action="store_true", help="make the index again")
    parser.add_argument("--json", action="store_true", help="print the runs as JSON")


def run(args: Namespace) -> int:
    """Update the index and list the runs that match."""
    from rlvitals.errors import harmless
    from rlvitals.storage import find_run_folders
    from rlvitals.storage.index import Index
    from rlvitals.views import lists
    from rlvitals.views.console import emit

    root: Path = args.root
    from rlvitals.hosted import address as hosted

    if (bucket := hosted.parse(root)) is not None:
        return _list_bucket(bucket.location, args)
    find_run_folders.run_folders(root)  # raises if there is none
    with Index(root) as index:
        (index.rebuild if args.rebuild else index.refresh)()
        if not args.quick:
            judge = _judge_id(root)
            paths = index.unjudged("" if args.diagnose else judge)
            index.note(_verdicts(root, paths), judge)
        entries, count = index.search(" ".join(args.search)), len(index)
    if args.json:
        print(json.dumps([asdict(entry) for entry in entries], indent=1))
        return 0
    heads = ("run", "status", "step", "verdict", "attempts", "tags")
    emit(lists.columns(heads, [_row(entry) for entry in entries]))
    if len(entries) < count:
        print(f"{len(entries)} of {count} runs fit")
    for entry in entries:
        for line in entry.wrong.splitlines():
            sys.stderr.write(f"{entry.path}: {harmless(line)}\n")
    large = [
        entry
        for entry in entries
        if entry.status != "running" and _count_unpacked_bytes(root / entry.path) > LARGE_RUN_BYTES
    ]
    if large:
        are = "1 run is" if len(large) == 1 else f"{len(large)} runs are"
        print(f"{are} large and read faster once packed: rlvitals compact {root}")
    return 0


def _count_unpacked_bytes(folder: Path) -> int:
    """Count the bytes of a run's block files that are not compacted."""
    from rlvitals.storage.run_folder import block_files

    return sum(block.path.stat().st_size for block in block_files(folder) if block.path.exists())


def _list_bucket(url: str, args: Namespace) -> int:
    """List the runs of a bucket by its index: a request for each shard, none for a run."""
    from rlvitals.bucket import run_index
    from rlvitals.bucket.object_store import ObjectStore
    from rlvitals.views import lists
    from rlvitals.views.console import emit

    entries = run_index.read(ObjectStore(url))
    if not entries:
        hint = "rlvitals triage reads the logs that lie there"
        raise UnreadableLog("no index of runs is in this bucket", where=url, hint=hint)
    matches = {
        name: entry for name, entry in entries.items()
        if all(term.lower() in json.dumps(entry).lower() for term in args.search)
    }  # fmt: skip
    order = sorted(matches, key=lambda name: -(matches[name].get("time") or 0.0))
    if args.json:
        print(json.dumps([{"path": name, **matches[name]} for name in order], indent=1))
        return 0
    rows = [
        (name, *(str(matches[name].get(key) or "") for key in ("status", "step", "attempts")),
         " ".join(map(str, matches[name].get("tags") or ())))
        for name in order
    ]  # fmt: skip
    emit(lists.columns(("run", "status", "step", "attempts", "tags"), rows))
    if len(matches) < len(entries):
        print(f"{len(matches)} of {len(entries)} runs fit")
    return 0


def _judge_id(root: Path) -> str:
    """Identify the judging version and settings: another one may give other verdicts."""
    import rlvitals

    states = [file.path.stat() for file in toml_files.find(root, os.environ)]
    return rlvitals.__version__ + "".join(
        f" {state.st_size} {state.st_mtime_ns}" for state in states
    )


def _verdicts(root: Path, paths: Sequence[str]) -> dict[str, str]:
    """Return the verdict of each run, "unreadable" where its log is; skip wrong settings."""
    from rlvitals.diagnosis import batch
    from rlvitals.views.progress import progress

    requests, verdicts = {}, dict.fromkeys(paths, "unreadable")
    for path in paths:
        if (run := _run(root / path)) is None:
            continue
        try:
            requests[path] = (run, settings.load(root / path, {}, os.environ))
        except UsageError as error:
            del verdicts[path]
            text = f"{path} is not judged: {error.problem} ({error.where})"
            sys.stderr.write(f"{harmless(text)}\n")
    answers = progress(batch.diagnose([*requests.values()]), len(requests))
    for path, answer in zip(requests, answers, strict=True):
        if not isinstance(answer, UnreadableLog):
            verdicts[path] = str(answer.verdict.word)
    return verdicts


def _run(folder: Path) -> "Run | None":
    """Return the run of a folder, the native one if several formats are present."""
    from rlvitals.diagnosis import load

    try:
        runs = load.runs(folder)
    except UnreadableLog:
        return None
    ours = (run for run in runs if any(reader.name == "rlvitals" for _, reader in run.files))
    return next(ours, runs[0])


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
