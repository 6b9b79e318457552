"""Render an examination by the doctor: the answer, then each trouble with remedies."""

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from rlvitals.doctor.check import Examination
from rlvitals.errors import harmless, quantity
from rlvitals.rules.rule import Severity
from rlvitals.views import phrases
from rlvitals.views.console import grid


def report(examination: Examination) -> RenderableType:
    """Render the answer, the troubles and the passed checks."""
    path = harmless(str(examination.context.path))
    problems = [trouble for _, trouble in examination.troubles if trouble.severity > Severity.NOTE]
    if not problems:
        suffix = (
            f", {quantity(len(examination.troubles), 'thing')} to know"
            if examination.troubles
            else ""
        )
        head = Text.assemble(("Nothing is wrong", "bold green"), f" with {path}{suffix}.")
    else:
        colour = phrases.SEVERITY_COLOURS[problems[0].severity]
        summary = (
            f"{quantity(len(problems), 'thing')} {'is' if len(problems) == 1 else 'are'} wrong"
        )
        head = Text.assemble((summary, f"bold {colour}"), f" with {path}.")
    blocks: list[RenderableType] = [head]
    for check, trouble in examination.troubles:
        colour = phrases.SEVERITY_COLOURS[trouble.severity]
        title = Text.assemble(
            (f"{trouble.severity.name.lower()}[{check.name}]", f"bold {colour}"),
            " ",
            (harmless(trouble.said), "bold"),
        )
        rows = grid(10)
        for label, texts in (("found", trouble.evidence), ("try", trouble.tries)):
            for i, text in enumerate(texts):
                rows.add_row(Text("" if i else label, "dim"), Text(harmless(text)))
        blocks += [Text(), Group(title, Padding(rows, (0, 0, 0, 2), expand=False))]
    blocks += [Text(), Text(f"fine: {', '.join(check.name for check in examination.fine)}", "dim")]
    return Group(*blocks)


def facts(examination: Examination) -> dict[str, object]:
    """Return the members of the JSON document."""
    return {
        "path": str(examination.context.path),
        "troubles": [
            {
                "check": check.name,
                "severity": trouble.severity,
                "said": trouble.said,
                "evidence": list(trouble.evidence),
                "try": list(trouble.tries),
            }
            for check, trouble in examination.troubles
        ],
        "fine": [check.name for check in examination.fine],
    }
