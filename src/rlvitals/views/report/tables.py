"""What lies beside a run's numbers, as tables: settings, environment, events, texts and more."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from math import isfinite

import numpy as np

from rlvitals.checkpoints.inspect_run import Inspection
from rlvitals.storage.events import Event
from rlvitals.types import Table, Trace
from rlvitals.views import phrases
from rlvitals.views.checkpoints import size
from rlvitals.views.report.page import Grid

MOST_EVENTS = 200
MOST_ROWS = 24  # of a table of completions: the latest
MOST_TEXTS = 8  # under each key
SILENT = ("heartbeat", "beat", "settings")  # events that say nothing to a person
NO_GRID = Grid((), ())


def moment(seconds: float | None) -> str:
    """Write a moment in UTC: a page is read in other places than it is written."""
    if seconds is None or not isfinite(seconds):
        return ""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def settings(trace: Trace) -> Grid:
    """Tell every setting that is known."""
    rows = sorted((key, cell(value)) for key, value in trace.settings.items())
    return Grid(("setting", "value"), tuple(rows))


def environment(facts: Mapping[str, object]) -> Iterator[tuple[str, Grid]]:
    """Go through what was recorded of code, packages and machine, a table for each part."""
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
    """Write a value that may be anything."""
    match value:
        case None:
            return ""
        case bool() | str():
            return str(value)
        case int() | float() | np.number():
            number = float(value)
            return phrases.number(number) if isfinite(number) else str(number)
        case list() | tuple():
            return " ".join(cell(one) for one in value)
    return str(value)


def events(happened: Sequence[Event], trace: Trace) -> Grid:
    """Tell what happened to a run, and where it was resumed."""
    told = [one for one in happened if one.kind not in SILENT]
    rows = [
        (moment(one.time), "" if one.step is None else f"{one.step:,}", one.kind, _facts(one))
        for one in told[-MOST_EVENTS:]
    ]
    rows += [("", f"{seam:,}", "seam", "a resumed run goes on here") for seam in _seams(trace)]
    end = trace.lifecycle
    if end.traceback:
        rows.append(("", "" if end.end_step is None else f"{end.end_step:,}", "traceback",
                     end.traceback.strip()))  # fmt: skip
    note = f"the last {MOST_EVENTS} of {len(told):,}" if len(told) > MOST_EVENTS else ""
    return Grid(("time (UTC)", "step", "event", ""), tuple(rows), note)


def _seams(trace: Trace) -> tuple[int, ...]:
    return trace.lifecycle.seams


def _facts(one: Event) -> str:
    return ", ".join(f"{key} {cell(value)}" for key, value in one.facts.items())


def checkpoints(look: Inspection | None) -> Grid:
    """Tell every checkpoint, and which one a resume would take."""
    if look is None or not (look.seen or look.others):
        return NO_GRID
    rows = [
        (
            one.folder.name,
            f"{one.step:,}",
            moment(one.saved),
            size(one.size),
            f"{one.state.value}{f': {one.why}' if one.why else ''}",
            one.health,
            ", ".join(one.kept),
        )
        for one in look.seen
    ]
    taken = look.taken.folder.name if look.taken else "none"
    said = f"A resume takes {taken}: {look.why}."
    if look.others:
        said += f" Saved by others: {', '.join(look.others)}."
    heads = ("checkpoint", "step", "saved (UTC)", "size", "state", "health", "kept because")
    return Grid(heads, tuple(rows), said)


def rows(trace: Trace) -> Iterator[tuple[str, Grid]]:
    """Go through the tables that were logged: completions with their rewards."""
    for key, table in trace.tables.items():
        if len(table):
            yield key, _rows(table)


def _rows(table: Table) -> Grid:
    latest = range(max(len(table) - MOST_ROWS, 0), len(table))
    names = [name for name in table.columns if name != "step"]
    told = tuple(
        (f"{int(table.steps[at]):,}", *(cell(table.columns[name][at]) for name in names))
        for at in latest
    )
    note = f"the last {MOST_ROWS} of {len(table):,} rows" if len(table) > MOST_ROWS else ""
    return Grid(("step", *names), told, note)


def texts(trace: Trace) -> Iterator[tuple[str, Grid]]:
    """Go through the texts that were logged, the latest of each key."""
    for key, found in trace.texts.items():
        told = tuple((f"{one.step:,}", one.text) for one in found[-MOST_TEXTS:])
        note = f"the last {MOST_TEXTS} of {len(found):,}" if len(found) > MOST_TEXTS else ""
        if told:
            yield key, Grid(("step", "text"), told, note)
