"""Find out why logs are missing, why a run does not resume, or which folder is meant.

It checks the logs, the checkpoints, folders with similar names, the progress file, the writing
processes, the disk, the permissions, and W&B runs that were not synced. It changes nothing, and
the path need not exist.

exit code: 0  no problem found (notes do not count)
           1  a problem found
           2  wrong usage

examples:
  rlvitals doctor runs/my_run
  rlvitals doctor runs/my_run --json
"""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from rlvitals.cli import flags
from rlvitals.cli.command import EXIT_OK, EXIT_PROBLEM, Command
from rlvitals.errors import UnreadableLog
from rlvitals.tracking import clock

if TYPE_CHECKING:
    from rlvitals.types import Trace


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the run and the output format."""
    parser.add_argument("path", type=Path, metavar="RUN", help="the run's folder")
    parser.add_argument("--json", action="store_true", help="print JSON")
    flags.add_free(parser)


def run(args: Namespace) -> int:
    """Examine the run, print the result and return the exit code."""
    from rlvitals.checkpoints import naming
    from rlvitals.doctor.context import gather_context
    from rlvitals.doctor.examine import examine
    from rlvitals.rules.rule import Severity
    from rlvitals.views import doctor as view
    from rlvitals.views import json_view
    from rlvitals.views.console import emit

    now_s = clock.now(flags.settings_for(args.path, args).diagnose.now)
    path = naming.run_of(args.path)
    traces, problem = _read(path, args, now_s)
    examination = examine(gather_context(path, traces, problem, now_s))
    if args.json:
        print(json_view.document(view.facts(examination)))
    else:
        emit(view.report(examination))
    wrong = any(trouble.severity > Severity.NOTE for _, trouble in examination.troubles)
    return EXIT_PROBLEM if wrong else EXIT_OK


def _read(path: Path, args: Namespace, now_s: float) -> "tuple[tuple[Trace, ...], str]":
    """Read the runs at the path; return the readable ones and the last problem."""
    from rlvitals.diagnosis import load

    options = load.run_overrides(flags.settings_for(path, args))
    try:
        runs = load.runs(path)
    except UnreadableLog as error:
        return (), error.problem
    traces, problem = [], ""
    for run in runs:
        try:
            traces.append(load.load(run, options, now_s))
        except UnreadableLog as error:
            problem = error.problem
    return tuple(traces), problem


COMMAND = Command("doctor", __doc__, add_arguments, run)
