"""Onset, delay and size of a fall of the outcome around a step, as a mean over episodes shows it.

A mean over the last W episodes holds old ones until W new ones have ended. Once these are short,
as most failures are, that is soon: after W x their length in steps. So a break that made every
episode bad at once falls in a line for so long and no longer; what takes far longer is a policy
that gets worse from update to update.
"""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from rlvitals.rules.episode_window import OUTCOME_LEVEL_POINTS, memory
from rlvitals.rules.standing import least_that_counts, outcome
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Series, Trace

VISIBLE_LOSS_SHARE = 0.1  # of the loss
COMPLETE_LOSS_SHARE = 0.9  # of the loss
PROMPT_POINTS = 5  # points within which an outcome that is no mean over episodes shows a break


@dataclass(frozen=True, slots=True)
class Fall:
    """What the outcome was, what was left of it, and when it went. Up = better."""

    before: float
    low: float
    last: float
    visible_step: int  # the step at which a tenth of the loss shows
    hidden: int  # steps for which a mean over episodes may have hidden that tenth
    earlier: bool  # it had begun before
    late: bool  # later than a break at the step that was asked about would show
    slow: bool  # taking longer than episodes that are all bad would take
    half: bool  # of the loss came within a few points

    @property
    def loss(self) -> float:
        """How much went."""
        return self.before - self.low


def fall(trace: Trace, name: str, series: Series, step: int) -> Fall | None:
    """Return how an outcome's finite points fell at a step or soon after; None if they did not."""
    index, values = int(np.searchsorted(series.steps, step)), series.values
    start = max(index - 2, 1)  # points: outcomes are logged before the updates on them
    after = values[start:]
    if start < OUTCOME_LEVEL_POINTS or len(values) - index < 2 * OUTCOME_LEVEL_POINTS:
        return None
    before = float(np.median(values[start - OUTCOME_LEVEL_POINTS : start]))
    # The lowest tenth of what follows.
    low = float(np.median(np.sort(after)[: max(OUTCOME_LEVEL_POINTS, round(0.1 * len(after)))]))
    loss = before - low
    if loss <= 0:
        return None
    visible_index = start + int(
        np.argmax(_two_in_a_row(after < before - VISIBLE_LOSS_SHARE * loss))
    )
    end_index = start + int(np.argmax(after < before - COMPLETE_LOSS_SHARE * loss))
    memory_steps = memory(trace, name, int(series.steps[end_index]))
    span = int(series.steps[visible_index]) - step
    duration = int(series.steps[end_index]) - int(series.steps[visible_index])
    # A row in which no episode ended repeats the one before: it does not count.
    changes = np.cumsum(np.diff(values[start - 1 :]) != 0)
    visible, end = visible_index - start, end_index - start
    is_late = changes[visible] - changes[min(index - start, visible)] > PROMPT_POINTS
    is_slow = changes[end] - changes[visible] > PROMPT_POINTS
    first_values = after[changes - changes[visible] <= PROMPT_POINTS]
    return Fall(
        before,
        low,
        float(np.median(after[-OUTCOME_LEVEL_POINTS:])),
        int(series.steps[visible_index]),
        round(VISIBLE_LOSS_SHARE * memory_steps),
        # A level in the 20 points before was higher by a fifth of the loss.
        earlier=_highest(values[max(start - 20, 0) : start]) - before > 0.2 * loss,
        late=bool(is_late) and span > VISIBLE_LOSS_SHARE * memory_steps,
        # 1.5 times as long as bad episodes alone would take to show as much of the loss.
        slow=bool(is_slow)
        and duration > 1.5 * (COMPLETE_LOSS_SHARE - VISIBLE_LOSS_SHARE) * memory_steps > 0,
        half=before - float(first_values.min()) >= loss / 2,
    )


def _highest(values: NDArray[np.float64]) -> float:
    levels = np.median(sliding_window_view(values, OUTCOME_LEVEL_POINTS), axis=1)
    return float(levels.max())


def falls_by(trace: Trace, step: int) -> bool:
    """Tell whether an outcome fell no later than what set in at a step: with it, or before.

    What falls together has one cause; which of the two it was, nobody can tell.
    """
    picked = outcome(trace)
    drop = None if picked is None else fall(trace, *picked, step)
    if picked is None or drop is None:
        return False
    name, series = picked
    material, _ = least_that_counts(trace, name, series)
    gain = drop.before - float(np.median(series.values[:OUTCOME_LEVEL_POINTS]))
    if gain <= material or drop.loss < 0.5 * gain:
        return False
    after = series.since(step)
    # One point: outcomes are logged before the updates on them.
    return drop.earlier or drop.visible_step <= int(after.steps[min(1, len(after) - 1)])


def first_full_step(trace: Trace, name: str, series: Series) -> int:
    """Return the step from which a mean over episodes is one over as many as it may hold.

    Before, one lucky episode of the first few stands as high as no level ever will.
    """
    first = int(series.steps[0])
    return first + round(memory(trace, name, first))


def _two_in_a_row(below: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Tell where two successive points are below; the last one stands for itself."""
    return below & np.append(below[1:], below[-1:])
