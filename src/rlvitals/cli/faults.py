"""Measure how good the diagnosis is: record broken runs, and score what is said of them.

`run` trains the benchmark's runs, healthy and broken, with Stable-Baselines3 and keeps their logs;
what is there already is left, so that it may be stopped and started again. `score` diagnoses
every one of them and prints how often the root cause is named and how often a healthy run rings.
`replay` diagnoses them as they grew, at each 5 %: when the cause is named, what is taken back.

exit code: 0  done
           1  `score --check`: recall fell, or false alarms rose, against the committed table

examples:
  rlvitals faults run --jobs 4
  rlvitals faults score
  rlvitals faults score --split tuning --by fault
  rlvitals faults score --check
  rlvitals faults replay --every 4
"""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from rlvitals.cli.command import Command

TRACES_FOLDER = Path("faults/tier-1")
SCORE_FILE = Path("faults/score.json")


def add_arguments(parser: ArgumentParser) -> None:
    """Declare `run`, `score` and `replay`."""
    subs = parser.add_subparsers(required=True, metavar="run|score|replay", dest="what")
    run_parser = subs.add_parser("run", help="record the runs that are missing")
    run_parser.add_argument("--only", default="", help="runs whose task/name contains this")
    score_parser = subs.add_parser("score", help="diagnose every run and count")
    replay_parser = subs.add_parser("replay", help="diagnose every run as it grew, and count")
    replay_parser.add_argument("--every", type=_count, default=1, help="one run in so many")
    for each in (score_parser, replay_parser):
        each.add_argument(
            "--split",
            choices=("test", "seen", "tuning", "all"),
            default="test",
            help="which runs count",
        )
    score_parser.add_argument(
        "--by", choices=("fault", "task", "rule"), action="append", default=[], help="more tables"
    )
    doing = score_parser.add_mutually_exclusive_group()
    doing.add_argument("--check", action="store_true", help=f"compare with {SCORE_FILE}")
    doing.add_argument(
        "--write", action="store_true", help=f"rewrite {SCORE_FILE} and what rests on it"
    )
    doing.add_argument("--json", action="store_true", help="print the numbers as JSON")
    for each in (run_parser, score_parser, replay_parser):
        each.add_argument("--tier", type=int, choices=(1,), default=1, help="control tasks")
        each.add_argument("--folder", type=Path, default=TRACES_FOLDER, help="where the traces are")
        each.add_argument("--jobs", type=int, default=2, help="processes")


def run(args: Namespace) -> int:
    """Record, score, or replay."""
    from rlvitals.faults import bench

    if args.what == "run":
        from rlvitals.faults.run import run as run_missing

        run_missing(args.folder, args.jobs, print, args.only)
        return 0
    if args.what == "replay":
        bench.watch(args.folder, args.jobs, args.split, args.every, print)
        return 0
    if args.check:
        return bench.check(args.folder, args.jobs, SCORE_FILE, print)
    if args.write:
        bench.write(args.folder, args.jobs, SCORE_FILE, print)
        return 0
    if args.json:
        print(bench.as_json(args.folder, args.jobs, args.split))
        return 0
    bench.show(args.folder, args.jobs, args.split, tuple(args.by), print)
    return 0


def _count(text: str) -> int:
    """Parse a number of runs: 1 or more."""
    if (count := int(text)) < 1:
        raise ValueError(text)
    return count


COMMAND = Command("faults", __doc__, add_arguments, run)
