"""Put a run or a sealed checkpoint on legal hold: nothing of it is removed or thinned.

The mark is the file `hold.json` in the folder. While it is there, `rlvitals prune ROOT`, `compact`,
the checkpoints that a training deletes and a backup that follows it leave the folder as it is. A
mark in a folder of runs holds the runs in it.

examples:
  rlvitals hold runs/my_run --reason audit
  rlvitals hold runs/my_run/checkpoint-5000
  rlvitals hold runs/my_run --release
"""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from rlvitals.cli.command import EXIT_OK, EXIT_PROBLEM, Command
from rlvitals.errors import UnreadableLog


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the folder, the reason and the release."""
    parser.add_argument(
        "path", type=Path, metavar="PATH", help="the folder of a run or of a checkpoint"
    )
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--reason", default="", metavar="TEXT", help="why, for `prune --plan`")
    action.add_argument("--release", action="store_true", help="remove the hold")


def run(args: Namespace) -> int:
    """Place or release the hold; exit with 1 where there is none to release."""
    from rlvitals.storage import holds

    if not args.path.is_dir():
        hint = "the folder of a run or of a checkpoint"
        raise UnreadableLog("no folder is at this path", where=str(args.path), hint=hint)
    try:
        if not args.release:
            holds.add(args.path, args.reason)
            print(f"{args.path} is on hold")
            return EXIT_OK
        was_held = holds.release(args.path)
    except OSError as error:
        problem = f"the hold cannot be changed: {error.strerror or error}"
        raise UnreadableLog(problem, where=str(args.path)) from None
    print(f"{args.path} {'is released' if was_held else 'was not on hold'}")
    return EXIT_OK if was_held else EXIT_PROBLEM


COMMAND = Command("hold", __doc__, add_arguments, run)
