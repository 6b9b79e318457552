"""Follow running trainings: print each change once.

It prints changes of the verdict, findings that start, end or change their severity, and changes of
the status: started, ended, silent, resumed. New runs below a folder are followed, too. It waits
for paths that do not exist yet. A run is judged again when it has grown by 5 %, but at most every
10 seconds.

Ctrl-C ends it with exit code 130: a run that has ended may be resumed. With --until-end it ends
by itself when every run has ended, with --once after one look.

exit code: 0  no finding at or above --fail-on
           1  such a finding, or a run failed
           3  nothing readable (with --until-end it waits)
           4  cannot tell: too little was logged to judge
These are the codes of `rlvitals diagnose`.

examples:
  rlvitals follow runs
  rlvitals follow runs/my_run --until-end
  rlvitals follow runs --json
  rlvitals follow runs --once
  rlvitals follow runs --alert desktop
"""

import os
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rlvitals.cli import diagnose, flags
from rlvitals.cli.command import EXIT_UNDECIDED, Command, diagnose_command
from rlvitals.errors import UnreadableLog, UsageError, harmless
from rlvitals.settings import Settings
from rlvitals.storage.missing_path import missing_path
from rlvitals.tracking import clock

if TYPE_CHECKING:  # they load numpy
    from rlvitals.alerts.routes import Route
    from rlvitals.diagnosis.engine import Diagnosis
    from rlvitals.following.changes import Change
    from rlvitals.following.loop import Watch
    from rlvitals.following.run import Judge
    from rlvitals.readers.discovery.sources import Run
    from rlvitals.types import Log

CLEAR_LINE = "\r\x1b[K"  # carriage return, then erase to the end of the line


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the paths, the stop condition, the judgement and the output."""
    flags.add_paths(parser, "a log, a run's folder, or one of runs")
    ends = parser.add_mutually_exclusive_group()
    ends.add_argument("--once", action="store_true", help="print the current state and exit")
    ends.add_argument(
        "--until-end",
        action="store_true",
        help="exit when every run has ended: recorded end, all steps done, or long silent",
    )
    for key in ("fail_on", "only", "ignore", "profile", "baseline"):
        flags.add_option(parser, "diagnose", key)
    flags.add_free(parser)
    flags.add_alerts(parser)
    parser.add_argument(
        "--stop-on", choices=("error",), help="request a stop of runs with a persistent error"
    )
    parser.add_argument("--notes", action="store_true", help="also print findings of severity note")
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object per line, with new points"
    )


def run(args: Namespace) -> int:
    """Follow the runs, print the changes and return the exit code of their last state."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as in `diagnose`: no work for threads
    from rlvitals.following.loop import Watch, follow

    args.paths = [local_copy(path, once=args.once) for path in args.paths]
    routes = flags.alert_routes(args)
    if args.once and (routes or args.stop_on):
        raise UsageError("one look neither sends alerts nor asks to stop", where="--once")
    settings = {path: flags.settings_for(path, args) for path in args.paths}
    _check_paths(args)
    moment = next(iter(settings.values())).diagnose.now
    watch = Watch(
        {path: make_judge(path_settings) for path, path_settings in settings.items()},
        clock=lambda: clock.now(moment),
    )
    show = _make_printer(args)
    if args.once:
        show(watch.look(patient=True))
        if watch.waiting and not watch.runs:
            raise watch.waiting[0].problem or UnreadableLog("nothing to read")
    else:
        changes = follow(watch, until_end=args.until_end, sleep=_make_sleep(args, watch))
        changes = _send_alerts(changes, watch, routes) if routes else changes
        try:
            show(_ask_stops(changes, watch) if args.stop_on else changes)
        except KeyboardInterrupt:
            _clear()
            raise
    fail_on = next(iter(settings.values())).diagnose.fail_on
    return diagnose.worst(
        [
            EXIT_UNDECIDED if run.diagnosis is None else diagnose.code(run.diagnosis, fail_on)
            for run in watch.unique_runs
        ]
    )


def local_copy(path: Path, *, once: bool) -> Path:
    """Return the copy of a bucket, kept up to date. Raises UsageError for another hosted run."""
    from rlvitals.hosted import address, fetch

    hosted = address.parse(path)
    if hosted is None:
        return path
    if hosted.kind != address.Source.FILES:
        raise UsageError(
            "a hosted run is not followed", where=str(path), hint="rlvitals triage SOURCE"
        )
    return fetch.local_path(path) if once else fetch.keep_up_to_date(path)


