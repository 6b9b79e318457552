"""Compare groups of runs: which does better, or how many more seeds would decide.

Runs with equal settings except the seed form a group; --by selects the settings to group by. Each
path with several runs is a group. Every group is compared with the first. A run that crashed,
ended in NaN or stopped before its budget counts as the worst run of its task.

--gate tests one condition on a candidate and a baseline, for a pipeline:
  METRIC no worse than NUMBER [UNIT] [at last | best | mean of last N %]
  METRIC better than NUMBER [UNIT] [at ...]
UNIT: % of the random-to-baseline range, % of baseline, or none: the unit of the metric.

exit code: 0  printed; with --gate: the condition holds
           1  the condition of --gate is violated
           2  wrong usage
           3  nothing readable
           4  cannot tell whether the condition holds; this is not a pass

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

from rlvitals.cli import flags
from rlvitals.cli.command import EXIT_OK, EXIT_PROBLEM, EXIT_UNDECIDED, Command
from rlvitals.errors import UnreadableLog, UsageError
from rlvitals.settings import split

if TYPE_CHECKING:  # they load numpy
    from rlvitals.comparison.grouping import Member

AXIS_CHOICES = ("steps", "samples", "episodes", "tokens", "time")  # `scores.AXES` without its numpy


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the runs, the grouping, the scoring and the output."""
    parser.add_argument(
        "paths", nargs="+", type=Path, metavar="PATH", help="a run, or a folder of runs"
    )
    parser.add_argument(
        "--by",
        action="append",
        default=[],
        metavar="KEY,...",
        help='settings to group by ("path": the given paths)',
    )
    _add_scoring(parser)
    parser.add_argument(
        "--gate", metavar="TEXT", help="test a condition on the two paths BASELINE CANDIDATE"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "-o", "--output-dir", type=Path, metavar="FOLDER",
        help="draw the performance profile and the sample efficiency into this folder",
    )  # fmt: skip
    flags.add(parser, "plot")
    flags.add_free(parser)
    flags.add_ray(parser)


def _add_scoring(parser: ArgumentParser) -> None:
    """Declare the flags that select the compared score of a run."""
    parser.add_argument(
        "--metric", default="", metavar="NAME", help="metric to compare (default: the outcome)"
    )
    parser.add_argument(
        "--at",
        default="",
        metavar="WHERE",
        help="last, best, or mean of last N %% (default: mean of last 10 %%)",
    )
    parser.add_argument(
        "--axis",
        choices=AXIS_CHOICES,
        default="steps",
        help="axis on which runs are aligned (default: steps)",
    )
    parser.add_argument(
        "--short",
        choices=("cut", "failed"),
        default="cut",
        help="if a run ends before the others: cut all runs there, or count it as failed"
        " (default: cut)",
    )
    parser.add_argument(
        "--level",
        type=float,
        metavar="X",
        help="report when runs reach and keep this level of the metric",
    )


def run(args: Namespace) -> int:
    """Read, group and compare the runs, and print the result."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as in `diagnose`: no work for threads
    from rlvitals.comparison import assertions
    from rlvitals.views.drawing import picture_folder

    gate = assertions.parse(args.gate) if args.gate else None
    if gate is not None and args.output_dir is not None:
        raise UsageError("a gate draws nothing", where="--output-dir", hint="without --gate")
    if args.output_dir is not None:
        picture_folder.check(flags.settings_for(args.paths[0], args).plot)
    if gate is not None:
        if len(args.paths) != 2:  # a baseline and a candidate
            raise UsageError(
                f"a gate is asked of 2 paths, not {len(args.paths)}",
                where="--gate",
                hint="rlvitals compare BASELINE CANDIDATE --gate='...'",
            )
        for flag in ("by", "metric", "at", "level"):  # a gate sets these itself
            if getattr(args, flag):
                hint = "--gate 'return no worse than 5 % of baseline at best'"
                raise UsageError(
                    f"a gate says itself what --{flag} says", where="--gate", hint=hint
                )
    members = _members(args)
    if gate is None:
        return _compare(args, members)
    from rlvitals.comparison import assertions
    from rlvitals.views import comparison as view
    from rlvitals.views import json_view
    from rlvitals.views.console import emit

    result = assertions.check(gate, *members, axis=args.axis, short_fails=args.short == "failed")
    if args.json:
        print(json_view.noun(result))
    else:
        emit(view.gate_report(result))
    return {True: EXIT_OK, False: EXIT_PROBLEM, None: EXIT_UNDECIDED}[result.holds]


def _members(args: Namespace) -> "list[list[Member]]":
    """Read the runs at each path; print and skip those that cannot be read."""
    from rlvitals.diagnosis import load

    groups: list[list[Member]] = []
    errors: list[UnreadableLog] = []
    read_runs: set[tuple[Path, str]] = set()
    for path in args.paths:
        if args.gate:
            read_runs = set()  # a run may be compared with itself
        options = load.run_overrides(flags.settings_for(path, args))
        members, problems = load.members(path, options, read_runs, args.ray)
        groups.append(members)
        errors += problems
    if not (all(groups) if args.gate else any(groups)):
        raise errors[0]
    sys.stderr.writelines(f"left out: {error.problem} ({error.where})\n" for error in errors)
    return groups


def _compare(args: Namespace, members: "list[list[Member]]") -> int:
    from rlvitals.comparison import compare, learning_curves, scores
    from rlvitals.views import comparison as view
    from rlvitals.views import json_view
    from rlvitals.views.console import emit
    from rlvitals.views.drawing import picture_folder
    from rlvitals.views.figures import groups

    request = compare.CompareOptions(
        by=tuple(key for text in args.by for key in split(text)),
        metric=args.metric,
        at=scores.parse_score_at(args.at) if args.at else compare.DEFAULT_SCORE_AT,
        axis=args.axis,
        short_fails=args.short == "failed",
        level=args.level,
    )
    runs = [member for group in members for member in group]
    result = compare.compare(runs, request)
    if args.output_dir is not None:
        plot_settings = flags.settings_for(args.paths[0], args).plot
        figures = groups.pictures(result, learning_curves.learning_curves(runs, request, result))
        file_names = picture_folder.write(figures, args.output_dir, plot_settings)
        sys.stderr.write(f"{args.output_dir}: {', '.join(file_names)}\n")
    if args.json:
        print(json_view.noun(result))
    else:
        emit(view.comparison(result))
    return EXIT_OK


COMMAND = Command("compare", __doc__, add_arguments, run)
