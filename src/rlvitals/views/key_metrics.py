"""The crucial values of a run, for the terminal and for a file: each in a line, its words below."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.diagnosis.key_metrics import Crucial, Value
from rlvitals.errors import harmless
from rlvitals.metrics.metric import Bound
from rlvitals.views import phrases
from rlvitals.views.console import grid

PARTS = {"goals": "what it is trained for", "stability": "whether its updates are sound"}
GAP = 2
INDENT = 4


def crucial(found: Diagnosis, told: Crucial, name: str = "") -> RenderableType:
    """Lay the page out: the verdict, a table of each part, and what some of them say together."""
    word = found.verdict.word
    colour = phrases.VERDICT[word]
    badge = f" {word.value.upper()} "
    head = grid(len(badge))
    about = f"{name}: {found.verdict.why}" if name else found.verdict.why
    ink = f"bold {phrases.INK[colour]} on {colour}"
    head.add_row(Text(badge, ink), Text(harmless(about), "bold"))
    blocks: list[RenderableType] = [head]
    rows = [(one, _row(one)) for one in told.values]
    widths = [max(map(len, column)) for column in zip(*(row for _, row in rows), strict=True)]
    for part, title in PARTS.items():
        held = [(one, row) for one, row in rows if one.part == part]
        if held:
            blocks += [Text(), Text(title, "dim"), *(_told(*pair, widths) for pair in held)]
    if told.together:
        last = grid(1)
        last.add_row(_sign(told.together_sign), Text(harmless(told.together)))
        blocks += [Text(), Text("ratio, clipping and KL together", "dim"), last]
    return Group(*blocks)


def _row(one: Value) -> tuple[str, str, str]:
    return harmless(one.title), _number(one.now), _change(one)


def _told(one: Value, row: tuple[str, str, str], widths: list[int]) -> RenderableType:
    """Lay out a value: its numbers in a line, what is said of it below."""
    title, now, change = row
    line = Text.assemble(
        _sign(one.sign), " ", (title.ljust(widths[0] + GAP), "bold"), now.rjust(widths[1]),
        " " * GAP, (change, "dim"),
    )  # fmt: skip
    words = Text.assemble(harmless(one.why), *((f"\n{harmless(t)}", "dim") for t in _about(one)))
    return Group(line, Padding(words, (0, 0, 0, INDENT), expand=False))


def _sign(sign: str) -> Text:
    return Text(phrases.SIGNS[sign], phrases.COLOURS[sign])


def _number(value: float | None) -> str:
    return "" if value is None else phrases.number(value)


def _change(one: Value) -> str:
    if one.first is None or one.last is None:
        return ""
    return f"{phrases.number(one.first)} → {phrases.number(one.last)}"


def _about(one: Value) -> Iterator[str]:
    """Say what is healthy, under the log's own name, and the bounds with where they came from."""
    if one.key:
        yield f"{one.key}: {one.healthy}{bounds(one)}"


def bounds(one: Value) -> str:
    """Say the bounds of a value and their origin; empty without one."""
    if one.counts is not None:
        return f"; by {phrases.number(one.counts.value)} at least ({one.counts.origin})"
    told = [_bound(word, bound) for word, bound in (("≥", one.low), ("≤", one.high)) if bound]
    return f"; {', '.join(told)}" if told else ""


def _bound(word: str, bound: Bound) -> str:
    return f"{word} {phrases.number(bound.value)} ({bound.origin})"
