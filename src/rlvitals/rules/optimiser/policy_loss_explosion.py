"""The policy loss is far larger than normalised advantages can make it.

## What it sees
`policy/loss` beyond 1 in size, and beyond its median over the run by 8 robust standard
deviations, in a kind of run whose advantages are normalised (mean 0, standard deviation 1).
Three such points within 20 count by the outcome: error where it falls, warning where it is
flat; fewer are a note. Undecided where the settings say that advantages are not normalised.

## Why it matters
With advantages of size 1 and a ratio near 1, the clipped surrogate stays well below 1. A larger
one means ratios of many times 1 where the clip does not act: an action that the new policy makes
likely and whose advantage is negative. That is the part of PPO's objective without a bound.

## What to do
Lower the learning rate, or run fewer epochs. See whether the old log-probabilities are those
of the policy that sampled: same temperature, same masks, same dropout. A dual clip bounds it.

## When it is wrong
Without normalised advantages the loss has the scale of the rewards (A2C's is 10 in runs that
learn well) and the rule does not apply. GRPO's loss holds a KL term and is not looked at.

## References
- Ye et al. 2020, "Mastering Complex Control in MOBA Games with Deep Reinforcement Learning",
  section 3.4, the dual clip.
"""

import numpy as np

from rlvitals.errors import quantity
from rlvitals.metrics.catalogue.policy import LOSS
from rlvitals.rules import kinds, weigh
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold, Undecided
from rlvitals.rules.shapes import crowd
from rlvitals.rules.standing import standing
from rlvitals.signals.spread import median, robust_sd
from rlvitals.types import Trace

MAX_POLICY_LOSS = Threshold("policy-loss-explosion.size", 1.0, "size of the policy loss")
POLICY_LOSS_DEVIATIONS = Threshold(
    "policy-loss-explosion.deviations", 8.0, "robust standard deviations from the median"
)


def check(trace: Trace) -> Answer:
    """Find points beyond both limits."""
    if trace.settings.get("normalize_advantage") is False:
        return Undecided("advantages are not normalised: the loss has the scale of the rewards")
    loss = trace[LOSS.name].finite()
    middle, sd = median(loss.values) or 0.0, robust_sd(loss.values) or 0.0
    limit = MAX_POLICY_LOSS.bound(trace, "the size of one normalised advantage")
    is_outlier = np.abs(loss.values - middle) > POLICY_LOSS_DEVIATIONS.on(trace) * sd
    beyond = (np.abs(loss.values) > limit.value) & is_outlier
    rows = np.flatnonzero(beyond)
    if not rows.size:
        return Clear()
    are_crowded = crowd(rows, 3, 20)  # 3 points within 20 are no outlier
    worst = int(rows[np.abs(loss.values[rows]).argmax()])
    onset_step = int(loss.steps[rows[0]])
    trend = standing(trace, since=onset_step)
    evidence, counter = weigh.sides(trend)
    stall_severity = Severity.ERROR if trend.state == "falling" else Severity.WARNING
    return Finding(
        f"the policy loss explodes: {loss.values[worst]:.3g} at step {loss.steps[worst]:,}, "
        f"{middle:.2g} in the median; beyond {limit.value:g} in {quantity(rows.size, 'point')}",
        severity=weigh.severity(trend, stall_severity) if are_crowded else Severity.NOTE,
        metric=LOSS.name,
        began=onset_step,
        ended=int(loss.steps[rows[-1]]),
        observed=float(loss.values[worst]),
        bound=limit,
        evidence=evidence,
        counter=counter,
    )


RULE = Rule(
    name="policy-loss-explosion",
    needs=(LOSS,),
    at_least=20,  # points
    check=check,
    doc=__doc__,
    causes=(
        "learning rate too high, or too many epochs over one batch",
        "old log-probabilities that are not the sampling policy's",
        "advantages with outliers: a reward without bounds",
    ),
    remedies=(
        "lower {learning_rate} or {n_epochs:the number of epochs}",
        "check that the ratio is 1 in the first minibatch of an update",
        "clip rewards or advantages",
    ),
    profiles=kinds.PPO,
    explained_by=(
        "setting-out-of-range",
        "learning-rate-jump",
        "impossible-value",
        "gradient-explosion",
        "ratio-off-one",
        "kl-above-target",
        "kl-spike",
        "learning-rate-too-high",
    ),
    verdict="unstable",
    thresholds=(MAX_POLICY_LOSS, POLICY_LOSS_DEVIATIONS),
)
