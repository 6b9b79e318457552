"""Say where a run stands: how far, how long still, what it can resume from, how it does.

Any run that can be read, whoever logged it; of several runs under a folder, a line each.
What is left is counted in time actually trained: pauses between attempts do not count.

exit code: 0  told
           2  wrong usage
           3  nothing readable

examples:
  rlvitals status runs/my_run
  rlvitals status runs/my_run -v
  rlvitals status runs/my_run -w 10
  rlvitals status runs/my_run --json
"""

import os
import sys
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from rlvitals.cli import flags
from rlvitals.cli.command import Command
from rlvitals.errors import UnreadableLog
from rlvitals.tracking import clock

if TYPE_CHECKING:  # they load numpy and rich
    from rich.console import RenderableType

    from rlvitals.diagnosis.status import Standing
    from rlvitals.readers.discovery.sources import Run

SOONEST = 0.5  # seconds between two looks


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the run, how to judge, and how to show."""
    parser.add_argument("path", type=Path, metavar="RUN", help="a log or a run's folder")
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="all metrics, chunks, settings and attempts"
    )
    parser.add_argument(
        "-w", "--watch", type=_seconds, metavar="N", help="look again every N seconds"
    )
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    flags.add_free(parser)


def _seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not SOONEST <= found <= 1e6:  # noqa: PLR2004 - eleven days
        raise ArgumentTypeError(f"{text!r} is no number of seconds from {SOONEST} on")
    return found


def run(args: Namespace) -> int:
    """Tell it once, or again and again."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as in `diagnose`: no work for threads
    if args.watch is None:
        _tell(args, _standings(args))
        return 0
    try:
        _watch(args)
    except KeyboardInterrupt:
        return 0
    return 0


def _standings(args: Namespace) -> "list[Standing]":
    """Read and judge what lies at the path. Raises UnreadableLog."""
    from rlvitals.diagnosis import load

    found = [_standing(run, args) for run in load.runs(args.path)]
    return sorted(found, key=lambda one: one.name)


def _standing(run: "Run", args: Namespace) -> "Standing":
    from rlvitals.checkpoints import inspect_run, progress
    from rlvitals.diagnosis import batch, load
    from rlvitals.diagnosis.status import standing

    chosen = flags.settings_for(args.path, args)
    now = clock.now(chosen.diagnose.now)
    trace = load.load(run, load.given(chosen), now)
    judged = batch.judge_trace((run, chosen), trace)
    return standing(
        run.name, judged, progress.read(run.root), inspect_run.try_inspect(run.root), now
    )


def _tell(args: Namespace, found: "list[Standing]") -> None:
    from rlvitals.views import json_view
    from rlvitals.views import status as shown
    from rlvitals.views.console import emit

    if args.json:
        told = [shown.facts(one) for one in found]
        print(json_view.document(told[0] if len(told) == 1 else {"runs": told}), flush=True)
    else:
        emit(_laid_out(args, found))


def _laid_out(args: Namespace, found: "list[Standing]") -> "RenderableType":
    from rlvitals.views import status as shown

    if len(found) == 1:
        now = clock.now(flags.settings_for(args.path, args).diagnose.now)
        return shown.one_run(found[0], now, verbose=args.verbose)
    return shown.several(found)


def _watch(args: Namespace) -> None:
    """Redraw in place at a terminal, else print one after another; wait for what is not there."""
    from rich.live import Live

    from rlvitals.views import status as shown
    from rlvitals.views.console import console

    if args.json or not sys.stdout.isatty():
        while True:
            _tell(args, _standings(args))
            time.sleep(args.watch)
    with Live(console=console(), auto_refresh=False) as live:
        while True:
            try:
                live.update(_laid_out(args, _standings(args)), refresh=True)
            except UnreadableLog:
                live.update(shown.missing(args.path), refresh=True)
            time.sleep(args.watch)


COMMAND = Command("status", __doc__, add_arguments, run)
