"""What is told of growing runs: a calm line for each change, or an object."""

from datetime import datetime
from typing import assert_never

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from rlvitals.diagnosis.verdict import Word
from rlvitals.errors import harmless
from rlvitals.following import changes
from rlvitals.following.changes import Change
from rlvitals.following.duration_text import format_duration
from rlvitals.following.loop import Watch
from rlvitals.rules.answers import judged
from rlvitals.rules.going_on import liveness
from rlvitals.rules.rule import Finding, Rule, Severity
from rlvitals.types import Trace
from rlvitals.views import phrases

NAME = 28  # columns of the widest name that is not folded


class Lines:
    """Lays changes out under each other: the time, the run, what happened."""

    def __init__(self, *, notes: bool = False) -> None:
        """`notes`: tell findings that are only notes too."""
        self._notes = notes
        self._width = 0
        self._new: set[str] = set()
        self._before = ("", "")  # the last line's time and name: they are not told twice

    def line(self, change: Change) -> RenderableType | None:
        """Lay one change out; None for what a person need not read."""
        text = self._text(change)
        if text is None:
            return None
        name = harmless(change.run)
        self._width = min(max(self._width, cell_len(name)), NAME)
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(no_wrap=True)
        grid.add_column(width=self._width, overflow="fold")
        grid.add_column(overflow="fold")
        when = clock(change.time)
        same, self._before = self._before == (when, name), (when, name)
        grid.add_row(Text(" " * len(when) if same else when, "dim"), "" if same else name, text)
        return grid

    def _text(self, change: Change) -> Text | None:
        """Say what is said of how a run goes; None for what a person need not read."""
        match change:
            case changes.Points():
                return None
            case changes.Judged():
                # That nothing can be told of the first rows is no news.
                early = change.first and change.run in self._new
                found = change.diagnosis
                # That it failed, and of what, is said by its end.
                ended = change.turned and found.verdict.word is Word.FAILED
                return None if ended or (early and not found.can_tell) else _judged(change)
            case changes.Found():
                self._new |= {change.run} if change.new else set()
                # Of a run that is there and will be judged at once, the judgement says enough.
                return _found(change) if change.new or not change.points else None
            case changes.Fired() | changes.Regraded() | changes.Cleared():
                graver = max(change.finding.severity, getattr(change, "before", Severity.NOTE))
                return _about(change) if self._notes or graver > Severity.NOTE else None
            case _:
                return _life(change)


def _about(change: changes.Fired | changes.Regraded | changes.Cleared) -> Text:
    """Say what became of a finding."""
    match change:
        case changes.Cleared():
            text = Text.assemble((f"cleared[{change.rule.name}]", "bold green"), " ")
            return text.append(harmless(change.why), "default")
        case changes.Fired():
            cause = f" (explained by {change.cause})" if change.cause else ""
            return _finding(change.rule, change.finding).append(cause, "dim")
    word = change.before.name.lower()
    milder = change.finding.severity < change.before
    why = "".join(f": {why}" for why in change.finding.counter[-1:]) if milder else ""
    was = f" (was {'an' if word == 'error' else 'a'} {word}{why})"
    return _finding(change.rule, change.finding).append(harmless(was), "dim")


def _life(  # noqa: PLR0911 - one for each kind of change
    change: changes.Renamed
    | changes.Resumed
    | changes.Restarted
    | changes.Ended
    | changes.Quiet
    | changes.Vanished
    | changes.Unreadable
    | changes.Readable,
) -> Text:
    """Say how a run lives."""
    match change:
        case changes.Renamed():
            return Text(f"was called {harmless(change.before)} so far", "dim")
        case changes.Resumed():
            return _headed("goes on", "bold", change.why)
        case changes.Restarted():
            return _headed("started anew", "bold", f"{change.where} holds other rows")
        case changes.Ended():
            return _ended(change)
        case changes.Quiet():
            said = f"no new row for {format_duration(change.seconds)}, at step {change.step:,}"
            return _headed("quiet", "bold yellow", said)
        case changes.Vanished():
            return _headed("gone", "bold", change.why)
        case changes.Unreadable():
            return _headed("cannot be read", "bold yellow", f"{change.where}: {change.problem}")
        case changes.Readable():
            return Text(f"{harmless(change.where)} can be read again")
    assert_never(change)


def _headed(head: str, style: str, text: str) -> Text:
    return Text.assemble((head, style), f": {harmless(text)}")


def status(watch: Watch, now: float) -> str:
    """Say in one line how things stand, for a person who waits for the next change."""
    if not watch.runs:
        where = ", ".join(str(tree.path) for tree in watch.waiting)
        return harmless(f"{clock(now)}  waiting for a log in {where}")
    counts = {"growing": 0, "quiet": 0, "over": 0}
    for one in watch.runs:
        counts[one.state(now)] += 1
    runs = len(watch.runs)
    said = ", ".join(f"{count:,} {word}" for word, count in counts.items() if count)
    ages = [one.silence(now) for one in watch.runs if one.moves]
    last = f" · grew {format_duration(min(ages))} ago" if ages and min(ages) > 0 else ""
    said = said if runs != 1 else next(word for word, count in counts.items() if count)
    return f"{clock(now)}  {runs:,} run{'' if runs == 1 else 's'}: {said}{last}"


def clock(seconds: float) -> str:
    """Write a moment as this machine's clock shows it."""
    return datetime.fromtimestamp(seconds).astimezone().strftime("%H:%M:%S")


def _found(change: changes.Found) -> Text:
    text = Text("a new run" if change.new else "found", "bold" if change.new else "")
    sources = ", ".join(change.sources)
    if not change.points:
        return text.append(f": {sources}, no row yet", "default")
    metrics = f"{change.metrics:,} metric{'' if change.metrics == 1 else 's'}"
    text.append(f": {sources}, {metrics}, {change.points:,} points", "default")
    return text.append(f", at step {change.step or 0:,}", "default")


def _judged(change: changes.Judged) -> Text:
    trace = change.diagnosis.trace
    if not change.turned:
        return Text(_progress(trace), "dim")
    word = change.diagnosis.verdict.word
    text = Text.assemble((word.value, f"bold {phrases.VERDICT[word]}"), f": {_why(change)}")
    if change.first:
        text.append(f" · step {trace.last_step:,}", "dim")
    unknown = change.first and liveness(trace).live is None
    return text.append(" · not known whether it goes on", "dim") if unknown else text


def _why(change: changes.Judged) -> str:
    return harmless(change.diagnosis.verdict.why)


def _progress(trace: Trace) -> str:
    """Say how far a run has come, and the last value of what it is judged by."""
    said = f"step {trace.last_step:,}"
    if trace.budget is not None:
        said += f" of {trace.budget.steps:,}"
    now = judged(trace)
    series = trace.numbers(now.metric) if now.metric else None
    if series is not None:
        name = now.metric.rpartition("/")[2].replace("_", " ")
        said += f" · {name} {phrases.number(float(series.values[-1]))}"
    return harmless(said)


def _finding(rule: Rule, finding: Finding) -> Text:
    severity = finding.severity
    return Text.assemble(
        (f"{severity.name.lower()}[{rule.name}]", f"bold {phrases.SEVERITY[severity]}"),
        f" {harmless(finding.summary)}",
        (f" (since {finding.began:,})", "dim"),
    )


def _ended(change: changes.Ended) -> Text:
    colour = {"failed": "bold red", "stopped": "bold yellow"}.get(change.how, "bold green")
    said = f" at step {change.step:,}{f': {harmless(change.why)}' if change.why else ''}"
    return Text.assemble((f"ended, {change.how},", colour), said)
