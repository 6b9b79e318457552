"""Render the diff of two runs: answer, differences, divergence steps, suggestions."""

import math
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rlvitals.comparison.diff import RunDiff
from rlvitals.errors import harmless
from rlvitals.views import phrases
from rlvitals.views.console import COLUMN_GAP, grid

DIFF_LABEL_COLUMNS = 10  # fits "cannot say"
MAX_VALUE_CHARS = 44  # of a value: a commit hash fits


def report(diff: RunDiff, *, everything: bool = False) -> RenderableType:
    """Render the differences between two runs."""
    max_rows = len(diff.changed) + len(diff.partings) if everything else 8
    rows = grid(DIFF_LABEL_COLUMNS)
    rows.add_row(Text("A", "dim"), Text(harmless(diff.first)))
    rows.add_row(Text("B", "dim"), Text(harmless(diff.second)))
    head = Group(Text(harmless(diff.sentence), "bold"), rows)
    blocks: list[RenderableType] = [head]
    if diff.changed:
        table = _columns("differs", "", "A", "B")
        for area in dict.fromkeys(change.area for change in diff.changed):
            area_changes = [change for change in diff.changed if change.area == area]
            area_rows = (
                area_changes if area in {"setting", "seed", "code"} else area_changes[:max_rows]
            )
            for i, change in enumerate(area_rows):
                values = (Text(_short(value) or "-") for value in (change.first, change.second))
                table.add_row(Text("" if i else area, "dim"), Text(harmless(change.key)), *values)
            if len(area_rows) < len(area_changes):
                table.add_row(
                    Text(),
                    Text(f"and {len(area_changes) - len(area_rows)} more", "dim"),
                    Text(),
                    Text(),
                )
        blocks.append(table)
    if any(divergence.step is not None for divergence in diff.partings):
        blocks.append(_divergence_table(diff, max_rows))
    if details := _details(diff):
        blocks.append(details)
    return Group(*[item for block in blocks for item in (block, Text())][:-1])


def _short(text: str) -> str:
    line = harmless(" ".join(text.split()))
    return line if len(line) <= MAX_VALUE_CHARS else f"{line[: MAX_VALUE_CHARS - 1]}…"


def _divergence_table(diff: RunDiff, max_rows: int) -> RenderableType:
    divergences = [divergence for divergence in diff.partings if divergence.step is not None]
    table = _columns("parts at", "metric", "A", "B")
    for divergence in divergences[:max_rows]:
        levels = [
            Text("-" if math.isnan(value) else phrases.number(value))
            for value in (divergence.first, divergence.second)
        ]
        table.add_row(
            Text(f"{divergence.step:,}", "bold"), Text(harmless(divergence.metric)), *levels
        )
    if len(divergences) > max_rows:
        table.add_row(
            Text(), Text(f"and {len(divergences) - max_rows} more", "dim"), Text(), Text()
        )
    return table


def _columns(*heads: str) -> Table:
    table = Table(box=None, padding=(0, COLUMN_GAP, 0, 0), pad_edge=False, header_style="dim")
    for head in heads:
        table.add_column(head, overflow="fold")
    return table


def _details(diff: RunDiff) -> RenderableType | None:
    rows = grid(DIFF_LABEL_COLUMNS)
    lines: list[tuple[str, Sequence[str]]] = [("suggests", diff.suggests)]
    together = [
        divergence.metric
        for divergence in diff.partings
        if divergence.step is None and not divergence.why
    ]
    lines.append(("together", [", ".join(together)] if together else []))
    unknown: dict[str, list[str]] = {}
    for divergence in diff.partings:
        if divergence.why:
            unknown.setdefault(divergence.why, []).append(divergence.metric)
    lines.append(("cannot say", [f"{reason}: {', '.join(of)}" for reason, of in unknown.items()]))
    lines.append(("not known", [", ".join(diff.unknown)] if diff.unknown else []))
    for label, texts in lines:
        for i, text in enumerate(texts):
            rows.add_row(Text("" if i else label, "dim"), Text(harmless(text)))
    return rows if rows.row_count else None
