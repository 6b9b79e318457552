"""The return rises and success does not follow: the reward pays for something else.

## What it sees
The return (or mean reward) is proven to rise while the success rate is proven not to: its 95 %
interval stays below five points. For language models a reward component whose name says that it
checks the answer (correct, accuracy, success, pass, solve, equation) stands for success, or the
parts for neither form nor manner where none of them was ever earned; where neither is logged, a
score that is proven to fall while the reward less its KL penalty rises. While fewer than one
episode in fifty succeeds this is a note: a shaped reward leads the way to it. It is a warning where
the form of the answers is all that was learned and two fifths of the run are over, and where a
language model spent its whole budget without one right answer.

## Why it matters
The optimiser maximises what is paid, not what is meant. Past this point more training makes the
policy better at the wrong thing.

## What to do
Look at episodes, not curves. Find the reward term that grew, cap it or make it conditional on
success; pay progress as a difference of potentials, which cannot be farmed.

## When it is wrong
A success rate already near one cannot follow; a bonus for speed or style may be meant.

## References
- Skalse et al. 2022, "Defining and Characterizing Reward Hacking".
- Ng, Harada and Russell 1999, "Policy invariance under reward transformations".
"""

from dataclasses import replace

import numpy as np

from rlvitals.metrics.absence import describe_absence
from rlvitals.metrics.catalogue.outcome import (
    RETURN,
    REWARD,
    RLHF_REWARD,
    SCORE,
    SUCCESS_RATE,
    WIN_RATE_EMA,
)
from rlvitals.metrics.catalogue.reward import MEAN as REWARD_MEAN
from rlvitals.metrics.metric import Bound
from rlvitals.rules import kinds
from rlvitals.rules.answers import MIN_ANSWER_GAIN, list_answer_checks
from rlvitals.rules.form import describe_form_gain
from rlvitals.rules.going_on import reaches_budget
from rlvitals.rules.parts import unpaid_task
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold, Undecided
from rlvitals.rules.spent import too_early
from rlvitals.rules.standing import MIN_SHARE_GAIN, label, standing
from rlvitals.signals.level import first_last_change
from rlvitals.signals.trend import Trend, trend
from rlvitals.types import Series, Trace

MIN_SUCCESS_CHANGE = Threshold(
    "return-up-success-flat.follows",
    MIN_SHARE_GAIN,
    "change of the success rate that must be ruled out, up from it",
    low=-1.0,
    high=1.0,
)
MAX_SUCCESS_RATE = Threshold(
    "return-up-success-flat.saturated",
    0.95,
    "success rate beyond which there is nowhere to go",
    high=1.0,
)
MIN_SUCCESS_POINTS = 20  # values of each


def check(trace: Trace) -> Answer:
    """Compare the directions of what is paid and of what is meant."""
    success_metric = _success(trace)
    if success_metric is None:
        lacks = describe_absence(trace, "no success rate is logged", SUCCESS_RATE)
        return Undecided(lacks, (SUCCESS_RATE.name,))
    name, success = success_metric
    if len(success) < MIN_SUCCESS_POINTS:
        return Undecided(f"{name} has fewer than {MIN_SUCCESS_POINTS} values", (name,))
    paid = standing(trace)
    if paid.state == "unknown" or paid.metric == name:
        return Undecided(f"beside {name}, {paid.sentence}", (RETURN.name,))
    fit = trend(success.values)
    first, last = first_last_change(success.values) or (np.nan, np.nan)
    # A reward that was farmed to its maximum has risen too.
    rose = paid.improves and paid.last - paid.first >= paid.material
    # A score has no maximum: what counts is that it falls.
    highest, rise = (np.inf, -np.inf) if name == SCORE.name else (MAX_SUCCESS_RATE.on(trace), 0.0)
    if not rose or fit is None or last > highest or (fit.change_low > rise and not fit.falls):
        return Clear()
    scale = max(1.0, float(np.abs(success.values).max()))
    material = MIN_SUCCESS_CHANGE.bound(trace, "default: five points of a success rate", scale)
    if fit.change_high >= material.value:
        return Undecided(f"{name} scatters too much to say whether it follows")
    answer = _finding(name, success, paid.sentence, (first, last), fit, material)
    # A form that is learned and nothing besides leads nowhere, once most of the run is over.
    by_form = not too_early(trace) and describe_form_gain(trace)
    # A shaped reward that leads to answers has led to one by the end of the budget.
    led_nowhere = (
        trace.profile in kinds.LANGUAGE and not success.values.any() and reaches_budget(trace)
    )
    is_sure = bool(by_form or led_nowhere)
    return replace(answer, severity=Severity.WARNING, counter=()) if is_sure else answer


def _success(trace: Trace) -> tuple[str, Series] | None:
    for metric in (SUCCESS_RATE, WIN_RATE_EMA):
        if metric.name in trace:
            return metric.name, trace[metric.name].finite()
    is_judged = trace.profile in kinds.LANGUAGE and not too_early(trace)
    unpaid = unpaid_task(trace) if is_judged else None
    checks = ((name, series.finite()) for name, series in list_answer_checks(trace))
    # A reward less its KL penalty also rises where a response shrinks: little is charged for.
    score = trace.numbers(SCORE.name) if RLHF_REWARD.name in trace else None
    return unpaid or next(checks, None) or (None if score is None else (SCORE.name, score))


def _finding(  # noqa: PLR0913, PLR0917 - the two directions and what tells them
    name: str,
    success: Series,
    paid: str,
    levels: tuple[float, float],
    fit: Trend,
    material: Bound,
) -> Finding:
    never, falls = not success.values.any(), fit.change_high < 0
    rare = name != SCORE.name and float(success.values.max()) < MIN_ANSWER_GAIN
    does = "falls" if falls else "is never reached" if never else "does not follow"
    name_text, amount = label(name), "no" if never else "hardly any"
    return Finding(
        f"{paid}, but {name_text} {does}: {levels[0]:.3g} to {levels[1]:.3g}",
        severity=Severity.NOTE if rare else Severity.WARNING,
        metric=name,
        began=int(success.steps[0]),
        ended=int(success.steps[-1]),
        observed=levels[1] - levels[0],
        bound=material,
        limit_on_curve=False,
        evidence=(f"95 % interval of its change: {fit.change_low:+.3g} to {fit.change_high:+.3g}",),
        counter=(f"{amount} success yet: a shaped reward may lead to it",) if rare else (),
    )


RULE = Rule(
    name="return-up-success-flat",
    needs=(),
    needs_any=(RETURN, REWARD, RLHF_REWARD, REWARD_MEAN),
    at_least=MIN_SUCCESS_POINTS,
    check=check,
    doc=__doc__,
    profiles=kinds.WITH_REWARD,
    causes=(
        "reward hacking: a term that can be farmed without success",
        "return and success measure different things",
    ),
    remedies=(
        "look at episodes or completions from the end of the run",
        "find the reward term that grew, and cap it or tie it to success",
        "judge checkpoints by success, not by return",
    ),
    explained_by=(
        "threshold-off-correctness",
        "image-not-seen",
        "image-mismatched",
        "response-length-explodes",
        "responses-truncated",
        "component-dominates",
    ),
    verdict="stalled",
    thresholds=(MIN_SUCCESS_CHANGE, MAX_SUCCESS_RATE),
)
