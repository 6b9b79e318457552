"""Answer the requests of pages and scripts: JSON, CSV and events."""

import csv
import io
import json
import math
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import asdict

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse

import rlvitals
from rlvitals.comparison import scores
from rlvitals.errors import UsageError, VitalsError
from rlvitals.hosted import trace_stream
from rlvitals.server import (
    chart_data,
    compare_page,
    console,
    fleet_groups,
    fleet_page,
    rollout_view,
    run_page,
)
from rlvitals.server.channel import Channel
from rlvitals.server.fleet import Fleet
from rlvitals.server.fleet_line import Summary
from rlvitals.server.live_run import LiveRun
from rlvitals.server.live_runs import LiveRuns
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Series
from rlvitals.views import diagnosis_json, json_view

CSV_TYPE = "text/csv; charset=utf-8"

Describe = Callable[[LiveRun], Mapping[str, object] | None]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A query parameter of an endpoint."""

    name: str
    doc: str
    kind: str = "string"  # of JSON Schema
    required: bool = False
    repeats: bool = False


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A path of the API with its documentation."""

    path: str
    summary: str
    answer: Callable[[Request], Response]
    parameters: tuple[Parameter, ...] = ()
    media: str = "application/json"


KEY_QUERY = Parameter(
    "key", "the run's path below the served folder, after its name where several are served",
    required=True,
)  # fmt: skip
RANGE_QUERY = (
    Parameter("first", "first step, included", "integer"),
    Parameter("last", "last step, included", "integer"),
)
AVERAGE_QUERY = Parameter("average", "share of the points that an average spans; 0: none")


