"""Render a comparison of groups: verdicts, a table of scores, and the method."""

import math
from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rlvitals.comparison.assertions import GateResult
from rlvitals.comparison.grouping import PATH_KEY, format_setting
from rlvitals.comparison.result import Against, Comparison, RunScore, verdict
from rlvitals.comparison.result import Group as Runs
from rlvitals.comparison.statistics import Interval
from rlvitals.errors import harmless, join_first
from rlvitals.rules import standing
from rlvitals.views import phrases
from rlvitals.views.console import COLUMN_GAP, grid

COMPARISON_COLOURS = {"better": "green", "worse": "red", "cannot tell": "magenta"}
MAX_VERDICT_LINES = 5  # with more groups, undecided verdicts are counted


def comparison(result: Comparison) -> RenderableType:
    """Render a comparison."""
    lines = [*_lines(result)] if result.against else []
    head: list[RenderableType] = [*lines] or [Text(harmless(result.sentence), "bold")]
    return Group(*head, Text(), _table(result), Text(), _how(result))


def gate_report(gate_result: GateResult) -> RenderableType:
    """Render the result of a gate with its evidence."""
    label, colour = {
        True: ("holds", "green"),
        False: ("broken", "red"),
        None: ("cannot tell", "magenta"),
    }[gate_result.holds]
    sentence = gate_result.sentence.partition(": ")[2]
    result = gate_result.comparison
    return Group(
        _badge(label, colour, sentence), Text(), _table(result), Text(), _how(result, gate_result)
    )


def _badge(label: str, colour: str, text: str, width: int = 0) -> RenderableType:
    badge = f" {label.upper()} "
    head = grid(max(len(badge), width))
    ink = f"bold {phrases.BADGE_INK[colour]} on {colour}"
    head.add_row(Text(badge, ink), Text(harmless(text), "bold"))
    return head


def _lines(result: Comparison) -> Iterator[RenderableType]:
    """Yield the verdict on each group; for many groups only the decided ones."""
    is_long = len(result.against) > MAX_VERDICT_LINES
    verdicts = [pair for pair in result.against if not is_long or pair.word != "cannot tell"]
    open_ = len(result.against) - len(verdicts)
    labels = [*(pair.word for pair in verdicts), *(["cannot tell"] if open_ else [])]
    width = max(map(len, labels)) + 2
    for pair in verdicts:
        text = verdict(pair, standing.label(result.metric))
        yield _badge(pair.word, COMPARISON_COLOURS[pair.word], text, width)
    if open_:
        text = (
            f"of {open_} groups nobody can tell whether they differ from {result.groups[0].label}"
        )
        yield _badge("cannot tell", COMPARISON_COLOURS["cannot tell"], text, width)


def _table(result: Comparison) -> RenderableType:
    timed = len(result.tasks) == 1
    level = f"reaches {phrases.number(result.tasks[0].level)}" if timed else "reaches its level"
    is_small = result.groups[0].typical.approximate
    heads = [
        "group",
        "seeds",
        "mean" if is_small else "IQM",
        "95 %",
        "median" if is_small else "mean",
        level,
    ]
    table = Table(box=None, padding=(0, COLUMN_GAP, 0, 0), pad_edge=False, header_style="dim")
    table.add_column(heads[0], overflow="fold")
    for head in heads[1:]:
        table.add_column(head, no_wrap=True, justify="right")
    for group in result.groups:
        seeds = f"{group.seeds}, {group.failures} failed" if group.failures else f"{group.seeds}"
        table.add_row(
            Text(harmless(group.label), "bold"),
            Text(seeds, "red" if group.failures else ""),
            Text(_number(group.typical.value)),
            Text(_span(group.typical)),
            Text(_number(group.median if group.typical.approximate else group.mean)),
            Text(_soon(group)),
        )
    if not is_small:
        return table
    rows = Table.grid(padding=(0, COLUMN_GAP, 0, 0))
    rows.add_column(overflow="fold")
    rows.add_column(overflow="fold")
    for group in result.groups:
        ordered = sorted(group.runs, key=lambda run: (run.task, bool(run.failed), -run.gain))
        rows.add_row(Text(harmless(group.label), "dim"), Text(_format_runs(ordered)))
    return Group(table, Text(), rows)


