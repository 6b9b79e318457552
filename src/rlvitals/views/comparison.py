"""Groups of runs side by side: the answer first, then one table, then how it was measured."""

import math
from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rlvitals.comparison.assertions import GateResult
from rlvitals.comparison.result import Against, Comparison, RunScore, verdict
from rlvitals.comparison.result import Group as Runs
from rlvitals.comparison.statistics import Interval
from rlvitals.errors import harmless
from rlvitals.rules import standing
from rlvitals.views import phrases
from rlvitals.views.console import grid

COLOURS = {"better": "green", "worse": "red", "cannot tell": "magenta"}
GATES = {True: ("holds", "green"), False: ("broken", "red"), None: ("cannot tell", "magenta")}
LABEL = 12  # columns: "improvement"
GAP = 2
SAID = 5  # verdicts that are said one by one: of more, those that say something
NAMED = 3  # runs that one line names


def comparison(found: Comparison) -> RenderableType:
    """Lay a comparison out."""
    said = [*_lines(found)] if found.against else []
    head: list[RenderableType] = [*said] or [Text(harmless(found.sentence), "bold")]
    return Group(*head, Text(), _table(found), Text(), _how(found))


def gated(found: GateResult) -> RenderableType:
    """Lay out whether a gate holds, with its evidence."""
    word, colour = GATES[found.holds]
    said = found.sentence.partition(": ")[2]
    told = found.comparison
    return Group(_badge(word, colour, said), Text(), _table(told), Text(), _how(told, found))


def _badge(word: str, colour: str, said: str, width: int = 0) -> RenderableType:
    badge = f" {word.upper()} "
    head = grid(max(len(badge), width))
    ink = f"bold {phrases.INK[colour]} on {colour}"
    head.add_row(Text(badge, ink), Text(harmless(said), "bold"))
    return head


def _lines(found: Comparison) -> Iterator[RenderableType]:
    """Say the verdict on each group; of many only those that could be told."""
    many = len(found.against) > SAID
    shown = [one for one in found.against if not many or one.word != "cannot tell"]
    open_ = len(found.against) - len(shown)
    words = [*(one.word for one in shown), *(["cannot tell"] if open_ else [])]
    width = max(map(len, words)) + 2
    for one in shown:
        said = verdict(one, standing.label(found.metric))
        yield _badge(one.word, COLOURS[one.word], said, width)
    if open_:
        said = f"of {open_} groups nobody can tell whether they differ from {found.groups[0].label}"
        yield _badge("cannot tell", COLOURS["cannot tell"], said, width)


def _table(found: Comparison) -> RenderableType:
    timed = len(found.tasks) == 1
    level = f"reaches {phrases.number(found.tasks[0].level)}" if timed else "reaches its level"
    few = found.groups[0].typical.approximate
    heads = ["group", "seeds", "mean" if few else "IQM", "95 %", "median" if few else "mean", level]
    table = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="dim")
    table.add_column(heads[0], overflow="fold")
    for head in heads[1:]:
        table.add_column(head, no_wrap=True, justify="right")
    for one in found.groups:
        table.add_row(*_row(one))
    if not few:
        return table
    return Group(table, Text(), _runs(found))


def _row(one: Runs) -> tuple[Text, ...]:
    seeds = f"{one.seeds}, {one.failures} failed" if one.failures else f"{one.seeds}"
    return (
        Text(harmless(one.label), "bold"),
        Text(seeds, "red" if one.failures else ""),
        Text(_number(one.typical.value)),
        Text(_span(one.typical)),
        Text(_number(one.median if one.typical.approximate else one.mean)),
        Text(_soon(one)),
    )


def _runs(found: Comparison) -> RenderableType:
    """Show every run: of so few no statistic says more."""
    rows = Table.grid(padding=(0, GAP, 0, 0))
    rows.add_column(overflow="fold")
    rows.add_column(overflow="fold")
    for one in found.groups:
        ordered = sorted(one.runs, key=lambda run: (run.task, bool(run.failed), -run.gain))
        rows.add_row(Text(harmless(one.label), "dim"), Text(_listed(ordered)))
    return rows