class Api:
    """The endpoints over a fleet and its open runs."""

    def __init__(self, fleet: Fleet, live: LiveRuns, describe_control: Describe) -> None:
        """Serve these runs. `describe_control`: what a page's buttons need; None: no buttons."""
        self.fleet, self.live = fleet, live
        self.describe_control = describe_control
        self.streams = 0
        self.endpoints = (*self._fleet_endpoints(), *self._run_endpoints())

    def _fleet_endpoints(self) -> tuple[Endpoint, ...]:
        keys = Parameter("key", "a run's path; two or more", required=True, repeats=True)
        axis = Parameter("axis", "steps, samples, episodes, tokens or time")
        max_rows = fleet_page.MAX_PAGE_ROWS
        return (
            Endpoint("/api/runs", "List the runs, one line each", self.runs, (
                Parameter("search", "words that select runs: ppo tag:sweep lr<1e-3"),
                Parameter("lamp", "only runs of a lamp: bad, watch, unknown, pending or good"),
                Parameter("sort", "worst, newest or name"),
                Parameter("offset", "lines to skip", "integer"),
                Parameter("limit", f"lines to return, at most {max_rows}", "integer"),
            )),
            Endpoint("/api/groups", "Group the runs by all settings but the seed", self.groups, (
                Parameter("search", "words that select runs"),
                Parameter("lamp", "only runs of a lamp"),
            )),
            Endpoint("/api/compare", "Compare runs by their outcome", self.compare,
                     (keys, axis)),
            Endpoint("/api/overlay", "Return charts of the page that compares runs", self.overlay, (
                keys, axis, Parameter("name", "a chart of the page", required=True, repeats=True),
                *RANGE_QUERY, AVERAGE_QUERY,
            )),
            Endpoint("/api/events", "Stream changes as server-sent events", self.events, (
                Parameter("key", "a run; without it the changes of all lines"),
                Parameter("position", "id of the last event that is known"),
            ), "text/event-stream"),
            Endpoint("/api/openapi.json", "Describe this API", self.openapi),
        )  # fmt: skip

    def _run_endpoints(self) -> tuple[Endpoint, ...]:
        metric = Parameter("metric", "canonical name of a metric", required=True)
        return (
            Endpoint("/api/run", "Return the diagnosis of a run", self.run, (KEY_QUERY,)),
            Endpoint("/api/content", "Return the texts of a page", self.content, (KEY_QUERY,)),
            Endpoint("/api/charts", "Return charts as a screen shows them", self.charts, (
                KEY_QUERY, Parameter("name", "a chart of the page", required=True, repeats=True),
                Parameter("version", "of the page that asks", "integer"), *RANGE_QUERY,
                AVERAGE_QUERY,
            )),
            Endpoint("/api/series", "Return the points of a metric", self.series,
                     (KEY_QUERY, metric, *RANGE_QUERY)),
            Endpoint("/api/pixels", "Return what a plot shows of a metric, by its logged name",
                     self.pixels, (KEY_QUERY, metric, *RANGE_QUERY,
                                   Parameter("width", "columns of pixels", "integer"))),
            Endpoint("/api/series.csv", "Return the points of a metric as CSV", self.series_csv,
                     (KEY_QUERY, metric, *RANGE_QUERY), CSV_TYPE),
            Endpoint("/api/trace", "Return all that rules judge, as `rlvitals.open` reads it",
                     self.trace, (KEY_QUERY,), "application/octet-stream"),
            Endpoint("/api/rollouts", "Return rollouts as HTML", self.rollouts, (
                KEY_QUERY, Parameter("view", "pairs, group or proof"),
                Parameter("step", "of the rollouts", "integer"),
                Parameter("against", "the step that pairs are compared with", "integer"),
                Parameter("group", "number of the group within the step", "integer"),
                Parameter("rule", "the finding that is proved"),
            )),
            Endpoint("/api/console", "Return the end of a console file", self.console, (
                KEY_QUERY, Parameter("name", "of the file in the run's folder", required=True),
            ), "text/plain"),
        )  # fmt: skip

    def runs(self, request: Request) -> Response:
        """Return a page of the fleet's lines."""
        query = request.query_params
        rows = self._rows(request)
        match query.get("sort", "worst"):
            case "newest":
                rows.sort(key=lambda row: -(row.time or 0.0))
            case "name":
                rows.sort(key=lambda row: row.key)
        offset = _integer(request, "offset") or 0
        limit = min(_integer(request, "limit") or 100, fleet_page.MAX_PAGE_ROWS)
        return JSONResponse({
            "rows": [asdict(row) for row in rows[max(offset, 0) :][: max(limit, 0)]],
            "total": len(rows),
            "lamps": self.fleet.lamps,
            "differing": self.fleet.differing,
            "trained": self.fleet.sum_training_time(),
        })  # fmt: skip

    def groups(self, request: Request) -> Response:
        """Return the fleet's groups, at most `fleet_page.MAX_PAGE_ROWS` of them."""
        groups = fleet_groups.group(self._rows(request), self.fleet.differing)
        content = [asdict(group) for group in groups[: fleet_page.MAX_PAGE_ROWS]]
        return JSONResponse({"groups": content, "total": len(groups)})

    def _rows(self, request: Request) -> list[Summary]:
        """Return the lines that a request selects, the worst first. Raises UsageError."""
        rows = self.fleet.search(request.query_params.get("search", ""))
        lamp = request.query_params.get("lamp", "")
        return [row for row in rows if row.lamp == lamp] if lamp else rows

    def run(self, request: Request) -> Response:
        """Return a diagnosis in the JSON format of the command line."""
        text = diagnosis_json.diagnosis(self.get_run(request).full_diagnosis())
        return Response(text, media_type="application/json")

    def content(self, request: Request) -> Response:
        """Return what a page shows of the last judgement, to replace older texts."""
        run = self.get_run(request)
        data = self.page_data(run)
        return JSONResponse({"html": run.page.content, "data": data})

    def page_data(self, run: LiveRun) -> dict[str, object]:
        """Return what the script of a run's page needs."""
        position = run.channel.position()
        return {**run_page.data(run.key, run.page, position), "control": self.describe_control(run)}

    def charts(self, request: Request) -> Response:
        """Return charts and their columns; 409 where the page is older than the judgement."""
        run = self.get_run(request)
        page = run.page
        version = _integer(request, "version")
        if version is not None and version != page.version:
            return JSONResponse({"problem": "the run was judged again: load the page anew"}, 409)
        names = _chart_names(request)
        charts = [page.charts[name] for name in names if name in page.charts]
        options = chart_data.Options(_steps(request), _share(request, "average"))
        metrics = {line.metric for chart in charts for line in chart.panel.lines}
        steps = options.steps
        logged = run.series() if steps is None else run.series_near(metrics, steps)
        return JSONResponse(chart_data.pack(charts, page, run.trace, logged, options))

    def rollouts(self, request: Request) -> Response:
        """Return pairs, a group or the proof of a finding as HTML."""
        run = self.get_run(request)
        if run.rollouts is None:
            raise UsageError("the run has no rollouts", where="key")
        step = _integer(request, "step") or 0
        match request.query_params.get("view", "pairs"):
            case "group":
                html = rollout_view.groups(run.rollouts, step, _integer(request, "group") or 0)
            case "proof":
                rule = request.query_params.get("rule", "")
                html = rollout_view.proof(run.rollouts, run.diagnosis, rule)
            case _:
                against = _integer(request, "against") or 0
                html = rollout_view.pairs(run.rollouts, step, against)
        return JSONResponse({"html": html})

    def console(self, request: Request) -> Response:
        """Return the last lines of a console file as text."""
        name = request.query_params.get("name", "")
        run = self.get_run(request)
        root = self.fleet.folder(run.key).root
        return PlainTextResponse(console.read_end(run.run, root, name))

    def series(self, request: Request) -> Response:
        """Return the columns of a metric as JSON."""
        return JSONResponse(chart_data.columns(self._series(request), _steps(request)))

    def series_csv(self, request: Request) -> Response:
        """Return the columns of a metric as CSV."""
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(("step", "value"))
        columns = chart_data.columns(self._series(request), _steps(request))
        writer.writerows(zip(columns["steps"], columns["values"], strict=True))
        return Response(text.getvalue(), media_type=CSV_TYPE)

    def trace(self, request: Request) -> Response:
        """Return a line of JSON and the columns of all metrics."""
        trace = self.get_run(request).whole_trace()
        content = trace_stream.encode(trace)
        return StreamingResponse(content, media_type="application/octet-stream")

    def pixels(self, request: Request) -> Response:
        """Return the points of a plot as JSON: the run is not judged, nor read where stored."""
        metric = request.query_params.get("metric", "")
        width = max(1, min(_integer(request, "width") or 800, 10_000))
        steps = _integer(request, "first"), _integer(request, "last")
        key = request.query_params.get("key", "")
        points = self.fleet.points(key, metric, width, steps)
        return JSONResponse({
            "steps": points.steps.tolist(),
            "values": points.values.tolist(),
            "nan": points.nan.tolist(),
            "above": points.above.tolist(),
            "below": points.below.tolist(),
            "count": points.count,
        })  # fmt: skip

    def compare(self, request: Request) -> Response:
        """Return a comparison's nouns and its chart."""
        axis = scores.parse_axis(request.query_params.get("axis", "steps"))
        overlay = compare_page.overlay(self.get_runs(request)[0], axis)
        result = json.loads(json_view.noun(overlay.result))
        return JSONResponse({"comparison": result, **overlay.data})

    def overlay(self, request: Request) -> Response:
        """Return charts of all compared runs and their columns."""
        axis = scores.parse_axis(request.query_params.get("axis", "steps"))
        names = _chart_names(request)
        options = chart_data.Options(_steps(request), _share(request, "average"))
        runs, _ = self.get_runs(request)
        return JSONResponse(compare_page.draw(runs, axis, names, options))

    def events(self, request: Request) -> Response:
        """Return a stream of events."""
        if self.streams >= 256:  # browsers that listen at once
            return JSONResponse({"problem": "too many open pages"}, 503)
        key = request.query_params.get("key")
        channel = self.fleet.channel if key is None else self.get_run(request).channel
        start = request.headers.get("last-event-id") or request.query_params.get("position", "")
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(
            self._stream(channel, start), media_type="text/event-stream", headers=headers
        )

    async def _stream(self, channel: Channel, start: str) -> AsyncIterator[bytes]:
        self.streams += 1
        try:
            async for message in channel.listen(start):
                yield message
        finally:
            self.streams -= 1

    def openapi(self, _: Request) -> Response:
        """Return the OpenAPI document of these endpoints."""
        paths = {}
        for endpoint in self.endpoints:
            parameters = []
            for parameter in endpoint.parameters:
                schema: dict[str, object] = {"type": parameter.kind}
                if parameter.repeats:
                    schema = {"type": "array", "items": schema}
                parameters.append({
                    "name": parameter.name, "in": "query", "required": parameter.required,
                    "description": parameter.doc, "schema": schema,
                })  # fmt: skip
            paths[endpoint.path] = {
                "get": {
                    "summary": endpoint.summary,
                    "parameters": parameters,
                    "responses": {
                        "200": {"description": "as asked", "content": {endpoint.media: {}}},
                        "400": {"description": "a wrong parameter"},
                        "404": {"description": "no such run, or one that cannot be read"},
                    },
                }
            }
        info = {"title": "rlvitals serve", "version": rlvitals.__version__}
        return JSONResponse({"openapi": "3.1.0", "info": info, "paths": paths})

    def get_run(self, request: Request) -> LiveRun:
        """Return the run that a request names. Raises KeyError, UnreadableLog."""
        return self.live.get(request.query_params.get("key", ""))

    def get_runs(self, request: Request) -> tuple[list[LiveRun], dict[str, str]]:
        """Return the runs to compare and what is wrong with some, by key. Raises VitalsError."""
        return compare_page.open_runs(self.live, request.query_params.getlist("key"))

    def _series(self, request: Request) -> Series:
        metric = request.query_params.get("metric", "")
        run, steps = self.get_run(request), _steps(request)
        if metric not in run.trace:
            raise UsageError(f"no metric {metric[:100]!r} is logged", where="metric")
        return run.series_near([metric], steps or (-(2**62), 2**62))[metric]


