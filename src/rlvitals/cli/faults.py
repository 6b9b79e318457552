"""Measure the diagnosis: record broken runs, and score what it reports.

`run` trains the benchmark's healthy and broken runs with Stable-Baselines3 and stores their logs;
existing ones are skipped, so it can be stopped and repeated. `score` diagnoses all of them and
prints the recall of root causes and the false alarms on healthy runs. `replay` diagnoses them at
each 5 % of their length, and prints when the cause is named and which findings are cleared.
`score --tier 2` scores the worlds: other trainers, environments and faults, which
`scripts/record_worlds.py` records.

exit code: 0  done
           1  `score --check`: lower recall or more false alarms than in faults/score.json;
              `score --write`: the rates of the rules have changed, and it has to run once more

examples:
  rlvitals faults run --jobs 4
  rlvitals faults score
  rlvitals faults score --split tuning --by fault
  rlvitals faults score --check
  rlvitals faults score --tier 2 --split dev --by world
  rlvitals faults replay --every 4
"""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from rlvitals.cli import flags
from rlvitals.cli.command import Command
from rlvitals.errors import UsageError

# The traces, splits and tables of each tier.
TIERS = {
    1: (
        Path("faults/tier-1"), ("test", "seen", "tuning", "all"), ("fault", "task", "rule")
    ),
    2: (
        Path("faults/tier-2"), ("test", "dev", "unseen", "all"),
        ("fault", "world", "trainer", "rule"),
    ),
}  # fmt: skip
SCORE_FILE = Path("faults/score.json")


def add_arguments(parser: ArgumentParser) -> None:
    """Declare `run`, `score` and `replay`."""
    subs = parser.add_subparsers(required=True, metavar="run|score|replay", dest="what")
    run_parser = subs.add_parser("run", help="record missing runs")
    run_parser.add_argument("--only", default="", help="only runs whose task/name contains this")
    score_parser = subs.add_parser("score", help="diagnose every run and score it")
    replay_parser = subs.add_parser("replay", help="diagnose every run as it grew, and score it")
    replay_parser.add_argument("--every", type=_count, default=1, help="use one run in N")
    for each in (score_parser, replay_parser):
        each.add_argument(
            "--split",
            choices=sorted({*TIERS[1][1], *TIERS[2][1]}),
            default="test",
            help="split to score; tier 2 has test, dev, unseen and all",
        )
    score_parser.add_argument(
        "--by",
        choices=sorted({*TIERS[1][2], *TIERS[2][2]}),
        action="append",
        default=[],
        help="additional tables; world and trainer for tier 2, task for tier 1",
    )
    doing = score_parser.add_mutually_exclusive_group()
    doing.add_argument("--check", action="store_true", help=f"compare with {SCORE_FILE}")
    doing.add_argument(
        "--write", action="store_true", help=f"rewrite {SCORE_FILE} and the files derived from it"
    )
    doing.add_argument("--json", action="store_true", help="print the numbers as JSON")
    flags.add_ray(score_parser)
    for each in (run_parser, score_parser, replay_parser):
        tiers = (1, 2) if each is score_parser else (1,)
        each.add_argument(
            "--tier",
            type=int,
            choices=tiers,
            default=1,
            help="1: control tasks; 2: worlds, for `score` only",
        )
        each.add_argument("--folder", type=Path, help="folder of the traces")
        each.add_argument("--jobs", type=int, default=2, help="processes")


def run(args: Namespace) -> int:
    """Record, score, or replay."""
    from rlvitals.faults import bench

    args.folder = args.folder or TIERS[args.tier][0]
    if args.what == "run":
        from rlvitals.faults.run import run as run_missing

        run_missing(args.folder, args.jobs, print, args.only)
        return 0
    if args.what == "replay":
        bench.watch(args.folder, args.jobs, args.split, args.every, print)
        return 0
    # Not every tier has each split and table.
    _, splits, tables = TIERS[args.tier]
    for names, allowed in (((args.split,), splits), (args.by, tables)):
        for name in set(names) - set(allowed):
            hint = f"tier {args.tier} has {', '.join(allowed)}"
            raise UsageError(f"tier {args.tier} has no {name}", hint=hint)
    if args.ray is not None:
        args.jobs = args.ray
    return (_score_tasks if args.tier == 1 else _score_worlds)(args)


def _score_tasks(args: Namespace) -> int:
    from rlvitals.faults import bench

    if args.check:
        return bench.check(args.folder, args.jobs, SCORE_FILE, print)
    if args.write:
        return bench.write(args.folder, args.jobs, SCORE_FILE, print)
    if args.json:
        print(bench.as_json(args.folder, args.jobs, args.split))
    else:
        bench.show(args.folder, args.jobs, args.split, tuple(args.by), print)
    return 0


def _score_worlds(args: Namespace) -> int:
    from rlvitals.faults import bench, world_page

    if args.check:
        raise UsageError("--check is of tier 1", hint="rlvitals faults score --tier 2")
    if args.write:
        world_page.write(args.folder, args.jobs, bench.SCORE_PAGE, print)
    elif args.json:
        print(world_page.as_json(args.folder, args.jobs, args.split))
    else:
        world_page.show(args.folder, args.jobs, args.split, tuple(args.by), print)
    return 0


def _count(text: str) -> int:
    """Parse a number of runs: 1 or more."""
    if (count := int(text)) < 1:
        raise ValueError(text)
    return count


COMMAND = Command("faults", __doc__, add_arguments, run)
