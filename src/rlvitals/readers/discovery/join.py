"""Several files of one run as one log: what a resume wrote on, and parallel environments."""

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from rlvitals.types import Log, Series, Table

T = TypeVar("T")
MONITOR = "sb3-monitor"
ELAPSED = "t"  # a monitor's key: seconds since its environment was made
MAX_ROWS = 5000  # of a table: texts are held in memory
PRINTED = "console"
ANY_STEP = "steps"  # a unit that may be any
ALIKE = 2.0  # logs of the same steps end within this factor of one another
STARTED = re.compile(r"tfevents\.(\d+)|(?:ppo_metrics_|run-)(\d+_\d+)")


def join(logs: Iterable[tuple[Hashable, Log]]) -> list[Log]:
    """Join the logs of equal keys, given as (key, log), each where the first of them stood.

    Monitors of parallel environments become one stream of episodes; the points of other logs
    stand one after another, in the order in which the files were started.
    """
    groups: dict[Hashable, list[Log]] = defaultdict(list)
    for key, log in logs:
        groups[key].append(log)
    return [_joined(group) for group in groups.values()]


def printed_last(logs: Sequence[Log]) -> list[Log]:
    """Put console output after the logs of its run, which hold more digits.

    Where it counts other steps than they do its numbers are left out, and the notes say so:
    how the run ended, and its settings, are kept.
    """
    written = [log for log in logs if log.source != PRINTED]
    lasts = [last for log in written if (last := _last(log)) is not None]
    printed = [log for log in logs if log.source == PRINTED]
    if lasts:
        units = {log.step_unit for log in written if log.series}
        printed = [log if _counts(log, units, max(lasts)) else _unnumbered(log) for log in printed]
    return [*written, *printed]


def _last(log: Log) -> int | None:
    ends = [int(series.steps.max()) for series in log.series.values() if len(series)]
    return max(ends, default=None)


def _counts(log: Log, units: AbstractSet[str], last: int) -> bool:
    """Tell whether console output counts the steps that the logs beside it count."""
    own = _last(log)
    if own is None:
        return True
    same = log.step_unit in units or ANY_STEP in {log.step_unit, *units}
    return same and own <= ALIKE * last and last <= ALIKE * own


def _unnumbered(log: Log) -> Log:
    settings = {key: value for key, value in log.settings.items() if key != "total_steps"}
    note = f"its numbers are not read: they count other steps ({log.step_unit}) than the logs do"
    return replace(log, series={}, settings=settings, step_unit=ANY_STEP, notes=(*log.notes, note))


def _joined(logs: list[Log]) -> Log:
    if len(logs) == 1:
        return logs[0]
    if logs[0].source == MONITOR:
        return _interleaved(logs)
    return _in_order(sorted(logs, key=lambda log: (*_start(log), log.where)))


def _start(log: Log) -> tuple[int, float]:
    """Return when a file was started, by its name, else by its first time."""
    found = STARTED.search(log.where)
    if found:
        return 0, float((found[1] or found[2]).replace("_", ""))
    times = [float(series.times[0]) for series in log.series.values() if len(series)]
    return 1, min(times, default=0.0)


def _in_order(logs: list[Log]) -> Log:
    """Put the points of each key one after another, file by file."""
    parts: dict[str, list[Series]] = defaultdict(list)
    for log in logs:
        for key, series in log.series.items():
            parts[key].append(series)
    return _whole(logs, {key: concatenated(found) for key, found in parts.items()})


def concatenated(parts: Sequence[Series]) -> Series:
    """Put series one after another."""
    return Series(
        np.concatenate([part.steps for part in parts]),
        np.concatenate([part.times for part in parts]),
        np.concatenate([part.values for part in parts]),
    )


def _whole(logs: list[Log], series: dict[str, Series], *notes: str) -> Log:
    settings = {key: value for log in logs for key, value in log.settings.items()}
    told = [f"{log.where}: {note}" for log in logs for note in log.notes]
    where = f"{logs[0].where} and {len(logs) - 1} more"
    return replace(
        logs[0],
        series=series,
        settings=settings,
        notes=(*told, *notes),
        where=where,
        histograms=_chained(log.histograms for log in logs),
        texts=_chained(log.texts for log in logs),
        tables=_stacked(logs),
        ending=logs[-1].ending,
    )


