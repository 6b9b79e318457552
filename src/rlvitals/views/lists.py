"""Lists: rules, keys of a framework, keys of a run."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.rule import Rule as Line
from rich.table import Table as Grid
from rich.text import Text

from rlvitals.errors import harmless
from rlvitals.metrics import suggest
from rlvitals.metrics.frameworks.key import Table
from rlvitals.readers import READERS
from rlvitals.rules.rule import Rule
from rlvitals.types import Trace
from rlvitals.views.phrases import number

GAP, INDENT = 2, 4  # columns of the screen
LEAST = 24  # columns of the screen that what may be broken is given: less cannot be read


@dataclass(frozen=True, slots=True)
class Columns:
    """Rows under their heads; each row over several lines where they do not fit side by side."""

    heads: Sequence[str]
    rows: Sequence[Sequence[Text]]
    whole: int  # columns that are never broken

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        """Yield one table, or one block for each row."""
        whole = [
            max(cell_len(head), *(cell_len(row[i].plain) for row in self.rows))
            for i, head in enumerate(self.heads[: self.whole])
        ]
        if sum(whole) + GAP * len(whole) + LEAST <= options.max_width:
            yield self._table()
            return
        yield Text(", ".join(self.heads), "dim")
        for row in self.rows:
            yield from _stacked(row, options.max_width)

    def _table(self) -> RenderableType:
        grid = Grid(box=None, padding=(0, GAP, 0, 0), show_edge=False, header_style="dim")
        for i, head in enumerate(self.heads):
            grid.add_column(head, no_wrap=i < self.whole, overflow="fold")
        for row in self.rows:
            grid.add_row(*row)
        return grid


def columns(heads: Sequence[str], rows: Iterable[Sequence[str]], whole: int = 1) -> RenderableType:
    """Lay rows out under their heads; the first `whole` columns are never broken."""
    cells = [[Text(harmless(c), "bold" if not i else "") for i, c in enumerate(r)] for r in rows]
    return Columns(heads, cells, whole) if cells else Text()


def _stacked(row: Sequence[Text], width: int) -> Iterator[RenderableType]:
    """Lay one row out downwards; the second cell beside the first where there is room."""
    name, rest = row[0].copy(), [*row[1:]]
    if rest and cell_len(name.plain + rest[0].plain) + GAP <= width:
        name = Text.assemble(name, " " * GAP, rest.pop(0))
    name.overflow = "fold"
    yield name
    yield from (Padding(cell, (0, 0, 0, INDENT)) for cell in rest if cell.plain)


def rule(one: Rule) -> tuple[str, str, str, str]:
    """Name, first sentence, profiles and needs of a rule."""
    summary = one.doc.strip().split("\n\n")[0].replace("\n", " ")
    needs = [m.name for m in one.needs]
    if one.needs_any:
        needs.append(" or ".join(m.name for m in one.needs_any))
    return one.name, summary, ", ".join(one.profiles) or "all", ", ".join(needs)


def readers() -> RenderableType:
    """What each reader reads, what files it looks for, and such a file below."""
    grid = Grid(box=None, padding=(0, 2, 0, 0), show_edge=False, header_style="dim")
    for head in ("reader", "reads"):
        grid.add_column(head, overflow="fold")
    for one in READERS:
        reads = Text.assemble(f"{one.title}: {one.looks_for}\n", (one.example, "dim"))
        grid.add_row(Text(one.name, "bold"), reads)
    return grid


def keys(table: Table) -> list[tuple[str, str, str]]:
    """Key, metric and how it is measured, for one framework."""
    return [(key, name.metric.name, name.how) for key, name in table.keys.items()]


def families(table: Table) -> list[tuple[str, str, str]]:
    """Pattern, metric and how it is measured, of keys that share a pattern."""
    return [
        (f.pattern, f.name.metric.name + "/..." * f.name.metric.family, f.name.how)
        for f in table.families
    ]


def framework(table: Table) -> RenderableType:
    """Keys of one framework, the patterns that others follow, and its settings."""
    found = (
        columns(("key", "metric", "how"), keys(table), whole=2),
        columns(("keys of this pattern", "metric", "how"), families(table), whole=2),
        columns(("key of a setting", "setting"), table.settings.items()),
    )
    parts = [part for part in found if isinstance(part, Columns)]
    return Group(*(line for part in parts for line in (part, Text())))


def heading(name: str) -> RenderableType:
    """Tell one run of several from the next."""
    return Line(Text(harmless(name), "bold"), align="left", style="dim")


def run(trace: Trace, *, unmapped_only: bool = False) -> RenderableType:
    """What a run's keys mean, and which are not known, with a guess where a name is close."""
    parts: list[RenderableType] = []
    if not unmapped_only:
        parts += _measured(trace)
        parts += [_settings(trace)] if trace.settings else []
        parts += [_held(trace)] if trace.histograms or trace.texts or trace.tables else []
    if trace.unmapped:
        parts += [Text("not mapped: shown, never judged", "dim"), _unmapped(trace)]
    elif unmapped_only:
        parts.append(Text("every key is mapped"))
    return Group(*(line for part in parts for line in (part, Text()))) if parts else Text()


def _measured(trace: Trace) -> Iterator[RenderableType]:
    """One table for each file: it is named once, above."""
    files: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
    for name, m in sorted(trace.measured.items()):
        files.setdefault((m.where, m.framework), []).append((m.key, name, m.how))
    for (where, framework), rows in files.items():
        yield Text(harmless(f"{where or trace.name}, as {framework} names it"), "dim")
        yield columns(("key", "metric", "how"), rows, whole=2)


def _settings(trace: Trace) -> RenderableType:
    rows = [
        (key, number(v) if isinstance(v, float) else str(v)) for key, v in trace.settings.items()
    ]
    return columns(("setting", "value"), rows)


def _held(trace: Trace) -> RenderableType:
    """What is no number over steps: shown under the names that it was logged with."""
    kinds = (("histograms", trace.histograms), ("texts", trace.texts), ("rows", trace.tables))
    rows = [(key, f"{len(held):,} {kind}") for kind, found in kinds for key, held in found.items()]
    return columns(("also logged", "how many"), rows)


def _unmapped(trace: Trace) -> RenderableType:
    rows = []
    for key in trace.unmapped:
        guess = suggest.propose(key)
        rows.append((key, f"--map {key}={guess}" if guess and guess not in trace else ""))
    return columns(("key", "if you mean it"), rows)
