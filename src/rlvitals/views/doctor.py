"""What the doctor found, for the terminal: the answer, then each trouble with what to try."""

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from rlvitals.doctor.check import Check, Examination, Problem
from rlvitals.errors import harmless
from rlvitals.rules.rule import Severity
from rlvitals.views import phrases
from rlvitals.views.console import grid

LABEL = 10  # columns
INDENT = 2


def report(found: Examination) -> RenderableType:
    """Lay out the answer, the troubles, and what was fine."""
    blocks: list[RenderableType] = [_answer(found)]
    for check, trouble in found.troubles:
        blocks += [Text(), _trouble(check, trouble)]
    blocks += [Text(), Text(f"fine: {', '.join(one.name for one in found.fine)}", "dim")]
    return Group(*blocks)


def _answer(found: Examination) -> Text:
    where = harmless(str(found.context.path))
    graver = [one for _, one in found.troubles if one.severity > Severity.NOTE]
    if not graver:
        also = f", {_count(len(found.troubles), 'thing')} to know" if found.troubles else ""
        return Text.assemble(("Nothing is wrong", "bold green"), f" with {where}{also}.")
    colour = phrases.SEVERITY[graver[0].severity]
    said = f"{_count(len(graver), 'thing')} {'is' if len(graver) == 1 else 'are'} wrong"
    return Text.assemble((said, f"bold {colour}"), f" with {where}.")


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _trouble(check: Check, trouble: Problem) -> RenderableType:
    colour = phrases.SEVERITY[trouble.severity]
    head = Text.assemble(
        (f"{trouble.severity.name.lower()}[{check.name}]", f"bold {colour}"),
        " ",
        (harmless(trouble.said), "bold"),
    )
    rows = grid(LABEL)
    for label, texts in (("found", trouble.evidence), ("try", trouble.tries)):
        for i, text in enumerate(texts):
            rows.add_row(Text("" if i else label, "dim"), Text(harmless(text)))
    return Group(head, Padding(rows, (0, 0, 0, INDENT), expand=False))


def facts(found: Examination) -> dict[str, object]:
    """Choose what `--json` tells."""
    return {
        "path": str(found.context.path),
        "troubles": [
            {
                "check": check.name,
                "severity": one.severity,
                "said": one.said,
                "evidence": list(one.evidence),
                "try": list(one.tries),
            }
            for check, one in found.troubles
        ],
        "fine": [check.name for check in found.fine],
    }
