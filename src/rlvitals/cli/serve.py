"""Serve a live page about runs to a browser: all runs, each run, and comparisons.

The page of all runs shows one line for each run below each ROOT, the worst first, and judges them
in the background. A run's page shows its verdict, its findings and its charts, and new rows within
1.5 s. The server only reads: it changes nothing below a ROOT and takes no settings from there.
With --control the page of a run can mark it as healthy or broken, mark a finding as wrong, mute
a finding, and ask a running process to save a checkpoint or to stop.
With --index the runs, their verdicts and their filter come from ClickHouse, as
`rlvitals index ROOT --to URL` filled it: no folder is walked, and none is judged but that of a run
whose page is opened.

It listens on this machine only. With --control or --host, each browser needs the token in the
printed address. Ctrl-C ends it.

examples:
  rlvitals serve runs
  rlvitals serve runs old_runs s3://bucket/runs
  rlvitals serve runs --port 8080 --open
  rlvitals serve runs --control
  rlvitals serve runs --host 0.0.0.0
  rlvitals serve runs --alerts
  rlvitals serve runs --index clickhouse://host/runs
"""

import contextlib
import errno
import os
import secrets
import socket
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rlvitals.cli import flags
from rlvitals.cli.command import EXIT_OK, Command
from rlvitals.errors import UnreadableLog, UsageError
from rlvitals.storage.missing_path import missing_path

if TYPE_CHECKING:  # loaded where they are used
    from starlette.applications import Starlette

    from rlvitals.alerts.routes import Route
    from rlvitals.alerts.sender import Sender
    from rlvitals.storage.run_query import RunQuery


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the roots and the address."""
    parser.add_argument(
        "roots", type=Path, nargs="*", default=[Path()], metavar="ROOT",
        help="folders with runs, or a bucket's URL (default: the working folder)",
    )  # fmt: skip
    parser.add_argument(
        "--port", type=int, metavar="N",
        help="port to listen on; 0: any free port (default: 8265, or a free one if it is taken)",
    )  # fmt: skip
    parser.add_argument(
        "--host", default="127.0.0.1", metavar="NAME",
        help="address to listen on (default: this machine only)",
    )  # fmt: skip
    parser.add_argument(
        "--control", action="store_true",
        help="offer marks, mutes and requests to running processes (default: read-only)",
    )  # fmt: skip
    flags.add_index(parser)
    parser.add_argument("--open", action="store_true", help="open the page in a browser")
    flags.add_alerts(parser)


def run(args: Namespace) -> int:
    """Serve until Ctrl-C."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as in `diagnose`: no work for threads
    roots = _roots(args.roots, args.index)
    try:
        from rlvitals.server import app
    except ModuleNotFoundError as error:
        if error.name not in {"starlette", "uvicorn"}:
            raise
        raise UsageError(
            "the packages of the server are not installed",
            where="serve",
            hint="pip install 'rlvitals[serve]'",
        ) from error
    from rlvitals import settings

    routes = flags.alert_routes(args)
    # The nearest settings file above every ROOT: one below may have come with the runs.
    above = Path(os.path.commonpath([root.absolute().parent for root in roots]))
    options = settings.load(above, {}, os.environ)
    listener = _bind_free(args.host) if args.port is None else _bind(args.host, args.port)
    is_loopback = args.host in {"127.0.0.1", "localhost", "::1"}
    # Other users of this machine reach loopback too: they may read, but not change anything.
    token = "" if is_loopback and not args.control else secrets.token_urlsafe(24)
    address = _address(args.host, listener.getsockname()[1], token)
    names = () if is_loopback else (args.host, socket.gethostname())
    more = {"control": args.control, "store": _store(args.index)}
    application = app.build([root.absolute() for root in roots], options, names, token, **more)
    sender = _start_alerts(application, routes, address.partition("?")[0])
    print(f"serving {', '.join(map(str, roots))} at {address}", flush=True)
    if not is_loopback:
        verb = "read and mark" if args.control else "read"
        sys.stderr.write(f"open to the network: whoever has this address can {verb} the runs\n")
    if args.open:
        import webbrowser

        webbrowser.open(address)
    with contextlib.closing(sender) if sender else contextlib.nullcontext():
        app.Server(application).run([listener])
    return EXIT_OK


def _roots(paths: Sequence[Path], index: str) -> list[Path]:
    """Return the folders to serve: a bucket's copy is kept up to date. Raises UnreadableLog."""
    from rlvitals.hosted import fetch

    if index and len(paths) > 1:
        raise UsageError("an index has the runs of one ROOT", where="--index", hint="serve ROOT")
    folders = []
    for path in paths:
        folder = fetch.keep_up_to_date(path)
        if not folder.exists():
            raise missing_path(path)
        if not folder.is_dir():
            hint = f"rlvitals serve {folder.parent}"
            raise UnreadableLog("a file, not a folder of runs", where=str(path), hint=hint)
        folders.append(folder)
    return folders


def _start_alerts(
    application: "Starlette", routes: "Sequence[Route]", address: str
) -> "Sender | None":
    """Send an alert about each run that the fleet judges; None without a route."""
    if not routes:
        return None
    from urllib.parse import quote

    from rlvitals.alerts.sender import Sender

    sender = Sender(routes, lambda key: f"{address}run/{quote(key)}")
    application.state.fleet.on_judged = sender.update
    return sender


def _bind_free(host: str, port: int = 8265) -> socket.socket:
    """Return a socket at a port, or at a free one where it is taken, as by Ray's dashboard."""
    try:
        return _bind(host, port)
    except UsageError as error:
        if getattr(error.__cause__, "errno", None) != errno.EADDRINUSE:
            raise
        return _bind(host, 0)


def _bind(host: str, port: int) -> socket.socket:
    """Return a socket that browsers wait at. Raises UsageError for an address in use."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen()  # before the address is printed, which a person or a program opens
    except (OSError, OverflowError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or error
        raise UsageError(
            f"{host} port {port} cannot be used: {reason}", where="--port", hint="--port 0"
        ) from error
    return listener


def _address(host: str, port: int, token: str) -> str:
    if host in {"0.0.0.0", "::"}:  # noqa: S104 - the user's choice; browsers need a name
        host = socket.gethostname()
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{port}/" + (f"?token={token}" if token else "")


def _store(url: str) -> "RunQuery | None":
    """Connect to ClickHouse; None without a URL."""
    if not url:
        return None
    from rlvitals.clickhouse.run_store import RunStore

    return RunStore(url)


COMMAND = Command("serve", __doc__, add_arguments, run)
