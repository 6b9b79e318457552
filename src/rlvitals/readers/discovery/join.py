"""Join the logs of one run: resumed files and parallel environments."""

import math
import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from rlvitals.types import Log, Series, Table

T = TypeVar("T")
ELAPSED_KEY = "t"  # a monitor's key: seconds since its environment was made
MAX_TABLE_ROWS_JOINED = 5000  # of a table: texts are held in memory
MAX_STEP_RATIO = 2.0  # logs of the same steps end within this factor of one another


def join(logs: Iterable[tuple[Hashable, Log]]) -> list[Log]:
    """Join the logs of equal keys, given as (key, log), each where the first of them stood.

    Monitors of parallel environments become one stream of episodes; the points of other logs
    stand one after another, in the order in which the files were started.
    """
    groups: dict[Hashable, list[Log]] = defaultdict(list)
    for key, log in logs:
        groups[key].append(log)
    return [_join_group(group) for group in groups.values()]


def printed_last(logs: Sequence[Log]) -> list[Log]:
    """Put console output after the logs of its run, which hold more digits.

    Where it counts other steps than they do its numbers are left out, and the notes say so:
    how the run ended, and its settings, are kept.
    """
    written = [log for log in logs if log.source != "console"]
    lasts = [last for log in written if (last := last_step(log)) is not None]
    printed = [log for log in logs if log.source == "console"]
    if lasts:
        units = {log.step_unit for log in written if log.series}
        for i, log in enumerate(printed):
            # It counts the same steps as the logs in its folder, or has no number.
            end, last = last_step(log), max(lasts)
            is_same_unit = log.step_unit in units or "steps" in {log.step_unit, *units}
            is_near = end is not None and (
                end <= MAX_STEP_RATIO * last and last <= MAX_STEP_RATIO * end
            )
            if end is not None and not (is_same_unit and is_near):
                problem = f"they count other steps ({log.step_unit}) than the logs do"
                printed[i] = replace(
                    log,
                    series={},
                    settings={k: v for k, v in log.settings.items() if k != "total_steps"},
                    step_unit="steps",
                    notes=(*log.notes, f"its numbers are not read: {problem}"),
                )
    return [*written, *printed]


def last_step(log: Log) -> int | None:
    """Return the highest step of a log, None where it has no numbers."""
    ends = [int(series.steps.max()) for series in log.series.values() if len(series)]
    return max(ends, default=None)


def _join_group(logs: list[Log]) -> Log:
    if len(logs) == 1:
        return logs[0]
    if logs[0].source == "sb3-monitor":
        return _interleave_monitors(logs)
    files = sorted(logs, key=lambda log: (*_start(log), log.where))
    pieces: dict[str, list[Series]] = defaultdict(list)
    for log in files:
        for key, series in log.series.items():
            pieces[key].append(series)
    return _combine(files, {key: concatenate_series(series) for key, series in pieces.items()})


def _start(log: Log) -> tuple[int, float, float]:
    """Return when a file was started, by its name and then by its first time.

    A name has whole seconds, and writers count their files of a second as text: 10 before 9.
    """
    match = re.search(r"tfevents\.(\d+)|(?:ppo_metrics_|run-)(\d+_\d+)", log.where)
    times = [float(series.times[0]) for series in log.series.values() if len(series)]
    first_time = min(filter(math.isfinite, times), default=0.0)
    if match:
        return 0, float((match[1] or match[2]).replace("_", "")), first_time
    return 1, first_time, 0.0


def concatenate_series(pieces: Sequence[Series]) -> Series:
    """Put series one after another."""
    return Series(
        np.concatenate([piece.steps for piece in pieces]),
        np.concatenate([piece.times for piece in pieces]),
        np.concatenate([piece.values for piece in pieces]),
    )


def _combine(logs: list[Log], series: dict[str, Series], *notes: str) -> Log:
    settings = {key: value for log in logs for key, value in log.settings.items()}
    log_notes = [f"{log.where}: {note}" for log in logs for note in log.notes]
    location = f"{logs[0].where} and {len(logs) - 1} more"
    by_key: dict[str, list[Table]] = defaultdict(list)
    for log in logs:
        for key, table in log.tables.items():
            by_key[key].append(table)
    return replace(
        logs[0],
        series=series,
        settings=settings,
        notes=(*log_notes, *notes),
        where=location,
        histograms=_concatenate_items(log.histograms for log in logs),
        texts=_concatenate_items(log.texts for log in logs),
        tables={key: newest_rows(tables) for key, tables in by_key.items()},
        ending=logs[-1].ending,
    )


