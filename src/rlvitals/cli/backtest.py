"""Score saved rollouts again with changed reward functions, and compare the rewards.

This executes the Python file that you name. Each function in it that takes `completions` is a
reward function with TRL's interface; it may also take `prompts`, `answer`, `task`, `turns`,
`stop_reason` and `error`, and returns a number or None for each completion. `WEIGHTS` in the file
has their weights, 1 by default. The rewards are compared with those in the rollouts.

exit code: 0  scored
           2  wrong usage, or a function that fails
           3  no rollouts

examples:
  rlvitals backtest rewards.py runs/a
  rlvitals backtest rewards.py runs/a --limit 5 --json
"""

import json
import sys
from argparse import ArgumentParser, Namespace
from contextlib import redirect_stdout
from pathlib import Path

from rlvitals.cli.command import Command


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the rewards, the run and the output."""
    parser.add_argument(
        "rewards",
        type=Path,
        metavar="REWARDS.py",
        help="the file with reward functions; it is executed",
    )
    parser.add_argument("path", type=Path, metavar="RUN", help="a run's folder, or rollouts")
    parser.add_argument(
        "--limit",
        type=int,
        default=10,
        metavar="N",
        help="number of changed rollouts to show (default: 10)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: Namespace) -> int:
    """Score and print."""
    from rlvitals.rollouts import rescore, rollout_index
    from rlvitals.views import backtest_result as view
    from rlvitals.views.console import emit

    rollouts = rollout_index.read(args.path)
    if not args.json:
        print(f"executing {args.rewards}")
    with redirect_stdout(sys.stderr):  # what the file prints is no part of the result
        result = rescore.run(rollouts, rescore.load(args.rewards))
    if args.json:
        print(json.dumps(view.to_json(rollouts, result, args.limit)))
    else:
        emit(view.report(rollouts, result, args.limit))
    return 0


COMMAND = Command("backtest", __doc__, add_arguments, run)
