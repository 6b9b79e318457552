"""List the rules and what each detects; with --coverage, which of them can judge a run.

`rlvitals explain RULE` prints the page of a rule: when it applies, the metrics it needs, remedies,
when it is wrong, and its thresholds.

examples:
  rlvitals rules --profile grpo
  rlvitals rules --coverage runs/my_run
  rlvitals rules --json
"""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from rlvitals.cli import flags
from rlvitals.cli.command import Command
from rlvitals.errors import UnreadableLog


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the run, its profile and the output."""
    parser.add_argument(
        "--coverage",
        type=Path,
        metavar="PATH",
        help="rules that can judge this run, metrics that the others need, rules that do not apply",
    )
    flags.add_option(parser, "diagnose", "profile")
    flags.add_free(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: Namespace) -> int:
    """Print the catalogue by kind, or a run's coverage of it."""
    from rlvitals.types import Profile
    from rlvitals.views import json_view, rules
    from rlvitals.views.console import emit

    if args.coverage is not None:
        from rlvitals.diagnosis import batch, load
        from rlvitals.views import json_view, rules
        from rlvitals.views.console import emit

        settings = flags.settings_for(args.coverage, args)
        load.run_overrides(settings)
        runs = load.runs(args.coverage)
        diagnoses = []
        for run in runs:
            diagnosis = batch.judge((run, settings))
            if isinstance(diagnosis, UnreadableLog):
                raise diagnosis
            diagnoses.append(diagnosis)
        if args.json:
            print(json_view.coverage(diagnoses))
            return 0
        for i, diagnosis in enumerate(diagnoses):
            emit(rules.coverage(diagnosis))
            if i + 1 < len(diagnoses):
                print()
        return 0
    if args.json:
        print(json_view.rules())
    else:
        emit(rules.rules(Profile(args.profile) if args.profile else None))
    return 0


COMMAND = Command("rules", __doc__, add_arguments, run)
