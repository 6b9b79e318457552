"""Render a table of many runs, worst first."""

from collections.abc import Sequence
from itertools import takewhile

from rich.console import Group, RenderableType
from rich.text import Text

from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.diagnosis.verdict import Word
from rlvitals.errors import VitalsError, harmless, quantity
from rlvitals.rules.rule import Severity
from rlvitals.rules.standing import OUTCOME_UNKNOWN
from rlvitals.views import phrases
from rlvitals.views.reason_table import ReasonRow, ReasonTable

Judged = tuple[str, Diagnosis | VitalsError]  # name and diagnosis, or error


def worst_first(runs: Sequence[Judged]) -> list[Judged]:
    """Sort runs: unreadable first, then by worst finding, verdict and name."""
    return sorted(runs, key=badness)


def table(runs: Sequence[Judged]) -> RenderableType:
    """Render verdict, findings, name and reason of each run, and a tally if there are many."""
    above, names = _without_common([harmless(name) for name, _ in worst_first(runs)])
    rows = [
        ReasonRow((_verdict(result), _counts(result)), name, _reason(result))
        for name, (_, result) in zip(names, worst_first(runs), strict=True)
    ]
    head = [Text(f"in {above}", "dim")] if above else []
    tail: list[Text] = []
    if len(runs) > 20:  # more runs get a tally: "3 runs: 1 failed, 2 learning"
        verdicts = [_verdict(result).plain for _, result in worst_first(runs)]
        order = sorted({*verdicts}, key=verdicts.index)
        counts = ", ".join(f"{verdicts.count(verdict):,} {verdict}" for verdict in order)
        tail = [Text(), Text(f"{quantity(len(verdicts), 'run')}: {counts}", "dim")]
    return Group(*head, ReasonTable((Text("verdict"), Text("findings")), rows), *tail)


def _without_common(names: Sequence[str]) -> tuple[str, list[str]]:
    """Split the common folder of all runs from their names."""
    folders = [name.split("/")[:-1] for name in names]
    common = list(takewhile(lambda level: len(set(level)) == 1, zip(*folders, strict=False)))
    above = "/".join(level[0] for level in common)
    if not above or len(names) == 1:
        return "", [*names]
    return above, [name.removeprefix(f"{above}/") for name in names]


def _verdict(result: Diagnosis | VitalsError) -> Text:
    if isinstance(result, VitalsError):
        return Text("unreadable", "bold red")
    return Text(result.verdict.word.value, f"bold {phrases.VERDICT_COLOURS[result.verdict.word]}")


def _reason(result: Diagnosis | VitalsError) -> str:
    if isinstance(result, VitalsError):
        return harmless(result.problem)
    # The worst finding is more informative than a verdict on something else.
    is_severe = result.worst is not None and result.worst > Severity.NOTE
    sentence = result.cases[0].finding.summary if is_severe else result.verdict.why
    return harmless(sentence.removeprefix(OUTCOME_UNKNOWN))  # implied by "unknown"


def _counts(result: Diagnosis | VitalsError) -> Text:
    """Return the number of findings by severity: "1E 2W 1N"."""
    text = Text()
    if isinstance(result, VitalsError):
        return text
    for severity in sorted(Severity, reverse=True):
        count = sum(f.severity is severity for _, f in result.findings)
        if count:
            text.append(f"{count}{severity.name[0]} ", phrases.SEVERITY_COLOURS[severity])
    text.rstrip()
    return text


def badness(run: Judged) -> tuple[int, int, str]:
    """Return the sort key of a run among the worst first."""
    name, result = run
    if isinstance(result, VitalsError):
        return (-len(Severity), 0, name)
    worst = -1 if result.worst is None else int(result.worst)
    # "unknown" comes last in Word, but ranks as worse than a plateau.
    order: list[Word] = [verdict for verdict in Word if verdict != Word.UNKNOWN]
    order.insert(order.index(Word.PLATEAU), Word.UNKNOWN)
    return (-worst, order.index(result.verdict.word), name)