def _check_paths(args: Namespace) -> None:
    """Raise UnreadableLog where one look finds nothing."""
    for path in args.paths:
        if not os.path.lexists(path):
            if args.once:
                raise missing_path(path)
            sys.stderr.write(f"nothing is at {harmless(str(path))} yet: waiting for it\n")


def _send_alerts(
    changes: "Iterable[Change]", watch: "Watch", routes: "Sequence[Route]"
) -> "Iterator[Change]":
    """Pass changes on, and each judgement to the alerts."""
    from rlvitals.alerts.sender import Sender
    from rlvitals.following.changes import Judged

    def link(name: str) -> str:
        roots = (followed.run.root for followed in watch.runs if followed.name == name)
        return diagnose_command(next(roots, name))

    sender = Sender(routes, link)
    try:
        for change in changes:
            if isinstance(change, Judged):
                sender.update(change.run, change.diagnosis)
            yield change
    finally:
        sender.close()


def _ask_stops(changes: "Iterable[Change]", watch: "Watch") -> "Iterator[Change]":
    """Pass changes on, and ask each recorded run with a persistent error to stop, once."""
    from rlvitals.following.changes import Judged, Restarted, Resumed
    from rlvitals.intervene.stop_rule import StopRule
    from rlvitals.rules.going_on import goes_on
    from rlvitals.storage.run_folder import is_run
    from rlvitals.tracking import requests

    rules: dict[str, StopRule] = {}
    asked_runs: set[str] = set()
    for change in changes:
        yield change
        if isinstance(change, Restarted | Resumed):
            rules.pop(change.run, None)
            asked_runs.discard(change.run)
        if not isinstance(change, Judged) or change.run in asked_runs:
            continue
        reason = rules.setdefault(change.run, StopRule()).update(change.diagnosis)
        root = next(each.run.root for each in watch.runs if each.name == change.run)
        if reason and goes_on(change.diagnosis.trace) and is_run(root):
            asked_runs.add(change.run)
            try:
                requests.ask(root, "stop", reason)
            except UsageError:  # it has ended since it was judged
                continue
            sys.stderr.write(f"{harmless(change.run)} is asked to stop: {harmless(reason)}\n")


def make_judge(settings: Settings) -> "Judge":
    """Return a function that judges the runs at one path like `diagnose`. Raises UsageError."""
    from rlvitals.diagnosis import baseline, batch, load

    options = load.run_overrides(settings)
    load.chosen_rules(settings.diagnose.only, settings.diagnose.ignore)
    load.check_mutes(settings.muted)
    file = settings.diagnose.baseline
    baseline_findings = baseline.read(Path(file)) if file else None

    def judge(run: "Run", logs: "Sequence[Log]", now_s: float, grew: float | None) -> "Diagnosis":
        result = batch.judge_trace(
            (run, settings), load.build_trace(run, logs, options, now_s, grew)
        )
        if baseline_findings is None:
            return result
        return baseline.compare(baseline_findings, baseline.Judged(run.name, run.root, result))[0]

    return judge


def _make_printer(args: Namespace) -> "Callable[[Iterable[Change]], None]":
    """Return a function that prints changes as they arrive."""
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


def _make_sleep(args: Namespace, watch: "Watch") -> "Callable[[float], None]":
    """Return a sleep function; it says once that all runs have ended, as `follow` goes on.

    On a terminal it also prints a status line.
    """
    from rlvitals.views.follow import status

    has_status_line = sys.stdout.isatty() and not args.json
    is_end_known = args.until_end

    def sleep(seconds: float) -> None:
        nonlocal is_end_known
        if not is_end_known and watch.is_over:
            is_end_known = True
            _clear()
            sys.stderr.write(
                "every run has ended: waiting for new rows until Ctrl-C (--until-end exits)\n"
            )
        if has_status_line:
            sys.stdout.write(f"{CLEAR_LINE}{status(watch, clock.now())}")
            sys.stdout.flush()
        time.sleep(seconds)

    return sleep


def _clear() -> None:
    if sys.stdout.isatty():
        sys.stdout.write(CLEAR_LINE)


COMMAND = Command("follow", __doc__, add_arguments, run)
