"""Pack a run into one archive: its logs and its sealed checkpoints, each verified.

The suffix selects the format: .tar.zst, .tar.gz, .tar or .zip. The archive starts with a list of
its contents, and the same run gives the same bytes. It appears once it is complete.

exit code: 0  packed
           1  packed without a damaged checkpoint
           2  wrong usage
           3  nothing to pack

examples:
  rlvitals bundle runs/my_run
  rlvitals bundle runs/my_run -o my_run.zip --checkpoints latest
"""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from rlvitals.cli.command import EXIT_OK, EXIT_PROBLEM, Command
from rlvitals.errors import quantity


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the run, the archive, and the checkpoints to pack."""
    parser.add_argument("run", type=Path, metavar="RUN", help="a run's folder")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="ARCHIVE",
        help="the archive (default: the folder's name with .tar.zst, in the working folder)",
    )
    parser.add_argument(
        "--checkpoints",
        choices=("all", "latest", "none"),
        default="all",
        help="checkpoints to pack (default: all)",
    )
    parser.add_argument("--force", action="store_true", help="replace an existing archive")


def run(args: Namespace) -> int:
    """Pack the run and print the contents of the archive."""
    from rlvitals.checkpoints.transfer.bundle import bundle
    from rlvitals.checkpoints.transfer.byte_text import format_bytes
    from rlvitals.errors import VitalsError

    archive = args.output or Path(f"{args.run.resolve().name}.tar.zst")
    try:
        result = bundle(args.run, archive, selection=args.checkpoints, force=args.force)
    except OSError as error:
        path = str(error.filename or archive)
        raise VitalsError(f"not packed: {error.strerror or error}", where=path) from None
    for text in result.left:
        print(f"  {text}")
    for text in result.damaged:
        print(f"  {text}", file=sys.stderr)
    steps = ", ".join(f"{step:,}" for step in result.checkpoints) or "none"
    sizes = f"{format_bytes(result.unpacked)} in {format_bytes(result.size)}"
    print(f"✓ Packed: {result.archive}: {quantity(result.files, 'file')}, {sizes}")
    print(f"  checkpoints: {steps}; rlvitals unbundle {result.archive}")
    return EXIT_PROBLEM if result.damaged else EXIT_OK


COMMAND = Command("bundle", __doc__, add_arguments, run)
