"""Lay out the page of all runs; the script fills in the lines."""

from dataclasses import asdict

from rlvitals.errors import join_first
from rlvitals.server import page_shell
from rlvitals.server.fleet import Fleet
from rlvitals.server.fleet_line import LAMPS
from rlvitals.views.report.markup import Html, el

PAGE_ROWS = 100  # lines that the first page contains and each further request adds
MAX_PAGE_ROWS = 500  # lines of one answer
LAMP_LABELS = {
    "bad": "broken", "watch": "to look at", "unknown": "unknown", "pending": "pending",
    "good": "healthy",
}  # fmt: skip


def document(fleet: Fleet) -> str:
    """Return the page with its first lines."""
    position = fleet.channel.position()
    rows = fleet.search("")
    data = {
        "position": position,
        "rows": [asdict(row) for row in rows[:PAGE_ROWS]],
        "total": len(rows),
        "lamps": fleet.lamps,
        "differing": fleet.differing,
        "page_rows": PAGE_ROWS,
        "max_rows": MAX_PAGE_ROWS,
        "labels": LAMP_LABELS,
        "trained": fleet.sum_training_time(),
    }
    names = (folder.label or folder.root.resolve().name or "/" for folder in fleet.folders)
    title = join_first([*names], 3)
    columns = ("", "", "run", "verdict", "outcome", "steps")
    heads = el("div", *(el("span", text) for text in columns), class_="heads",
               aria_hidden="true")  # fmt: skip
    table = el("div", id="runs", class_="fleet", role="list", aria_label="runs")
    more = el("button", "Show more", type="button", id="more", class_="button", hidden=True)
    return page_shell.document(
        "fleet",
        title,
        data,
        el("h1", title, class_="fleet-name"),
        _lamps(fleet),
        _tools(),
        el("p", id="problem", class_="problem", hidden=True),
        el("p", id="spent", class_="about"),
        heads,
        table,
        el("p", more, class_="more-rows"),
    )


def _lamps(fleet: Fleet) -> Html:
    """Return the number of runs by lamp: each shows only these."""
    lamps = (
        el("button", el("span", class_=f"lamp {name}", aria_hidden="true"),
           el("b", str(fleet.lamps[name]), data_count=name), Html(" "), LAMP_LABELS[name],
           type="button", data_lamp=name, aria_pressed="false")
        for name in LAMPS
    )  # fmt: skip
    return el("div", *lamps, class_="lamps", role="group", aria_label="show only")


def _tools() -> Html:
    """Return the filter, the order and the link to the comparison."""
    return el(
        "form",
        el("input", type="search", id="search", placeholder="Filter: ppo tag:sweep lr<1e-3",
           aria_label="filter the runs", autocomplete="off", spellcheck="false"),
        el("select", el("option", "worst first", value="worst"),
           el("option", "newest first", value="newest"), el("option", "by name", value="name"),
           id="sort", aria_label="order"),
        el("button", "Group seeds", class_="button", id="group", type="button",
           aria_pressed="false"),
        el("a", "Compare", class_="button", id="compare", href="/compare", aria_disabled="true"),
        class_="tools", id="tools", role="search",
    )  # fmt: skip
