"""Label runs as healthy, broken or wrongly judged, to measure your own false-alarm rates.

The label is stored with the results of the rules: in `marks.jsonl` of a recorded run, else in
`.rlvitals-marks.jsonl` in the folder of the log. A later label of the same run replaces it.

examples:
  rlvitals mark runs/my_run --healthy
  rlvitals mark runs/my_run --broken learning-rate-too-high
  rlvitals mark runs/my_run --wrong kl-spike
  rlvitals mark runs --export marks.json
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rlvitals.cli import flags
from rlvitals.cli.command import EXIT_OK, Command
from rlvitals.errors import UnreadableLog, UsageError, nearest

if TYPE_CHECKING:  # they load numpy
    from rlvitals.diagnosis.engine import Diagnosis
    from rlvitals.readers.discovery.sources import Run


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the runs and the label."""
    parser.add_argument(
        "paths", nargs="+", type=Path, metavar="RUN", help="a log or a run's folder"
    )
    label = parser.add_mutually_exclusive_group(required=True)
    label.add_argument("--healthy", action="store_true", help="the runs are healthy")
    label.add_argument(
        "--broken", metavar="CAUSE", help="the cause: a rule's name, or a word of your own"
    )
    label.add_argument(
        "--wrong", metavar="FINDING", help="the rule whose finding is wrong for these runs"
    )
    label.add_argument(
        "--export",
        type=Path,
        metavar="FILE",
        help="write the labels to FILE, without names, paths, times and values of the runs",
    )
    flags.add_free(parser)


def run(args: Namespace) -> int:
    """Write the labels, or export them."""
    from rlvitals.diagnosis import load, marks

    if args.export is not None:
        exported = [
            mark for path in args.paths for each in load.runs(path) if (mark := marks.read(each))
        ]
        marks.export(args.export, exported)
        print(
            f"{len(exported)} marks are in {args.export}: labels and what the rules said, no data."
        )
        return EXIT_OK
    if args.healthy:
        label = "healthy"
    elif args.broken is not None:
        label = f"broken: {args.broken}"
    else:
        label = f"wrong: {args.wrong}"
    for each, diagnosis in _diagnoses(args):
        from rlvitals.diagnosis.marks import Mark, features

        if args.healthy:
            label_mark = Mark("healthy", features=features(diagnosis))
        elif args.broken is not None:
            label_mark = Mark("broken", args.broken, features(diagnosis))
        else:
            names = [rule.name for rule, _ in diagnosis.findings]
            if args.wrong not in names:
                raise UsageError(
                    f"{each.name} has no finding {args.wrong!r}",
                    hint=nearest(args.wrong, names) or f"it has {', '.join(names) or 'none'}",
                )
            label_mark = Mark("wrong", args.wrong, features(diagnosis))
        path = marks.write(each, label_mark)
        print(f"{each.name} is marked {label}, in {path}")
    return EXIT_OK


def _diagnoses(args: Namespace) -> "Iterator[tuple[Run, Diagnosis]]":
    from rlvitals.diagnosis import batch, load

    for path in args.paths:
        settings = flags.settings_for(path, args)
        for each in load.runs(path):
            answer = batch.judge((each, settings))
            if isinstance(answer, UnreadableLog):
                raise answer
            yield each, answer


COMMAND = Command("mark", __doc__, add_arguments, run)
