"""Render tables of rules, readers, and keys of frameworks and runs."""

from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.rule import Rule as Line
from rich.table import Table as Grid
from rich.text import Text

from rlvitals.errors import harmless
from rlvitals.metrics import suggest
from rlvitals.metrics.catalogue.rollouts import STATISTIC
from rlvitals.metrics.frameworks.key import Table
from rlvitals.readers import READERS
from rlvitals.rollouts.dialects import ROLLOUT_DIALECTS
from rlvitals.rules.rule import Rule
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Trace
from rlvitals.views.console import COLUMN_GAP
from rlvitals.views.phrases import number


@dataclass(frozen=True, slots=True)
class Columns:
    """A table with heads; each row becomes a block of lines if the table does not fit."""

    heads: Sequence[str]
    rows: Sequence[Sequence[Text]]
    whole: int  # number of columns that are never wrapped

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        """Yield a table, or a block for each row."""
        widths = [
            max(cell_len(head), *(cell_len(row[i].plain) for row in self.rows))
            for i, head in enumerate(self.heads[: self.whole])
        ]
        # Wrapped cells are unreadable below 24 columns.
        if sum(widths) + COLUMN_GAP * len(widths) + 24 <= options.max_width:
            grid = Grid(
                box=None, padding=(0, COLUMN_GAP, 0, 0), show_edge=False, header_style="dim"
            )
            for i, head in enumerate(self.heads):
                grid.add_column(head, no_wrap=i < self.whole, overflow="fold")
            for row in self.rows:
                grid.add_row(*row)
            yield grid
            return
        yield Text(", ".join(self.heads), "dim")
        for row in self.rows:
            # The second cell stands next to the first if it fits.
            name, cells = row[0].copy(), [*row[1:]]
            if cells and cell_len(name.plain + cells[0].plain) + COLUMN_GAP <= options.max_width:
                name = Text.assemble(name, " " * COLUMN_GAP, cells.pop(0))
            name.overflow = "fold"
            yield name
            yield from (Padding(cell, (0, 0, 0, 4)) for cell in cells if cell.plain)


def columns(heads: Sequence[str], rows: Iterable[Sequence[str]], whole: int = 1) -> RenderableType:
    """Render rows under their heads; the first `whole` columns are never wrapped."""
    cells = [[Text(harmless(c), "bold" if not i else "") for i, c in enumerate(r)] for r in rows]
    return Columns(heads, cells, whole) if cells else Text()


def rule(entry: Rule) -> tuple[str, str, str, str]:
    """Return the name, summary, profiles and needed metrics of a rule."""
    summary = entry.doc.strip().split("\n\n")[0].replace("\n", " ")
    needs = [m.name for m in entry.needs]
    if entry.needs_any:
        needs.append(" or ".join(m.name for m in entry.needs_any))
    return entry.name, summary, ", ".join(entry.profiles) or "all", ", ".join(needs)


def readers() -> RenderableType:
    """Render each reader with its formats, its files and an example, then those of rollouts."""
    grid = Grid(box=None, padding=(0, 2, 0, 0), show_edge=False, header_style="dim")
    for head in ("reader", "reads"):
        grid.add_column(head, overflow="fold")
    for reader in READERS:
        reads = Text.assemble(f"{reader.title}: {reader.looks_for}\n", (reader.example, "dim"))
        grid.add_row(Text(reader.name, "bold"), reads)
    for dialect in ROLLOUT_DIALECTS:
        files = ", ".join(dialect.files)
        reads = Text.assemble(f"rollouts, {dialect.title}: {files}\n", (dialect.example, "dim"))
        grid.add_row(Text(dialect.name, "bold"), reads)
    return grid


def keys(table: Table) -> list[tuple[str, str, str]]:
    """Return the key, metric and measurement of each key of a framework."""
    return [(key, name.metric.name, name.how) for key, name in table.keys.items()]


def families(table: Table) -> list[tuple[str, str, str]]:
    """Return the pattern, metric and measurement of each family of keys."""
    others_row = (
        f"(?:{table.other_prefixes})/.+",
        f"{STATISTIC.name}/...",
        "other keys: a count, share, length, extreme, setting, rate or size, by their words",
    )
    return [
        *(
            (f.pattern, f.name.metric.name + "/..." * f.name.metric.family, f.name.how)
            for f in table.families
        ),
        *([others_row] if table.other_prefixes else []),
    ]


def framework(table: Table) -> RenderableType:
    """Render the keys, key patterns and settings of a framework."""
    tables = (
        columns(("key", "metric", "how"), keys(table), whole=2),
        columns(("keys of this pattern", "metric", "how"), families(table), whole=2),
        columns(("key of a setting", "setting"), table.settings.items()),
    )
    filled = [table for table in tables if isinstance(table, Columns)]
    return Group(*(line for table in filled for line in (table, Text())))


def heading(name: str) -> RenderableType:
    """Render a heading between runs."""
    return Line(Text(harmless(name), "bold"), align="left", style="dim")


def run(trace: Trace, *, unmapped_only: bool = False) -> RenderableType:
    """Render the meaning of a run's keys, and unmapped keys with suggestions."""
    blocks: list[RenderableType] = []
    if not unmapped_only:
        key_tables: list[RenderableType] = []
        files: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
        for name, m in sorted(trace.measured.items()):
            files.setdefault((m.where, m.framework), []).append((m.key, name, m.how))
        for (source, framework), entries in files.items():
            key_tables.append(
                Text(harmless(f"{source or trace.name}, as {framework} names it"), "dim")
            )
            key_tables.append(columns(("key", "metric", "how"), entries, whole=2))
        blocks += key_tables
        blocks += (
            [
                columns(
                    ("setting", "value"),
                    [
                        (key, number(v) if isinstance(v, float) else str(v))
                        for key, v in trace.settings.items()
                    ],
                )
            ]
            if trace.settings
            else []
        )
        blocks += [_other_entries(trace)] if trace.histograms or trace.texts or trace.tables else []
    if trace.unmapped:
        rows = []
        for key in trace.unmapped:
            guess = suggest.propose(key)
            rows.append((key, f"--map {key}={guess}" if guess and guess not in trace else ""))
        suggestions = columns(("key", "if you mean it"), rows)
        blocks += [Text("not mapped: shown, never judged", "dim"), suggestions]
    elif unmapped_only:
        blocks.append(Text("every key is mapped"))
    return Group(*(line for block in blocks for line in (block, Text()))) if blocks else Text()


def _other_entries(trace: Trace) -> RenderableType:
    """Render histograms, texts and tables under their logged names."""
    kinds = (("histograms", trace.histograms), ("texts", trace.texts), ("rows", trace.tables))
    rows = [
        (key, f"{len(values):,} {kind}")
        for kind, entries in kinds
        for key, values in entries.items()
    ]
    return columns(("also logged", "how many"), rows)
