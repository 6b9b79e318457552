"""List the runs that were recorded under a folder, the newest first.

A plain word is looked for in names, tags and notes; tag:x, project:x, group:x,
status:x and verdict:x ask for one; lr=1e-3 or "lr<1e-3" for a setting.
What is known of the folders is kept in an index beside them, which may be deleted.

examples:
  rlvitals runs runs
  rlvitals runs runs --search tag:sweep lr=1e-3
  rlvitals runs runs --diagnose --search verdict:learning
"""

import json
from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rlvitals.cli.command import Command
from rlvitals.errors import UnreadableLog

if TYPE_CHECKING:
    from rlvitals.store.index import Indexed


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the root and what to pick."""
    parser.add_argument("root", type=Path, metavar="ROOT", help="a folder with run folders")
    parser.add_argument(
        "--search", nargs="+", default=[], metavar="WORD", help="only runs that fit every word"
    )
    parser.add_argument("--diagnose", action="store_true", help="judge every run, and keep that")
    parser.add_argument("--rebuild", action="store_true", help="make the index again")
    parser.add_argument("--json", action="store_true", help="print the runs as JSON")


def run(args: Namespace) -> int:
    """Bring the index up to date, and list what fits."""
    from rlvitals.show import listing
    from rlvitals.show.console import emit
    from rlvitals.store import folders
    from rlvitals.store.index import Index

    root: Path = args.root
    known = [path.relative_to(root).as_posix() for path in folders.found(root)]
    with Index(root) as index:
        verdicts = _verdicts(root, known) if args.diagnose else {}
        (index.rebuild if args.rebuild else index.refresh)(verdicts)
        found, count = index.search(" ".join(args.search)), len(index)
    if args.json:
        print(json.dumps([asdict(one) for one in found], indent=1))
        return 0
    heads = ("run", "status", "step", "verdict", "attempts", "tags")
    emit(listing.columns(heads, [_row(one) for one in found]))
    if len(found) < count:
        print(f"{len(found)} of {count} runs fit")
    return 0


def _verdicts(root: Path, paths: list[str]) -> dict[str, str]:
    """Judge every run that can be read."""
    from rlvitals import api

    found = {}
    for path in paths:
        try:
            found[path] = str(api.diagnose(root / path).verdict.word)
        except UnreadableLog:
            found[path] = "unreadable"
    return found


def _row(one: "Indexed") -> tuple[str, ...]:
    step = "" if one.step is None else f"{one.step:,}"
    name = one.path if one.name in {one.path, Path(one.path).name} else f"{one.path} ({one.name})"
    status = one.problem or one.status
    return name, status, step, one.verdict, str(one.attempts), ", ".join(one.tags)


COMMAND = Command("runs", __doc__, add_arguments, run)
