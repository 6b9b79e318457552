"""Render the status of runs for the terminal."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rlvitals import metrics
from rlvitals.checkpoints.inspect_run import CheckpointState, Inspection
from rlvitals.checkpoints.progress import COMPLETED, FAILED, RUNNING, Chunk
from rlvitals.checkpoints.transfer.byte_text import format_bytes
from rlvitals.diagnosis.status import MAX_BRIEF_METRICS, PROGRESS_PREFIXES, Change, Standing
from rlvitals.errors import harmless, join_first, quantity
from rlvitals.following.duration_text import format_duration
from rlvitals.rules.rule import Severity
from rlvitals.storage.run_query import job_text
from rlvitals.tracking import clock
from rlvitals.views import lists, phrases
from rlvitals.views.console import grid
from rlvitals.views.sparkline import sparkline

BAR_COLUMNS = 40
STATE_COLOURS: Mapping[str, str] = {
    "running": "green", "finished": "green", "unknown": "yellow", "stopped": "yellow",
    "failed": "red", "killed": "red",
}  # fmt: skip
CHUNK_SIGNS: Mapping[str, str] = {COMPLETED: "✓", FAILED: "✗", RUNNING: "▸"}


def one_run(standing: Standing, now_s: float, *, verbose: bool = False) -> RenderableType:
    """Render the status of one run."""
    blocks: list[RenderableType] = [_head(standing, now_s)]
    if standing.fraction is not None:
        filled = round(BAR_COLUMNS * standing.fraction)
        bar = Text.assemble(("━" * filled, "green"), ("─" * (BAR_COLUMNS - filled), "dim"))
        blocks.append(bar)
    facts = grid(12)
    for label, text in _fact_rows(standing):
        facts.add_row(Text(label, "dim"), Text(harmless(text)))
    blocks += [Text(), facts, *_changes(standing, verbose=verbose)]
    chunks = standing.progress.chunks if standing.progress is not None else ()
    if chunks:
        blocks += [Text(), _chunks(chunks, verbose=verbose)]
    if verbose:
        blocks += [Text(), *_more(standing)]
    return Group(*blocks)


def several(runs: Sequence[Standing]) -> RenderableType:
    """Render the status of several runs, a row each."""
    rows = [
        (
            harmless(standing.name),
            standing.state,
            _short(standing),
            "" if standing.eta is None else format_duration(standing.eta),
            standing.diagnosis.verdict.word.value,
        )
        for standing in runs
    ]
    return lists.columns(("run", "state", "step", "left", "verdict"), rows)


def _short(standing: Standing) -> str:
    share = "" if standing.fraction is None else f" ({_percent(standing)})"
    return f"{standing.step:,}{share}"


def _head(standing: Standing, now_s: float) -> RenderableType:
    """Render the state and progress of a run, then its verdict."""
    verdict = standing.diagnosis.verdict
    colour, badge = phrases.VERDICT_COLOURS[verdict.word], STATE_COLOURS[standing.state]
    first = Text.assemble(
        (f" {standing.state.upper()} ", f"bold {phrases.BADGE_INK[badge]} on {badge}"),
        (f" {_progress_text(standing)}", "bold"),
        (f" · {_time_left(standing, now_s)}", ""),
    )
    second = Text.assemble((verdict.word.value, f"bold {colour}"), f": {harmless(verdict.why)}")
    suffix = "" if standing.state_why in verdict.why else f" · {standing.state_why}"
    job = describe_job(standing)
    suffix += f" · {job}" if job else ""
    details = Text(harmless(f"{standing.name}{_age(standing)}{suffix}"), "dim")
    return Group(first, second, details)


def describe_job(standing: Standing) -> str:
    """Name the scheduler's job of the newest attempt; empty where there is none."""
    inspection = standing.checkpoints
    if inspection is None or inspection.about is None:
        return ""
    return job_text(inspection.about.more.get("job"))


def _progress_text(standing: Standing) -> str:
    unit = standing.unit if standing.unit.endswith("s") else "steps"
    progress = standing.progress
    if standing.total:
        return f"{unit} {standing.step:,} of {standing.total:,} ({_percent(standing)})"
    if progress is not None and progress.total_requests and progress.requests_done is not None:
        total = f"{progress.total_requests:,} requests"
        return f"{progress.requests_done:,} of {total} ({_percent(standing)})"
    return f"{unit} {standing.step:,}"


