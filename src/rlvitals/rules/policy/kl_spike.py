"""One update moved the policy many times further than the updates around it.

## What it sees
`policy/approx_kl` above 8 x the median of the 50 updates before it, and above 0.05 or five
times the run's `target_kl`. One or two such updates are a note; three within 50, or one at which
a quarter of the outcome goes, are a warning. "At which": the outcome had not begun to fall before,
shows it within five points, or a little later where it is logged as a mean over many episodes, and
falls no longer than such a mean needs to forget. Three within 50 stay a note where the outcome rose
over the whole run by twice what counts, and holds that.

A language model's jump of a few tokens alone is passed over, unless the outcome falls at it: a mean
over the hundred tokens of a small batch is one token's, where that one left by 8 nats. Such a jump
has 5 % of the tokens clipped at most, and a clip range inside of which nothing reaches the limit.

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

import math

import numpy as np

from rlvitals.metrics.catalogue.policy import APPROX_KL, CLIP_FRACTION, CLIP_FRACTION_EFFECTIVE
from rlvitals.metrics.metric import Bound
from rlvitals.rules import kinds
from rlvitals.rules.course import is_lost_before
from rlvitals.rules.curves import holds_early_gain
from rlvitals.rules.falling import fall
from rlvitals.rules.going_on import goes_on
from rlvitals.rules.outcome_blocks import lost_again
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold, persistence
from rlvitals.rules.shapes import KL_SPIKE_LIMITS, crowd_at, jumps
from rlvitals.rules.standing import label, outcome, standing, up
from rlvitals.signals.spike import Spike
from rlvitals.types import Series, Trace

# 3-4 x is ordinary; the floor is twice the usual targets, and then some.
KL_SPIKE_FACTOR = Threshold(
    "kl-spike.factor", KL_SPIKE_LIMITS[0], "x the median of the 50 updates before", low=1.0
)
KL_SPIKE_FLOOR = Threshold(
    "kl-spike.floor", KL_SPIKE_LIMITS[1], "KL per update, nats, where no target_kl is set"
)
TARGET_KL_FACTOR = Threshold("kl-spike.of-target", 5.0, "x the run's target_kl")
MIN_CLIPPED_TOKEN_SHARE = Threshold(
    "kl-spike.few", 0.05, "share of a language model's tokens clipped: with fewer, a few tokens'"
)
KL_SPIKE_PERSISTENCE = persistence("kl-spike")


def check(trace: Trace) -> Answer:
    """Look for isolated jumps, then for what the outcome did after them."""
    kl = trace[APPROX_KL.name].finite()
    target = max(trace.number("target_kl") or 0.0, 0.0)
    factor, floor = KL_SPIKE_FACTOR.on(trace), _floor(trace, target)
    spikes = jumps(kl, factor, floor.value)
    steps = [int(kl.steps[spike.index]) for spike in spikes]
    few = [_is_few_tokens(trace, step, floor.value) for step in steps]
    if any(few) and not any(_describe_loss(trace, step) for step in steps):
        spikes = tuple(spike for spike, is_few in zip(spikes, few, strict=True) if not is_few)
    if not spikes:
        return Clear()
    worst = max(spikes, key=lambda spike: spike.value)
    blamed, loss_text, severity = _choose_spike(trace, kl, spikes)
    onset_step = int(kl.steps[blamed.index])
    after = standing(trace, since=onset_step)
    lost_earlier = severity > Severity.NOTE and not loss_text and is_lost_before(trace, onset_step)
    bound = max(
        KL_SPIKE_FACTOR.bound(
            trace, f"{factor:g} x the median of the updates before it", worst.baseline
        ),
        floor,
        key=lambda b: b.value,
    )
    counter = (f"afterwards {after.sentence}",) if after.improves and not loss_text else ()
    before_it = (
        f"{worst.ratio:,.0f} x what it was" if worst.baseline > 0 else f"from {worst.baseline:.2g}"
    )
    return Finding(
        f"KL jumps to {worst.value:.2g} in one update, {before_it}"
        + (f", and {len(spikes) - 1} more besides" if len(spikes) > 1 else ""),
        severity=Severity.NOTE if lost_earlier else severity,
        metric=APPROX_KL.name,
        began=onset_step,
        ended=int(kl.steps[spikes[-1].index]),
        observed=worst.value,
        bound=bound,
        evidence=(_list_spikes(kl, spikes), *loss_text),
        counter=(*counter, *("the outcome had been lost before",) * bool(lost_earlier)),
    )


def _choose_spike(
    trace: Trace, kl: Series, spikes: tuple[Spike, ...]
) -> tuple[Spike, tuple[str, ...], Severity]:
    """Pick the jump that counts: the one at which the outcome fell, else the storm's first."""
    for number, spike in enumerate(spikes):
        previous = spikes[max(number - 1, 0)]
        is_near = spike.index - previous.index <= 2  # updates
        first_step = int(kl.steps[(previous if is_near else spike).index])
        if loss_text := _describe_loss(trace, int(kl.steps[spike.index]), first_step):
            return spike, loss_text, Severity.WARNING
    # 3 spikes within 50 updates are no accident.
    storm = crowd_at(np.array([spike.index for spike in spikes]), 3, 50)
    first = spikes[0 if storm is None else storm]
    after = standing(trace, since=int(kl.steps[spikes[0].index]))
    is_too_soon = after.state == "unknown" and goes_on(trace)  # what came of it is still to be seen
    if storm is not None and not (after.improves or is_too_soon or _keeps_gain(trace)):
        return first, (), Severity.WARNING
    return first, (), Severity.NOTE


