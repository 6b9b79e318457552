"""Two runs: the answer first, what differs, since when metrics part, what that suggests."""

import math
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rlvitals.comparison.diff import Difference, RunDiff
from rlvitals.comparison.divergence_step import Divergence
from rlvitals.errors import harmless
from rlvitals.views import phrases
from rlvitals.views.console import grid

LABEL = 10  # columns: "suggests"
GAP = 2
SHOWN = 8  # packages, variables or metrics that are shown: of more, how many
LONGEST = 44  # characters of a value: a commit fits


def report(found: RunDiff, *, everything: bool = False) -> RenderableType:
    """Lay out what differs between two runs."""
    most = len(found.changed) + len(found.partings) if everything else SHOWN
    blocks: list[RenderableType] = [_answer(found)]
    if found.changed:
        blocks.append(_changed(found, most))
    if any(one.step is not None for one in found.partings):
        blocks.append(_partings(found, most))
    if rest := _rest(found):
        blocks.append(rest)
    return Group(*[part for block in blocks for part in (block, Text())][:-1])


def _answer(found: RunDiff) -> RenderableType:
    rows = grid(LABEL)
    rows.add_row(Text("A", "dim"), Text(harmless(found.first)))
    rows.add_row(Text("B", "dim"), Text(harmless(found.second)))
    return Group(Text(harmless(found.sentence), "bold"), rows)


def _changed(found: RunDiff, most: int) -> RenderableType:
    table = _columns("differs", "", "A", "B")
    for area in dict.fromkeys(one.area for one in found.changed):
        own = [one for one in found.changed if one.area == area]
        kept = own if area in {"setting", "seed", "code"} else own[:most]
        for i, one in enumerate(kept):
            table.add_row(*_row(one, area if not i else ""))
        if len(kept) < len(own):
            table.add_row(Text(), Text(f"and {len(own) - len(kept)} more", "dim"), Text(), Text())
    return table


def _row(one: Difference, area: str) -> tuple[Text, ...]:
    values = (Text(_short(value) or "-") for value in (one.first, one.second))
    return (Text(area, "dim"), Text(harmless(one.key)), *values)


def _short(text: str) -> str:
    said = harmless(" ".join(text.split()))
    return said if len(said) <= LONGEST else f"{said[: LONGEST - 1]}…"


def _partings(found: RunDiff, most: int) -> RenderableType:
    held = [one for one in found.partings if one.step is not None]
    table = _columns("parts at", "metric", "A", "B")
    for one in held[:most]:
        table.add_row(Text(f"{one.step:,}", "bold"), Text(harmless(one.metric)), *_levels(one))
    if len(held) > most:
        table.add_row(Text(), Text(f"and {len(held) - most} more", "dim"), Text(), Text())
    return table


def _levels(one: Divergence) -> tuple[Text, Text]:
    first, second = (
        "-" if math.isnan(value) else phrases.number(value) for value in (one.first, one.second)
    )
    return Text(first), Text(second)


def _columns(*heads: str) -> Table:
    table = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="dim")
    for head in heads:
        table.add_column(head, overflow="fold")
    return table


def _rest(found: RunDiff) -> RenderableType | None:
    rows = grid(LABEL)
    lines: list[tuple[str, Sequence[str]]] = [("suggests", found.suggests)]
    together = [one.metric for one in found.partings if one.step is None and not one.why]
    lines.append(("together", [", ".join(together)] if together else []))
    unknown: dict[str, list[str]] = {}
    for one in found.partings:
        if one.why:
            unknown.setdefault(one.why, []).append(one.metric)
    lines.append(("cannot say", [f"{why}: {', '.join(of)}" for why, of in unknown.items()]))
    lines.append(("not known", [", ".join(found.unknown)] if found.unknown else []))
    for label, texts in lines:
        for i, text in enumerate(texts):
            rows.add_row(Text("" if i else label, "dim"), Text(harmless(text)))
    return rows if rows.row_count else None
