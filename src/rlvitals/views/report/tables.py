"""Make tables of settings, environment, events, checkpoints, rows and texts."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from math import isfinite

import numpy as np

from rlvitals.checkpoints.inspect_run import Inspection
from rlvitals.comparison.result import Comparison
from rlvitals.rules.standing import label
from rlvitals.storage.events import Event
from rlvitals.types import Trace
from rlvitals.views import comparison_text, phrases
from rlvitals.views.checkpoints import size
from rlvitals.views.report.page import Grid

MAX_EVENT_ROWS = 200
MAX_REPORT_TABLE_ROWS = 24  # latest rows of a logged table
MAX_TEXT_ROWS = 8  # latest texts of a key


def moment(seconds: float | None) -> str:
    """Format seconds since the epoch in UTC, or as an empty string if unknown."""
    if seconds is None or not isfinite(seconds):
        return ""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def settings(trace: Trace) -> Grid:
    """Return a table of the known settings."""
    rows = sorted((key, cell(value)) for key, value in trace.settings.items())
    return Grid(("setting", "value"), tuple(rows))


def environment(facts: Mapping[str, object]) -> Iterator[tuple[str, Grid]]:
    """Yield a table for each part of the recorded facts on code, packages and machine."""
    loose: list[tuple[str, str]] = []
    for key, value in facts.items():
        if isinstance(value, Mapping):
            if value:
                yield key, Grid((), tuple(_flat(value)))
        elif value not in (None, "", (), []):
            loose.append((key, cell(value)))
    if loose:
        yield "run", Grid((), tuple(loose))


def _flat(value: Mapping[str, object], above: str = "") -> Iterator[tuple[str, str]]:
    for key, inner in value.items():
        name = f"{above}{key}"
        if isinstance(inner, Mapping):
            yield from _flat(inner, f"{name}.")
        else:
            yield name, cell(inner)


def cell(value: object) -> str:
    """Format a value of any type."""
    match value:
        case None:
            return ""
        case bool() | str():
            return str(value)
        case int() | float() | np.number():
            number = float(value)
            return phrases.number(number) if isfinite(number) else str(number)
        case list() | tuple():
            return " ".join(cell(item) for item in value)
    return str(value)


def events(recorded: Sequence[Event], trace: Trace) -> Grid:
    """Return a table of a run's events and of the steps it was resumed at."""
    # These events are of no interest to a reader.
    shown_events = [
        event for event in recorded if event.kind not in ("heartbeat", "beat", "settings")
    ]
    rows = [
        (
            moment(event.time),
            "" if event.step is None else f"{event.step:,}",
            event.kind,
            # The number of a process is a name, without commas.
            ", ".join(
                f"{key} {value if key == 'pid' else cell(value)}"
                for key, value in event.facts.items()
            ),
        )
        for event in shown_events[-MAX_EVENT_ROWS:]
    ]
    rows += [
        ("", f"{seam:,}", "seam", "a resumed run goes on here") for seam in trace.lifecycle.seams
    ]
    end = trace.lifecycle
    if end.traceback:
        rows.append(("", "" if end.end_step is None else f"{end.end_step:,}", "traceback",
                     end.traceback.strip()))  # fmt: skip
    note = (
        f"the last {MAX_EVENT_ROWS} of {len(shown_events):,}"
        if len(shown_events) > MAX_EVENT_ROWS
        else ""
    )
    return Grid(("time (UTC)", "step", "event", ""), tuple(rows), note)


def checkpoints(inspection: Inspection | None) -> Grid:
    """Return a table of the checkpoints, with a note on the one to resume from."""
    if inspection is None or not (inspection.seen or inspection.others):
        return Grid((), ())
    rows = [
        (
            checkpoint.folder.name,
            f"{checkpoint.step:,}",
            moment(checkpoint.saved),
            size(checkpoint.size),
            f"{checkpoint.state.value}{f': {checkpoint.why}' if checkpoint.why else ''}",
            checkpoint.health,
            ", ".join(checkpoint.kept),
        )
        for checkpoint in inspection.seen
    ]
    resume_point = inspection.taken.folder.name if inspection.taken else "none"
    note = f"A resume takes {resume_point}: {inspection.why}."
    if inspection.others:
        note += f" Saved by others: {', '.join(inspection.others)}."
    heads = ("checkpoint", "step", "saved (UTC)", "size", "state", "health", "kept because")
    return Grid(heads, tuple(rows), note)


