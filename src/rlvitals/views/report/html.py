"""Write runs as one self-contained HTML file.

The content security policy allows only the page's own script, by its hash, so that an injected
script would not run.
"""

import base64
import hashlib
from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import cast

import rlvitals
from rlvitals.views.charts import assets
from rlvitals.views.charts.chart import Chart, Packed, Packer
from rlvitals.views.report import overlay_section, sections
from rlvitals.views.report.markup import Html, el, json_in_html
from rlvitals.views.report.page import Found, Overlay, Page, Unread
from rlvitals.views.report.tables import moment


def document(runs: Sequence[Page | Unread], now_s: float, overlay: Overlay | None = None) -> str:
    """Return the HTML document of its time in seconds since the epoch.

    `overlay` compares the runs: it comes first, and its metrics after the table of the runs.
    """
    several = len(runs) > 1
    name = f"{len(runs)} runs" if several else runs[0].name
    blocks: list[Html] = [el("h1", name)]
    packed = data(runs, overlay)
    shared = cast("Packed", packed["overlay"])
    if overlay is not None:
        blocks.append(overlay_section.answer(overlay, shared))
    if several:
        blocks.append(sections.overview(runs))
    if overlay is not None:
        blocks.append(overlay_section.evidence(overlay, shared))
    blocks += [
        (
            (Html("") if several else el("p", page.error.problem))
            if isinstance(page, Unread)
            else sections.run(page, number, several=several)
        )
        for number, page in enumerate(runs)
    ]
    script = assets.script(_read_asset("report.js"))
    scripts = (
        el("noscript", el("p", "The charts are drawn by a script, which is turned off here.")),
        el("script", Html(json_in_html(packed)), type="application/json", id="data"),
        el("script", Html(script)),
    )
    return wrap_page(name, blocks, now_s, scripts, script)


def wrap_page(
    name: str, blocks: Sequence[Html], now_s: float, scripts: Sequence[Html] = (), script: str = ""
) -> str:
    """Return a page of blocks in the report's style; `script` is the text of its one script."""
    style = assets.style(_read_asset("report.css"))
    foot = f"rlvitals {rlvitals.__version__} · {moment(now_s)} UTC"
    body = el("body", *scripts[:1], el("main", *blocks), el("footer", foot), *scripts[1:])
    # This page's script and style only.
    policy = "; ".join(
        [
            "default-src 'none'",
            f"script-src '{_hash(script)}'",
            f"style-src '{_hash(style)}'",
            "style-src-attr 'unsafe-inline'",
            "img-src data: blob:",  # a chart that is saved as pixels
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=policy),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("title", f"{name} · rlvitals"),
        el("style", Html(style)),
    )
    return f"<!DOCTYPE html>\n{el('html', head, body, lang='en')}\n"


def data(runs: Sequence[Page | Unread], overlay: Overlay | None = None) -> dict[str, object]:
    """Return the data of the charts: shared columns, each run's charts, and those of all runs."""
    packer = Packer()
    documents = [
        {
            "number": number,
            "first": page.trace.first_step,
            "last": page.trace.last_step,
            "unit": page.trace.step_unit,
            "seams": list(page.trace.lifecycle.seams),
            "charts": [packer.chart(chart) for chart in charts(page)],
        }
        for number, page in enumerate(runs)
        if isinstance(page, Page)
    ]
    shared = None if overlay is None else overlay_section.pack(overlay, packer)
    return {"runs": documents, "overlay": shared, "columns": packer.columns}


def charts(page: Page) -> Iterator[Chart]:
    """Yield the charts of a run's page."""
    if page.outcome is not None:
        yield page.outcome
    for finding in page.findings:
        yield from _finding_charts(finding)
    for _, measures in page.measures:
        yield from (finding.chart for finding in measures)
    yield from page.ranks


def _finding_charts(finding: Found) -> Iterator[Chart]:
    if finding.chart is not None:
        yield finding.chart
    for symptom in finding.symptoms:
        yield from _finding_charts(symptom)


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def _read_asset(name: str) -> str:
    return files("rlvitals.views.report").joinpath(name).read_text(encoding="utf-8")