def _percent(standing: Standing) -> str:
    return f"{(standing.fraction or 0.0) * 100:.0f} %"


def _time_left(standing: Standing, now_s: float) -> str:
    if standing.eta is None:
        is_finished = standing.state == "finished"
        return "nothing is left" if is_finished else f"time left unknown: {standing.eta_why}"
    text = f"{format_duration(standing.eta)} of training left"
    if standing.state == "running":
        # Local time, with the date if it is not today.
        moment = datetime.fromtimestamp(now_s + standing.eta).astimezone()
        today = datetime.fromtimestamp(now_s).astimezone().date()
        time_format = "%H:%M" if moment.date() == today else "%b %d %H:%M"
        text += f", done about {moment.strftime(time_format)}"
    return text


def _age(standing: Standing) -> str:
    cycle = standing.diagnosis.trace.lifecycle
    if cycle.silence is not None:
        return f" · last row {format_duration(cycle.silence)} ago"
    return "" if cycle.last_row is None else f" · last row {clock.date(cycle.last_row)}"


def _fact_rows(standing: Standing) -> Iterator[tuple[str, str]]:
    inspection, progress = standing.checkpoints, standing.progress
    yield "checkpoint", "none was looked for" if inspection is None else checkpoint(inspection)
    if inspection is not None and inspection.trainers:
        yield "trainings", f"two in one folder: {'; '.join(inspection.trainers)}"
    yield "findings", _findings(standing)
    attempts = max(
        standing.diagnosis.trace.lifecycle.attempts, progress.attempts if progress else 1
    )
    if standing.trained is not None:
        count = f" in {attempts} attempts" if attempts > 1 else ""
        yield "trained", f"{format_duration(standing.trained)}{count}"
    if progress is not None and progress.chunks:
        total = progress.total_chunks or len(progress.chunks)
        yield "chunks", f"{progress.completed_chunks} of {total} done"
    if progress is not None and progress.damage:
        yield "progress", progress.damage
    if (cost := standing.upload) is not None:  # what a bucket has cost so far, and what it lacks
        counts = f"{cost.writes:,} write requests, {cost.reads:,} reads"
        text = f"{format_bytes(cost.sent)} sent in {counts}"
        if cost.unsent:
            text += f"; {format_bytes(cost.unsent)} wait on this machine's disk"
        yield "bucket", text + (f"; last try: {cost.error}" if cost.error else "")


def checkpoint(inspection: Inspection) -> str:
    """Return the checkpoint that a run would resume from."""
    resume_point = inspection.taken
    if resume_point is None:
        return inspection.why
    saved = "" if resume_point.saved is None else f", saved {clock.date(resume_point.saved)}"
    check_text = (
        "every byte verified"
        if resume_point.state is CheckpointState.WHOLE
        else "sealed, bytes not read"
    )
    older_count = sum(entry.usable for entry in inspection.seen) - 1
    older = f"; {older_count} older" if older_count else ""
    bad = [
        f"{entry.folder.name} is {entry.state}"
        for entry in inspection.some(CheckpointState.DAMAGED)
    ]
    return "; ".join([f"{resume_point.folder.name}: {check_text}{saved}{older}", *bad])


def _findings(standing: Standing) -> str:
    severe = [
        (rule.name, finding)
        for rule, finding in standing.diagnosis.findings
        if finding.severity > Severity.NOTE
    ]
    if not severe:
        return phrases.counts(standing.diagnosis)
    names = join_first([name for name, _ in severe], 3)
    return f"{phrases.counts(standing.diagnosis)}: {names}"


def _changes(standing: Standing, *, verbose: bool) -> list[RenderableType]:
    learning_entries = [
        entry for entry in standing.changes if not entry.metric.startswith(PROGRESS_PREFIXES)
    ]
    entries = standing.changes if verbose else learning_entries[:MAX_BRIEF_METRICS]
    if not entries:
        return []
    rows = Table.grid(padding=(0, 2, 0, 0))
    for _ in range(2):
        rows.add_column(overflow="fold")
    rows.add_column(no_wrap=True)
    trace = standing.diagnosis.trace
    for entry in entries:
        name = entry.metric if verbose else _name(entry.metric)
        rows.add_row(
            Text(harmless(name), "dim"),
            Text(change(entry)),
            Text(sparkline(entry.series, trace.first_step, trace.last_step, 20).line, "cyan"),
        )
    hidden_count = len(standing.changes) - len(entries)
    note = f"{quantity(hidden_count, 'more metric')}: -v"
    notes = [Text(note, "dim")] if hidden_count else []
    return [Text(), rows, *notes]


