"""Print the state of a run: progress, time left, checkpoint to resume from, findings.

Works for any readable run; several runs below a folder get one line each.
The time left is training time: pauses between attempts do not count.

exit code: 0  printed
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

MIN_WATCH_SECONDS = 0.5  # between two updates


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the run, the judgement and the output."""
    parser.add_argument("path", type=Path, metavar="RUN", help="a log or a run's folder")
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="all metrics, chunks, settings and attempts"
    )
    parser.add_argument("-w", "--watch", type=_seconds, metavar="N", help="repeat every N seconds")
    parser.add_argument("--json", action="store_true", help="print JSON")
    flags.add_free(parser)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not MIN_WATCH_SECONDS <= seconds <= 1e6:  # eleven days
        raise ArgumentTypeError(f"{text!r} is not a number of seconds from {MIN_WATCH_SECONDS} on")
    return seconds


def run(args: Namespace) -> int:
    """Print the status once, or repeatedly with `--watch`."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as in `diagnose`: no work for threads
    if args.watch is None:
        _print_standings(args, _standings(args))
        return 0
    try:
        _watch(args)
    except KeyboardInterrupt:
        return 0
    return 0


def _standings(args: Namespace) -> "list[Standing]":
    """Read and judge the runs at the path. Raises UnreadableLog."""
    from rlvitals.diagnosis import load

    standings = [_standing(run, args) for run in load.runs(args.path)]
    return sorted(standings, key=lambda standing: standing.name)


def _standing(run: "Run", args: Namespace) -> "Standing":
    from rlvitals.checkpoints import inspect_run, progress
    from rlvitals.diagnosis import batch, load
    from rlvitals.diagnosis.status import standing
    from rlvitals.tracking.spool import upload_cost

    settings = flags.settings_for(args.path, args)
    now_s = clock.now(settings.diagnose.now)
    trace = load.load(run, load.run_overrides(settings), now_s)
    judged = batch.judge_trace((run, settings), trace)
    return standing(
        run.name, judged, progress.read(run.root), inspect_run.try_inspect(run.root), now_s,
        upload_cost(run.root),
    )  # fmt: skip


def _print_standings(args: Namespace, standings: "list[Standing]") -> None:
    from rlvitals.views import json_view
    from rlvitals.views import status as view
    from rlvitals.views.console import emit

    if args.json:
        documents = [view.facts(standing) for standing in standings]
        print(
            json_view.document(documents[0] if len(documents) == 1 else {"runs": documents}),
            flush=True,
        )
    else:
        emit(_render(args, standings))


def _render(args: Namespace, standings: "list[Standing]") -> "RenderableType":
    from rlvitals.views import status as view

    if len(standings) == 1:
        now_s = clock.now(flags.settings_for(args.path, args).diagnose.now)
        return view.one_run(standings[0], now_s, verbose=args.verbose)
    return view.several(standings)


def _watch(args: Namespace) -> None:
    """Redraw in place on a terminal, else print repeatedly; wait for a missing log."""
    from rich.live import Live

    from rlvitals.views import status as view
    from rlvitals.views.console import console

    if args.json or not sys.stdout.isatty():
        while True:
            _print_standings(args, _standings(args))
            time.sleep(args.watch)
    with Live(console=console(), auto_refresh=False) as live:
        while True:
            try:
                live.update(_render(args, _standings(args)), refresh=True)
            except UnreadableLog:
                live.update(view.missing(args.path), refresh=True)
            time.sleep(args.watch)


COMMAND = Command("status", __doc__, add_arguments, run)
