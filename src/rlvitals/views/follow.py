"""Render the changes of growing runs as lines."""

from datetime import datetime
from typing import assert_never

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from rlvitals.diagnosis.verdict import Word
from rlvitals.errors import harmless, quantity
from rlvitals.following import changes
from rlvitals.following.changes import Change
from rlvitals.following.duration_text import format_duration
from rlvitals.following.loop import Watch
from rlvitals.rules.answers import verdict_trend
from rlvitals.rules.going_on import is_provisional, liveness
from rlvitals.rules.rule import Finding, Rule, Severity
from rlvitals.views import phrases


class Lines:
    """Render changes as aligned lines of time, run and event."""

    def __init__(self, *, notes: bool = False) -> None:
        """`notes`: include findings of note severity."""
        self._notes = notes
        self._width = 0
        self._new: set[str] = set()
        self._before = ("", "")  # time and name of the last line, which are not repeated
        self._printed: dict[tuple[str, bool], str] = {}  # last line of a run: judgement, other

    def line(self, change: Change) -> RenderableType | None:
        """Render one change; None if it is not worth a line."""
        text = self._text(change)
        kind = (change.run, isinstance(change, changes.Judged))
        if text is None or self._printed.get(kind) == text.plain:  # nothing new of a silent run
            return None
        self._printed[kind] = text.plain
        name = harmless(change.run)
        self._width = min(max(self._width, cell_len(name)), 32)  # longer names are wrapped
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(no_wrap=True)
        grid.add_column(width=self._width, overflow="fold")
        grid.add_column(overflow="fold")
        time_text = clock(change.time)
        is_repeated, self._before = self._before == (time_text, name), (time_text, name)
        grid.add_row(
            Text(" " * len(time_text) if is_repeated else time_text, "dim"),
            "" if is_repeated else name,
            text,
        )
        return grid

    def _text(self, change: Change) -> Text | None:
        """Return the text of a change; None if it is not worth a line."""
        match change:
            case changes.Points():
                return None
            case changes.Judged():
                # An undecided verdict on the first rows is not worth a line.
                is_first = change.first and change.run in self._new
                diagnosis = change.diagnosis
                # The end of the run reports a failure and its cause.
                is_failure = change.turned and diagnosis.verdict.word is Word.FAILED
                return (
                    None
                    if is_failure or (is_first and not diagnosis.can_tell)
                    else _judgement(change)
                )
            case changes.Found():
                self._new |= {change.run} if change.new else set()
                # An existing run with rows is judged next, and its verdict suffices.
                return _discovery(change) if change.new or not change.points else None
            case changes.Fired() | changes.Regraded() | changes.Cleared():
                severity = max(change.finding.severity, getattr(change, "before", Severity.NOTE))
                return _finding_change(change) if self._notes or severity > Severity.NOTE else None
            case _:
                return _life(change)


def _finding_change(change: changes.Fired | changes.Regraded | changes.Cleared) -> Text:
    """Return the text of a finding that fired, cleared or changed severity."""
    match change:
        case changes.Cleared():
            text = Text.assemble((f"cleared[{change.rule.name}]", "bold green"), " ")
            return text.append(harmless(change.why), "default")
        case changes.Fired():
            cause = f" (explained by {change.cause})" if change.cause else ""
            return _finding(change.rule, change.finding).append(cause, "dim")
    severity = change.before.name.lower()
    milder = change.finding.severity < change.before
    evidence = (
        "".join(f": {evidence}" for evidence in change.finding.counter[-1:]) if milder else ""
    )
    suffix = f" (was {'an' if severity == 'error' else 'a'} {severity}{evidence})"
    return _finding(change.rule, change.finding).append(harmless(suffix), "dim")


