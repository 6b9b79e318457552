"""KL to the reference is negative on average, which no KL can be: two log-probabilities disagree.

## What it sees
The mean over the last half of the run below zero beyond its own noise (a 99.9 % interval over
blocks longer than the series' memory), by more than 0.01 nats per sequence. Single negative
batches are ordinary for the k1 estimator. Below -1 nat per sequence, or where what is learned
stalls, a warning; else a note.

## Why it matters
E[log pi - log pi_ref] is a KL only for samples of pi. Negative on average, responses were not
drawn from the policy whose log-probabilities are taken: the penalty turns into a bonus for
leaving the reference, and the ratios of PPO are wrong as well.

## What to do
Sample with temperature 1 and without top-k, top-p or a repetition penalty, or divide the logits
by the same temperature when taking log-probabilities. Check that padding is masked in both, that
both run without dropout, and that the sampler's weights are the current ones.

## When it is wrong
An estimator that adds a control variate can dip slightly below zero by rounding.

## References
- Schulman 2020, "Approximating KL Divergence", http://joschu.net/blog/kl-approx.html.
- huggingface/trl v0.11.4, ppo_trainer.py, step: warns where mean KL falls below -1.
"""

import math

import numpy as np

from rlvitals.metrics.metric import Bound
from rlvitals.metrics.policy import KL_TO_REFERENCE
from rlvitals.records import Profile, Trace
from rlvitals.rules.answers import learned
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Undecided
from rlvitals.rules.weigh import sides
from rlvitals.signals.blocks import block_length, block_means
from rlvitals.signals.student import t_quantile

CONFIDENCE = 0.998  # two-sided: one chance in a thousand on the low side
LEAST = 20  # updates
BLOCKS = 5  # at least, to know a mean's error
ROUNDING = Bound(-0.01, "nats per sequence, default: what rounding can do")
WARNS = -1.0  # nats per sequence: TRL's own limit


def check(trace: Trace) -> Answer:
    """Judge the mean of the last half against its own error."""
    kl = trace[KL_TO_REFERENCE.name].finite()
    half = kl.tail(max(len(kl) // 2, LEAST // 2))
    mean = float(block_means(half.values, len(half))[0])  # a sum might overflow
    if mean >= ROUNDING.value:
        return Clear()
    blocks = block_means(half.values, block_length(half.values))
    if len(blocks) < BLOCKS:
        if len(half) < 2 * BLOCKS or np.any(half.values >= 0):
            return Undecided("KL is negative, but too sluggish to tell a level from noise")
        blocks = block_means(half.values, len(half) // BLOCKS)
    error = float(blocks.std(ddof=1)) / math.sqrt(len(blocks))
    high = float(blocks.mean()) + t_quantile(CONFIDENCE, len(blocks) - 1.0) * error
    if not np.isfinite(high):
        return Undecided("KL is too large to be averaged")
    if high >= 0:
        return Clear()
    now = learned(trace)
    evidence, counter = sides(now)
    return Finding(
        f"KL to the reference averages {mean:.3g} nats per sequence over the last {len(half)} "
        "updates: below zero, which no KL can be",
        severity=Severity.WARNING if mean < WARNS or now.stalled else Severity.NOTE,
        metric=KL_TO_REFERENCE.name,
        began=_began(trace),
        ended=int(kl.steps[-1]),
        observed=mean,
        bound=ROUNDING,
        evidence=(f"the interval of that mean ends at {high:.3g}", *evidence),
        counter=counter,
    )


def _began(trace: Trace) -> int:
    """Return the step after which the sum only goes down: where the mean left zero."""
    kl = trace[KL_TO_REFERENCE.name].finite()
    sums = np.concatenate(([0.0], np.cumsum(kl.values)))[:-1]
    return int(kl.steps[int(np.argmax(sums))])


RULE = Rule(
    name="reference-kl-negative",
    needs=(KL_TO_REFERENCE,),
    at_least=LEAST,
    check=check,
    doc=__doc__,
    causes=(
        "responses sampled at another temperature, or with top-k or top-p",
        "padding or prompt tokens counted in one of the two log-probabilities",
        "dropout on, or stale weights, in the sampler",
    ),
    remedies=(
        "generate with {temperature:temperature} 1, top_k 0, top_p 1, or score with the same",
        "check the attention and padding masks of policy and reference",
        "check that the first minibatch's ratio is 1",
    ),
    profiles=(Profile.RLHF_PPO,),
    explained_by=("ratio-off-one",),
)
