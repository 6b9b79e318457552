"""Render many runs for the person who pays for them: worst first, with the hours they took."""

from collections.abc import Sequence

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from rlvitals.diagnosis.cost import HOUR_SECONDS
from rlvitals.diagnosis.duration import training_time
from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.errors import VitalsError, harmless, quantity
from rlvitals.readers.discovery.sources import Run
from rlvitals.rules.standing import OUTCOME_UNKNOWN
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.views import markdown as escape
from rlvitals.views import phrases
from rlvitals.views.reason_table import ReasonRow, ReasonTable


@dataclass(frozen=True, slots=True)
class TriageRow:
    """One run: its verdict, its first cause, and what it took."""

    run: str
    verdict: str
    broken: bool
    hours: float | None  # trained, pauses left out; None: the log has no times
    hours_lost: float | None  # since its worst fault began, while it still goes on
    cause: str  # rule of the first case, or ""
    reason: str
    group: str = ""  # that it was recorded in; of Ray Tune the experiment of a trial
    gpus: int | None = None  # that it trained on; None: not recorded


def row(name: str, result: Diagnosis | VitalsError, *, broken: bool) -> TriageRow:
    """Return the row of one run."""
    if isinstance(result, VitalsError):
        return TriageRow(
            harmless(name), "unreadable", broken, None, None, "", harmless(result.problem)
        )
    seconds, _ = training_time(result.trace)
    losses = [case.waste.since_began.hours for case in result.cases if case.waste]
    cause = result.cases[0] if broken and result.cases else None
    gpus = result.trace.settings.get("rlvitals/gpus")
    return TriageRow(
        run=harmless(name),
        verdict=result.verdict.word.value,
        broken=broken,
        hours=None if seconds is None else seconds / HOUR_SECONDS,
        hours_lost=max((hours for hours in losses if hours is not None), default=None),
        cause="" if cause is None else cause.rule.name,
        reason=harmless(result.verdict.why if cause is None else cause.finding.summary),
        group=harmless(str(result.trace.settings.get("rlvitals/group") or "")),
        gpus=gpus if isinstance(gpus, int) else None,
    )


def last_moment(result: Diagnosis, files: Run) -> float:
    """Return when a run logged last, in epoch s: by its rows' times, else by its files'."""
    moments = [
        float(times.max())
        for series in result.trace.series.values()
        if len(times := series.times[np.isfinite(series.times)])
    ]
    return max(moments) if moments else max(path.stat().st_mtime for path, _ in files.files)


def by_group(rows: Sequence[TriageRow]) -> list[TriageRow]:
    """Put the runs of each group behind the first of them; the order stays otherwise."""
    groups: dict[str, list[TriageRow]] = {}
    for number, entry in enumerate(rows):
        groups.setdefault(entry.group or f"\0{number}", []).append(entry)
    return [entry for members in groups.values() for entry in members]


def group_heads(rows: Sequence[TriageRow]) -> dict[int, list[TriageRow]]:
    """Return the groups of two and more runs by the place of their first."""
    members: dict[str, list[TriageRow]] = {}
    for entry in rows:
        members.setdefault(entry.group, []).append(entry)
    names = [entry.group for entry in rows]
    return {names.index(name): group for name, group in members.items() if name and len(group) > 1}


def head_cells(group: Sequence[TriageRow]) -> tuple[str, str, str]:
    """Return the hours of a group, its name and its counts."""
    numbers = total(group)
    counts = f"{quantity(int(numbers['runs']), 'run')}, {numbers['broken']} broken"
    return duration(numbers["hours"] or None), group[0].group, counts


def total(rows: Sequence[TriageRow]) -> dict[str, float]:
    """Return counts and hours of all runs and of the broken ones."""
    broken = [entry for entry in rows if entry.broken]
    return {
        "runs": len(rows),
        "broken": len(broken),
        "hours": sum(entry.hours or 0.0 for entry in rows),
        "hours_of_broken": sum(entry.hours or 0.0 for entry in broken),
        "hours_lost": sum(entry.hours_lost or 0.0 for entry in broken),
        "gpu_hours": sum((entry.hours or 0.0) * (entry.gpus or 0) for entry in rows),
        "gpu_hours_of_broken": sum((entry.hours or 0.0) * (entry.gpus or 0) for entry in broken),
    }


def table(rows: Sequence[TriageRow]) -> RenderableType:
    """Render the rows for a terminal, with a last line of totals."""
    lines: list[ReasonRow] = []
    heads = group_heads(rows)
    for number, entry in enumerate(rows):
        if number in heads:
            hours, name, counts = head_cells(heads[number])
            cells = (Text("group"), Text(hours, justify="right"), Text())
            lines.append(ReasonRow(cells, name, counts, "bold"))
        colour = "red" if entry.broken else "dim" if entry.verdict == "unknown" else "green"
        verdict = Text(entry.verdict, colour)
        took = Text(duration(entry.hours), justify="right")
        lost = Text(duration(entry.hours_lost), justify="right")
        reason = f"{entry.cause}: {entry.reason}" if entry.cause else entry.reason
        lines.append(
            ReasonRow((verdict, took, lost), entry.run, reason.removeprefix(OUTCOME_UNKNOWN))
        )
    titles = (Text("verdict"), Text("took", justify="right"), Text("lost", justify="right"))
    table = [ReasonTable(titles, lines)] if lines else []
    return Group(*table, Text(), Text(sentence(rows), "dim"))


def markdown_table(rows: Sequence[TriageRow]) -> str:
    """Return the rows as a Markdown table, the totals above it."""
    lines = [f"**{sentence(rows)}**", "", "| verdict | took | lost | run | why |"]
    lines.append("| --- | --: | --: | --- | --- |")
    heads = group_heads(rows)
    for number, entry in enumerate(rows):
        if number in heads:
            hours, name, counts = head_cells(heads[number])
            lines.append(f"| **group** | {hours} | | **{escape.safe(name)}** | {counts} |")
        reason = (
            f"`{entry.cause}`: {escape.safe(entry.reason)}"
            if entry.cause
            else escape.safe(entry.reason)
        )
        cells = (
            duration(entry.hours),
            duration(entry.hours_lost),
            escape.safe(entry.run),
            reason,
        )
        mark = "❌ " if entry.broken else ""
        lines.append(f"| {mark}{entry.verdict} | {' | '.join(cells)} |")
    return "\n".join(lines)


def duration(hours: float | None) -> str:
    """Return hours in a unit that suits them; "" where they are not known."""
    return "" if hours is None else phrases.duration(hours * HOUR_SECONDS)


def sentence(rows: Sequence[TriageRow]) -> str:
    """Return "12 runs, 3 broken: 4.5 h of 20.1 h, 2.0 h of them since a fault began"."""
    numbers = total(rows)
    text = f"{quantity(int(numbers['runs']), 'run')}, {phrases.number(numbers['broken'])} broken"
    if not numbers["hours"]:
        return f"{text}; the logs have no times"
    text += f": {duration(numbers['hours_of_broken'])} of {duration(numbers['hours'])}"
    lost_hours = numbers["hours_lost"]
    if lost_hours:
        text += f", {duration(lost_hours)} of them since a fault began"
    if not numbers["gpu_hours"]:
        return text
    gpu_hours, total_hours = numbers["gpu_hours_of_broken"], numbers["gpu_hours"]
    text += (
        f"; {phrases.number(gpu_hours)} of {phrases.number(total_hours)} GPU-hours on broken runs"
    )
    missing = sum(entry.gpus is None for entry in rows)
    return f"{text} ({quantity(missing, 'run')} without a recorded GPU)" if missing else text
