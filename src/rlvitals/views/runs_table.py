"""Many runs, one line each, worst first."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from rich.cells import cell_len, chop_cells
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.diagnosis.verdict import Word
from rlvitals.errors import VitalsError, harmless
from rlvitals.rules.rule import Severity
from rlvitals.rules.standing import UNTOLD
from rlvitals.views import phrases

WHY = 28  # columns of the screen that a reason is left, beside the longest name
NAME = 30  # columns that a name is left before the reason has none
GAP = 2
SCREEN = 20  # runs that are seen at a glance: more are counted
Judged = tuple[str, Diagnosis | VitalsError]  # a run's name, and what came of it


def worst_first(runs: Sequence[Judged]) -> list[Judged]:
    """Order runs: unreadable, then by the worst finding, by the verdict, by name."""
    return sorted(runs, key=_badness)


def table(runs: Sequence[Judged]) -> RenderableType:
    """Lay out verdict, findings, name and reason of each run; count them where they are many."""
    above, names = _without_common([harmless(name) for name, _ in worst_first(runs)])
    rows = [
        _Row(_verdict(found), _counts(found), name, _why(found))
        for name, (_, found) in zip(names, worst_first(runs), strict=True)
    ]
    head = [Text(f"in {above}", "dim")] if above else []
    tail = [Text(), Text(_tally(runs), "dim")] if len(runs) > SCREEN else []
    return Group(*head, _Rows(rows), *tail)


@dataclass(frozen=True, slots=True)
class _Row:
    verdict: Text
    counts: Text
    name: str
    why: str


@dataclass(frozen=True, slots=True)
class _Rows:
    """A name is told whole, over several lines if need be; the reason gives way before it."""

    rows: Sequence[_Row]

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table for the width there is."""
        fixed = [
            max(cell_len(head), *(cell_len(cell.plain) for cell in cells))
            for head, cells in (
                ("verdict", [row.verdict for row in self.rows]),
                ("findings", [row.counts for row in self.rows]),
            )
        ]
        left = options.max_width - sum(fixed) - 3 * GAP
        widest = max(cell_len("run"), *(cell_len(row.name) for row in self.rows))
        name = min(widest, max(left - WHY, NAME), left)
        grid = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="dim")
        for head, width in zip(("verdict", "findings", "run"), (*fixed, name), strict=True):
            grid.add_column(head, no_wrap=True, width=width)
        why = min(left - name, max(cell_len(row.why) for row in self.rows))
        if why >= len("why"):
            grid.add_column("why", no_wrap=True, width=why)
        for row in self.rows:
            cells = (row.verdict, row.counts, Text(_folded(row.name, name)), Text(row.why))
            cells[-1].overflow = "ellipsis"
            grid.add_row(*cells[: len(grid.columns)])
        yield grid


def _without_common(names: Sequence[str]) -> tuple[str, list[str]]:
    """Tell the folder that all runs lie in apart from their names."""
    folders = [name.split("/")[:-1] for name in names]
    common = list(takewhile(lambda level: len(set(level)) == 1, zip(*folders, strict=False)))
    above = "/".join(level[0] for level in common)
    if not above or len(names) == 1:
        return "", [*names]
    return above, [name.removeprefix(f"{above}/") for name in names]


def _folded(name: str, width: int) -> str:
    """Break a name before the folder that does not fit, and within one that is too long."""
    lines = [""]
    for part in re.findall(r"[^/]*/|[^/]+", name):
        if lines[-1] and cell_len(lines[-1] + part) > width:
            lines.append("")
        lines[-1:] = chop_cells(lines[-1] + part, width)
    return "\n".join(lines)


def _tally(runs: Sequence[Judged]) -> str:
    """Count the runs of each verdict, worst first: 3 runs: 1 failed, 2 learning."""
    words = [_verdict(found).plain for _, found in worst_first(runs)]
    order = sorted({*words}, key=words.index)
    return f"{len(words):,} runs: {', '.join(f'{words.count(w):,} {w}' for w in order)}"


def _verdict(found: Diagnosis | VitalsError) -> Text:
    if isinstance(found, VitalsError):
        return Text("unreadable", "bold red")
    return Text(found.verdict.word.value, f"bold {phrases.VERDICT[found.verdict.word]}")


def _why(found: Diagnosis | VitalsError) -> str:
    if isinstance(found, VitalsError):
        return harmless(found.problem)
    # The worst finding says more than the verdict where the two speak of different things.
    graver = found.worst is not None and found.worst > Severity.NOTE
    why = found.cases[0].finding.summary if graver else found.verdict.why
    return harmless(why.removeprefix(UNTOLD))  # "unknown" says so already


def _counts(found: Diagnosis | VitalsError) -> Text:
    """Count by severity, shortest: 1E 2W 1N."""
    text = Text()
    if isinstance(found, VitalsError):
        return text
    for severity in sorted(Severity, reverse=True):
        count = sum(f.severity is severity for _, f in found.findings)
        if count:
            text.append(f"{count}{severity.name[0]} ", phrases.SEVERITY[severity])
    text.rstrip()
    return text


def _badness(run: Judged) -> tuple[int, int, str]:
    name, found = run
    if isinstance(found, VitalsError):
        return (-len(Severity), 0, name)
    worst = -1 if found.worst is None else int(found.worst)
    # "unknown" is the last word to be tried, yet it is no good news: before plateau and better.
    order: list[Word] = [word for word in Word if word != Word.UNKNOWN]
    order.insert(order.index(Word.PLATEAU), Word.UNKNOWN)
    return (-worst, order.index(found.verdict.word), name)
