"""Advantages are the rewards themselves: the group's mean is not subtracted.

## What it sees
The largest and the smallest advantage equal the largest and the smallest reward
(`policy/advantage_max` and `reward/max`, `policy/advantage_min` and `reward/min`) in nine of ten
updates in which rewards differ, and at least ten of them. A note while right answers rise, else a
warning.

## Why it matters
GRPO and RLOO compare the responses to one prompt. verl leaves the reward of a response that is
alone in its group as it is: then every response to an easy prompt is made likelier, right or
wrong, and where rewards are positive nothing is made less likely. The gradient is mostly noise.

## What to do
Log the number of responses of each group. Check that the copies of one prompt share their id when
advantages are computed (a batch that is reordered, an id made anew for each copy, an environment
that draws another task for each), and that a group holds more than one response.

## When it is wrong
It is an identity. REINFORCE without a baseline trains on raw rewards by design: where the
settings name such an estimator, nothing is judged.

## References
- PeterGriffinJin/Search-R1 issue 88: one prompt in several groups.
- verl, `trainer/ppo/core_algos.py` (compute_grpo_outcome_advantage): groups of one.
- Shao et al. 2024, "DeepSeekMath", section 4.1, the group's mean as the baseline.
"""

import numpy as np

from rlvitals.metrics.catalogue.reward import MAX, MIN
from rlvitals.metrics.catalogue.surrogate import ADVANTAGE_MAX, ADVANTAGE_MIN
from rlvitals.metrics.metric import Bound
from rlvitals.rules.answers import learning_trend
from rlvitals.rules.books import shared_rows
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Undecided
from rlvitals.rules.weigh import severity, sides
from rlvitals.types import Profile, Trace

MIN_COMPARED_UPDATES = 10
MIN_RAW_SHARE = 0.9  # of the updates


def check(trace: Trace) -> Answer:
    """Compare the ends of both distributions, update by update."""
    # Advantage estimators without a baseline.
    if str(trace.settings.get("algorithm", "")).lower() in ("reinforce", "raw"):
        return Undecided("the estimator trains on rewards without a baseline")
    steps, (highest, lowest, best, worst) = shared_rows(
        [trace[metric.name].finite() for metric in (ADVANTAGE_MAX, ADVANTAGE_MIN, MAX, MIN)]
    )
    differs = best > worst
    if differs.sum() < MIN_COMPARED_UPDATES:
        return Undecided("rewards differ in too few updates", (MAX.name, MIN.name))
    highest, lowest, best, worst = (x[differs] for x in (highest, lowest, best, worst))
    near = 1e-4 * np.maximum(np.abs(best), np.abs(worst))  # rounding of rewards in console lines
    raw = (np.abs(highest - best) <= near) & (np.abs(lowest - worst) <= near)
    if raw.mean() < MIN_RAW_SHARE:
        return Clear()
    outcome = learning_trend(trace)
    evidence, counter = sides(outcome)
    return Finding(
        f"advantages are the rewards themselves in {int(raw.sum()):,} of {raw.size:,} updates in "
        "which rewards differ",
        severity=severity(outcome, unknown=Severity.WARNING),
        metric=ADVANTAGE_MAX.name,
        began=int(steps[differs][raw][0]),
        ended=int(steps[differs][raw][-1]),
        observed=float(raw.mean()),
        bound=Bound(
            MIN_RAW_SHARE, "share of updates whose advantages and rewards have the same ends"
        ),
        limit_on_curve=False,
        evidence=evidence,
        counter=counter,
    )


RULE = Rule(
    name="group-baseline-missing",
    needs=(ADVANTAGE_MAX, ADVANTAGE_MIN, MAX, MIN),
    at_least=MIN_COMPARED_UPDATES,
    check=check,
    doc=__doc__,
    causes=(
        "every response has a group of its own: copies of one prompt do not share their id",
        "one response for each prompt",
    ),
    remedies=(
        "log how many responses each group holds",
        "check that {num_generations} is above 1, and that copies of a prompt share their id",
    ),
    profiles=(Profile.GRPO,),
    explained_by=("setting-out-of-range",),
    no_threshold=True,
)
