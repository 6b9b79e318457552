"""List the log formats that can be read."""

from argparse import ArgumentParser, Namespace

from rlvitals.cli.command import Command


def add_arguments(_parser: ArgumentParser) -> None:
    """Nothing to declare."""


def run(_args: Namespace) -> int:
    """Print one line for each reader."""
    from rlvitals.show import listing
    from rlvitals.show.console import emit

    emit(listing.readers())
    return 0


COMMAND = Command("readers", __doc__, add_arguments, run)
