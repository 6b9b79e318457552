"""List the runs that were recorded under a folder, the newest first.

A plain word is looked for in names, tags and notes; tag:x, project:x, group:x,
status:x and verdict:x ask for one; lr=1e-3 or "lr<1e-3" for a setting.
A run is judged when it is new, has changed or may be running; what is known of the folders is kept
in an index beside them, which may be deleted.

examples:
  rlvitals runs runs
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


LARGE = 64 << 20  # bytes: the last values of so much take a tenth of a second


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the root and what to pick."""
    parser.add_argument("root", type=Path, metavar="ROOT", help="a folder with run folders")
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
    """Bring the index up to date, and list what fits."""
    from rlvitals.errors import harmless
    from rlvitals.storage import find_run_folders
    from rlvitals.storage.index import Index
    from rlvitals.views import lists
    from rlvitals.views.console import emit

    root: Path = args.root
    find_run_folders.run_folders(root)  # or say that there is none
    with Index(root) as index:
        (index.rebuild if args.rebuild else index.refresh)()
        if not args.quick:
            judge = _judge(root)
            paths = index.unjudged("" if args.diagnose else judge)
            index.note(_verdicts(root, paths), judge)
        found, count = index.search(" ".join(args.search)), len(index)
    if args.json:
        print(json.dumps([asdict(one) for one in found], indent=1))
        return 0
    heads = ("run", "status", "step", "verdict", "attempts", "tags")
    emit(lists.columns(heads, [_row(one) for one in found]))
    if len(found) < count:
        print(f"{len(found)} of {count} runs fit")
    for one in found:
        for wrong in one.wrong.splitlines():
            sys.stderr.write(f"{one.path}: {harmless(wrong)}\n")
    large = [one for one in found if one.status != "running" and _unpacked(root / one.path) > LARGE]
    if large:
        are = "1 run is" if len(large) == 1 else f"{len(large)} runs are"
        print(f"{are} large and read faster once packed: rlvitals compact {root}")
    return 0


def _unpacked(folder: Path) -> int:
    """Count the bytes of a run's blocks as they were written."""
    from rlvitals.storage.run_folder import block_files

    return sum(one.path.stat().st_size for one in block_files(folder) if one.path.exists())


def _judge(root: Path) -> str:
    """Tell what judges: another version, or other settings, may say otherwise."""
    import rlvitals

    states = [file.path.stat() for file in toml_files.find(root, os.environ)]
    return rlvitals.__version__ + "".join(f" {one.st_size} {one.st_mtime_ns}" for one in states)


def _verdicts(root: Path, paths: Sequence[str]) -> dict[str, str]:
    """Judge runs; one that cannot be read is "unreadable", one whose settings are wrong is not."""
    from rlvitals.diagnosis import batch
    from rlvitals.views.progress import progress

    asked, found = {}, dict.fromkeys(paths, "unreadable")
    for path in paths:
        if (run := _run(root / path)) is None:
            continue
        try:
            asked[path] = (run, settings.load(root / path, {}, os.environ))
        except UsageError as error:
            del found[path]
            text = f"{path} is not judged: {error.problem} ({error.where})"
            sys.stderr.write(f"{harmless(text)}\n")
    answers = progress(batch.diagnose([*asked.values()]), len(asked))
    for path, answer in zip(asked, answers, strict=True):
        if not isinstance(answer, UnreadableLog):
            found[path] = str(answer.verdict.word)
    return found


def _run(folder: Path) -> "Run | None":
    """Find the run of a run folder: our own, whatever else lies in it."""
    from rlvitals.diagnosis import load

    try:
        runs = load.runs(folder)
    except UnreadableLog:
        return None
    ours = (run for run in runs if any(reader.name == "rlvitals" for _, reader in run.files))
    return next(ours, runs[0])


def _row(one: "Indexed") -> tuple[str, ...]:
    step = "" if one.step is None else f"{one.step:,}"
    name = one.path if one.name in {one.path, Path(one.path).name} else f"{one.path} ({one.name})"
    status = one.problem or one.status
    return name, status, step, one.verdict, str(one.attempts), ", ".join(one.tags)


COMMAND = Command("runs", __doc__, add_arguments, run)
