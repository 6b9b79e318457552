"""Send a test message to the channels of your own alerts.toml.

`rlvitals follow PATH` and `rlvitals serve` send alerts with --alerts or --alert. The file is
~/.config/rlvitals/alerts.toml; files in the folders of runs are not read. Each section [[alert]]
is one channel: desktop, ntfy, slack, discord, teams, webhook, email, command.

exit code: 0  all messages were delivered
           1  a message was not delivered
           2  the file or the channel is invalid

examples:
  rlvitals alerts test
  rlvitals alerts test slack
  rlvitals alerts test ntfy=https://ntfy.sh/my_topic
"""

import os
from argparse import ArgumentParser, Namespace

from rlvitals.cli.command import EXIT_OK, EXIT_PROBLEM, Command


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the action and the channel."""
    parser.add_argument("action", choices=("test",), help="send a test message")
    parser.add_argument(
        "channel", nargs="?", default="", metavar="CHANNEL[=URL]",
        help="only this channel (default: all in the file)",
    )  # fmt: skip


def run(args: Namespace) -> int:
    """Send the test message and return the exit code."""
    from rlvitals.alerts import message, routes, sender
    from rlvitals.alerts.delivery import DeliveryError
    from rlvitals.errors import UsageError

    file = routes.path(os.environ)
    user_routes = routes.read(file, os.environ) if file is not None and file.is_file() else ()
    matches = [route for route in user_routes if args.channel in {"", route.channel}]
    if args.channel and not matches:
        matches = [routes.from_flag(args.channel, (), os.environ)]
    if not matches:
        hint = 'a section [[alert]] with channel = "desktop"; or rlvitals alerts test desktop'
        raise UsageError("there is no alert to test", where=str(file or "alerts.toml"), hint=hint)
    code = EXIT_OK
    for route in matches:
        try:
            sender.send(route, message.example())
            print(f"{route.channel}: sent")
        except DeliveryError as error:
            print(f"{route.channel}: not sent: {error}")
            code = EXIT_PROBLEM
    return code


COMMAND = Command("alerts", __doc__, add_arguments, run)
