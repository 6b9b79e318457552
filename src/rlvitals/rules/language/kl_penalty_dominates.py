"""The KL penalty moves the objective more than the reward does.

## What it sees
PPO: penalty and score, both per sequence. The penalty's changes from update to update scatter
more than the score's, and the price paid (the penalty is 0 at the reference, so its level is a
change) exceeds what the score gained. GRPO: beta x KL per token above the reward's gain in units
of its own spread, which is the scale of the advantages. The score's zero is arbitrary, so levels
of it are never compared. A warning where the score does not improve, nothing where it does.

## Why it matters
The policy is then trained to stay at the reference and, by the way, to score.

## What to do
Lower `kl_coef` or `beta`; scale rewards so that their spread is near one; check that the sign of
the penalty is right: non_score + kl_coef x KL is 0 in every row.

## When it is wrong
Very early nothing is gained yet, and any price is too high: 40 updates are asked.

## References
- Ziegler et al. 2019, "Fine-Tuning Language Models from Human Preferences", section 2.2.
- huggingface/trl, ppo_trainer.py (non_score_reward), grpo_trainer.py (beta * per_token_kl).
"""

import numpy as np

from rlvitals.metrics.catalogue.outcome import REWARD, SCORE
from rlvitals.metrics.catalogue.policy import KL_TO_REFERENCE, KL_TO_REFERENCE_PER_TOKEN
from rlvitals.metrics.catalogue.reward import NON_SCORE, STD
from rlvitals.metrics.metric import Bound
from rlvitals.rules import kinds
from rlvitals.rules.answers import learning_trend
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold, Undecided
from rlvitals.rules.standing import Standing
from rlvitals.rules.weigh import severity, sides
from rlvitals.signals.blocks import block_means
from rlvitals.signals.spread import median, noise_sd
from rlvitals.types import Series, Trace

MIN_PENALTY_UPDATES = 40
KL_PENALTY_FACTOR = Threshold(
    "kl-penalty-dominates.factor", 1.0, "x what was gained, that the KL penalty costs"
)


def check(trace: Trace) -> Answer:
    """Compare prices and gains of the same reduction."""
    trend = learning_trend(trace)
    if NON_SCORE.name in trace and SCORE.name in trace:
        return _per_sequence(trace, trend)
    if KL_TO_REFERENCE_PER_TOKEN.name in trace:
        return _check_token_kl(trace, trend)
    return Undecided("the score is not logged beside the penalty", (SCORE.name,))


def _per_sequence(trace: Trace, trend: Standing) -> Answer:
    penalty, score = trace[NON_SCORE.name].finite(), trace[SCORE.name].finite()
    if min(len(penalty), len(score)) < MIN_PENALTY_UPDATES:
        return Undecided(f"fewer than {MIN_PENALTY_UPDATES} updates")
    scatter, score_noise = noise_sd(penalty.values), noise_sd(score.values)
    if not score_noise or not np.median(np.abs(np.diff(score.values))):
        return Undecided("the score hardly varies: there is nothing to compare with")
    price = -_level(penalty)
    gain = _gain(score)
    limit = _limit(trace, max(gain, score_noise), "score")
    if not scatter or scatter <= score_noise or price <= limit.value or trend.improves:
        return Clear()
    evidence, counter = sides(trend)
    # Scatter and price are two witnesses: at 3 x the gain, they need no third.
    unknown = Severity.WARNING if price > 3.0 * limit.value else Severity.NOTE
    return Finding(
        f"the KL penalty costs {price:.3g} per sequence where the score gained {gain:.3g}, and "
        f"scatters {scatter / score_noise:.1f} x as much from update to update",
        severity=severity(trend, unknown=unknown),
        metric=NON_SCORE.name,
        began=int(penalty.steps[0]),
        ended=int(penalty.steps[-1]),
        observed=price,
        bound=limit,
        limit_on_curve=False,
        evidence=(*_identity(trace), *evidence),
        counter=counter,
    )


