"""Steps that go back: a resume re-runs a stretch, an asynchronous writer only shuffles rows."""

from dataclasses import dataclass

import numpy as np

from rlvitals.records import Series

# A resume shows once or a few times in a run; a step column that goes back more often than
# in one row of five is not a resume but an order that was lost.
MOST_SEAMS = 0.2


@dataclass(frozen=True, slots=True)
class Straight:
    """A series whose steps never go back, and what it took to make it so."""

    series: Series
    seams: tuple[int, ...] = ()  # the steps at which the run was resumed
    superseded: int = 0  # points of an earlier attempt that the resumed one ran again
    shuffled: int = 0  # points that were only out of order


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
