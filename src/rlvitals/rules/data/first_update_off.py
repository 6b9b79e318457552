"""The first update is not where it must be: before it, nothing has moved.

## What it sees
What holds before the first gradient step, whatever the settings, and is logged there:

- KL to the reference is 0 at the first update (TRL, verl), within what two passes in bfloat16
  differ by. Clearly negative it is a warning; positive a note, as a policy may be started
  elsewhere than at its reference. It never stays exactly 0 afterwards: a warning.
- With one gradient step per batch, by the run's own settings, the ratio is 1 and KL and clip
  fraction are 0 in every update.
- `rlvitals train ppo` logs the KL, the clip fraction and the largest ratio of each update's first
  minibatch: 0, 0 and 1 in every update.
- Spinning Up's PPO logs its loss before each first step: minus the mean of centred advantages, 0.
- On-policy GRPO's first loss is 0 where every response weighs the same.
- In TRL's logged completions, advantages average to 0 in each prompt's group, and the first
  batch's responses do not all come in equal copies.

## Why it matters
No band is behind it, so it needs no tuning: log-probabilities that differ between two passes of
the same weights (temperature, padding, dropout, another tokenisation) make every later ratio and
KL wrong. A reference that follows the policy is no anchor.

## What to do
Take one batch, and compare the log-probabilities token by token before the first step: policy
against reference, trainer against sampler. Check what is frozen, and by what groups are formed.

## When it is wrong
A policy that starts elsewhere than at its reference on purpose, as when training goes on from a
checkpoint under new step numbers. A log that begins later, or averages over several updates, says
nothing here.

## References
- Schulman et al. 2017, "Proximal Policy Optimization Algorithms": the ratio starts at 1.
- Shao et al. 2024, "DeepSeekMath": advantages relative to the group.
"""

from dataclasses import replace

import numpy as np

from rlvitals.metrics.catalogue.policy import KL_TO_REFERENCE, KL_TO_REFERENCE_PER_TOKEN
from rlvitals.metrics.metric import Bound
from rlvitals.rules import invariants, kinds
from rlvitals.rules.invariants import Read, Reading
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Undecided
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Trace

REFERENCE_KL_METRICS = (KL_TO_REFERENCE, KL_TO_REFERENCE_PER_TOKEN)


@dataclass(frozen=True, slots=True)
class Invariant:
    """What must hold, and what it means where it does not."""

    says: str  # what is expected, in words
    read: Read
    worst: Severity
    causes: tuple[str, ...]


DIFFERENT_LOGPROBS_CAUSES = (
    "log-probabilities of policy and reference are taken otherwise: temperature, padding, dropout",
    "the policy starts elsewhere than at its reference",
)
FIRST_UPDATE_INVARIANTS = (
    Invariant(
        "KL to the reference must be 0 before the first step",
        invariants.kl_per_sequence,
        Severity.WARNING,
        DIFFERENT_LOGPROBS_CAUSES,
    ),
    Invariant(
        "KL to the reference must be 0 before the first step",
        invariants.kl_per_token,
        Severity.WARNING,
        DIFFERENT_LOGPROBS_CAUSES,
    ),
    Invariant(
        "KL to the reference must leave 0 once the policy moves",
        invariants.reference_follows,
        Severity.WARNING,
        (
            "the reference is the policy itself: it is not frozen, or its adapter not disabled",
            "the weights do not move: too small a learning rate for bfloat16",
        ),
    ),
    Invariant(
        "with one update per batch the ratio must be 1, KL and clip fraction 0",
        invariants.single_update,
        Severity.WARNING,
        (
            "old log-probabilities are not the policy's: temperature, dropout, stale weights",
            "more updates are made of a batch than the settings say",
        ),
    ),
    Invariant(
        "in an update's first minibatch the ratio must be 1, KL and clip fraction 0",
        invariants.first_minibatch,
        Severity.WARNING,
        (
            "old log-probabilities are not the policy's: temperature, dropout, stale weights",
            "states are normalised otherwise than when the policy acted on them",
        ),
    ),
    Invariant(
        "the loss before the first step of an epoch must be 0",
        invariants.loss_before,
        Severity.WARNING,
        ("advantages are not centred", "old log-probabilities are not those of the policy"),
    ),
    Invariant(
        "on-policy GRPO's first loss must be 0",
        invariants.grpo_loss,
        Severity.NOTE,  # measured on too few runs to warn
        ("advantages do not average to 0: wrong groups", "the first batch is off-policy"),
    ),
    Invariant(
        "advantages must average to 0 over each prompt's group",
        invariants.group_advantage,
        Severity.NOTE,  # measured on too few runs to warn
        ("group ids are wrong: advantages are taken against another prompt's rewards",),
    ),
    Invariant(
        "responses must not all come in equal copies",
        invariants.twins,
        Severity.NOTE,  # measured on too few runs to warn
        ("all ranks draw with the same seed", "responses are decoded greedily"),
    ),
)


def check(trace: Trace) -> Answer:
    """Ask every invariant that this log can show; the gravest answer counts."""
    read = [(i, r) for i in FIRST_UPDATE_INVARIANTS if (r := i.read(trace)) is not None]
    findings = [f for invariant, reading in read if (f := _judge(invariant, reading)) is not None]
    if findings:
        worst = max(f.severity for f in findings)
        first = min((f for f in findings if f.severity == worst), key=lambda f: f.began)
        return replace(first, evidence=tuple(f.summary for f in findings if f is not first))
    return Clear() if read else _undecided_reason(trace)


def _judge(invariant: Invariant, reading: Reading) -> Finding | None:
    off = reading.off
    # At least half of the points that are judged together must be off.
    if not len(off) or len(off) < 0.5 * len(reading.points):
        return None
    all_points = np.isfinite(
        reading.worst
    )  # the points are as they are logged, but should not all be
    worst = float(off.values[int(np.abs(off.values - reading.expected).argmax())])
    expected = 0.0 if all_points else reading.expected
    of_what = (
        f" in all {len(off)} updates" if all_points else f" in {len(off)} of {len(reading.points)}"
    )
    count_text = of_what if len(reading.points) > 1 else ""
    return Finding(
        f"{invariant.says}: {worst:.3g} is logged{count_text}",
        severity=_severity(invariant, reading, worst),
        metric=reading.name,
        began=int(off.steps[0]),
        ended=int(off.steps[-1]),
        observed=worst,
        bound=Bound(
            expected,
            "not for ever" if all_points else f"give or take {reading.slack:.2g}: rounding",
        ),
        causes=invariant.causes,
    )


def _severity(invariant: Invariant, reading: Reading, worst: float) -> Severity:
    starts = reading.name in {m.name for m in REFERENCE_KL_METRICS} and worst > reading.slack
    return Severity.NOTE if starts else invariant.worst


def _undecided_reason(trace: Trace) -> Undecided:
    for metric in REFERENCE_KL_METRICS:
        if (logged := trace.get(metric.name)) is not None and len(logged):
            step = int(logged.steps[0])
            if step > invariants.FIRST_UPDATE_STEP:
                return Undecided(f"{metric.name} begins at step {step:,}, after the first update")
    return Undecided("nothing is logged whose value at the first update is known")


RULE = Rule(
    name="first-update-off",
    needs=(),
    check=check,
    doc=__doc__,
    causes=DIFFERENT_LOGPROBS_CAUSES,
    remedies=(
        "compare log-probabilities of one batch token by token before the first step",
        "score with the temperature that samples, without dropout, padding masked",
        "freeze the reference, and disable the adapter where it is the same model",
    ),
    profiles=kinds.WITH_REWARD,
)
