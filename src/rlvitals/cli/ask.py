"""Ask a running training for something: to save a checkpoint now, or to stop gently.

The training must look: `run.requests()` in its loop tells what was asked.

examples:
  rlvitals ask runs/my_run save
  rlvitals ask runs/my_run stop
"""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from rlvitals.cli.command import Command


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the run and the request."""
    parser.add_argument("run", metavar="RUN", help="the run folder")
    parser.add_argument(
        "what", choices=("save", "stop"), help="save: a checkpoint now; stop: end gently"
    )


def run(args: Namespace) -> int:
    """Write the request into the run folder."""
    from rlvitals.errors import UsageError
    from rlvitals.storage.run_folder import RunFolder
    from rlvitals.tracking import requests

    folder = RunFolder.open(Path(args.run))
    if end_state := requests.ended(folder):
        raise UsageError(
            f"nobody is there to ask: the run has {end_state}",
            where=args.run,
            hint=f"rlvitals diagnose {args.run}",
        )
    requests.ask(folder.path, args.what)
    doing = "save a checkpoint" if args.what == "save" else "stop"
    print(f"{folder.about.name} is asked to {doing}; it does so where its loop next looks.")
    return 0


COMMAND = Command("ask", __doc__, add_arguments, run)