def rows(trace: Trace) -> Iterator[tuple[str, Grid]]:
    """Yield the logged tables, such as completions with rewards."""
    for key, table in trace.tables.items():
        if len(table):
            latest = range(max(len(table) - MAX_REPORT_TABLE_ROWS, 0), len(table))
            names = [name for name in table.columns if name != "step"]
            cells = tuple(
                (
                    f"{int(table.steps[index]):,}",
                    *(cell(table.columns[name][index]) for name in names),
                )
                for index in latest
            )
            note = (
                f"the last {MAX_REPORT_TABLE_ROWS} of {len(table):,} rows"
                if len(table) > MAX_REPORT_TABLE_ROWS
                else ""
            )
            yield key, Grid(("step", *names), cells, note)


def texts(trace: Trace) -> Iterator[tuple[str, Grid]]:
    """Yield the latest logged texts of each key."""
    for key, entries in trace.texts.items():
        cells = tuple((f"{entry.step:,}", entry.text) for entry in entries[-MAX_TEXT_ROWS:])
        note = (
            f"the last {MAX_TEXT_ROWS} of {len(entries):,}" if len(entries) > MAX_TEXT_ROWS else ""
        )
        if cells:
            yield key, Grid(("step", "text"), cells, note)


def groups(result: Comparison) -> Grid:
    """Return a table of the compared groups with their differences from the reference."""
    rows = []
    differences = {
        pair.group: f"{pair.difference.value:+.4g} "
        f"({pair.difference.low:+.4g} to {pair.difference.high:+.4g})"
        for pair in result.against
        if isfinite(pair.difference.low)
    }
    by_label = {group.label: group for group in result.groups}
    answers = {
        pair.group: comparison_text.answer(pair, by_label[pair.group], by_label[pair.reference])
        for pair in result.against
    }
    for group in result.groups:
        interval = "one seed has none"
        if isfinite(group.typical.low):
            ends = (phrases.number(group.typical.low), phrases.number(group.typical.high))
            interval = " to ".join(ends)
        rows.append((
            group.label, str(group.seeds), phrases.number(group.mean), interval,
            *([differences.get(group.label, "")] if differences else []),
            *([answers.get(group.label, "the reference")] if answers else []),
        ))  # fmt: skip
    heads = ("group", "seeds", f"{label(result.metric)}, mean", "95 % interval")
    difference = ("difference, above 0 is better",) if differences else ()
    answer_head = ("answer",) if answers else ()
    return Grid((*heads, *difference, *answer_head), tuple(rows))


def differing_settings(runs: Sequence[tuple[str, Trace]]) -> Grid:
    """Return the settings in which runs differ; `runs` are (name, trace).

    A row is a setting, or a run where there are more runs than settings.
    """
    traces = [trace for _, trace in runs]
    # What the recorder adds is no setting: name, tags, id.
    keys = {key for trace in traces for key in trace.settings if not key.startswith("rlvitals/")}
    differing = [
        name
        for name in sorted(keys)
        if len({str(trace.settings.get(name, "")) for trace in traces}) > 1
    ]
    if not differing:
        logged = "the runs log the same settings" if keys else "the runs log no settings"
        return Grid((), (), f"None: {logged}.")
    values = [[str(trace.settings.get(name, "")) for name in differing] for trace in traces]
    names = [name for name, _ in runs]
    if len(differing) < len(runs):
        rows = tuple((name, *row) for name, row in zip(names, values, strict=True))
        return Grid(("run", *differing), rows)
    columns = zip(*values, strict=True)
    rows = tuple((name, *row) for name, row in zip(differing, columns, strict=True))
    return Grid(("setting", *names), rows)
