"""Render the crucial values of a run, each as a line with its explanation below."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.diagnosis.key_metrics import Crucial, Value
from rlvitals.errors import harmless
from rlvitals.views import phrases
from rlvitals.views.console import COLUMN_GAP, grid


def crucial(diagnosis: Diagnosis, key_metrics: Crucial, name: str = "") -> RenderableType:
    """Render the verdict, a table of each section, and the joint judgement."""
    verdict = diagnosis.verdict.word
    colour = phrases.VERDICT_COLOURS[verdict]
    badge = f" {verdict.value.upper()} "
    head = grid(len(badge))
    text = f"{name}: {diagnosis.verdict.why}" if name else diagnosis.verdict.why
    ink = f"bold {phrases.BADGE_INK[colour]} on {colour}"
    head.add_row(Text(badge, ink), Text(harmless(text), "bold"))
    blocks: list[RenderableType] = [head]
    rows = []
    for value in key_metrics.values:
        change = ""
        if value.first is not None and value.last is not None:
            change = f"{phrases.number(value.first)} → {phrases.number(value.last)}"
        number = "" if value.now is None else phrases.number(value.now)
        rows.append((value, (harmless(value.title), number, change)))
    widths = [max(map(len, column)) for column in zip(*(row for _, row in rows), strict=True)]
    for section, title in {
        "goals": "what it is trained for",
        "stability": "whether its updates are sound",
    }.items():
        section_rows = [(value, row) for value, row in rows if value.part == section]
        if section_rows:
            blocks += [
                Text(),
                Text(title, "dim"),
                *(_value_block(*pair, widths) for pair in section_rows),
            ]
    if key_metrics.together:
        line = grid(1)
        line.add_row(_sign(key_metrics.together_sign), Text(harmless(key_metrics.together)))
        blocks += [Text(), Text("ratio, clipping and KL together", "dim"), line]
    return Group(*blocks)


def _value_block(value: Value, row: tuple[str, str, str], widths: list[int]) -> RenderableType:
    """Render a value: its numbers in a line, its explanation below."""
    title, value_text, change = row
    line = Text.assemble(
        _sign(value.sign), " ", (title.ljust(widths[0] + COLUMN_GAP), "bold"),
        value_text.rjust(widths[1]), " " * COLUMN_GAP, (change, "dim"),
    )  # fmt: skip
    explanation = Text.assemble(
        harmless(value.why), *((f"\n{harmless(t)}", "dim") for t in _annotations(value))
    )
    return Group(line, Padding(explanation, (0, 0, 0, 4), expand=False))


def _sign(sign: str) -> Text:
    return Text(phrases.SIGN_MARKS[sign], phrases.SIGN_COLOURS[sign])


def _annotations(value: Value) -> Iterator[str]:
    """Yield the healthy range under the logged key, with the bounds and their origins."""
    if value.key:
        yield f"{value.key}: {value.healthy}{bounds(value)}"


def bounds(value: Value) -> str:
    """Return the bounds of a value with their origins, or an empty string."""
    if value.counts is not None:
        return f"; by {phrases.number(value.counts.value)} at least ({value.counts.origin})"
    texts = [
        f"{sign} {phrases.number(bound.value)} ({bound.origin})"
        for sign, bound in (("≥", value.low), ("≤", value.high))
        if bound
    ]
    return f"; {', '.join(texts)}" if texts else ""