def _concatenate_items(mappings: Iterable[Mapping[str, Sequence[T]]]) -> dict[str, list[T]]:
    """Put what each key holds one after another, file by file."""
    chained: dict[str, list[T]] = defaultdict(list)
    for mapping in mappings:
        for key, items in mapping.items():
            chained[key] += items
    return dict(chained)


def newest_rows(tables: list[Table]) -> Table:
    """Put the rows of tables one after another: the newest MAX_ROWS of them."""
    newest_tables: list[Table] = []
    for table in reversed(tables):
        newest_tables.insert(0, table)
        if sum(map(len, newest_tables)) >= MAX_TABLE_ROWS_JOINED:
            break
    names = dict.fromkeys(name for table in newest_tables for name in table.columns)
    cells = {
        name: [c for t in newest_tables for c in t.columns.get(name, [None] * len(t))]
        for name in names
    }
    steps = np.concatenate([table.steps for table in newest_tables])
    return Table(
        steps[-MAX_TABLE_ROWS_JOINED:],
        {name: c[-MAX_TABLE_ROWS_JOINED:] for name, c in cells.items()},
    )


def _interleave_monitors(logs: list[Log]) -> Log:
    """Merge the monitors of parallel environments: episodes in the order they ended.

    A step is then a step of any of the environments. Where a monitor does not say when it
    started, episodes are ordered by their environment's own steps, which advance together.
    """
    monitors = [log for log in logs if "l" in log.series]
    lengths = [log.series["l"] for log in monitors]
    if len(monitors) < 2:  # two make a merge
        return _combine(logs, dict(monitors[0].series) if monitors else {})
    timed = all(np.isfinite(series.times).all() for series in lengths)
    end_order = np.concatenate([s.times if timed else s.steps.astype(np.float64) for s in lengths])
    order = np.argsort(end_order, kind="stable")
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))  # of each episode, file after file
    steps = np.cumsum(np.concatenate([s.values for s in lengths])[order]).astype(np.int64)
    note = f"{len(monitors)} environments: episodes merged by " + (
        "time" if timed else "their own steps, for want of a start time"
    )
    pieces: dict[str, list[tuple[NDArray[np.int64], Series]]] = defaultdict(list)
    first = 0
    for log, base in zip(monitors, lengths, strict=True):
        for key, series in log.series.items():
            # An episode that lacks an extra column has no point there: find the ones that have.
            rows = first + np.searchsorted(base.steps, series.steps)
            pieces[key].append(
                (rows if len(series) != len(base) else np.arange(first, first + len(base)), series)
            )
        first += len(base)
    merged = {key: _order_by_rank(key_pieces, ranks, steps) for key, key_pieces in pieces.items()}
    if ELAPSED_KEY in merged:  # each file's clock begins with its environment
        if timed:
            merged[ELAPSED_KEY] = _on_one_clock(merged[ELAPSED_KEY])
        else:
            del merged[ELAPSED_KEY]
    return _combine(logs, merged, note)


def _on_one_clock(elapsed: Series) -> Series:
    """Count episodes' ends from the start of the first environment, attempt by attempt.

    `elapsed`: of all environments in the order of their times, each from its own start. An
    attempt begins where an environment was started after all episodes before had ended.
    """
    starts, ends = elapsed.times - elapsed.values, elapsed.times
    first_starts = np.minimum.accumulate(starts[::-1])[
        ::-1
    ]  # the first start of those still to come
    new = np.concatenate(([True], first_starts[1:] > ends[:-1]))
    attempts = np.flatnonzero(new)
    first = first_starts[attempts][np.cumsum(new) - 1]
    return Series(elapsed.steps, elapsed.times, ends - first)


def _order_by_rank(
    pieces: Sequence[tuple[NDArray[np.int64], Series]],
    ranks: NDArray[np.int64],
    steps: NDArray[np.int64],
) -> Series:
    """Order one key's points by their episodes' ranks, under the common steps."""
    episode_ranks = ranks[np.concatenate([rows for rows, _ in pieces])]
    merged = concatenate_series([series for _, series in pieces])
    order = np.argsort(episode_ranks, kind="stable")
    return Series(steps[episode_ranks[order]], merged.times[order], merged.values[order])
