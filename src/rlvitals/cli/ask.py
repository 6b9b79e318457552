"""Ask a running training to save, to stop or to lower its learning rate, or kill it.

The training must check for requests by `run.requests()` in its loop. The hooks for
Stable-Baselines3 and transformers obey all of them, `rlvitals train ppo` and `rlhf` obey save and
stop. `kill` needs no check: the run's processes on this machine get SIGTERM, and SIGKILL after
the grace period. Each request is an event of the run.

examples:
  rlvitals ask runs/my_run save
  rlvitals ask runs/my_run stop
  rlvitals ask runs/my_run lower-rate --factor 0.3
  rlvitals ask runs/my_run kill --grace 60
"""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from rlvitals.cli import flags
from rlvitals.cli.command import Command
from rlvitals.errors import UsageError


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the run and the request."""
    parser.add_argument("run", metavar="RUN", help="the run folder")
    parser.add_argument(
        "what",
        choices=("save", "stop", "lower-rate", "kill"),
        help="save: write a checkpoint; stop: end gracefully; lower-rate: multiply the learning"
        " rate; kill: end its processes on this machine",
    )
    parser.add_argument(
        "--factor",
        type=float,
        default=0.5,
        help="factor of lower-rate, between 0 and 1 (default: 0.5)",
    )
    parser.add_argument(
        "--grace", type=flags.seconds, default=30.0, metavar="TIME",
        help="with kill: time from SIGTERM to SIGKILL (default: 30s)",
    )  # fmt: skip


def run(args: Namespace) -> int:
    """Write the request into the run folder."""
    from rlvitals.storage.run_folder import RunFolder
    from rlvitals.tracking import requests

    folder = RunFolder.open(Path(args.run))
    if not 0 < args.factor < 1:
        raise UsageError(
            f"a factor of {args.factor:g} does not lower the rate", where="--factor", hint="0.5"
        )
    if args.what == "kill":
        from rlvitals.intervene import kill

        signals = kill.kill(folder, args.grace)
        for pid, signal_name in signals.items():
            print(f"process {pid} of {folder.about.name} ended after {signal_name}")
        return 0
    facts = {"factor": args.factor} if args.what == "lower-rate" else {}
    requests.ask(folder.path, args.what, **facts)
    doing = {
        "save": "save a checkpoint",
        "stop": "stop",
        "lower-rate": f"multiply its learning rate by {args.factor:g}",
    }[args.what]
    print(
        f"{folder.about.name} is asked to {doing}; it does so where its loop next looks. A loop "
        "that calls no run.requests(), as under `rlvitals run`, goes on: `rlvitals ask RUN kill` "
        "ends it."
    )
    return 0


COMMAND = Command("ask", __doc__, add_arguments, run)
