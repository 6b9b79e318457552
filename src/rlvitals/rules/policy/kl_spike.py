"""One update moved the policy many times further than the updates around it.

## What it sees
`policy/approx_kl` above 8 x the median of the 50 updates before it, and above 0.05 or five
times the run's `target_kl`. One or two such updates are a note; three within 50, or one after
which a quarter of the outcome is gone, are a warning.

## Why it matters
A single drastic update can undo what thousands learned, and the data that would repair it is
then collected by the damaged policy.

## What to do
Clip gradients, lower the learning rate, and look at the advantages of that batch: an outlier
reward or a broken normaliser is the usual reason. `target_kl` would have cut the update short.

## When it is wrong
Language models live at a KL of 1e-5 to 1e-3: a spike there stays below the floor and is not
seen. A metric that logs the last minibatch alone is noisier than one that averages an epoch.

## References
- Schulman et al. 2017, "Proximal Policy Optimization Algorithms".
- Andrychowicz et al. 2021, "What Matters for On-Policy Deep Actor-Critic Methods?", section 3.
"""

import numpy as np

from rlvitals.metrics.metric import Bound
from rlvitals.metrics.policy import APPROX_KL
from rlvitals.records import Series, Trace
from rlvitals.rules import kinds
from rlvitals.rules.going_on import goes_on
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold, persistence
from rlvitals.rules.shapes import KL_SPIKE, crowd, jumps
from rlvitals.rules.standing import label, standing
from rlvitals.signals.spike import Spike

# 3-4 x is ordinary; the floor is twice the usual targets, and then some.
FACTOR = Threshold("kl-spike.factor", KL_SPIKE[0], "x the median of the 50 updates before", low=1.0)
FLOOR = Threshold("kl-spike.floor", KL_SPIKE[1], "KL per update, nats, where no target_kl is set")
OF_TARGET = Threshold("kl-spike.of-target", 5.0, "x the run's target_kl")
PERSISTS = persistence("kl-spike")
LOST = 0.25  # of the outcome's level before
STORM, WITHIN = 3, 50  # spikes within so many updates are no longer an accident


def check(trace: Trace) -> Answer:
    """Look for isolated jumps, then for what the outcome did after them."""
    kl = trace[APPROX_KL.name].finite()
    target = max(trace.number("target_kl") or 0.0, 0.0)
    factor, floor = FACTOR.on(trace), _floor(trace, target)
    found = jumps(kl, factor, floor.value)
    if not found:
        return Clear()
    worst = max(found, key=lambda spike: spike.value)
    after = standing(trace, since=int(kl.steps[found[0].index]))
    lost = _lost(trace, int(kl.steps[found[0].index]))
    storm = crowd(np.array([spike.index for spike in found]), STORM, WITHIN)
    severity = Severity.NOTE
    soon = after.state == "unknown" and goes_on(trace)  # what came of it is still to be seen
    if (storm and not after.improves and not soon) or after.state == "falling" or lost:
        severity = Severity.WARNING
    bound = max(
        FACTOR.bound(trace, f"{factor:g} x the median of the updates before it", worst.baseline),
        floor,
        key=lambda b: b.value,
    )
    return Finding(
        f"KL jumps to {worst.value:.2g} in one update, {worst.ratio:,.0f} x what it was"
        + (f", and {len(found) - 1} more besides" if len(found) > 1 else ""),
        severity=severity,
        metric=APPROX_KL.name,
        began=int(kl.steps[found[0].index]),
        ended=int(kl.steps[found[-1].index]),
        observed=worst.value,
        bound=bound,
        evidence=(_listed(kl, found), *lost),
        counter=(f"afterwards {after.sentence}",) if after.improves and not lost else (),
    )


def _floor(trace: Trace, target: float) -> Bound:
    if not target:
        return FLOOR.bound(trace, "default")
    return OF_TARGET.bound(trace, f"{OF_TARGET.on(trace):g} x the run's target_kl", scale=target)


def _lost(trace: Trace, step: int) -> tuple[str, ...]:
    """Say what the outcome lost at a step, where that is more than counts for it."""
    before, after = standing(trace, until=step), standing(trace, since=step)
    if not before.last - after.last > max(before.material, LOST * abs(before.last)):  # or NaN
        return ()
    name = label(before.metric)
    return (f"{name} was {before.last:.4g} before and is {after.last:.4g} since",)


def _listed(kl: Series, found: tuple[Spike, ...]) -> str:
    shown = ", ".join(f"{s.value:.2g} at {int(kl.steps[s.index]):,}" for s in found[:4])
    return f"jumps: {shown}" + (", ..." if len(found) > 4 else "")  # noqa: PLR2004


RULE = Rule(
    name="kl-spike",
    needs=(APPROX_KL,),
    at_least=15,
    check=check,
    doc=__doc__,
    causes=(
        "an outlier in the batch's advantages or rewards",
        "learning rate too high",
        "gradients that are not clipped",
    ),
    remedies=(
        "set or lower {max_grad_norm}",
        "lower {learning_rate}",
        "set {target_kl:a KL target}, which cuts such an update short",
        "look at that batch's rewards",
    ),
    profiles=kinds.PPO,
    explained_by=(
        "setting-out-of-range",
        "environment-changed",
        "exploration-explodes",
        "learning-rate-too-high",
        "learning-rate-jump",
        "gradient-explosion",
        "ratio-off-one",
        "kl-above-target",
    ),
    verdict="unstable",
    thresholds=(FACTOR, FLOOR, OF_TARGET, PERSISTS),
    persists=PERSISTS,
)