def _listed(runs: Sequence[RunScore]) -> str:
    parts: list[str] = []
    task = ""
    several = len({run.task for run in runs}) > 1
    for run in runs:
        lead = ""
        if several and run.task != task:
            task = run.task
            lead = f"{'; ' if parts else ''}{task} "
        value = "failed" if run.failed else _number(run.score)
        parts.append(f"{lead or ('  ' if parts else '')}{value}")
    return harmless("".join(parts))


def _how(found: Comparison, gate: GateResult | None = None) -> RenderableType:
    rows = grid(LABEL)
    name = standing.label(found.metric)
    score = f"{name}, {found.at}"
    if len(found.tasks) == 1:
        score += f", up to {found.axis} {found.tasks[0].end:,.10g}"
    else:
        score += f"; {len(found.tasks)} tasks, each on its own scale: {_scale(found)}"
    rows.add_row(Text("score", "dim"), Text(harmless(score)))
    if any(math.isfinite(one.difference.low) for one in found.against):
        first = found.groups[0].typical
        about = "approximate: so few seeds" if first.approximate else "10,000 resamples"
        known = [one for one in found.against if math.isfinite(one.difference.low)]
        method = gate.difference.method if gate else known[0].difference.method
        rows.add_row(Text("interval", "dim"), Text(f"{method}, {about}"))
    beats = [one for one in found.against if math.isfinite(one.improvement.value)]
    for i, one in enumerate(beats if len(found.against) <= SAID else []):
        rows.add_row(Text("" if i else "beats", "dim"), Text(harmless(_beats(one))))
    for i, text in enumerate(_failures(found)):
        rows.add_row(Text("" if i else "failed", "dim"), Text(harmless(text)))
    for i, note in enumerate(found.notes):
        rows.add_row(Text("" if i else "notes", "dim"), Text(harmless(note)))
    return rows


def _failures(found: Comparison) -> Iterator[str]:
    """Say which runs failed and why, those of one reason together."""
    for group in found.groups:
        by_reason: dict[tuple[str, float], list[str]] = {}
        for run in group.runs:
            if run.failed:
                by_reason.setdefault((run.failed, run.score), []).append(run.name)
        for (why, score), names in by_reason.items():
            more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
            named = f"{', '.join(names[:NAMED])}{more} of {group.label}"
            yield f"{named}: {why}; counts as {_number(score)}"


def _scale(found: Comparison) -> str:
    known, rest = "0 is random actions, 1 a solved task", "0 is the lowest run, 1 the highest"
    unknown = [one.name or "the unnamed" for one in found.tasks if not one.is_known]
    if not unknown:
        return known
    return rest if len(unknown) == len(found.tasks) else f"{known}; of {', '.join(unknown)} {rest}"


def _beats(one: Against) -> str:
    span = ""
    if math.isfinite(one.improvement.low):
        span = f" ({one.improvement.low:.0%} to {one.improvement.high:.0%})"
    return (
        f"a run of {one.group} beats one of {one.reference} in"
        f" {one.improvement.value:.0%} of the pairs{span}"
    )


def _number(value: float) -> str:
    return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"  # noqa: PLR2004 - digits


def _span(found: Interval) -> str:
    if not math.isfinite(found.low):
        return "unknown"
    return f"{_number(found.low)} to {_number(found.high)}"


def _soon(one: Runs) -> str:
    """Say how soon half of the runs held the level, and how many ever did."""
    there = sum(math.isfinite(run.steps_to_level) for run in one.runs)
    if not math.isfinite(one.steps_to_level):
        return f"{there} of {len(one.runs)} ever"
    time = ""
    if math.isfinite(one.seconds_to_level):
        time = f", {phrases.duration(one.seconds_to_level)}"
    return f"{one.steps_to_level:,.10g}{time}"
