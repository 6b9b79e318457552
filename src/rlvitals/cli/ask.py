"""Ask a running training for something: to save a checkpoint now, or to stop gently.

The training must look: `run.requests()` in its loop tells what was asked.

examples:
  rlvitals ask runs/my_run save
  rlvitals ask runs/my_run stop
"""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from rlvitals.cli.command import Command

KINDS = ("save", "stop")


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the run and what is asked of it."""
    parser.add_argument("run", metavar="RUN", help="the run folder")
    parser.add_argument("what", choices=KINDS, help="save: a checkpoint now; stop: end gently")


def run(args: Namespace) -> int:
    """Leave the request where the run looks for it."""
    from rlvitals.errors import UsageError
    from rlvitals.storage.run_folder import RunFolder
    from rlvitals.tracking import requests

    found = RunFolder.open(Path(args.run))
    if ended := requests.last_status(found):
        raise UsageError(
            f"nobody is there to ask: the run has {ended}",
            where=args.run,
            hint=f"rlvitals diagnose {args.run}",
        )
    requests.ask(found.path, args.what)
    doing = "save a checkpoint" if args.what == "save" else "stop"
    print(f"{found.about.name} is asked to {doing}; it does so where its loop next looks.")
    return 0


COMMAND = Command("ask", __doc__, add_arguments, run)
