"""List saved rollouts, compare those of two steps, or show the evidence of a finding.

Rollouts of TRL, verl, prime-rl, verifiers, SkyRL, Tinker, NeMo RL, rLLM, miles, Harbor (ATIF) and
of `run.log_rollouts` are read. The cache folder contains an index of the samples.

exit code: 0  printed
           2  wrong usage
           3  no rollouts

examples:
  rlvitals samples runs/a --step 400 --sort reward
  rlvitals samples runs/a --step 40 --against 400
  rlvitals samples runs/a --finding tool-use-fades
  rlvitals samples runs/a --sample 17
"""

import json
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from rlvitals.cli import flags
from rlvitals.cli.command import Command
from rlvitals.errors import UsageError, nearest

if TYPE_CHECKING:  # it loads numpy
    from rlvitals.rollouts.rollout_columns import Rollouts


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the run, the filters, the order and the output."""
    parser.add_argument("path", type=Path, metavar="RUN", help="a run's folder, or rollouts")
    parser.add_argument("--step", type=int, metavar="N", help="only rollouts of this step")
    parser.add_argument(
        "--against",
        type=int,
        metavar="N",
        help="pair the prompts of --step with those of this step",
    )
    parser.add_argument(
        "--finding", metavar="RULE", help="rollouts that are evidence of this rule's finding"
    )
    parser.add_argument("--sample", type=int, metavar="N", help="one rollout in full")
    parser.add_argument("--task", default="", metavar="NAME", help="only this task or data set")
    parser.add_argument("--group", default="", metavar="NAME", help="only this group")
    parser.add_argument("--stop-reason", default="", metavar="NAME", help="only this stop reason")
    parser.add_argument(
        "--error",
        nargs="?",
        const="",
        metavar="TEXT",
        help="only with an error (that contains TEXT)",
    )
    parser.add_argument("--min-reward", type=float, metavar="X", help="only rewards of at least X")
    parser.add_argument("--max-reward", type=float, metavar="X", help="only rewards of at most X")
    parser.add_argument(
        "--sort",
        choices=("reward", "length", "turns", "step"),
        help="order (default: as saved)",
    )
    parser.add_argument("--descending", action="store_true", help="highest first")
    parser.add_argument(
        "--limit", type=int, default=20, metavar="N", help="number of rollouts (default: 20)"
    )
    parser.add_argument("--full", action="store_true", help="do not shorten texts")
    parser.add_argument("--json", action="store_true", help="print JSON")
    flags.add_free(parser)


def run(args: Namespace) -> int:
    """Print rollouts."""
    from rlvitals.hosted import fetch
    from rlvitals.rollouts import rollout_index, step_pairs
    from rlvitals.views import rollout_list
    from rlvitals.views.console import emit

    if args.against is not None and args.step is None:
        raise UsageError(
            "--against compares with --step", where="rlvitals samples RUN", hint="--step N"
        )
    args.path = fetch.local_path(args.path)
    rollouts = rollout_index.read(args.path)
    if args.against is not None:
        moved = step_pairs.pair(rollouts, args.step, args.against)
        if args.json:
            print(json.dumps(rollout_list.pairs_to_json(rollouts, moved, args.limit)))
        else:
            emit(rollout_list.pair_list(rollouts, moved, args.limit))
        return 0
    indices = _choose(rollouts, args)
    numbers = indices[: args.limit]
    if args.json:
        print(json.dumps(rollout_list.to_json(rollouts, numbers)))
        return 0
    if args.full or args.sample is not None:
        for number in numbers:
            emit(rollout_list.full(number, rollouts.read_sample(number)))
    else:
        emit(rollout_list.listing(rollouts, numbers))
    print(f"{len(numbers)} of {len(indices)} rollouts; {len(rollouts)} are saved")
    for note in rollouts.notes:
        print(f"note: {note}")
    return 0


def _choose(rollouts: "Rollouts", args: Namespace) -> list[int]:
    """Return the numbers of the rollouts that the arguments select. Raises UsageError."""
    from rlvitals.rollouts import row_filter

    if args.sample is not None:
        if not 0 <= args.sample < len(rollouts):
            raise UsageError(
                f"no rollout has the number {args.sample}",
                where="--sample",
                hint=f"0 to {len(rollouts) - 1}",
            )
        return [args.sample]
    if args.finding:
        return _prove(rollouts, args)
    keep = row_filter.Filter(
        step=args.step,
        task=args.task,
        group=args.group,
        stop_reason=args.stop_reason,
        error=args.error,
        min_reward=args.min_reward,
        max_reward=args.max_reward,
    )
    indices = row_filter.select(rollouts, keep)
    if args.sort:
        indices = row_filter.sort(rollouts, indices, args.sort, descending=args.descending)
    return [int(number) for number in indices]


def _prove(rollouts: "Rollouts", args: Namespace) -> list[int]:
    """Return the numbers of the rollouts that prove a finding of the run. Raises UsageError."""
    from rlvitals import api
    from rlvitals.rollouts import evidence

    findings = {rule.name: finding for rule, finding in api.diagnose(args.path).findings}
    if args.finding not in findings:
        hint = nearest(args.finding, findings) or f"found: {', '.join(findings) or 'nothing'}"
        raise UsageError(
            f"{args.finding!r} is not a finding of this run", where="--finding", hint=hint
        )
    finding = findings[args.finding]
    evidence_rows = evidence.find(
        rollouts,
        finding.metric,
        finding.began,
        finding.ended,
        is_above=finding.is_high,
    )
    return [int(number) for number in evidence_rows]


COMMAND = Command("samples", __doc__, add_arguments, run)