def _check_token_kl(trace: Trace, trend: Standing) -> Answer:
    beta = trace.number("beta")
    if beta is None:
        return Undecided("beta is not known", ("beta",))
    if REWARD.name not in trace or STD.name not in trace:
        return Undecided(
            "the reward's mean and spread are not both logged", (REWARD.name, STD.name)
        )
    kl, reward = trace[KL_TO_REFERENCE_PER_TOKEN.name].finite(), trace[REWARD.name].finite()
    spread = median(trace[STD.name].finite().values)
    if min(len(kl), len(reward)) < MIN_PENALTY_UPDATES:
        return Undecided(f"fewer than {MIN_PENALTY_UPDATES} updates")
    if not spread:
        return Undecided("rewards do not differ: there is nothing to compare with")
    price = beta * _level(kl)
    gain, noise = _gain(reward) / spread, (noise_sd(reward.values) or 0.0) / spread
    limit = _limit(trace, max(gain, noise), "reward")
    if price <= limit.value or trend.improves:
        return Clear()
    evidence, counter = sides(trend)
    return Finding(
        f"beta x KL is {price:.3g} per token where the reward gained {gain:.3g} of its own spread",
        severity=severity(trend),
        metric=KL_TO_REFERENCE_PER_TOKEN.name,
        began=int(kl.steps[0]),
        ended=int(kl.steps[-1]),
        observed=price,
        bound=limit,
        limit_on_curve=False,
        evidence=(f"the run's beta is {beta:g}", *evidence),
        counter=counter,
    )


def _limit(trace: Trace, gain: float, name: str) -> Bound:
    origin = f"what the {name} gained in this run, at least its scatter"
    return KL_PENALTY_FACTOR.bound(trace, origin, scale=gain)


def _level(series: Series) -> float:
    """Return the mean of the last half."""
    half = len(series) // 2
    return float(block_means(series.values, half)[-1])


def _gain(series: Series) -> float:
    """Return how far the best block is above the first: 0 where nothing was gained."""
    blocks = block_means(series.values, max(1, len(series) // 10))  # ten blocks
    return max(0.0, float(blocks.max() - blocks[0]))


def _identity(trace: Trace) -> tuple[str, ...]:
    """Check non_score + kl_coef x KL = 0: it shows the sign and the coefficient in force."""
    if KL_TO_REFERENCE.name not in trace:
        return ()
    kl, penalty = trace[KL_TO_REFERENCE.name], trace[NON_SCORE.name]
    _, rows, within = np.intersect1d(kl.steps, penalty.steps, return_indices=True)
    x, y = kl.values[rows], penalty.values[within]
    keep = np.isfinite(x) & np.isfinite(y)
    size = float(np.abs(x[keep]).max(initial=0.0))
    if not size:
        return ()
    x = x[keep] / size
    implied = -float((x * y[keep]).sum() / (x * x).sum()) / size
    set_coef = trace.number("kl_coef")
    # Logged values are rounded and averaged: 5 % are allowed.
    if set_coef and abs(implied - set_coef) > 0.05 * abs(set_coef):
        return (f"penalty / KL is {implied:.3g}, but the run's kl_coef is {set_coef:g}",)
    if implied < 0:
        return (f"the penalty has the sign of a bonus: penalty / KL is {implied:.3g}",)
    return (f"the coefficient in force is {implied:.3g} (-penalty / KL)",)


RULE = Rule(
    name="kl-penalty-dominates",
    needs=(),
    needs_any=(NON_SCORE, KL_TO_REFERENCE_PER_TOKEN),
    at_least=MIN_PENALTY_UPDATES,
    check=check,
    doc=__doc__,
    causes=(
        "kl_coef or beta too large for rewards of this size",
        "rewards far smaller than usual",
    ),
    remedies=(
        "lower {kl_coef|beta} by ten",
        "scale rewards to a spread near one",
    ),
    profiles=kinds.LANGUAGE,
    explained_by=(
        "accounting-broken",
        "reference-kl-out-of-range",
        "kl-coefficient-runaway",
        "constant-reward",
    ),
    thresholds=(KL_PENALTY_FACTOR,),
)
