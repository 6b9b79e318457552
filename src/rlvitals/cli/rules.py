"""List the rules and what each sees; with --coverage, which of them a run lets judge.

`rlvitals explain RULE` shows a rule's page: when it applies, what it needs, what to do, when it
is wrong, and the numbers it judges by.

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
    """Declare the run, what is said about it, and how to show."""
    parser.add_argument(
        "--coverage",
        type=Path,
        metavar="PATH",
        help="which rules could judge this run, what to log for the others, which do not apply",
    )
    flags.add_option(parser, "diagnose", "profile")
    flags.add_free(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: Namespace) -> int:
    """Print the catalogue by kind, or what of it a run lets judge."""
    from rlvitals.types import Profile
    from rlvitals.views import json_view, rules
    from rlvitals.views.console import emit

    if args.coverage is not None:
        return _coverage(args)
    if args.json:
        print(json_view.rules())
    else:
        emit(rules.rules(Profile(args.profile) if args.profile else None))
    return 0


def _coverage(args: Namespace) -> int:
    from rlvitals.diagnosis import batch, load
    from rlvitals.views import json_view, rules
    from rlvitals.views.console import emit

    chosen = flags.settings_for(args.coverage, args)
    load.given(chosen)
    runs = load.runs(args.coverage)
    told = []
    for one in runs:
        found = batch.judge((one, chosen))
        if isinstance(found, UnreadableLog):
            raise found
        told.append(found)
    if args.json:
        print(json_view.coverage(told))
        return 0
    for i, found in enumerate(told):
        emit(rules.coverage(found))
        if i + 1 < len(told):
            print()
    return 0


COMMAND = Command("rules", __doc__, add_arguments, run)
