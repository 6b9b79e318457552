"""Thin the points of old runs, and delete surplus checkpoints and rollouts.

A run is as old as its newest row or start. An old run keeps, of each bucket of each metric, the
first, last, lowest and highest point, the first NaN and infinities, and the counts of all; the
oldest --tier that fits counts. Sealed checkpoints are deleted with --checkpoints alone: those
beyond the N newest that are neither best, nor pinned, nor the last healthy one. Files of saved
rollouts (`run.log_rollouts`) are deleted with --rollouts alone; a note in the run says how many.
Runs on hold (`rlvitals hold RUN`) and runs that a process records into are left as they are.
After a crash every file is complete: run the command again.

exit code: 0  done
           1  a step was not done
           2  wrong usage
           3  nothing readable

examples:
  rlvitals prune runs --plan
  rlvitals prune runs --tier 90d:1024 --tier 365d:256
  rlvitals prune runs --checkpoints 1 --rollouts 2 --plan
"""

import json
import sys
import time as clock
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rlvitals.cli import flags
from rlvitals.cli.command import EXIT_OK, EXIT_PROBLEM, Command
from rlvitals.errors import UnreadableLog, UsageError, harmless

if TYPE_CHECKING:
    from rlvitals.checkpoints.run_retention import Outcome, RunPlan


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the root, the tiers and the flags."""
    parser.add_argument("root", type=Path, metavar="ROOT", help="a run folder, or one with several")
    parser.add_argument("--plan", action="store_true", help="print what would be done, do nothing")
    parser.add_argument(
        "--tier", type=_tier, action="append", metavar="AGE:BUCKETS",
        help="thin runs of this age (default: 90d:1024 and 365d:256)",
    )  # fmt: skip
    parser.add_argument(
        "--checkpoints", type=int, metavar="N", help="delete sealed checkpoints beyond the N newest"
    )
    parser.add_argument(
        "--rollouts", type=int, metavar="N",
        help="delete files of rollouts but each rank's first and its N newest",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON")


def _tier(text: str) -> tuple[float, int]:
    age, _, buckets = text.partition(":")
    if not buckets.isdecimal():
        raise ArgumentTypeError(f"{text!r} is not a tier: an age and buckets, 90d:1024")
    return flags.seconds(age), int(buckets)


def run(args: Namespace) -> int:
    """Plan each run, do it unless only the plan is wanted, and print both."""
    from rlvitals.checkpoints import run_retention
    from rlvitals.storage.find_run_folders import run_folders

    default_tiers = ((90 * 86_400.0, 1024), (365 * 86_400.0, 256))  # age in seconds, buckets
    tiers = [run_retention.TierRule(*pair) for pair in args.tier or default_tiers]
    if args.checkpoints is not None and args.checkpoints < 1:
        raise UsageError("one checkpoint is kept at least", where="--checkpoints", hint="1")
    if args.rollouts is not None and args.rollouts < 0:
        raise UsageError("a number of files from 0 on", where="--rollouts", hint="0")
    plans: list[RunPlan] = []
    outcomes: list[Outcome] = []
    limits = tiers, args.checkpoints, clock.time(), args.rollouts
    code = EXIT_OK
    for folder in run_folders(args.root):
        try:
            if args.plan:
                run_plan = run_retention.plan(folder, *limits)
                results: Sequence[Outcome] = ()
            else:
                run_plan, results = run_retention.prune(folder, *limits)
        except (OSError, UnreadableLog) as error:
            print(f"{folder}: left as it is: {harmless(str(error))}", file=sys.stderr)
            code = EXIT_PROBLEM
            continue
        plans.append(run_plan)
        outcomes += results
        code = EXIT_PROBLEM if any(result.problem for result in results) else code
        if not args.json:
            _print_run(run_plan, results)
    if args.json:
        document = {"plan": [asdict(run_plan) for run_plan in plans]}
        document |= {} if args.plan else {"done": [asdict(result) for result in outcomes]}
        print(json.dumps(document, indent=1, default=str))
    else:
        _print_total(plans, outcomes, is_plan=args.plan)
    return code


def _print_run(run_plan: "RunPlan", results: "Sequence[Outcome]") -> None:
    if run_plan.steps or run_plan.obstacles:
        print(harmless(str(run_plan.folder)))
    problems = {result.step.path: result.problem for result in results}
    sizes = {result.step.path: result.new_size for result in results}
    for step in run_plan.steps:
        after = sizes.get(step.path, step.new_size)
        prefix = "about " if step.action == "thin" and not results else ""
        line = f"  {step.action} {step.path.name}: {step.size:,} bytes to {prefix}{after:,}"
        print(harmless(f"{line}; {problems.get(step.path) or step.reason}"))
    for reason in run_plan.obstacles:
        print(harmless(f"  kept: {reason}"))


def _print_total(
    plans: "Sequence[RunPlan]", outcomes: "Sequence[Outcome]", *, is_plan: bool
) -> None:
    count = sum(bool(run_plan.steps) for run_plan in plans)
    runs = f"{count} of {len(plans)} runs"
    if is_plan:
        saved = sum(run_plan.freed_bytes for run_plan in plans)
        print(f"{runs} would be pruned: about {saved:,} bytes. Nothing was changed.")
    else:
        saved = sum(result.step.size - result.new_size for result in outcomes)
        print(f"{runs} pruned: {saved:,} bytes freed.")


COMMAND = Command("prune", __doc__, add_arguments, run)
