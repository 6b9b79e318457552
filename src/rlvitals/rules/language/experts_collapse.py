"""A mixture of experts uses few of its experts: the router sends most tokens to the same ones.

## What it sees
`optimiser/expert_imbalance` (the busiest expert's load over its fair share, less 1) or
`optimiser/router_loss`, over its last fifth 1.3 x its own first tenth, and so in at least half of
20 successive updates (10 where fewer than 40 are logged) up to the end; the imbalance also at 1,
which is a busiest expert with twice its share. A note; a warning where the outcome is proven to
stall or fall.

## Why it matters
Experts without tokens get no gradient and do not come back; the model shrinks to those in use.
The engine that samples routes a little differently from the trainer, and the more so the nearer
two experts are: both the gap between them and the time of a step grow.

## What to do
Look at the load of each layer. Check the sign and the coefficient of the auxiliary loss, that it is
computed over response tokens, and that the routers' biases are updated. Freeze the router, or
replay the sampler's routing in the trainer.

## When it is wrong
Narrow data uses few experts rightly: where the outcome rises, this is a note. The level differs
between models, so only the run's own start is a scale.

## References
- Fedus et al. 2022, "Switch Transformers", section 2.2, the auxiliary loss.
- Wang et al. 2024, "Auxiliary-Loss-Free Load Balancing", MaxVio.
- Ma et al. 2025, "Stabilizing MoE Reinforcement Learning by Aligning Training and Inference
  Routers".
"""

from rlvitals.metrics.absence import describe_absence
from rlvitals.metrics.catalogue.optimiser import EXPERT_IMBALANCE, ROUTER_LOSS
from rlvitals.metrics.metric import Bound, Metric
from rlvitals.rules import kinds
from rlvitals.rules.answers import verdict_trend
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold, Undecided
from rlvitals.rules.shapes import above, start
from rlvitals.rules.weigh import severity, sides
from rlvitals.signals.level import first_last_change
from rlvitals.types import Profile, Series, Trace

EXPERT_LOAD_FACTOR = Threshold(
    "experts-collapse.factor", 1.3, "load of the busiest expert over its start"
)
MIN_EXPERT_POINTS = 20


def check(trace: Trace) -> Answer:
    """Compare the load with the run's own start, then the loss: a load has a ceiling."""
    judged_any = False
    # At 1.0 the busiest expert has twice its fair share.
    for metric, floor in ((EXPERT_IMBALANCE, 1.0), (ROUTER_LOSS, 0.0)):
        logged = trace.get(metric.name)
        load = None if logged is None else logged.finite()
        if load is None or len(load) < MIN_EXPERT_POINTS:
            continue
        judged_any = True
        answer = _compare_with_start(trace, metric, load, floor)
        if isinstance(answer, Finding):
            return answer
    # No run must log these: only a mixture of experts can.
    if judged_any:
        return Clear()
    lacks = "no load of experts is logged"
    return Undecided(
        describe_absence(trace, lacks, EXPERT_IMBALANCE, ROUTER_LOSS, min_count=MIN_EXPERT_POINTS)
    )


def _compare_with_start(trace: Trace, metric: Metric, load: Series, floor: float) -> Answer:
    first, levels = start(load), first_last_change(load.values)
    if first is None or first <= 0 or levels is None:
        return Clear()
    limit = EXPERT_LOAD_FACTOR.bound(
        trace, f"{EXPERT_LOAD_FACTOR.default:g} x this run's start", first
    )
    stretch = above(load, max(limit.value, floor))
    if levels[1] <= max(limit.value, floor) or stretch is None or not stretch.goes_on:
        return Clear()
    trend = verdict_trend(trace)
    evidence, counter = sides(trend)
    finding_severity = severity(trend, stalled=Severity.WARNING)
    title = "the busiest expert's excess load" if metric is EXPERT_IMBALANCE else "the router loss"
    return Finding(
        f"the experts are used ever less evenly: {title} went from {first:.3g} to {levels[1]:.3g}",
        severity=finding_severity,
        metric=metric.name,
        began=stretch.start,
        ended=stretch.end,
        observed=levels[1],
        bound=Bound(max(limit.value, floor), limit.origin),
        evidence=evidence,
        counter=counter,
    )


RULE = Rule(
    name="experts-collapse",
    needs=(),
    check=check,
    doc=__doc__,
    causes=(
        "no balancing force: an auxiliary coefficient of zero or of the wrong sign",
        "a learning rate that is too high for the router",
        "sampler and trainer route the same tokens differently",
    ),
    remedies=(
        "check the coefficient and the sign of the auxiliary loss",
        "freeze the router, or give it a lower learning rate",
        "replay the sampler's routing in the trainer",
    ),
    profiles=(*kinds.LANGUAGE, Profile.SUPERVISED),
    thresholds=(EXPERT_LOAD_FACTOR,),
)
