"""Write the triage of many runs as one page that opens anywhere."""

from collections.abc import Sequence

from rlvitals.errors import quantity
from rlvitals.views.report.html import wrap_page
from rlvitals.views.report.markup import Html, breakable, el, join
from rlvitals.views.triage_table import TriageRow, duration, group_heads, head_cells, sentence


def document(rows: Sequence[TriageRow], now_s: float) -> str:
    """Return the HTML document of its time in seconds since the epoch; it has no script."""
    head = el(
        "thead",
        el(
            "tr",
            *(el("th", text, scope="col") for text in ("verdict", "took", "lost", "run", "why")),
        ),
    )
    table_rows: list[Html] = []
    heads = group_heads(rows)
    for number, row in enumerate(rows):
        if number in heads:
            hours, name, counts = head_cells(heads[number])
            cells = (el("strong", "group"), hours, "", el("strong", name), counts)
            table_rows.append(el("tr", *(el("td", cell) for cell in cells)))
        colour = "red" if row.broken else "dim" if row.verdict == "unknown" else "green"
        cause = (el("code", row.cause), Html(" ")) if row.cause else ()
        table_rows.append(
            el(
                "tr",
                el("td", el("span", row.verdict, class_=f"verdict {colour}")),
                *(
                    el("td", duration(hours), class_="number")
                    for hours in (row.hours, row.hours_lost)
                ),
                el("td", breakable(row.run)),
                el("td", join(*cause, row.reason)),
            )
        )
    table = el("table", head, el("tbody", *table_rows), class_="runs")
    name = f"Triage of {quantity(len(rows), 'run')}"
    blocks = (el("h1", name), el("p", sentence(rows)), el("div", table, class_="wide"))
    return wrap_page(name, blocks, now_s)
