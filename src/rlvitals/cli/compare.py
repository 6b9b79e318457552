"""Say which of several groups of runs does better, or that nobody can tell, and what could.

Runs that share every setting but the seed are one group; --by names the settings to group by.
Paths that hold several runs are groups of their own. Every group is compared with the first. A
run that crashed, ended as NaN or stopped before its budget counts as the worst run of its task.

--gate asks one thing of a candidate against a baseline, for a pipeline:
  METRIC no worse than NUMBER [UNIT] [at last | best | mean of last N %]
  METRIC better than NUMBER [UNIT] [at ...]
UNIT: % of the random-to-baseline range, % of baseline, or none: the metric's own.

exit code: 0  told; of a gate: it holds
           1  the gate is broken
           2  wrong usage
           3  nothing readable
           4  cannot tell whether the gate holds, which is never a pass

examples:
  rlvitals compare runs/ppo runs/sac
  rlvitals compare runs --by learning_rate --axis time
  rlvitals compare runs/ppo runs/sac --output-dir comparison_plots
  rlvitals compare runs/main runs/change --gate='return no worse than 5 % of baseline'
"""

import os
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from rlvitals.cli import flags, pictures
from rlvitals.cli.command import Command
from rlvitals.errors import UnreadableLog, UsageError
from rlvitals.settings import split

if TYPE_CHECKING:  # they load numpy
    from rlvitals.comparison.assertions import Gate
    from rlvitals.comparison.grouping import Member

HOLDS, BROKEN, CANNOT_TELL = 0, 1, 4
AXES = ("steps", "episodes", "tokens", "time")  # `scores.AXES` without its numpy


def add_arguments(parser: ArgumentParser) -> None:
    """Declare runs, how to group and score them, and how to show it."""
    parser.add_argument(
        "paths", nargs="+", type=Path, metavar="PATH", help="a run, or a folder of runs"
    )
    parser.add_argument(
        "--by",
        action="append",
        default=[],
        metavar="KEY,...",
        help='settings that make a group ("path": the paths given)',
    )
    _add_scoring(parser)
    parser.add_argument("--gate", metavar="TEXT", help="ask one thing of BASELINE CANDIDATE")
    parser.add_argument("--json", action="store_true", help="print the nouns as JSON")
    parser.add_argument(
        "-o", "--output-dir", type=Path, metavar="FOLDER",
        help="draw the performance profile and the sample efficiency there",
    )  # fmt: skip
    flags.add(parser, "plot")
    flags.add_free(parser)


def _add_scoring(parser: ArgumentParser) -> None:
    """Declare which number of a run is compared."""
    parser.add_argument(
        "--metric", default="", metavar="NAME", help="what to compare (default: the outcome)"
    )
    parser.add_argument(
        "--at",
        default="",
        metavar="WHERE",
        help="last, best, or mean of last N %% (default: mean of last 10 %%)",
    )
    parser.add_argument(
        "--axis", choices=AXES, default="steps", help="what runs are aligned on (default: steps)"
    )
    parser.add_argument(
        "--short",
        choices=("cut", "failed"),
        default="cut",
        help="of a run that ends before the others: compare all up to there, or call it failed"
        " (default: cut)",
    )
    parser.add_argument(
        "--level", type=float, metavar="X", help="tell how soon runs hold this level of the metric"
    )


def run(args: Namespace) -> int:
    """Read, group, compare, show."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as in `diagnose`: no work for threads
    from rlvitals.comparison import assertions

    gate = assertions.parse(args.gate) if args.gate else None
    if gate is not None and args.output_dir is not None:
        raise UsageError("a gate draws nothing", where="--output-dir", hint="without --gate")
    if args.output_dir is not None:
        pictures.check(flags.settings_for(args.paths[0], args).plot)
    if gate is not None:
        _refuse(args)
    members = _members(args)
    return _compare(args, members) if gate is None else _gate(args, gate, members)


def _refuse(args: Namespace) -> None:
    """Refuse what a gate says itself. Raises UsageError."""
    if len(args.paths) != 2:  # noqa: PLR2004 - a baseline and a candidate
        raise UsageError(
            f"a gate is asked of 2 paths, not {len(args.paths)}",
            where="--gate",
            hint="rlvitals compare BASELINE CANDIDATE --gate='...'",
        )
    for flag in ("by", "metric", "at", "level"):
        if getattr(args, flag):
            hint = "--gate 'return no worse than 5 % of baseline at best'"
            raise UsageError(f"a gate says itself what --{flag} says", where="--gate", hint=hint)


def _members(args: Namespace) -> "list[list[Member]]":
    """Read the runs at each path; one of many that cannot be read is named and left out."""
    from rlvitals.diagnosis import load

    found: list[list[Member]] = []
    errors: list[UnreadableLog] = []
    seen: set[tuple[Path, str]] = set()
    for path in args.paths:
        if args.gate:
            seen = set()  # a baseline may be asked of itself
        given = load.given(flags.settings_for(path, args))
        held, wrong = load.members(path, given, seen)
        found.append(held)
        errors += wrong
    if not (all(found) if args.gate else any(found)):
        raise errors[0]
    sys.stderr.writelines(f"left out: {error.problem} ({error.where})\n" for error in errors)
    return found


def _compare(args: Namespace, members: "list[list[Member]]") -> int:
    from rlvitals.comparison import compare, learning_curves, scores
    from rlvitals.views import comparison as shown
    from rlvitals.views import json_view
    from rlvitals.views.console import emit
    from rlvitals.views.figures import groups

    asked = compare.CompareOptions(
        by=tuple(key for text in args.by for key in split(text)),
        metric=args.metric,
        at=scores.parse_score_at(args.at) if args.at else compare.DEFAULT_SCORE_AT,
        axis=args.axis,
        short_fails=args.short == "failed",
        level=args.level,
    )
    runs = [one for held in members for one in held]
    told = compare.compare(runs, asked)
    if args.output_dir is not None:
        chosen = flags.settings_for(args.paths[0], args).plot
        drawn = groups.pictures(told, learning_curves.learning_curves(runs, asked, told))
        made = pictures.write(drawn, args.output_dir, chosen)
        sys.stderr.write(f"{args.output_dir}: {', '.join(made)}\n")
    if args.json:
        print(json_view.noun(told))
    else:
        emit(shown.comparison(told))
    return 0


def _gate(args: Namespace, gate: "Gate", members: "list[list[Member]]") -> int:
    from rlvitals.comparison import assertions
    from rlvitals.views import comparison as shown
    from rlvitals.views import json_view
    from rlvitals.views.console import emit

    found = assertions.check(gate, *members, axis=args.axis, short_fails=args.short == "failed")
    if args.json:
        print(json_view.noun(found))
    else:
        emit(shown.gated(found))
    return {True: HOLDS, False: BROKEN, None: CANNOT_TELL}[found.holds]


COMMAND = Command("compare", __doc__, add_arguments, run)
