"""Sort steps that go back, and drop rows that are logged twice.

Steps go back after a resume, which repeats a stretch, and in an asynchronous writer, which
shuffles rows. Several processes, or a logger attached twice, write each row twice.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rlvitals.errors import quantity
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Series

MIN_REPEATED_COLUMNS = 2  # columns with the same step


@dataclass(frozen=True, slots=True)
class Straight:
    """A series whose steps never go back, and the corrections made."""

    series: Series
    seams: tuple[int, ...] = ()  # steps at which the run was resumed
    superseded: int = 0  # points of an earlier attempt that the resumed one repeated
    shuffled: int = 0  # points that were only out of order
    start: int = 0  # the step of the first point in the log


def without_repeats(series: Mapping[str, Series]) -> Mapping[str, Series]:
    """Drop the rows of one log that repeat the row before in every column.

    Episodes that end at one step are no repeats: their values or times differ. Needs at least two
    columns: a single column may repeat by chance.
    """
    repeats = {name: _find_repeats(s) for name, s in series.items() if len(s)}
    if not any(repeat.repeated.any() for repeat in repeats.values()):
        return series
    columns = [np.unique(series[name].steps[repeat.repeated]) for name, repeat in repeats.items()]
    steps, count = np.unique(np.concatenate(columns), return_counts=True)
    if not (count >= MIN_REPEATED_COLUMNS).any():
        return series
    distinct = [series[name].steps[repeat.distinct] for name, repeat in repeats.items()]
    twice = np.setdiff1d(steps[count >= MIN_REPEATED_COLUMNS], np.concatenate(distinct))

    def drop_repeats(name: str) -> Series:
        column = series[name]
        if name not in repeats or not (is_repeat := repeats[name].repeated).any():
            return column
        return column.where(~(is_repeat & np.isin(column.steps, twice)))

    return {name: drop_repeats(name) for name in series}


@dataclass(frozen=True, slots=True)
class _Repeats:
    """Points with the step of the point before: equal values, or other values. Masks [n]."""

    repeated: NDArray[np.bool_]
    distinct: NDArray[np.bool_]


def _find_repeats(series: Series) -> _Repeats:
    one_step = np.zeros(len(series), np.bool_)
    np.equal(series.steps[1:], series.steps[:-1], out=one_step[1:])
    if not one_step.any():
        return _Repeats(one_step, one_step)
    is_repeat = one_step.copy()
    for column in (series.values, series.times):
        is_repeat[1:] &= (column[1:] == column[:-1]) | (
            np.isnan(column[1:]) & np.isnan(column[:-1])
        )
    return _Repeats(is_repeat, one_step & ~is_repeat)


def straighten(series: Series) -> Straight:
    """Sort a series by step; of a stretch that was run twice, keep the later attempt.

    The log itself still contains every point. The outline of a thinned series is cut alike.
    """
    steps = series.steps
    backward = np.flatnonzero(steps[1:] < steps[:-1]) + 1
    if not len(backward):
        return Straight(series)
    resumed: list[int] = []
    for i in backward.tolist():
        # After a resume the next two rows at least repeat earlier steps, in order.
        follow = steps[i : i + 2]
        if len(follow) == 2 and (follow <= steps[:i].max()).all() and follow[1] >= follow[0]:
            resumed.append(i)
    # A resume shows a few times in a run. A step column that goes back more often than in one row
    # of five is shuffled, not resumed.
    if len(resumed) > max(3.0, 0.2 * len(steps)) or _are_side_by_side(steps, resumed):
        resumed = []
    keep = np.ones(len(steps), dtype=np.bool_)
    for i in resumed:
        keep[:i] &= steps[:i] < steps[i]
    column = series.where(keep)
    order = np.argsort(column.steps, kind="stable")
    outline = (
        None
        if series.outline is None
        else replace(
            series.outline,
            points=straighten(series.outline.points).series,
            means=straighten(series.outline.means).series,
        )
    )
    return Straight(
        replace(column.where(order), outline=outline),
        seams=tuple(int(steps[i]) for i in resumed),
        superseded=int((~keep).sum()),
        shuffled=len(backward) - len(resumed),
        start=int(steps[0]),
    )


def notes(columns: Iterable[Straight]) -> list[str]:
    """Describe where steps went back, by the column with most seams.

    A run that is at its first step again, or before it, was not resumed.
    """
    column = max(columns, key=lambda straight: len(straight.seams), default=None)
    if column is None:
        return []
    anew = [step for step in column.seams if step <= column.start]
    resumed = [step for step in column.seams if step > column.start]
    if len(anew) == len(column.seams) > 1:
        return [
            f"{len(anew) + 1} attempts from step {column.start:,}: the last one alone is judged"
        ]
    if len(column.seams) > 3:
        times = f"{len(resumed)} times, first at step {resumed[0]:,} and last at {resumed[-1]:,}"
        restarts = f", and the count starts again {quantity(len(anew), 'time')}" if anew else ""
        return [f"resumed {times}{restarts}: the later attempts are judged"]
    return [
        f"{'resumed' if step > column.start else 'the count starts again'} at step {step:,}: "
        "the later attempt is judged"
        for step in column.seams
    ]


def _are_side_by_side(steps: NDArray[np.int64], seams: list[int]) -> bool:
    """Return True for several writers of one log, as the workers of one training.

    A run is hardly resumed twenty times, each time after five of the log's steps or fewer.
    """
    if len(seams) <= 20:
        return False
    spacing = (int(steps.max()) - int(steps.min())) / max(len(np.unique(steps)) - 1, 1)
    highest = np.maximum.accumulate(steps)
    stretches = [int(highest[i - 1]) - int(steps[i]) for i in seams]
    return float(np.median(stretches)) <= 5.0 * spacing
