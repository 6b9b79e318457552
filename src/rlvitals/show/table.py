"""Many runs, one line each, worst first."""

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from rlvitals.diagnosis import Diagnosis
from rlvitals.errors import VitalsError
from rlvitals.rules.rule import Severity
from rlvitals.show import wording
from rlvitals.show.harmless import harmless
from rlvitals.verdict import Word

NAME = 30  # columns of a run's name that are never cut
GIVE_WAY = 2  # columns that are never cut: verdict and findings
Judged = tuple[str, Diagnosis | VitalsError]  # a run's name, and what came of it


def worst_first(runs: Sequence[Judged]) -> list[Judged]:
    """Order runs: unreadable, then by the worst finding, by the verdict, by name."""
    return sorted(runs, key=_badness)


def table(runs: Sequence[Judged]) -> RenderableType:
    """Lay out verdict, findings, name and reason of each run."""
    grid = Table(box=None, padding=(0, 2, 0, 0), show_edge=False, header_style="dim")
    heads = ("verdict", "findings", "run", "why")
    rows = [_row(name, found) for name, found in worst_first(runs)]
    for i, head in enumerate(heads):
        widest = max((cell_len(row[i].plain) for row in rows), default=0)
        least = (widest, widest, min(widest, NAME), 0)[i]
        # Where room is short the reason gives way first, then what exceeds NAME.
        grid.add_column(head, no_wrap=i < GIVE_WAY, min_width=max(least, len(head)))
    for row in rows:
        for cell in row:
            cell.no_wrap, cell.overflow = True, "ellipsis"
        grid.add_row(*row)
    return grid


def _row(name: str, found: Diagnosis | VitalsError) -> tuple[Text, Text, Text, Text]:
    run = Text(harmless(name))
    if isinstance(found, VitalsError):
        return Text("unreadable", "bold red"), Text(), run, Text(harmless(found.problem))
    word = found.verdict.word
    # The worst finding says more than the verdict where the two speak of different things.
    graver = found.worst is not None and found.worst > Severity.NOTE
    why = found.cases[0].finding.summary if graver else found.verdict.why
    style = f"bold {wording.VERDICT[word]}"
    return Text(word.value, style), _counts(found), run, Text(harmless(why))


def _counts(found: Diagnosis) -> Text:
    """Count by severity, shortest: 1E 2W 1N."""
    text = Text()
    for severity in sorted(Severity, reverse=True):
        count = sum(f.severity is severity for _, f in found.findings)
        if count:
            text.append(f"{count}{severity.name[0]} ", wording.SEVERITY[severity])
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
