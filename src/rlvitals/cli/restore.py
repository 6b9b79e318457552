"""Restore a run from its backup, each file verified; the same training command resumes it.

The folder appears once it is complete; the same command continues an interrupted restore. An
existing folder with the same run at an older step is renamed to <name>.before. Any other existing
folder is an error; --force renames it, too.

exit code: 0  everything is restored
           1  a part of the backup is damaged; the rest is restored
           2  wrong usage, or the folder exists
           3  no backup at TARGET

examples:
  rlvitals restore /mnt/backup/my_run
  rlvitals restore s3://bucket/my_run -o runs/my_run
"""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from rlvitals.cli.command import EXIT_OK, EXIT_PROBLEM, Command
from rlvitals.errors import quantity

RESTORED_HINT = "  the same training command, writing to {}, goes on from there"


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the backup and the destination."""
    parser.add_argument("target", metavar="TARGET", help="the folder or URL of the backup")
    add_destination(parser)


def add_destination(parser: ArgumentParser) -> None:
    """Declare the destination of a run's folder."""
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FOLDER",
        help="the run folder to write (default: the run's name, in the working folder)",
    )
    parser.add_argument(
        "--force", action="store_true", help="rename an existing folder to <name>.before"
    )


def run(args: Namespace) -> int:
    """Restore the run and print the next step."""
    from rlvitals.bucket.node_manifest import upload_prefixes
    from rlvitals.checkpoints.transfer.backup_target import open_target
    from rlvitals.checkpoints.transfer.restore import restore
    from rlvitals.errors import VitalsError

    source, rows = open_target(args.target), upload_prefixes()
    try:
        result = restore(
            source, args.output, force=args.force,
            tell=lambda text: print(f"  {text}", flush=True), mirror_prefixes=rows,
        )  # fmt: skip
    except OSError as error:
        raise VitalsError(
            f"not restored: {error.strerror or error}",
            where=str(error.filename or source.name),
            hint="the same command goes on where this one stopped",
        ) from None
    for text in result.damaged:
        print(f"  {text}", file=sys.stderr)
    for text in result.left:
        print(f"  {text}")
    if result.aside is not None:
        print(f"  the folder that was there lies in {result.aside}")
    newest = f"newest: step {result.newest:,}" if result.newest is not None else "no checkpoint"
    head = "Restored in part" if result.damaged else "✓ Restored"
    print(f"{head}: {result.folder}: {quantity(result.files, 'file')} verified; {newest}")
    if result.newest is not None:
        print(RESTORED_HINT.format(result.folder))
    return EXIT_PROBLEM if result.damaged else EXIT_OK


COMMAND = Command("restore", __doc__, add_arguments, run)
