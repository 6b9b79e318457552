"""Where a run stands, for the terminal: the answer first, then what it rests on."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rlvitals import metrics
from rlvitals.checkpoints.inspect_run import CheckpointState, Inspection
from rlvitals.checkpoints.progress import COMPLETED, FAILED, RUNNING, Chunk
from rlvitals.diagnosis.status import BESIDE, BRIEF, Change, Standing
from rlvitals.errors import harmless
from rlvitals.following.duration_text import format_duration
from rlvitals.rules.rule import Severity
from rlvitals.tracking import clock
from rlvitals.types import Trace
from rlvitals.views import lists, phrases
from rlvitals.views.console import grid
from rlvitals.views.sparkline import sparkline

LABEL = 12  # columns
BAR, DONE, TO_DO = 40, "━", "─"
CHART = 20  # columns of a sparkline
CHUNKS = 5  # that are shown unless all are asked for
MOST = 3  # findings that are named
DAY = 86_400.0  # seconds
COLOUR: Mapping[str, str] = {
    "running": "green", "finished": "green", "unknown": "yellow", "stopped": "yellow",
    "failed": "red", "killed": "red",
}  # fmt: skip
SIGN: Mapping[str, str] = {COMPLETED: "✓", FAILED: "✗", RUNNING: "▸"}
SHORT: Mapping[str, str] = {"optimiser/loss": "loss", "optimiser/learning_rate": "learning rate"}


def one_run(found: Standing, now: float, *, verbose: bool = False) -> RenderableType:
    """Lay out where one run stands."""
    blocks: list[RenderableType] = [_head(found, now)]
    if found.fraction is not None:
        blocks.append(_bar(found.fraction))
    blocks += [Text(), _facts(found), *_changes(found, verbose=verbose)]
    chunks = found.progress.chunks if found.progress is not None else ()
    if chunks:
        blocks += [Text(), _chunks(chunks, verbose=verbose)]
    if verbose:
        blocks += [Text(), *_more(found)]
    return Group(*blocks)


def several(runs: Sequence[Standing]) -> RenderableType:
    """Lay out where many runs stand, a line each."""
    rows = [
        (
            harmless(one.name),
            one.state,
            _short(one),
            "" if one.eta is None else format_duration(one.eta),
            one.diagnosis.verdict.word.value,
        )
        for one in runs
    ]
    return lists.columns(("run", "state", "step", "left", "verdict"), rows)


def _short(found: Standing) -> str:
    share = "" if found.fraction is None else f" ({_percent(found)})"
    return f"{found.step:,}{share}"


def _head(found: Standing, now: float) -> RenderableType:
    """Say how it lives and how far it is, then what is thought of it."""
    verdict = found.diagnosis.verdict
    colour = phrases.VERDICT[verdict.word]
    first = Text.assemble(
        (f" {found.state.upper()} ", f"bold {_ink(found.state)} on {COLOUR[found.state]}"),
        (f" {_reached(found)}", "bold"),
        (f" · {_left(found, now)}", ""),
    )
    second = Text.assemble((verdict.word.value, f"bold {colour}"), f": {harmless(verdict.why)}")
    why = "" if found.state_why in verdict.why else f" · {found.state_why}"
    about = Text(harmless(f"{found.name}{_age(found)}{why}"), "dim")
    return Group(first, second, about)


def _ink(state: str) -> str:
    return phrases.INK[COLOUR[state]]


def _reached(found: Standing) -> str:
    unit = found.unit if found.unit.endswith("s") else "steps"
    progress = found.progress
    if found.total:
        return f"{unit} {found.step:,} of {found.total:,} ({_percent(found)})"
    if progress is not None and progress.total_requests and progress.requests_done is not None:
        of = f"{progress.total_requests:,} requests"
        return f"{progress.requests_done:,} of {of} ({_percent(found)})"
    return f"{unit} {found.step:,}"


def _percent(found: Standing) -> str:
    return f"{(found.fraction or 0.0) * 100:.0f} %"


def _left(found: Standing, now: float) -> str:
    if found.eta is None:
        over = found.state == "finished"
        return "nothing is left" if over else f"time left unknown: {found.eta_why}"
    said = f"{format_duration(found.eta)} of training left"
    if found.state == "running":
        said += f", done about {_moment(now + found.eta, now)}"
    return said


def _moment(when: float, now: float) -> str:
    """Write a moment as this machine's clock shows it; the day where it is not today."""
    then = datetime.fromtimestamp(when).astimezone()
    today = datetime.fromtimestamp(now).astimezone().date()
    return then.strftime("%H:%M" if then.date() == today else "%b %d %H:%M")


