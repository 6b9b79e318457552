"""Follow growing runs: tell what changes, and nothing twice.

Told are a run's verdict when it turns, findings that fire, clear or change their severity, and
how the run lives: that it began, ended, went quiet, goes on. A run that comes up under a folder is
followed too. A run is judged again when it has grown by 5 %, and not within 10 seconds.

It goes on until Ctrl-C, which ends it with 130. With --once and --until-end it ends by itself,
and then with

exit code: 0  nothing stands at or above --fail-on
           1  something does, or a run failed
           3  nothing readable (with --until-end it waits for something)
           4  cannot tell: too little was logged to judge
as of diagnose.

examples:
  rlvitals follow runs
  rlvitals follow runs/my_run --until-end
  rlvitals follow runs --json
  rlvitals follow runs --once
"""

import os
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rlvitals.cli import diagnose, flags
from rlvitals.cli.command import Command
from rlvitals.errors import UnreadableLog
from rlvitals.settings import Settings
from rlvitals.tracking import clock

if TYPE_CHECKING:  # they load numpy
    from rlvitals.diagnosis.engine import Diagnosis
    from rlvitals.following.changes import Change
    from rlvitals.following.loop import Watch
    from rlvitals.following.run import Judge
    from rlvitals.readers.discovery.sources import Run
    from rlvitals.types import Log

WHOLE_LINE = "\r\x1b[K"  # to its start, and clear it


def add_arguments(parser: ArgumentParser) -> None:
    """Declare paths, when to end, how to judge, and how to show."""
    parser.add_argument(
        "paths", nargs="+", type=Path, metavar="PATH", help="a log, a run's folder, or one of runs"
    )
    ends = parser.add_mutually_exclusive_group()
    ends.add_argument("--once", action="store_true", help="say how things stand now, and end")
    ends.add_argument(
        "--until-end",
        action="store_true",
        help="end when every run is over: it says so, its steps are done, or it is long silent",
    )
    for key in ("fail_on", "only", "ignore", "profile", "baseline"):
        flags.add_option(parser, "diagnose", key)
    flags.add_free(parser)
    parser.add_argument("--notes", action="store_true", help="tell findings that are notes too")
    parser.add_argument("--json", action="store_true", help="print an object a line, points too")


def run(args: Namespace) -> int:
    """Follow the runs, show what changes, and return the exit code of how they stand."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as in `diagnose`: no work for threads
    from rlvitals.following.loop import Watch, follow

    chosen = {path: flags.settings_for(path, args) for path in args.paths}
    for path in args.paths:
        if not os.path.lexists(path):
            raise UnreadableLog(
                "there is nothing at this path", where=str(path), hint=f"ls {path.parent}"
            )
    moment = next(iter(chosen.values())).diagnose.now
    watch = Watch(
        {path: _judge(said) for path, said in chosen.items()}, clock=lambda: clock.now(moment)
    )
    show = _shown(args)
    if args.once:
        show(watch.look(patient=True))
        if watch.waiting and not watch.runs:
            raise watch.waiting[0].problem or UnreadableLog("nothing to read")
    else:
        try:
            show(follow(watch, until_end=args.until_end, sleep=_rest(args, watch)))
        except KeyboardInterrupt:
            _clear()
            raise
    fail_on = next(iter(chosen.values())).diagnose.fail_on
    return diagnose.worst(_codes(watch, fail_on))


def _codes(watch: "Watch", fail_on: str) -> Sequence[int]:
    return [
        diagnose.CANNOT_TELL if one.diagnosis is None else diagnose.code(one.diagnosis, fail_on)
        for one in watch.runs
    ]


def _judge(chosen: Settings) -> "Judge":
    """Return what judges the runs at one path, as `diagnose` would. Raises UsageError."""
    from rlvitals.diagnosis import baseline, batch, load

    given = load.given(chosen)
    load.chosen_rules(chosen.diagnose.only, chosen.diagnose.ignore)
    load.muted(chosen.muted)
    file = chosen.diagnose.baseline
    known = baseline.read(Path(file)) if file else None

    def judge(run: "Run", logs: "Sequence[Log]", now: float, grew: float | None) -> "Diagnosis":
        found = batch.judge_trace((run, chosen), load.named(run, logs, given, now, grew))
        if known is None:
            return found
        return baseline.compare(known, baseline.Judged(run.name, run.root, found))[0]

    return judge


def _shown(args: Namespace) -> "Callable[[Iterable[Change]], None]":
    """Return what prints changes as they come."""
    if args.json:
        from rlvitals.views import json_view

        def write(changes: "Iterable[Change]") -> None:
            for change in changes:
                print(json_view.change(change), flush=True)

        return write
    from rlvitals.views.console import emit
    from rlvitals.views.follow import Lines

    lines = Lines(notes=args.notes)

    def tell(changes: "Iterable[Change]") -> None:
        for change in changes:
            if (line := lines.line(change)) is not None:
                _clear()
                emit(line)
                sys.stdout.flush()

    return tell


def _rest(args: Namespace, watch: "Watch") -> "Callable[[float], None]":
    """Return what waits for the next look: for a person at a terminal with a line that lives."""
    if args.json or not sys.stdout.isatty():
        return time.sleep
    from rlvitals.views.follow import status

    def rest(seconds: float) -> None:
        sys.stdout.write(f"{WHOLE_LINE}{status(watch, clock.now())}")
        sys.stdout.flush()
        time.sleep(seconds)

    return rest


def _clear() -> None:
    if sys.stdout.isatty():
        sys.stdout.write(WHOLE_LINE)


COMMAND = Command("follow", __doc__, add_arguments, run)
