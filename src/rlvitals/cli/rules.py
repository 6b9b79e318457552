"""List the rules and what each sees.

`rlvitals explain RULE` shows a rule's page: when it applies, what it needs, what to do, when it
is wrong.
"""

from argparse import ArgumentParser, Namespace

from rlvitals.cli.command import Command


def add_arguments(_parser: ArgumentParser) -> None:
    """Nothing to declare."""


def run(_args: Namespace) -> int:
    """Print one line for each rule."""
    from rlvitals.rules import CATALOGUE
    from rlvitals.show import listing
    from rlvitals.show.console import emit

    rows = [listing.rule(rule)[:2] for rule in CATALOGUE]
    emit(listing.columns(("rule", "sees"), rows))
    return 0


COMMAND = Command("rules", __doc__, add_arguments, run)
