"""The outcome is won and lost again and again.

## What it sees
The outcome by twenty blocks fell by half of its range at least twice, having come back in
between. Where its end is down again, by the same tests as for a collapse (half of what was gained
is lost, and the fall stands out of the noise), this is a warning and the run is unstable; so it is
after three such falls where no gain can be told over the whole run. Otherwise a note; and where
nine of ten episodes succeed from the start on, as the reward's swings are not those of success.
Evaluations are judged instead of training where they tell more.

## Why it matters
What is learned is not kept. Which policy comes out is a matter of when training stops.

## What to do
Keep the best checkpoint by evaluation, not the last one. Then make steps smaller: lower the
learning rate or anneal it, use larger batches or a larger replay buffer, let target networks
follow more slowly.

## When it is wrong
Value-based methods on small tasks swing by a third of their range and recover: that is below the
limit. Few episodes a point scatter widely: swings within three standard deviations of a block's
mean are not counted. A curriculum changes the task, and the return with it.

## References
- Henderson et al. 2018, "Deep Reinforcement Learning that Matters".
- Chan et al. 2020, "Measuring the Reliability of Reinforcement Learning Algorithms".
"""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from rlvitals.rules.answers import prefer_evaluation, verdict_trend
from rlvitals.rules.course import is_clear_loss
from rlvitals.rules.gains import succeeds_throughout
from rlvitals.rules.rule import (
    Answer,
    Clear,
    Finding,
    Rule,
    Severity,
    Threshold,
    Undecided,
    persistence,
)
from rlvitals.rules.standing import OUTCOME_METRICS, label, least_that_counts, outcome, up
from rlvitals.signals.finite import Array
from rlvitals.signals.outcome_course import CLEAR_GAIN_SD, Course, course_of, falls, is_back
from rlvitals.signals.spread import difference_sd
from rlvitals.types import Series, Trace

OSCILLATION_PERSISTENCE = persistence("return-oscillates")
MIN_RETURN_FALLS = Threshold(
    "return-oscillates.falls", 2, "times that half of the outcome's range was lost"
)
MIN_WILD_FALLS = 3  # two may be one dip on the way up
MIN_OSCILLATION_POINTS = 40  # two per block


def check(trace: Trace) -> Answer:
    """Count falls and recoveries; then see where the run ended."""
    trace = prefer_evaluation(trace)
    picked = outcome(trace)
    if picked is None or len(picked[1]) < MIN_OSCILLATION_POINTS:
        return Undecided(
            f"fewer than {MIN_OSCILLATION_POINTS} values of the outcome", ("outcome/return",)
        )
    name, series = picked
    course = course_of(series.values)
    material, _ = least_that_counts(trace, name, series)
    count = falls(course)
    if float(np.ptp(course.blocks)) <= material or count < MIN_RETURN_FALLS.on(trace):
        return Clear()
    down = course.loss >= 0.5 * course.gain and course.gain > 0  # of the gain
    down = down and not is_back(series.values, course)
    down = down and is_clear_loss(name, series.values, course)
    # A peak or a dip of one row is no gain and no loss: means of few answers scatter so.
    smooth = course_of(_without_single_rows(series.values))
    smooth_count = falls(smooth) if float(np.ptp(smooth.blocks)) > material else 0
    down = down and smooth_count >= MIN_RETURN_FALLS.on(trace)
    # Wherever it ends, what swings so often that nobody can tell a gain was never kept.
    error = difference_sd(series.values) / course.width**0.5  # of a block's mean
    wild_count = falls(course, CLEAR_GAIN_SD * max(error, course.noise))
    wild = (
        min(wild_count, smooth_count) >= MIN_WILD_FALLS and verdict_trend(trace).state == "unknown"
    )
    ends_low = (down or wild) and not succeeds_throughout(trace)
    return _finding(trace, (name, series), course, count, ends_low=ends_low)


def _without_single_rows(values: Array) -> Array:
    """Return the medians of each three values in a row."""
    return np.asarray(np.median(sliding_window_view(values, 3), axis=1))


def _finding(
    trace: Trace, picked: tuple[str, Series], course: Course, count: int, *, ends_low: bool
) -> Finding:
    name, series = picked
    sign, name_text = up(name), label(name)
    low, high = sorted((sign * float(course.blocks.min()), sign * float(course.blocks.max())))
    end = sign * float(course.blocks[-1])
    return Finding(
        f"{name_text} was won and lost {count} times, between {low:.4g} and {high:.4g}; it ends at "
        f"{end:.4g}",
        severity=Severity.WARNING if ends_low else Severity.NOTE,
        metric=name,
        began=int(series.steps[0]),
        ended=int(series.steps[-1]),
        observed=float(count),
        bound=MIN_RETURN_FALLS.bound(trace, "default: lost, regained and lost again"),
        limit_on_curve=False,
        counter=() if ends_low else ("its end is not down",),
    )


RULE = Rule(
    name="return-oscillates",
    needs=(),
    needs_any=OUTCOME_METRICS,
    at_least=MIN_OSCILLATION_POINTS,
    check=check,
    doc=__doc__,
    causes=(
        "learning rate too high, batches too small",
        "target networks that follow too fast, or a replay buffer that forgets",
        "too little exploration left to find back quickly",
    ),
    remedies=(
        "keep the best checkpoint by evaluation",
        "lower or anneal the learning rate",
        "use larger batches, a larger buffer, a slower target network",
    ),
    explained_by=(
        "environment-changed",
        "impossible-value",
        "learning-rate-too-high",
        "learning-rate-jump",
        "q-divergence",
        "exploration-explodes",
        "kl-spike",
        "kl-above-target",
    ),
    verdict="unstable",
    thresholds=(MIN_RETURN_FALLS, OSCILLATION_PERSISTENCE),
    persists=OSCILLATION_PERSISTENCE,
)