def _format_runs(runs: Sequence[RunScore]) -> str:
    texts: list[str] = []
    task = ""
    several = len({run.task for run in runs}) > 1
    for run in runs:
        lead = ""
        if several and run.task != task:
            task = run.task
            lead = f"{'; ' if texts else ''}{task} "
        value = "failed" if run.failed else _number(run.score)
        texts.append(f"{lead or ('  ' if texts else '')}{value}")
    return harmless("".join(texts))


def _how(result: Comparison, gate: GateResult | None = None) -> RenderableType:
    rows = grid(12)
    name = standing.label(result.metric)
    score = f"{name}, {result.at}"
    if len(result.tasks) == 1:
        score += f", up to {result.axis} {result.tasks[0].end:,.10g}"
    else:
        score += f"; {len(result.tasks)} tasks, each on its own scale: {_scale(result)}"
    rows.add_row(Text("score", "dim"), Text(harmless(score)))
    unlabelled_settings: list[str] = []
    label = result.groups[0].label
    keys = [
        key
        for key in result.groups[0].settings
        if key != PATH_KEY and f"{key.rpartition('/')[2]}=" not in label
    ]
    for key in keys[:6]:
        values = (format_setting(group.settings[key]) for group in result.groups)
        unlabelled_settings.append(f"{key} is {', '.join(dict.fromkeys(values))}")
    if len(keys) > 6:
        unlabelled_settings.append(f"and {len(keys) - 6:,} more that differ: --json lists them")
    for i, text in enumerate(unlabelled_settings):
        rows.add_row(Text("" if i else "settings", "dim"), Text(harmless(text)))
    if any(math.isfinite(pair.difference.low) for pair in result.against):
        first = result.groups[0].typical
        precision = "approximate: so few seeds" if first.approximate else "10,000 resamples"
        intervals = [pair for pair in result.against if math.isfinite(pair.difference.low)]
        method = gate.difference.method if gate else intervals[0].difference.method
        rows.add_row(Text("interval", "dim"), Text(f"{method}, {precision}"))
    beats = [pair for pair in result.against if math.isfinite(pair.improvement.value)]
    for i, pair in enumerate(beats if len(result.against) <= MAX_VERDICT_LINES else []):
        rows.add_row(Text("" if i else "beats", "dim"), Text(harmless(_beats(pair))))
    for i, text in enumerate(_failures(result)):
        rows.add_row(Text("" if i else "failed", "dim"), Text(harmless(text)))
    for i, note in enumerate(result.notes):
        rows.add_row(Text("" if i else "notes", "dim"), Text(harmless(note)))
    return rows


def _failures(result: Comparison) -> Iterator[str]:
    """Yield a line for each reason of failure with its runs."""
    for group in result.groups:
        by_reason: dict[tuple[str, float], list[str]] = {}
        for run in group.runs:
            if run.failed:
                by_reason.setdefault((run.failed, run.score), []).append(run.name)
        for (reason, score), names in by_reason.items():
            names_text = f"{join_first(names, 3)} of {group.label}"
            yield f"{names_text}: {reason}; counts as {_number(score)}"


def _scale(result: Comparison) -> str:
    known_scale, data_scale = (
        "0 is random actions, 1 a solved task",
        "0 is the lowest run, 1 the highest",
    )
    unknown = [task.name or "the unnamed" for task in result.tasks if not task.is_known]
    if not unknown:
        return known_scale
    return (
        data_scale
        if len(unknown) == len(result.tasks)
        else f"{known_scale}; of {', '.join(unknown)} {data_scale}"
    )


def _beats(pair: Against) -> str:
    span = ""
    if math.isfinite(pair.improvement.low):
        span = f" ({pair.improvement.low:.0%} to {pair.improvement.high:.0%})"
    return (
        f"a run of {pair.group} beats one of {pair.reference} in"
        f" {pair.improvement.value:.0%} of the pairs{span}"
    )


def _number(value: float) -> str:
    return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"  # digits


def _span(interval: Interval) -> str:
    if not math.isfinite(interval.low):
        return "unknown"
    return f"{_number(interval.low)} to {_number(interval.high)}"


def _soon(group: Runs) -> str:
    """Return the steps until half of the runs held the level, or the number that ever did."""
    count = sum(math.isfinite(run.steps_to_level) for run in group.runs)
    if not math.isfinite(group.steps_to_level):
        return f"{count} of {len(group.runs)} ever"
    time = ""
    if math.isfinite(group.seconds_to_level):
        time = f", {phrases.duration(group.seconds_to_level)}"
    return f"{group.steps_to_level:,.10g}{time}"
