"""Serve the diagnosis to an agent by the Model Context Protocol, over stdin and stdout.

Tools: list_runs, diagnose, why, evidence, samples, compare, changed; with --control, ask too. Each
answers in at most 2 kB with a cursor for more. Without --control no run is written to. Nothing
outside of the roots is read. Texts of a log are marked as data.

In the settings of an agent:
  {"mcpServers": {"rlvitals": {"command": "rlvitals", "args": ["mcp", "/path/to/runs"]}}}

exit code: 0  the client closed its end
           2  a root is not there

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
        "roots", nargs="*", type=Path, metavar="ROOT", help="folders of runs (default: this one)"
    )
    parser.add_argument(
        "--control", action="store_true", help="let the agent ask trainings to save and to stop"
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