def _chained(parts: Iterable[Mapping[str, Sequence[T]]]) -> dict[str, list[T]]:
    """Put what each key holds one after another, file by file."""
    found: dict[str, list[T]] = defaultdict(list)
    for part in parts:
        for key, items in part.items():
            found[key] += items
    return dict(found)


def _stacked(logs: list[Log]) -> dict[str, Table]:
    """Put the rows of each table one after another, file by file: the newest MAX_ROWS of them."""
    parts: dict[str, list[Table]] = defaultdict(list)
    for log in logs:
        for key, table in log.tables.items():
            parts[key].append(table)
    return {key: newest(found) for key, found in parts.items()}


def newest(tables: list[Table]) -> Table:
    """Put the rows of tables one after another: the newest MAX_ROWS of them."""
    kept: list[Table] = []
    for table in reversed(tables):
        kept.insert(0, table)
        if sum(map(len, kept)) >= MAX_ROWS:
            break
    names = dict.fromkeys(name for table in kept for name in table.columns)
    cells = {
        name: [c for t in kept for c in t.columns.get(name, [None] * len(t))] for name in names
    }
    steps = np.concatenate([table.steps for table in kept])
    return Table(steps[-MAX_ROWS:], {name: c[-MAX_ROWS:] for name, c in cells.items()})


def _interleaved(logs: list[Log]) -> Log:
    """Merge the monitors of parallel environments: episodes in the order they ended.

    A step is then a step of any of the environments. Where a monitor does not say when it
    started, episodes are ordered by their environment's own steps, which advance together.
    """
    kept = [log for log in logs if "l" in log.series]
    lengths = [log.series["l"] for log in kept]
    if len(kept) < 2:  # noqa: PLR2004 - two make a merge
        return _whole(logs, dict(kept[0].series) if kept else {})
    timed = all(np.isfinite(series.times).all() for series in lengths)
    ended = np.concatenate([s.times if timed else s.steps.astype(np.float64) for s in lengths])
    order = np.argsort(ended, kind="stable")
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))  # of each episode, file after file
    steps = np.cumsum(np.concatenate([s.values for s in lengths])[order]).astype(np.int64)
    note = f"{len(kept)} environments: episodes merged by " + (
        "time" if timed else "their own steps, for want of a start time"
    )
    parts: dict[str, list[tuple[NDArray[np.int64], Series]]] = defaultdict(list)
    first = 0
    for log, base in zip(kept, lengths, strict=True):
        for key, series in log.series.items():
            # An episode that lacks an extra column has no point there: find the ones that have.
            rows = first + np.searchsorted(base.steps, series.steps)
            parts[key].append((rows if len(series) != len(base) else _all(first, base), series))
        first += len(base)
    merged = {key: _ranked(found, ranks, steps) for key, found in parts.items()}
    if ELAPSED in merged:  # each file's clock begins with its environment
        if timed:
            merged[ELAPSED] = _on_one_clock(merged[ELAPSED])
        else:
            del merged[ELAPSED]
    return _whole(logs, merged, note)


def _on_one_clock(elapsed: Series) -> Series:
    """Count episodes' ends from the start of the first environment, attempt by attempt.

    `elapsed`: of all environments in the order of their times, each from its own start. An
    attempt begins where an environment was started after all episodes before had ended.
    """
    starts, ends = elapsed.times - elapsed.values, elapsed.times
    began = np.minimum.accumulate(starts[::-1])[::-1]  # the first start of those still to come
    new = np.concatenate(([True], began[1:] > ends[:-1]))
    attempts = np.flatnonzero(new)
    first = began[attempts][np.cumsum(new) - 1]
    return Series(elapsed.steps, elapsed.times, ends - first)


def _all(first: int, base: Series) -> NDArray[np.int64]:
    return np.arange(first, first + len(base))


def _ranked(
    parts: Sequence[tuple[NDArray[np.int64], Series]],
    ranks: NDArray[np.int64],
    steps: NDArray[np.int64],
) -> Series:
    """Order one key's points by their episodes' ranks, under the common steps."""
    places = ranks[np.concatenate([rows for rows, _ in parts])]
    whole = concatenated([series for _, series in parts])
    order = np.argsort(places, kind="stable")
    return Series(steps[places[order]], whole.times[order], whole.values[order])