def _age(found: Standing) -> str:
    cycle = found.diagnosis.trace.lifecycle
    if cycle.silence is not None:
        return f" · last row {format_duration(cycle.silence)} ago"
    return "" if cycle.last_row is None else f" · last row {clock.date(cycle.last_row)}"


def _bar(fraction: float) -> Text:
    done = round(BAR * fraction)
    return Text.assemble((DONE * done, "green"), (TO_DO * (BAR - done), "dim"))


def _facts(found: Standing) -> RenderableType:
    rows = grid(LABEL)
    for label, text in _said(found):
        rows.add_row(Text(label, "dim"), Text(harmless(text)))
    return rows


def _said(found: Standing) -> Iterator[tuple[str, str]]:
    look, progress = found.checkpoints, found.progress
    yield "checkpoint", "none was looked for" if look is None else checkpoint(look)
    if look is not None and look.trainers:
        yield "trainings", f"two in one folder: {'; '.join(look.trainers)}"
    yield "findings", _findings(found)
    attempts = max(found.diagnosis.trace.lifecycle.attempts, progress.attempts if progress else 1)
    if found.trained is not None:
        count = f" in {attempts} attempts" if attempts > 1 else ""
        yield "trained", f"{format_duration(found.trained)}{count}"
    if progress is not None and progress.chunks:
        total = progress.total_chunks or len(progress.chunks)
        yield "chunks", f"{progress.completed_chunks} of {total} done"
    if progress is not None and progress.damage:
        yield "progress", progress.damage


def checkpoint(look: Inspection) -> str:
    """Say which checkpoint a run would go on from."""
    taken = look.taken
    if taken is None:
        return look.why
    when = "" if taken.saved is None else f", saved {clock.date(taken.saved)}"
    read = (
        "every byte verified" if taken.state is CheckpointState.WHOLE else "sealed, bytes not read"
    )
    more = sum(one.usable for one in look.seen) - 1
    others = f"; {more} older" if more else ""
    bad = [f"{one.folder.name} is {one.state}" for one in look.some(CheckpointState.DAMAGED)]
    return "; ".join([f"{taken.folder.name}: {read}{when}{others}", *bad])


def _findings(found: Standing) -> str:
    graver = [
        (rule.name, finding)
        for rule, finding in found.diagnosis.findings
        if finding.severity > Severity.NOTE
    ]
    if not graver:
        return phrases.counts(found.diagnosis)
    names = ", ".join(name for name, _ in graver[:MOST])
    more = f" and {len(graver) - MOST} more" if len(graver) > MOST else ""
    return f"{phrases.counts(found.diagnosis)}: {names}{more}"


def _changes(found: Standing, *, verbose: bool) -> list[RenderableType]:
    learned = [one for one in found.changes if not one.metric.startswith(BESIDE)]
    shown = found.changes if verbose else learned[:BRIEF]
    if not shown:
        return []
    rows = Table.grid(padding=(0, 2, 0, 0))
    for _ in range(2):
        rows.add_column(overflow="fold")
    rows.add_column(no_wrap=True)
    trace = found.diagnosis.trace
    for one in shown:
        name = one.metric if verbose else _name(one.metric)
        rows.add_row(
            Text(harmless(name), "dim"), Text(change(one)), Text(_line(one, trace), "cyan")
        )
    left = len(found.changes) - len(shown)
    also = f"{left} more metric{'s' if left > 1 else ''}: -v"
    more = [Text(also, "dim")] if left else []
    return [Text(), rows, *more]


