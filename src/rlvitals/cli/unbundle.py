"""Unpack a bundle of a run: each file verified, the whole folder or nothing.

The archive need not be trusted: paths outside the folder, links, devices, duplicate names and
decompression bombs are refused, and then nothing is written.

exit code: 0  unpacked
           2  wrong usage, or the folder exists
           3  not a bundle, damaged, or refused

examples:
  rlvitals unbundle my_run.tar.zst
  rlvitals unbundle my_run.zip -o runs/my_run
"""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from rlvitals.cli import restore
from rlvitals.cli.command import Command
from rlvitals.errors import quantity


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the archive and the destination."""
    parser.add_argument(
        "archive", type=Path, metavar="ARCHIVE", help="a file of `rlvitals bundle RUN`"
    )
    restore.add_destination(parser)
    parser.add_argument(
        "--max-ratio",
        type=float,
        default=1000.0,
        metavar="NUMBER",
        help="refuse archives with more unpacked bytes per packed byte (default: 1000)",
    )


def run(args: Namespace) -> int:
    """Unpack the run and print the next step."""
    from rlvitals.checkpoints.transfer.byte_text import format_bytes
    from rlvitals.checkpoints.transfer.unbundle import unbundle
    from rlvitals.errors import VitalsError

    try:
        result = unbundle(args.archive, args.output, force=args.force, ratio=args.max_ratio)
    except OSError as error:
        path = str(error.filename or args.archive)
        raise VitalsError(f"not unpacked: {error.strerror or error}", where=path) from None
    if result.aside is not None:
        print(f"  the folder that was there lies in {result.aside}")
    newest = f"newest: step {result.steps[-1]:,}" if result.steps else "no checkpoint"
    files = f"{quantity(result.files, 'file')}, {format_bytes(result.size)} verified"
    print(f"✓ Unpacked: {result.folder}: {files}; {newest}")
    if result.steps:
        print(restore.RESTORED_HINT.format(result.folder))
    return 0


COMMAND = Command("unbundle", __doc__, add_arguments, run)
