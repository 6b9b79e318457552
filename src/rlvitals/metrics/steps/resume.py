"""Steps that go back: a resume re-runs a stretch, an asynchronous writer only shuffles rows.

And rows that are there twice: several processes, or a logger attached twice, write each of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlvitals.types import Series

# A resume shows once or a few times in a run; a step column that goes back more often than
# in one row of five is not a resume but an order that was lost.
MOST_SEAMS = 0.2
TOGETHER = 2  # columns that repeat themselves at one step
EMPTY = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Straight:
    """A series whose steps never go back, and what it took to make it so."""

    series: Series
    seams: tuple[int, ...] = ()  # the steps at which the run was resumed
    superseded: int = 0  # points of an earlier attempt that the resumed one ran again
    shuffled: int = 0  # points that were only out of order


def without_repeats(series: Mapping[str, Series]) -> Mapping[str, Series]:
    """Drop the rows of one log that say again, in every column, what the row before said.

    Episodes that end at one step are no repeats: something tells them apart, if only the time at
    which they were written. Of a single column nobody can say.
    """
    again = {name: _again(s) for name, s in series.items() if len(s)}
    columns = [np.unique(series[name].steps[found.same]) for name, found in again.items()]
    steps, count = np.unique(np.concatenate((EMPTY, *columns)), return_counts=True)
    if not (count >= TOGETHER).any():
        return series
    apart = [series[name].steps[found.apart] for name, found in again.items()]
    twice = np.setdiff1d(steps[count >= TOGETHER], np.concatenate(apart))

    def kept(name: str) -> Series:
        one = series[name]
        if name not in again or not (same := again[name].same).any():
            return one
        return one.where(~(same & np.isin(one.steps, twice)))

    return {name: kept(name) for name in series}


@dataclass(frozen=True, slots=True)
class _Again:
    """Which points follow one of the same step: the same all over, or another. Masks [n]."""

    same: NDArray[np.bool_]
    apart: NDArray[np.bool_]


def _again(series: Series) -> _Again:
    one_step = np.diff(series.steps, prepend=series.steps[0] - 1) == 0
    if not one_step.any():
        return _Again(one_step, one_step)
    same = one_step.copy()
    for column in (series.values, series.times):
        same[1:] &= (column[1:] == column[:-1]) | (np.isnan(column[1:]) & np.isnan(column[:-1]))
    return _Again(same, one_step & ~same)


def straighten(series: Series) -> Straight:
    """Put a series in the order of its steps; of a stretch run twice, keep the later attempt.

    Nothing is lost: the log that was read keeps every point.
    """
    steps = series.steps
    back = np.flatnonzero(np.diff(steps) < 0) + 1
    if not len(back):
        return Straight(series)
    resumed = [int(i) for i in back if _runs_again(steps, int(i))]
    if len(resumed) > max(3.0, MOST_SEAMS * len(steps)):
        resumed = []
    keep = np.ones(len(steps), dtype=np.bool_)
    for i in resumed:
        keep[:i] &= steps[:i] < steps[i]
    kept = series.where(keep)
    order = np.argsort(kept.steps, kind="stable")
    return Straight(
        kept.where(order),
        seams=tuple(int(steps[i]) for i in resumed),
        superseded=int((~keep).sum()),
        shuffled=len(back) - len(resumed),
    )


def _runs_again(steps: np.ndarray[tuple[int], np.dtype[np.int64]], i: int) -> bool:
    """Tell a resume from a stray row: after it, at least two rows repeat steps already passed."""
    passed = int(steps[:i].max())
    follow = steps[i : i + 2]
    return len(follow) == 2 and bool((follow <= passed).all()) and bool(follow[1] >= follow[0])  # noqa: PLR2004