def _name(metric: str) -> str:
    known = metrics.find(metric)
    title = known.title if known is not None and not known.family else metric
    return SHORT.get(metric, title[:1].lower() + title[1:] if title[1:2].islower() else title)


def change(one: Change) -> str:
    """Write the first and the last number: "3.2 -> 1.5 (-53 %)"."""
    said = f"{phrases.number(one.first)} -> {phrases.number(one.last)}"
    if one.share is None:
        return said
    percent = round(one.share * 100)
    return f"{said} ({percent:+,} %)" if percent else f"{said} (0 %)"


def _line(one: Change, trace: Trace) -> str:
    return sparkline(one.series, trace.first_step, trace.last_step, CHART).line


def _chunks(chunks: Sequence[Chunk], *, verbose: bool) -> RenderableType:
    shown = chunks if verbose else chunks[-CHUNKS:]
    rows = Table.grid(padding=(0, 2, 0, 0))
    for one in shown:
        requests = "" if one.requests is None else f"{one.requests:,} requests"
        rows.add_row(
            SIGN.get(one.status, "·"), f"chunk {one.id}", harmless(one.status), requests,
            Text(harmless(one.checkpoint), "dim"), Text(harmless(one.log_file), "dim"),
        )  # fmt: skip
    left = len(chunks) - len(shown)
    return Group(*([Text(f"{left} earlier chunks: -v", "dim")] if left else []), rows)


def _more(found: Standing) -> Iterator[RenderableType]:
    """Yield the settings and the attempts."""
    trace = found.diagnosis.trace
    settings = [
        (harmless(key), phrases.number(value) if isinstance(value, float) else harmless(str(value)))
        for key, value in sorted(trace.settings.items())
    ]
    if settings:
        yield lists.columns(("setting", "value"), settings)
        yield Text()
    attempts = _attempts(found)
    if attempts:
        yield lists.columns(("attempt", "began", "processes", "on"), attempts)


def _attempts(found: Standing) -> list[tuple[str, ...]]:
    look = found.checkpoints
    known = look.about.attempts if look is not None and look.about is not None else ()
    return [
        (str(one.number), clock.date(one.started), str(one.world_size), harmless(one.host))
        for one in known
    ]


def facts(found: Standing) -> dict[str, object]:
    """Choose what `--json` tells."""
    verdict, look, progress = found.diagnosis.verdict, found.checkpoints, found.progress
    taken = look.taken if look is not None else None
    return {
        "run": found.name,
        "state": found.state,
        "state_why": found.state_why,
        "step": found.step,
        "total_steps": found.total,
        "unit": found.unit,
        "fraction": found.fraction,
        "trained_seconds": found.trained,
        "eta_seconds": found.eta,
        "eta_why": found.eta_why,
        "last_row": found.diagnosis.trace.lifecycle.last_row,
        "age_seconds": found.diagnosis.trace.lifecycle.silence,
        "attempts": found.diagnosis.trace.lifecycle.attempts,
        "verdict": verdict.word.value,
        "why": verdict.why,
        "findings": {rule.name: f.severity for rule, f in found.diagnosis.findings},
        "trainings": list(look.trainers) if look is not None else [],
        "checkpoint": None if taken is None else taken.folder.name,
        "checkpoint_state": None if taken is None else taken.state.value,
        "checkpoint_why": "" if look is None else look.why,
        "changes": {
            one.metric: {"first": one.first, "last": one.last, "share": one.share}
            for one in found.changes
        },
        "progress": None if progress is None else dict(progress.said),
        "progress_damage": "" if progress is None else progress.damage,
    }


def missing(path: Path) -> RenderableType:
    """Say that nothing can be read as yet, while it is waited for."""
    return Text(harmless(f"waiting for a log in {path}"), "dim")
