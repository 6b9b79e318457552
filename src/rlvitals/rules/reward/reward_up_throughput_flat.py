"""The reward rises and neither throughput nor latency follows.

## What it sees
The reward (`outcome/reward` or `reward/mean`, else what the run is judged by) is proven (or plain)
to rise; throughput's level over the last fifth is not 5 % above the first; latency's is not 10 %
below it, or latency stopped being measured: it repeats one value exactly over the last fifth. A
note where latency is measured and so noisy that it may have fallen. Where the arrivals are logged
and 85 % of them are finished, throughput cannot follow: there latency must have risen by 10 %, or
have stopped being measured.

## Why it matters
The reward is a proxy for what the cluster does. If it rises alone, the policy found a term that
pays without serving anybody faster, or a penalty is masked because its measurement is gone.

## What to do
Inspect the reward's breakdown over the steps where it rose: which term moved? Make sure that
missing latency counts as bad, not as zero.

## When it is wrong
Where arrivals limit throughput, a better policy shows in latency alone, and where that cannot be
told because arrivals are not logged, a small gain of latency is missed.
A reward for balance may rise before latency does.

## References
- Amodei et al. 2016, "Concrete Problems in AI Safety", on reward hacking.
"""

import numpy as np

from rlvitals.metrics.catalogue.outcome import LATENCY, REWARD, THROUGHPUT
from rlvitals.metrics.catalogue.reward import MEAN
from rlvitals.metrics.catalogue.scheduler import ARRIVALS
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold, Undecided
from rlvitals.rules.standing import standing
from rlvitals.signals.level import first_last_change
from rlvitals.signals.trend import trend
from rlvitals.types import Profile, Series, Trace

MIN_THROUGHPUT_GAIN = Threshold(
    "reward-up-throughput-flat.gain", 0.05, "gain of throughput, as a part of what it was", low=-1.0
)
MIN_RELIEF = 0.10  # of the latency
MIN_LATENCY_POINTS = 20


def check(trace: Trace) -> Answer:
    """Compare the reward's direction with what the cluster does."""
    # A return needs episodes that end: a cluster's may outlast the run.
    paid = standing(trace, of=next((m.name for m in (REWARD, MEAN) if m.name in trace), ""))
    if paid.state == "unknown":
        return Undecided(paid.sentence, (REWARD.name,))
    if paid.state != "rising":
        return Clear()
    served = trace[THROUGHPUT.name].finite()
    levels = first_last_change(served.values)
    if levels is None or levels[0] <= 0:
        return Undecided("throughput starts at zero: its gain has no scale", (THROUGHPUT.name,))
    gain = levels[1] / levels[0] - 1
    latency = trace.get(LATENCY.name)
    waits = None if latency is None else first_last_change(latency.values)
    if latency is None or waits is None:
        lacks = "is not logged" if latency is None else "has too few numbers"
        return Undecided(f"latency {lacks}: it may be what improved", (LATENCY.name,))
    step = _frozen_since(latency.finite())
    # Where nearly all that arrives is served, throughput cannot rise: latency must not have either.
    longest = 1 + MIN_RELIEF if _serves_all(trace, levels[1]) else 1 - MIN_RELIEF
    if gain > MIN_THROUGHPUT_GAIN.on(trace) or (waits[1] < longest * waits[0] and step is None):
        return Clear()
    masked = () if step is None else (f"latency repeats {waits[1]:g} exactly since step {step:,}",)
    course = None if masked else trend(latency.values)
    # Latency swings for long: that it fell by a tenth must be ruled out, not merely be unseen.
    proven = bool(masked) or (course is not None and course.change_low > -MIN_RELIEF * waits[0])
    return Finding(
        f"{paid.sentence}, but throughput does not follow: {levels[0]:.3g} to {levels[1]:.3g}",
        severity=Severity.WARNING if proven else Severity.NOTE,
        metric=paid.metric,
        began=int(served.steps[0]) if step is None else step,
        ended=int(served.steps[-1]),
        observed=gain,
        bound=MIN_THROUGHPUT_GAIN.bound(trace, "default: 5 % more throughput"),
        limit_on_curve=False,
        evidence=(*masked, f"latency goes {waits[0]:.3g} to {waits[1]:.3g}"),
        counter=() if proven else ("latency is too noisy to say that it did not fall",),
        causes=("latency is no longer measured, so its penalty is masked",) if masked else (),
    )


def _serves_all(trace: Trace, throughput: float) -> bool:
    """Tell whether arrivals limit throughput: nearly all that arrive are finished."""
    arrivals = trace.get(ARRIVALS.name)
    lately = None if arrivals is None else first_last_change(arrivals.finite().values)
    # The rest of what arrives is still in the cluster.
    return lately is not None and throughput >= 0.85 * lately[1]


def _frozen_since(latency: Series) -> int | None:
    """Return the step from which latency repeats one value to the end, over a fifth of the run."""
    moved = np.flatnonzero(np.diff(latency.values) != 0)
    first = int(moved[-1]) + 1 if len(moved) else 0
    lasting = len(latency) - first >= max(MIN_LATENCY_POINTS, len(latency) // 5)
    return int(latency.steps[first]) if lasting else None


RULE = Rule(
    name="reward-up-throughput-flat",
    needs=(THROUGHPUT,),
    at_least=MIN_LATENCY_POINTS,
    check=check,
    doc=__doc__,
    causes=("a reward term pays without serving anybody faster", "a latency penalty is masked"),
    remedies=(
        "inspect the reward's breakdown where it rose",
        "count missing latency as bad, not as zero",
        "judge checkpoints by throughput and latency",
    ),
    profiles=(Profile.SCHEDULER_PPO,),
    explained_by=("action-collapse",),
    thresholds=(MIN_THROUGHPUT_GAIN,),
)
