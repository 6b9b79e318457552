"""Runs in, one HTML file out: it needs no network, and no file beside it.

Only its own script runs: the page's policy names it by its hash, so that even a text that
escaped its place could do nothing.
"""

import base64
import hashlib
import json
from collections.abc import Iterator, Sequence
from importlib.resources import files

import rlvitals
from rlvitals.views.charts import assets
from rlvitals.views.charts.chart import Chart, Packer
from rlvitals.views.report import sections
from rlvitals.views.report.markup import Html, el
from rlvitals.views.report.page import Found, Page, Unread
from rlvitals.views.report.tables import moment


def document(runs: Sequence[Page | Unread], now: float) -> str:
    """Write the whole file. `now`: seconds since the epoch, told at its foot."""
    script = assets.script(_own("report.js"))
    style = assets.style(_own("report.css"))
    several = len(runs) > 1
    name = f"{len(runs)} runs" if several else runs[0].name
    parts: list[Html] = [el("h1", name)]
    if several:
        parts.append(sections.overview(runs))
    parts += [_run(one, at, several=several) for at, one in enumerate(runs)]
    foot = f"rlvitals {rlvitals.__version__} · {moment(now)} UTC"
    body = el(
        "body",
        el("noscript", el("p", "The charts are drawn by a script, which is turned off here.")),
        el("main", *parts),
        el("footer", foot),
        el("script", Html(json_in_html(data(runs))), type="application/json", id="data"),
        el("script", Html(script)),
    )
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=_policy(script, style)),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("title", f"{name} · rlvitals"),
        el("style", Html(style)),
    )
    return f"<!DOCTYPE html>\n{el('html', head, body, lang='en')}\n"


def data(runs: Sequence[Page | Unread]) -> dict[str, object]:
    """Tell what the charts draw: columns, each once, and each run's charts."""
    packer = Packer()
    told = [
        {
            "number": number,
            "first": one.trace.first_step,
            "last": one.trace.last_step,
            "unit": one.trace.step_unit,
            "seams": list(one.trace.lifecycle.seams),
            "charts": [packer.chart(chart) for chart in charts(one)],
        }
        for number, one in enumerate(runs)
        if isinstance(one, Page)
    ]
    return {"runs": told, "columns": packer.columns}


def charts(page: Page) -> Iterator[Chart]:
    """Go through the charts of a run's page."""
    if page.outcome is not None:
        yield page.outcome
    for one in page.findings:
        yield from _of(one)
    for _, found in page.measures:
        yield from (one.chart for one in found)


def _of(found: Found) -> Iterator[Chart]:
    if found.chart is not None:
        yield found.chart
    for one in found.symptoms:
        yield from _of(one)


def json_in_html(content: object) -> str:
    """Write JSON that no text in it can end early, whatever a log has named its metrics."""
    text = json.dumps(content, allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _run(one: Page | Unread, number: int, *, several: bool) -> Html:
    if isinstance(one, Unread):
        return Html("") if several else el("p", one.error.problem)
    return sections.run(one, number, several=several)


def _policy(script: str, style: str) -> str:
    """Allow this page's script and style, and nothing from anywhere."""
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src '{_hash(script)}'",
            f"style-src '{_hash(style)}'",
            "style-src-attr 'unsafe-inline'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


def _hash(text: str) -> str:
    found = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(found).decode('ascii')}"


def _own(name: str) -> str:
    return files("rlvitals.views.report").joinpath(name).read_text(encoding="utf-8")
