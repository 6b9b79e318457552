"""Lay out what all pages share: the head, the bar, and the data for the script."""

from importlib.resources import files

import rlvitals
from rlvitals.views.charts import assets
from rlvitals.views.report.markup import Html, el, json_in_html

NO_STORE = {"cache-control": "no-store"}


def script() -> str:
    """Return the script of all pages."""
    names = ("fleet.js", "groups.js", "live_chart.js", "layers.js", "rollouts.js", "control.js",
             "run.js", "compare.js", "start.js")  # fmt: skip
    return assets.script(*map(_read, names))


def style() -> str:
    """Return the style of all pages."""
    report = files("rlvitals.views.report").joinpath("report.css").read_text(encoding="utf-8")
    return assets.switchable_style(report, _read("serve.css"))


def document(kind: str, title: str, data: object, *blocks: Html, crumbs: Html | None = None) -> str:
    """Return a page. `kind` names the part of the script that runs, `data` is its input."""
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("title", f"{title} · rlvitals"),
        Html('<link rel="icon" href="/assets/icon.svg" type="image/svg+xml">'),
        Html('<link rel="stylesheet" href="/assets/serve.css">'),
        Html('<script src="/assets/theme.js"></script>'),
    )
    body = el(
        "body",
        el("a", "Skip to the content", class_="skip", href="#content"),
        el(
            "header",
            el(
                "a",
                Html('<span class="mark" aria-hidden="true"></span>rlvitals'),
                class_="home",
                href="/",
                title=f"rlvitals {rlvitals.__version__}: all runs",
            ),
            crumbs or Html(""),
            el("span", "connecting", class_="connection", id="connection", data_state="waiting"),
            el("button", "Theme", class_="theme", id="theme", type="button"),
            class_="bar",
        ),
        el("noscript", el("p", "Charts and live updates need JavaScript.")),
        el("main", *blocks, id="content", tabindex="-1"),
        el("div", class_="live-region", role="status", aria_live="polite", id="news"),
        el("script", Html(json_in_html(data)), type="application/json", id="data"),
        Html('<script src="/assets/serve.js"></script>'),
        data_page=kind,
    )
    return f"<!DOCTYPE html>\n{el('html', head, body, lang='en')}\n"


def problem(status: int, title: str, *lines: str) -> str:
    """Return a page that explains an error in lines, of which empty ones are left out."""
    blocks = [el("p", line, class_="problem-line") for line in lines if line]
    link = el("p", el("a", "All runs", href="/"))
    return document("problem", title, {}, el("h1", f"{status} · {title}"), *blocks, link)


def _read(name: str) -> str:
    return files("rlvitals.server.assets").joinpath(name).read_text(encoding="utf-8")