def _life(  # noqa: PLR0911 - one for each kind of change
    change: changes.Renamed
    | changes.Resumed
    | changes.Restarted
    | changes.Ended
    | changes.Quiet
    | changes.Copy
    | changes.Vanished
    | changes.Unreadable
    | changes.Readable,
) -> Text:
    """Return the text of a change in a run's state."""
    match change:
        case changes.Renamed():
            return Text(f"was called {harmless(change.before)} so far", "dim")
        case changes.Resumed():
            return _with_head("goes on", "bold", change.why)
        case changes.Restarted():
            return _with_head("started anew", "bold", f"{change.where} holds other rows")
        case changes.Ended():
            colour = {"failed": "bold red", "stopped": "bold yellow"}.get(change.how, "bold green")
            text = f" at step {change.step:,}{f': {harmless(change.why)}' if change.why else ''}"
            return Text.assemble((f"ended, {change.how},", colour), text)
        case changes.Quiet():
            text = f"no new row for {format_duration(change.seconds)}, at step {change.step:,}"
            return _with_head("quiet", "bold yellow", text)
        case changes.Copy():
            text = f"the same training as {change.original}, in another tracker's files"
            return Text(f"{harmless(text)}: not listed", "dim")
        case changes.Vanished():
            return _with_head("gone", "bold", change.why)
        case changes.Unreadable():
            return _with_head("cannot be read", "bold yellow", f"{change.where}: {change.problem}")
        case changes.Readable():
            return Text(f"{harmless(change.where)} can be read again")
    assert_never(change)


def _with_head(label: str, style: str, text: str) -> Text:
    return Text.assemble((label, style), f": {harmless(text)}")


def status(watch: Watch, now_s: float) -> str:
    """Return a status line on all runs; `now` is in seconds since the epoch."""
    if not watch.runs:
        paths = ", ".join(str(tree.path) for tree in watch.waiting)
        return harmless(f"{clock(now_s)}  waiting for a log in {paths}")
    counts = {"growing": 0, "quiet": 0, "over": 0}
    runs = len(watch.unique_runs)
    for run in watch.unique_runs:
        # Whether a run is over is known once it was judged.
        if run.diagnosis is not None or run.vanished or runs == 1:
            counts[run.state(now_s)] += 1
    states = ", ".join(f"{count:,} {state}" for state, count in counts.items() if count)
    ages = [run.silence(now_s) for run in watch.unique_runs if run.moves]
    age_text = f" · grew {format_duration(min(ages))} ago" if ages and min(ages) > 0 else ""
    unjudged = sum(run.diagnosis is None and not run.vanished for run in watch.unique_runs)
    if unjudged and runs > 1:
        states += f"{', ' if states else ''}{unjudged:,} not judged yet"
    states = states if runs != 1 else next(state for state, count in counts.items() if count)
    return f"{clock(now_s)}  {quantity(runs, 'run')}: {states}{age_text}"


def clock(seconds: float) -> str:
    """Format seconds since the epoch as local time."""
    return datetime.fromtimestamp(seconds).astimezone().strftime("%H:%M:%S")


def _discovery(change: changes.Found) -> Text:
    text = Text("a new run" if change.new else "found", "bold" if change.new else "")
    sources = ", ".join(change.sources)
    if not change.points:
        return text.append(f": {sources}, no row yet", "default")
    metrics = quantity(change.metrics, "metric")
    text.append(f": {sources}, {metrics}, {quantity(change.points, 'point')}", "default")
    return text.append(f", at step {change.step or 0:,}", "default")


def _judgement(change: changes.Judged) -> Text:
    trace = change.diagnosis.trace
    if not change.turned:
        progress = f"step {trace.last_step:,}"
        if trace.budget is not None:
            progress += f" of {trace.budget.steps:,}"
        judged_metric = verdict_trend(trace)
        series = trace.numbers(judged_metric.metric) if judged_metric.metric else None
        if series is not None:
            name = judged_metric.metric.rpartition("/")[2].replace("_", " ")
            progress += f" · {name} {phrases.number(float(series.values[-1]))}"
        return Text(harmless(progress), "dim")
    verdict = change.diagnosis.verdict.word
    text = Text.assemble(
        (verdict.value, f"bold {phrases.VERDICT_COLOURS[verdict]}"),
        f": {harmless(change.diagnosis.verdict.why)}",
    )
    if is_provisional(trace):
        text.append(" · provisional", "dim")
    if change.first:
        text.append(f" · step {trace.last_step:,}", "dim")
    unknown = change.first and liveness(trace).live is None
    return text.append(" · not known whether it goes on", "dim") if unknown else text


def _finding(rule: Rule, finding: Finding) -> Text:
    severity = finding.severity
    return Text.assemble(
        (f"{severity.name.lower()}[{rule.name}]", f"bold {phrases.SEVERITY_COLOURS[severity]}"),
        f" {harmless(finding.summary)}",
        (f" (since {finding.began:,})", "dim"),
    )
