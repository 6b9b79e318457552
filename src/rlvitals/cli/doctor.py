"""Find out why no logs appear, why a run does not resume, or whether it is the right folder.

Looks at the logs, the checkpoints, the name of the folder and those like it, the progress file,
the processes that write, the disk, the rights, and runs that were never sent to W&B. It changes
nothing, and the path need not exist.

exit code: 0  nothing is wrong, notes aside
           1  something is
           2  wrong usage

examples:
  rlvitals doctor runs/my_run
  rlvitals doctor runs/my_run --json
"""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from rlvitals.cli import flags
from rlvitals.cli.command import Command
from rlvitals.errors import UnreadableLog
from rlvitals.tracking import clock

if TYPE_CHECKING:
    from rlvitals.types import Trace

PASS, FOUND = 0, 1


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the run, and how to show."""
    parser.add_argument("path", type=Path, metavar="RUN", help="the run's folder")
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    flags.add_free(parser)


def run(args: Namespace) -> int:
    """Examine, tell, and return whether something is wrong."""
    from rlvitals.checkpoints import naming
    from rlvitals.doctor.context import gather_context
    from rlvitals.doctor.examine import examine
    from rlvitals.rules.rule import Severity
    from rlvitals.views import doctor as shown
    from rlvitals.views import json_view
    from rlvitals.views.console import emit

    now = clock.now(flags.settings_for(args.path, args).diagnose.now)
    path = naming.run_of(args.path)
    traces, problem = _read(path, args, now)
    found = examine(gather_context(path, traces, problem, now))
    if args.json:
        print(json_view.document(shown.facts(found)))
    else:
        emit(shown.report(found))
    wrong = any(one.severity > Severity.NOTE for _, one in found.troubles)
    return FOUND if wrong else PASS


def _read(path: Path, args: Namespace, now: float) -> "tuple[tuple[Trace, ...], str]":
    """Read the runs at the path; what cannot be read is no reason to stop."""
    from rlvitals.diagnosis import load

    given = load.given(flags.settings_for(path, args))
    try:
        runs = load.runs(path)
    except UnreadableLog as error:
        return (), error.problem
    traces, problem = [], ""
    for one in runs:
        try:
            traces.append(load.load(one, given, now))
        except UnreadableLog as error:
            problem = error.problem
    return tuple(traces), problem


COMMAND = Command("doctor", __doc__, add_arguments, run)
