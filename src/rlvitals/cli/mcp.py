"""Serve the diagnosis to an agent by the Model Context Protocol, over stdin and stdout.

Tools: list_runs, diagnose, why, evidence, samples, compare, changed; with --control, also ask. An
answer has at most 2 kB and a cursor for more. Without --control the server only reads. It reads
nothing outside of the roots, and marks texts of logs as data.

In the settings of an agent:
  {"mcpServers": {"rlvitals": {"command": "rlvitals", "args": ["mcp", "/path/to/runs"]}}}

exit code: 0  the client closed the connection
           2  a root does not exist

examples:
  rlvitals mcp runs
  rlvitals mcp /data/sweep-1 /data/sweep-2
  rlvitals mcp runs --control
"""

import os
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from rlvitals.cli.command import EXIT_OK, Command


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the roots."""
    parser.add_argument(
        "roots",
        nargs="*",
        type=Path,
        metavar="ROOT",
        help="folders of runs (default: the working folder)",
    )
    parser.add_argument(
        "--control", action="store_true", help="let the agent request checkpoints and stops"
    )


def run(args: Namespace) -> int:
    """Answer a client until it closes its end."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as in `diagnose`: no work for threads
    from rlvitals.agents.server import Server
    from rlvitals.agents.workspace import Workspace

    server = Server(Workspace(args.roots or [Path()]), control=args.control)
    server.serve(sys.stdin.buffer, sys.stdout.buffer)
    return EXIT_OK


COMMAND = Command("mcp", __doc__, add_arguments, run)
