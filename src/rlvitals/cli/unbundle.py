"""Unpack a bundle of a run: each file verified, the folder whole or not at all.

The archive may come from anybody: names that lead out of the folder, links, devices, doubles and
bombs are refused, and then nothing of it stays.

exit code: 0  unpacked
           2  wrong usage: a folder is in the way
           3  no bundle, damaged, or refused

examples:
  rlvitals unbundle my_run.tar.zst
  rlvitals unbundle my_run.zip -o runs/my_run
"""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from rlvitals.cli import restore
from rlvitals.cli.command import Command


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the archive and where to."""
    parser.add_argument("archive", type=Path, metavar="ARCHIVE", help="what was packed")
    restore.add_destination(parser)
    parser.add_argument(
        "--max-ratio",
        type=float,
        default=1000.0,
        metavar="NUMBER",
        help="unpacked bytes for each packed one, above which it is a bomb (default: 1000)",
    )


def run(args: Namespace) -> int:
    """Unpack the run, and say what to do next."""
    from rlvitals.checkpoints.transfer.byte_text import format_bytes
    from rlvitals.checkpoints.transfer.unbundle import unbundle
    from rlvitals.errors import VitalsError

    try:
        done = unbundle(args.archive, args.output, force=args.force, ratio=args.max_ratio)
    except OSError as error:
        where = str(error.filename or args.archive)
        raise VitalsError(f"not unpacked: {error.strerror or error}", where=where) from None
    if done.aside is not None:
        print(f"  the folder that was there lies in {done.aside}")
    newest = f"newest: step {done.steps[-1]:,}" if done.steps else "no checkpoint"
    print(
        f"✓ Unpacked: {done.folder}: {done.files:,} files, "
        f"{format_bytes(done.size)} verified; {newest}"
    )
    if done.steps:
        print(restore.GOES_ON.format(done.folder))
    return 0


COMMAND = Command("unbundle", __doc__, add_arguments, run)
