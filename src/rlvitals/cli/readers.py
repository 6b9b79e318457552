"""List the log formats that can be read."""

from argparse import ArgumentParser, Namespace

from rlvitals.cli.command import Command


def add_arguments(_parser: ArgumentParser) -> None:
    """Nothing to declare."""


def run(_args: Namespace) -> int:
    """Print one line for each reader."""
    from rlvitals.views import lists
    from rlvitals.views.console import emit

    emit(lists.readers())
    return 0


COMMAND = Command("readers", __doc__, add_arguments, run)
