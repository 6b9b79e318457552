"""Upload a recorded run to a bucket: what is new, as objects that are never rewritten.

`rlvitals.start("s3://bucket/runs/x")` and `rlvitals.start(folder, mirror="s3://...")` start this
beside the training. By hand it uploads what a machine that went down has left, once. Every
command that reads runs takes the URL.

exit code: 0  all of the run is in the bucket
           1  it is not: the same command goes on where it stopped
           2  wrong usage

examples:
  rlvitals mirror runs/my_run s3://bucket/runs/my_run
  rlvitals mirror runs/my_run s3://bucket/runs/my_run --every 10s --until-end
"""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from rlvitals.cli import flags
from rlvitals.cli.command import EXIT_OK, EXIT_PROBLEM, Command
from rlvitals.errors import UnreadableLog, UsageError, VitalsError


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the run, the URL and the interval."""
    parser.add_argument("run", type=Path, metavar="RUN", help="a run's folder")
    parser.add_argument("url", metavar="URL", help="where to: s3://bucket/runs/my_run")
    parser.add_argument(
        "--every", type=flags.seconds, default="10s", metavar="TIME",
        help="time between two uploads with --until-end (default: 10s)",
    )  # fmt: skip
    parser.add_argument(
        "--until-end", action="store_true", help="go on until the run is over and all is there"
    )


def run(args: Namespace) -> int:
    """Upload the run."""
    from rlvitals.bucket.mirror_process import mirror

    def tell(text: str) -> None:
        sys.stderr.write(f"{text}\n")

    every_s = args.every if args.until_end else None
    try:
        return EXIT_OK if mirror(args.run, args.url, every_s, tell) else EXIT_PROBLEM
    except (UsageError, UnreadableLog):
        raise
    except VitalsError as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        return EXIT_PROBLEM


COMMAND = Command("mirror", __doc__, add_arguments, run)
