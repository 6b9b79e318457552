"""Return the routes of all that is read of runs: pages of runs, comparisons and the API."""

import threading
from collections.abc import Callable, Sequence

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from rlvitals.comparison import scores
from rlvitals.errors import VitalsError
from rlvitals.server import compare_page, page_shell, run_page
from rlvitals.server.control import Control, describe
from rlvitals.server.endpoints import Api, format_problem
from rlvitals.server.fleet import Fleet
from rlvitals.server.fleet_line import ROOT_KEY
from rlvitals.server.live_run import LiveRun
from rlvitals.server.live_runs import LiveRuns
from rlvitals.server.page_shell import NO_STORE


def build(
    fleet: Fleet, live: LiveRuns, control_token: str, ending: dict[str, threading.Thread]
) -> Sequence[Route]:
    """Return the routes.

    `control_token`: of pages that may change something; empty: none may. `ending`: of `Control`.
    """

    def describe_control(run: LiveRun) -> dict[str, object] | None:
        return {"token": control_token, **describe(run, fleet)} if control_token else None

    endpoints = Api(fleet, live, describe_control)

    def show_run(request: Request) -> Response:
        run = endpoints.live.get(request.path_params["key"] or ROOT_KEY)  # browsers drop a "."
        text = run_page.document(run.page, endpoints.page_data(run))
        return HTMLResponse(text, headers=NO_STORE)

    def show_comparison(request: Request) -> Response:
        axis = scores.parse_axis(request.query_params.get("axis", "steps"))
        runs, problems = endpoints.get_runs(request)
        text = compare_page.document(runs, axis, problems)
        return HTMLResponse(text, headers=NO_STORE)

    routes = [
        Route("/run/{key:path}", _with_problems(show_run)),
        Route("/compare", _with_problems(show_comparison)),
        *_api(endpoints),
    ]
    if control_token:
        routes += Control(fleet, live, ending).routes()
    return routes


def _with_problems(show: Callable[[Request], Response]) -> Callable[[Request], Response]:
    """Return a page that explains what it cannot show."""

    def answer(request: Request) -> Response:
        try:
            return show(request)
        except KeyError:
            text = "No served folder has a run at this address."
            return HTMLResponse(page_shell.problem(404, "No such run", text), 404, NO_STORE)
        except VitalsError as error:
            lines = (error.problem, error.where, error.hint)
            text = page_shell.problem(422, "It cannot be shown", *lines)
            return HTMLResponse(text, 422, NO_STORE)

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