def format_problem(_: Request, error: Exception) -> Response:
    """Return an error of the API as JSON."""
    if isinstance(error, VitalsError):
        status = 400 if isinstance(error, UsageError) else 404
        return JSONResponse({"problem": error.problem, "hint": error.hint}, status)
    return JSONResponse({"problem": "there is no such run"}, 404)


def _integer(request: Request, name: str) -> int | None:
    text = request.query_params.get(name)
    if text is None:
        return None
    try:
        number = round(float(text))
    except (OverflowError, ValueError):
        raise UsageError(f"{text[:40]!r} is not a number", where=name) from None
    return max(min(number, 2**62), -(2**62))


def _chart_names(request: Request) -> list[str]:
    """Return the charts that a request names, at most 40."""
    return request.query_params.getlist("name")[:40]


def _share(request: Request, name: str) -> float | None:
    """Return a parameter from 0 to 1; None where it is absent."""
    text = request.query_params.get(name, "")
    try:
        share = float(text) if text else None
    except ValueError:
        share = math.nan
    if share is not None and not 0 <= share <= 1:
        raise UsageError(f"{text[:40]!r} is not a share", where=name, hint="0 to 1")
    return share


def _steps(request: Request) -> tuple[int, int] | None:
    """Return the range of steps that a request names; None where it names none."""
    first, last = _integer(request, "first"), _integer(request, "last")
    if first is None or last is None:
        return None
    if first > last:
        raise UsageError("`first` is after `last`", where="first")
    return first, last
