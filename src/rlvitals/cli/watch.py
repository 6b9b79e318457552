"""Watch growing runs on a screen: verdicts, findings, four curves and the console's last lines.

Up and down select a run, q quits. Runs are read and judged as by `rlvitals follow PATH`. The
console is the newest *.log or *.out file in the run's folder. --once prints the screen once and
needs no terminal.

examples:
  rlvitals watch runs
  rlvitals watch runs --once
"""

import os
import shutil
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from rlvitals.cli import flags, follow
from rlvitals.cli.command import EXIT_OK, Command
from rlvitals.errors import UnreadableLog, UsageError

if TYPE_CHECKING:  # they load numpy
    from rlvitals.following.loop import Watch
    from rlvitals.views.watch_frame import WatchedRun

SCREEN_TAIL_BYTES = 4096
BADNESS = ("failed", "hung", "collapsed", "unstable", "stalled", "unknown", "plateau")


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the paths and the flags of judging."""
    flags.add_paths(parser, "a log, a run's folder, or one of runs")
    parser.add_argument("--once", action="store_true", help="print the screen once and exit")
    for key in ("only", "ignore", "profile"):
        flags.add_option(parser, "diagnose", key)
    flags.add_free(parser)


def run(args: Namespace) -> int:
    """Show the screen until the user ends it."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as in `diagnose`: no work for threads
    from rlvitals.following.loop import Watch

    paths = [follow.local_copy(path, once=args.once) for path in args.paths]
    judges = {path: follow.make_judge(flags.settings_for(path, args)) for path in paths}
    watch = Watch(judges)
    if args.once:
        from rlvitals.views.console import console
        from rlvitals.views.watch_frame import frame

        for _ in watch.look(patient=True):
            pass
        if watch.waiting and not watch.runs:
            raise watch.waiting[0].problem or UnreadableLog("nothing to read")
        size = shutil.get_terminal_size((80, 24))
        text = frame(_list_runs(watch), 0, size.columns, size.lines, _head(watch))
        console(width=size.columns).print(text, no_wrap=True, crop=True)
        return EXIT_OK
    if not sys.stdout.isatty():
        hint = "rlvitals follow PATH, or rlvitals watch PATH --once"
        raise UsageError("the screen needs a terminal", where="standard output", hint=hint)
    try:
        from rlvitals.views.watch_app import WatchApp
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "textual":
            raise
        hint = "pip install 'rlvitals[watch]', or rlvitals watch PATH --once"
        raise UsageError("textual is not installed", where="watch", hint=hint) from error

    def look() -> "tuple[list[WatchedRun], str, float]":
        for _ in watch.look():
            pass
        return _list_runs(watch), _head(watch), watch.pause()

    WatchApp(look).run()
    return EXIT_OK


def _head(watch: "Watch") -> str:
    from rlvitals.tracking import clock
    from rlvitals.views.follow import status

    return f"rlvitals watch  {status(watch, clock.now())}"


def _list_runs(watch: "Watch") -> "list[WatchedRun]":
    """Return the runs as the screen shows them: growing ones first, of each the worst first."""
    from rlvitals.tracking import clock
    from rlvitals.views.watch_frame import WatchedRun

    time_s = clock.now()
    runs = [
        WatchedRun(
            each.name,
            each.state(time_s),
            each.diagnosis,
            read_console(each.run.root),
            each.problem if each.diagnosis is None else "",
        )
        for each in watch.unique_runs
    ]
    return sorted(runs, key=lambda run: (run.state != "growing", _badness(run), run.name))


def _badness(run: "WatchedRun") -> int:
    if run.diagnosis is None:
        return len(BADNESS)
    verdict = run.diagnosis.verdict.word.value
    return BADNESS.index(verdict) if verdict in BADNESS else len(BADNESS) + 1


def read_console(folder: Path) -> tuple[str, ...]:
    """Return the last lines of the newest console file of a folder; empty where there is none."""
    try:
        files = [path for path in folder.iterdir() if path.suffix in (".log", ".out")]
        newest = max((p for p in files if p.is_file()), key=lambda p: p.stat().st_mtime)
        with newest.open("rb") as stream:
            stream.seek(max(0, newest.stat().st_size - SCREEN_TAIL_BYTES))
            text = stream.read(SCREEN_TAIL_BYTES).decode(errors="replace")
    except (OSError, ValueError):  # no folder, no file
        return ()
    # A progress bar writes its line over itself: what follows the last return is what is seen.
    lines = [line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n")]
    return tuple(line for line in lines if line.strip())


COMMAND = Command("watch", __doc__, add_arguments, run)