def _keeps_gain(trace: Trace) -> bool:
    """Tell whether a run of episodes rose at once, or far more than what counts, and holds that."""
    trend = standing(trace)
    # Twice the least that counts.
    has_risen = trend.improves and trend.last - trend.first >= 2.0 * trend.material
    if (
        not has_risen
        and trend.state == "holding its best"
        and (picked := outcome(trace)) is not None
    ):
        has_risen = holds_early_gain(trace, picked[0], picked[1].values, trend.last, trend.material)
    return has_risen and trace.profile in kinds.CONTROL and lost_again(trace) is None


def _floor(trace: Trace, target: float) -> Bound:
    if not target:
        return KL_SPIKE_FLOOR.bound(trace, "default")
    return TARGET_KL_FACTOR.bound(
        trace, f"{TARGET_KL_FACTOR.on(trace):g} x the run's target_kl", scale=target
    )


def _is_few_tokens(trace: Trace, step: int, floor: float) -> bool:
    """Ask whether a jump is that of a few tokens of a language model, and not of the policy."""
    clip = trace.number("clip_range")
    clipped = trace.get(CLIP_FRACTION_EFFECTIVE.name) or trace.get(CLIP_FRACTION.name)
    if trace.profile not in kinds.LANGUAGE or clip is None or clipped is None:
        return False
    if not 0.0 < clip < 1.0 or 0.5 * math.log1p(-clip) ** 2 > floor:  # k2 at the range's edge
        return False
    share = clipped.since(step).until(step).finite().values
    return bool(share.size and share[0] <= MIN_CLIPPED_TOKEN_SHARE.on(trace))


def _describe_loss(trace: Trace, step: int, first_step: int | None = None) -> tuple[str, ...]:
    """Say what the outcome lost at a step and no later, where that is more than counts for it.

    The loss may show from `first_step` on: a jump two updates before belongs to this one.
    """
    picked = outcome(trace)
    drop = None if picked is None else fall(trace, *picked, step)
    if picked is None or drop is None:
        return ()
    if (
        drop.earlier
        or drop.late
        or drop.visible_step < (step if first_step is None else first_step)
    ):
        return ()
    if drop.slow or not (drop.half or drop.hidden):
        return ()  # worse from update to update: no single one did that
    trend_before, trend_after = standing(trace, until=step), standing(trace, since=step)
    loss = drop.before - drop.last
    # A quarter of the outcome's level before.
    if not loss > max(trend_before.material, 0.25 * abs(drop.before)):  # or NaN
        return ()
    name, sign = label(trend_after.metric), up(picked[0])
    return (f"{name} was {sign * drop.before:.4g} before and is {sign * drop.last:.4g} now",)


def _list_spikes(kl: Series, spikes: tuple[Spike, ...]) -> str:
    values_text = ", ".join(f"{s.value:.2g} at {int(kl.steps[s.index]):,}" for s in spikes[:4])
    return f"jumps: {values_text}" + (", ..." if len(spikes) > 4 else "")


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
    thresholds=(
        KL_SPIKE_FACTOR,
        KL_SPIKE_FLOOR,
        TARGET_KL_FACTOR,
        MIN_CLIPPED_TOKEN_SHARE,
        KL_SPIKE_PERSISTENCE,
    ),
    persists=KL_SPIKE_PERSISTENCE,
)
