"""Build the web application, and run it until Ctrl-C."""

import contextlib
import secrets
import socket
from collections.abc import AsyncIterator, Callable, Iterable
from importlib.resources import files
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from rlvitals.comparison import scores
from rlvitals.errors import VitalsError
from rlvitals.server import compare_page, fleet_page, page_shell, run_files, run_page
from rlvitals.server.access import AccessCheck
from rlvitals.server.control import Control, describe
from rlvitals.server.endpoints import Api, format_problem
from rlvitals.server.fleet import Fleet
from rlvitals.server.live_run import LiveRun
from rlvitals.server.live_runs import LiveRuns
from rlvitals.settings import Settings

NO_STORE = {"cache-control": "no-store"}


def build(
    root: Path,
    settings: Settings,
    hosts: Iterable[str] = (),
    token: str = "",
    *,
    control: bool = False,
) -> Starlette:
    """Return the application that serves the runs below a root.

    `hosts`: further names that browsers reach it by. `token`: needed by each browser; empty: none.
    `control`: pages may mark and mute, and send requests to a run's process; else all is read-only.
    """
    fleet, live = _runs(root, settings)
    control_token = secrets.token_urlsafe(24) if control else ""

    def describe_control(run: LiveRun) -> dict[str, object] | None:
        return {"token": control_token, **describe(run, fleet)} if control else None

    endpoints = Api(fleet, live, describe_control)
    routes = [*_pages(fleet, endpoints), *_assets(), *_api(endpoints)]
    if control:
        routes += Control(fleet, live).routes()

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        fleet.start()
        live.start()
        yield
        live.stop()
        fleet.stop()

    app = Starlette(
        routes=routes, lifespan=lifespan, exception_handlers={HTTPException: _http_problem}
    )
    app.state.close_streams = (fleet.channel.close, live.close_streams)
    app.state.fleet = fleet
    app.add_middleware(AccessCheck, hosts=tuple(hosts), token=token, control_token=control_token)
    return app


def _runs(root: Path, settings: Settings) -> tuple[Fleet, LiveRuns]:
    """Return the lines of all runs, and the runs that somebody looks at."""
    fleet = Fleet(root, settings)

    def open_run(key: str, time_s: float) -> LiveRun:
        run = run_files.read_run(root, fleet.entry(key))
        return LiveRun(key, run, fleet.mutes.apply(key, settings), time_s)

    live = LiveRuns(open_run, lambda run: fleet.note(run.key, run.diagnosis))
    fleet.open_keys = live.keys
    return fleet, live


def _pages(fleet: Fleet, endpoints: Api) -> list[Route]:
    def show_fleet(_: Request) -> Response:
        fleet.wait(0.5)  # seconds; runs that are listed later come by themselves
        return HTMLResponse(fleet_page.document(fleet), headers=NO_STORE)

    def show_run(request: Request) -> Response:
        run = endpoints.live.get(request.path_params["key"])
        text = run_page.document(run.page, endpoints.page_data(run))
        return HTMLResponse(text, headers=NO_STORE)

    def show_comparison(request: Request) -> Response:
        axis = scores.parse_axis(request.query_params.get("axis", "steps"))
        text = compare_page.document(endpoints.get_runs(request), axis)
        return HTMLResponse(text, headers=NO_STORE)

    return [
        Route("/", show_fleet),
        Route("/run/{key:path}", _with_problems(show_run)),
        Route("/compare", _with_problems(show_comparison)),
    ]


def _with_problems(show: Callable[[Request], Response]) -> Callable[[Request], Response]:
    """Return a page that explains what it cannot show."""

    def answer(request: Request) -> Response:
        try:
            return show(request)
        except KeyError:
            text = "There is no run at this address below the served folder."
            return HTMLResponse(page_shell.problem(404, "No such run", text), 404, NO_STORE)
        except VitalsError as error:
            text = f"{error.problem} ({error.where}). {error.hint}"
            return HTMLResponse(page_shell.problem(422, "It cannot be shown", text), 422, NO_STORE)

    return answer


def _api(endpoints: Api) -> list[Route]:
    def guard(answer: Callable[[Request], Response]) -> Callable[[Request], Response]:
        def handle(request: Request) -> Response:
            try:
                return answer(request)
            except (KeyError, VitalsError) as error:
                return format_problem(request, error)

        return handle

    return [Route(each.path, guard(each.answer)) for each in endpoints.endpoints]


def _assets() -> list[Route]:
    """Return the routes of the script, the style and the icon: texts made once."""
    folder = files("rlvitals.server.assets")
    contents = {
        "serve.js": (page_shell.script(), "text/javascript"),
        "serve.css": (page_shell.style(), "text/css"),
        "theme.js": (folder.joinpath("theme.js").read_text(encoding="utf-8"), "text/javascript"),
        "icon.svg": (folder.joinpath("icon.svg").read_text(encoding="utf-8"), "image/svg+xml"),
    }
    return [_asset_route(name, text, media) for name, (text, media) in contents.items()]


def _asset_route(name: str, text: str, media: str) -> Route:
    def answer(_: Request) -> Response:
        return Response(text, media_type=media, headers={"cache-control": "no-cache"})

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
            http="h11",
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
