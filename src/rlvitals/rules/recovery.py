"""An outcome that was gained and lost: it stays lost, or rises again from a fall at once."""

from dataclasses import dataclass, replace

import numpy as np

from rlvitals.metrics.catalogue.outcome import RETURN
from rlvitals.rules.curves import AMPLE, HALF, PARTS, PLAINLY, fell_back, lost
from rlvitals.rules.episode_window import scatter_of_window
from rlvitals.rules.standing import EVALUATED, Standing, outcome, slow_swing, standing, up
from rlvitals.signals.blocks import block_means
from rlvitals.signals.outcome_change import outcome_change
from rlvitals.types import Trace

MAX_FALL_BLOCKS = 2  # of twenty: another opponent, a harder stage, weights that were lost
MIN_RISE_BLOCKS = 4  # of twenty, after the lowest: a shorter rise is a swing
END_BLOCKS = 2  # of twenty, a tenth of the run


@dataclass(frozen=True, slots=True)
class Recovery:
    """The levels of a fall and of the end, and the step of the lowest level."""

    best: float
    lowest: float
    last: float
    step: int


def recovery(trace: Trace, material: float) -> Recovery | None:
    """Return how a return recovered from a fall; None where it did not.

    It had gained three times `material` and lost as much within a tenth of the run; since then it
    is proven to rise, and stands above half of what it had lost. Such a fall is that of a self-play
    opponent that was replaced, of the next stage of a curriculum, or of weights that were reset.
    """
    picked = outcome(trace)
    if picked is None or picked[0] != RETURN.name or len(picked[1]) < AMPLE:
        return None
    series = picked[1]
    width = len(series) // PARTS
    course = block_means(series.values, width)
    bottom = int((np.maximum.accumulate(course) - course).argmax())
    top = int(course[: bottom + 1].argmax())
    best, lowest, last = course[top], course[bottom], course[-END_BLOCKS:].mean()
    least = PLAINLY * max(material, scatter_of_window(trace, RETURN.name))
    fall = course[max(top - MAX_FALL_BLOCKS, 0) : bottom + 1]
    sudden = (fall[:-MAX_FALL_BLOCKS] - fall[MAX_FALL_BLOCKS:]).max(initial=0.0)
    if min(best - lowest, best - course[0]) < least or sudden < HALF * (best - lowest):
        return None
    at = len(series) - (len(course) - bottom) * width
    since = outcome_change(series.values[at:], margin=material)
    rises = since is not None and since.answer == "rose"
    late = len(course) - 1 - bottom < MIN_RISE_BLOCKS
    if late or not rises or last - lowest < HALF * (best - lowest):
        return None
    return Recovery(float(best), float(lowest), float(last), int(series.steps[at]))


def rising_again(now: Standing, found: Recovery) -> Standing:
    """Return a standing that says so, with the levels since the fall."""
    why = (
        f"fell from {found.best:.4g} to {found.lowest:.4g} by step {found.step:,} and has risen "
        f"since, to {found.last:.4g}"
    )
    return replace(now, state="rising", why=why, first=found.lowest, last=found.last)


def lost_again(trace: Trace) -> Standing | None:
    """Return the standing of an outcome that rose over the run as a whole, and lost that again.

    None where it holds what it gained. For the run's verdict: the rise is real, and so is its end.
    """
    now, picked = standing(trace), outcome(trace)
    if picked is None or now.state != "rising":
        return None
    values = picked[1].values
    anew = now.metric == EVALUATED
    least = max(now.material, slow_swing(trace, now.metric, now.material_from))
    found = fell_back(values, least) or lost(values, least, anew=anew)
    if found is None or recovery(trace, now.material) is not None:
        return None
    return replace(now, state="fallen back", last=up(now.metric) * found.last)
