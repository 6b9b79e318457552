"""Build the web application, and run it until Ctrl-C."""

import contextlib
import secrets
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount, Route, Router
from starlette.types import Receive, Scope, Send

from rlvitals.server import fleet_page, page_shell
from rlvitals.server.access import AccessCheck
from rlvitals.server.fleet import Fleet
from rlvitals.server.live_runs import LiveRuns
from rlvitals.server.page_shell import NO_STORE
from rlvitals.server.patience import PatientProtocol
from rlvitals.settings import Settings
from rlvitals.storage.run_query import RunQuery

if TYPE_CHECKING:  # the module that opens runs loads what judges
    from rlvitals.readers.discovery.sources import Run
    from rlvitals.server.live_run import LiveRun


def build(  # noqa: PLR0913 - what a person chooses
    roots: Sequence[Path],
    settings: Settings,
    hosts: Iterable[str] = (),
    token: str = "",
    *,
    control: bool = False,
    store: RunQuery | None = None,
) -> Starlette:
    """Return the application that serves the runs of some folders.

    `hosts`: further names that browsers reach it by. `token`: needed by each browser; empty: none.
    `control`: pages may mark, mute and send requests to a run's process. `store`: lists the runs.
    """
    fleet, live = _runs(roots, settings, store)
    control_token = secrets.token_urlsafe(24) if control else ""
    ending: dict[str, threading.Thread] = {}

    def run_routes() -> Sequence[Route]:
        from rlvitals.server import run_routes  # noqa: PLC0415 - it loads what judges

        return run_routes.build(fleet, live, control_token, ending)

    def show_fleet(_: Request) -> Response:
        fleet.wait(0.5)  # seconds; runs that are listed later come by themselves
        return HTMLResponse(fleet_page.document(fleet), headers=NO_STORE)

    app = Starlette(
        routes=[Route("/", show_fleet), *_assets(), Mount("", DeferredRoutes(run_routes))],
        lifespan=_lifespan(fleet, live, ending),
        exception_handlers={HTTPException: _http_problem},
    )
    app.state.close_streams = (fleet.channel.close, live.close_streams)
    app.state.fleet = fleet
    app.add_middleware(AccessCheck, hosts=tuple(hosts), token=token, control_token=control_token)
    return app


def _lifespan(
    fleet: Fleet, live: LiveRuns, ending: Mapping[str, threading.Thread]
) -> Callable[[Starlette], contextlib.AbstractAsyncContextManager[None]]:
    """Return what starts and stops the threads with the application.

    A hard stop that is under way comes to its end first: its processes may need the second signal.
    """

    @contextlib.asynccontextmanager
    async def run_threads(_: Starlette) -> AsyncIterator[None]:
        fleet.start()
        live.start()
        yield
        live.stop()
        fleet.stop()
        if ending:
            names = ", ".join(ending)
            sys.stderr.write(f"waiting until the processes of {names} have ended, at most 45 s\n")
        for thread in list(ending.values()):
            await run_in_threadpool(thread.join)

    return run_threads


class DeferredRoutes:
    """ASGI application of routes whose modules are imported by the first request to them.

    The page of all runs is there in half the time, as it needs none of the judging modules.
    """

    def __init__(self, build: Callable[[], Sequence[Route]]) -> None:
        """Take the function that imports and returns the routes."""
        self._build = build
        self._lock = threading.Lock()
        self._router: Router | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        router = self._router
        if router is None:
            router = await run_in_threadpool(self.router)
        await router(scope, receive, send)

    def router(self) -> Router:
        """Return the routes; the first call imports them."""
        with self._lock:
            if self._router is None:
                self._router = Router(self._build())
            return self._router


def _runs(
    roots: Sequence[Path], settings: Settings, store: RunQuery | None
) -> tuple[Fleet, LiveRuns]:
    """Return the lines of all runs, and the runs that somebody looks at."""
    fleet = Fleet(roots, settings, store)

    def open_run(key: str, time_s: float) -> "LiveRun":
        from rlvitals.server import run_files  # noqa: PLC0415 - it loads the readers
        from rlvitals.server.live_run import LiveRun  # noqa: PLC0415 - it loads what judges

        run = run_files.read_run(fleet.entry(key))
        with fleet.reader:
            return LiveRun(key, run, fleet.mutes.apply(key, settings), time_s)

    def find_files(live_run: "LiveRun") -> "Run | None":
        from rlvitals.server import run_files  # noqa: PLC0415 - it loads the readers

        return run_files.find_other_files(fleet.entries.get(live_run.key), live_run.run)

    live = LiveRuns(open_run, find_files, lambda run: fleet.note(run.key, run.diagnosis))
    fleet.open_keys = live.keys
    return fleet, live


def _assets() -> list[Route]:
    """Return the routes of the script, the style and the icon: texts made at the first request."""
    folder = files("rlvitals.server.assets")
    contents = {
        "serve.js": (page_shell.script, "text/javascript"),
        "serve.css": (page_shell.style, "text/css"),
        "theme.js": (lambda: folder.joinpath("theme.js").read_text("utf-8"), "text/javascript"),
        "icon.svg": (lambda: folder.joinpath("icon.svg").read_text("utf-8"), "image/svg+xml"),
    }
    return [_asset_route(name, cache(text), media) for name, (text, media) in contents.items()]


def _asset_route(name: str, read: Callable[[], str], media: str) -> Route:
    def answer(_: Request) -> Response:
        return Response(read(), media_type=media, headers={"cache-control": "no-cache"})

    return Route(f"/assets/{name}", answer)


def _http_problem(_: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    return HTMLResponse(page_shell.problem(status, "Not here", "There is no such page."), status)


class Server(uvicorn.Server):
    """A server that ends its event streams before it waits for the others to end."""

    def __init__(self, app: Starlette) -> None:
        """Prepare to serve an application of `build`."""
        self.close_streams: tuple[Callable[[], None], ...] = app.state.close_streams
        # Open event streams get one second.
        config = uvicorn.Config(
            app,
            log_level="warning",
            server_header=False,
            h11_max_incomplete_event_size=16 << 10,
            http=PatientProtocol,
            ws="none",  # changes are sent as server-sent events
            limit_concurrency=512,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=1,
        )
        super().__init__(config)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams, then the server."""
        for close in self.close_streams:
            close()
        await super().shutdown(sockets)