def _name(metric: str) -> str:
    catalogued = metrics.find(metric)
    title = catalogued.title if catalogued is not None and not catalogued.family else metric
    titles = {
        "optimiser/loss": "loss",
        "optimiser/learning_rate": "learning rate",
    }
    return titles.get(metric, title[:1].lower() + title[1:] if title[1:2].islower() else title)


def change(entry: Change) -> str:
    """Format the first and the last number: "3.2 -> 1.5 (-53 %)"."""
    text = f"{phrases.number(entry.first)} -> {phrases.number(entry.last)}"
    if entry.share is None:
        return text
    percent = round(entry.share * 100)
    return f"{text} ({percent:+,} %)" if percent else f"{text} (0 %)"


def _chunks(chunks: Sequence[Chunk], *, verbose: bool) -> RenderableType:
    visible = chunks if verbose else chunks[-5:]
    rows = Table.grid(padding=(0, 2, 0, 0))
    for chunk in visible:
        requests = "" if chunk.requests is None else f"{chunk.requests:,} requests"
        rows.add_row(
            CHUNK_SIGNS.get(chunk.status, "·"), f"chunk {chunk.id}", harmless(chunk.status),
            requests,
            Text(harmless(chunk.checkpoint), "dim"), Text(harmless(chunk.log_file), "dim"),
        )  # fmt: skip
    hidden_count = len(chunks) - len(visible)
    return Group(
        *([Text(f"{hidden_count} earlier chunks: -v", "dim")] if hidden_count else []), rows
    )


def _more(standing: Standing) -> Iterator[RenderableType]:
    """Yield the settings and the attempts."""
    trace = standing.diagnosis.trace
    settings = [
        (harmless(key), phrases.number(value) if isinstance(value, float) else harmless(str(value)))
        for key, value in sorted(trace.settings.items())
    ]
    if settings:
        yield lists.columns(("setting", "value"), settings)
        yield Text()
    inspection = standing.checkpoints
    run_attempts = (
        inspection.about.attempts if inspection is not None and inspection.about is not None else ()
    )
    attempts = [
        (
            str(attempt.number),
            clock.date(attempt.started),
            str(attempt.world_size),
            harmless(attempt.host),
        )
        for attempt in run_attempts
    ]
    if attempts:
        yield lists.columns(("attempt", "began", "processes", "on"), attempts)


def facts(standing: Standing) -> dict[str, object]:
    """Return the members of the JSON document."""
    verdict, inspection, progress = (
        standing.diagnosis.verdict,
        standing.checkpoints,
        standing.progress,
    )
    resume_point = inspection.taken if inspection is not None else None
    return {
        "run": standing.name,
        "state": standing.state,
        "state_why": standing.state_why,
        **({"job": job} if (job := describe_job(standing)) else {}),
        "step": standing.step,
        "total_steps": standing.total,
        "unit": standing.unit,
        "fraction": standing.fraction,
        "trained_seconds": standing.trained,
        "eta_seconds": standing.eta,
        "eta_why": standing.eta_why,
        "last_row": standing.diagnosis.trace.lifecycle.last_row,
        "age_seconds": standing.diagnosis.trace.lifecycle.silence,
        "attempts": standing.diagnosis.trace.lifecycle.attempts,
        "verdict": verdict.word.value,
        "why": verdict.why,
        "findings": {rule.name: f.severity for rule, f in standing.diagnosis.findings},
        "trainings": list(inspection.trainers) if inspection is not None else [],
        "checkpoint": None if resume_point is None else resume_point.folder.name,
        "checkpoint_state": None if resume_point is None else resume_point.state.value,
        "checkpoint_why": "" if inspection is None else inspection.why,
        "changes": {
            entry.metric: {"first": entry.first, "last": entry.last, "share": entry.share}
            for entry in standing.changes
        },
        "progress": None if progress is None else dict(progress.said),
        "progress_damage": "" if progress is None else progress.damage,
        "upload": None if standing.upload is None else asdict(standing.upload),
    }


def missing(path: Path) -> RenderableType:
    """Render a message that the log does not exist yet."""
    return Text(harmless(f"waiting for a log in {path}"), "dim")
