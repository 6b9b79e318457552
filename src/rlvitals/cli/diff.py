"""List what differs between two runs: settings, code, environment, and where metrics diverge.

Metrics diverge where the difference of two runs exceeds its noise in two consecutive intervals of
steps. Runs that differ only in their seed diverge, too: to see whether a change helps, compare
several seeds by `rlvitals compare PATH PATH`.

exit code: 0  printed
           2  wrong usage
           3  nothing readable

examples:
  rlvitals diff runs/monday runs/tuesday
  rlvitals diff runs/monday runs/tuesday --all --json
"""

import os
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rlvitals.cli import flags
from rlvitals.cli.command import Command
from rlvitals.errors import UsageError

if TYPE_CHECKING:  # it loads numpy
    from collections.abc import Mapping

    from rlvitals.types import Trace


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the two runs and the output."""
    parser.add_argument("first", type=Path, metavar="A", help="a run")
    parser.add_argument("second", type=Path, metavar="B", help="another")
    parser.add_argument("--all", action="store_true", help="list every package and metric")
    parser.add_argument("--json", action="store_true", help="print JSON")
    flags.add_free(parser)


def run(args: Namespace) -> int:
    """Read both runs and print their differences."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as in `diagnose`: no work for threads
    from rlvitals.comparison import diff
    from rlvitals.views import json_view
    from rlvitals.views import run_diff as view
    from rlvitals.views.console import emit

    (first, first_facts), (second, second_facts) = (
        _read(path, args) for path in (args.first, args.second)
    )
    result = diff.diff_runs(first, second, (first_facts, second_facts))
    if args.json:
        print(json_view.noun(result))
    else:
        emit(view.report(result, everything=args.all))
    return 0


def _read(path: Path, args: Namespace) -> "tuple[Trace, Mapping[str, object]]":
    """Read the single run at a path and its recorded facts. Raises UsageError for several."""
    from rlvitals.diagnosis import load

    runs = load.runs(path)
    if len(runs) > 1:
        names = ", ".join(run.name for run in runs[:3])
        raise UsageError(
            f"{len(runs)} runs are here: {names} ...",
            where=str(path),
            hint="name one of them; groups of runs: rlvitals compare PATH",
        )
    options = load.run_overrides(flags.settings_for(path, args))
    trace = load.load(runs[0], options)
    return replace(trace, name=str(path)), load.facts(runs[0])


COMMAND = Command("diff", __doc__, add_arguments, run)
