"""The learning rate jumps up, or reaches zero long before the run ends.

## What it sees
`optimiser/learning_rate` more than 5 x the value logged before, after any warm-up (the rise from
the start to the first fall or pause): a note, or a warning where KL or the gradient norm
spikes within the next 20 updates and the outcome does not improve afterwards. Where the run was
resumed, a rate twice or half of the one before is judged so too. Or at zero over the last tenth
of the run (5 points at least), or before nine tenths of its budget: a note. At zero in every update
of the run, or for the last quarter of the updates while their KL is zero too, so that the rate's
zero is no rounding of the log: a warning, unless the outcome is good all the same.

## Why it matters
A jump moves the policy further in one update than the trust region was set for, and Adam's
second moments, measured at the old rate, do not see it coming. At zero, nothing is learnt any
more: what is paid for is only sampling.

## What to do
Give the scheduler the run's real length (`max_steps`, `total_timesteps`). After a resume, check
that the scheduler's state was restored. Where a restart is meant, restart lower.

## When it is wrong
Cosine schedules with restarts jump by design: jumps that all go back to the same rate are a note
at most. A step decay goes down, which is not reported; nor is a rate that is steered by the KL
(rsl_rl, skrl, rl_games), up and down all along.

## References
- Loshchilov and Hutter 2017, "SGDR: Stochastic Gradient Descent with Warm Restarts".
"""

import numpy as np

from rlvitals.metrics.catalogue.optimiser import GRAD_NORM, LEARNING_RATE
from rlvitals.metrics.catalogue.policy import APPROX_KL
from rlvitals.metrics.metric import Bound
from rlvitals.rules import weigh
from rlvitals.rules.optimiser.learning_rate_too_high import HIGH
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold
from rlvitals.rules.shapes import KL_SPIKE_LIMITS, jumps
from rlvitals.rules.standing import standing
from rlvitals.types import Series, Trace

FACTOR = Threshold("learning-rate-jump.factor", 5.0, "x the rate logged before", low=1.0)
RESUMED = 2.0  # x, or half, over a resume: no schedule moves that far within a row
SAME = 1.1  # x: restarts go back to one rate
ZERO = 1e-9  # of its highest value: schedules end at 0 or at a rounding of it
TAIL, FEWEST = 0.1, 5  # of the run, points: a schedule that ends with the run has one at most
PLANNED = 0.9  # of the budget
IDLE = 0.25  # of the updates: a fault that pays for so many without learning
MAX_ROUNDED_KL, MOVED_KL = 1e-7, 1e-4  # nats: float32's zero, and an update that moved the policy
STEERED = 0.1  # of the updates go up, and as many down
AFTER = 20  # updates in which a spike may follow
SPIKES = (
    (APPROX_KL, *KL_SPIKE_LIMITS),
    (GRAD_NORM, 10.0, 0.0),
)  # factor over the median before, floor


def check(trace: Trace) -> Answer:
    """Look for a jump after the warm-up, then for an early end."""
    rates = trace[LEARNING_RATE.name].finite()
    highest = float(np.abs(rates.values).max())
    if highest == 0:
        return _report_zero_rate(rates, 0, trace)
    up = _jumps_up(rates, FACTOR.on(trace))
    if not _follows_kl(trace, rates):
        if (resume_jumps := _at_a_resume(trace, rates)) is not None:
            return _report_jump(trace, rates, resume_jumps)
        if up.size:
            return _report_jump(trace, rates, up)
    on = np.flatnonzero(np.abs(rates.values) > ZERO * highest)
    first = int(on[-1]) + 1
    return _report_zero_rate(rates, first, trace) if _ends_early(trace, rates, first) else Clear()


def _follows_kl(trace: Trace, rates: Series) -> bool:
    """Tell a rate that is steered: it goes up and down all along, by its KL or by restarts."""
    grows, falls = np.diff(rates.values) > 0, np.diff(rates.values) < 0
    steered = min(float(grows.mean()), float(falls.mean())) >= STEERED
    return steered or trace.number("desired_kl") is not None


def _jumps_up(rates: Series, factor: float) -> np.typing.NDArray[np.int64]:
    """Return the indices after each jump, warm-up left out."""
    values = rates.values
    grows = values[1:] > values[:-1]
    falls = np.flatnonzero(~grows)
    warm = int(falls[0]) if falls.size else len(values)
    # A rate that stands still from the start has no warm-up: `falls` begins at once.
    up = np.flatnonzero((values[1:] > factor * np.abs(values[:-1])) & grows) + 1
    return up[up > warm]


def _at_a_resume(trace: Trace, rates: Series) -> np.typing.NDArray[np.int64] | None:
    """Return where a resume goes on with another rate: its scheduler began anew."""
    for step in trace.lifecycle.seams:
        i = int(np.searchsorted(rates.steps, step))
        if 1 < i < len(rates):  # a warm-up from zero doubles in its second row
            before, after = abs(float(rates.values[i - 1])), abs(float(rates.values[i]))
            if max(before, after) >= RESUMED * min(before, after) and before != after:
                return np.array([i], dtype=np.int64)
    return None


def _restarts(rates: Series, up: np.typing.NDArray[np.int64]) -> bool:
    """Tell a schedule with warm restarts: every jump goes back to the same rate."""
    landed = rates.values[up]
    return up.size > 1 and float(landed.max()) <= SAME * float(landed.min())


def _report_jump(trace: Trace, rates: Series, up: np.typing.NDArray[np.int64]) -> Finding:
    first = int(up[0])
    onset_step = int(rates.steps[first])
    before, after = float(rates.values[first - 1]), float(rates.values[first])
    followed = _spikes(trace, [int(rates.steps[i]) for i in up])
    trend = standing(trace, since=onset_step)
    evidence, counter = weigh.sides(trend)
    often = f", the first of {up.size} such jumps" if up.size > 1 else ""
    restarts = _restarts(rates, up)
    if restarts:
        counter = (*counter, "each jump goes back to the same rate: warm restarts, as scheduled")
    # Where nothing is logged that could spike, a rate that no network is trained with will do.
    harmful = (followed or after > HIGH.on(trace)) and not restarts
    worse = harmful and not weigh.content(trend)
    resumed = onset_step in trace.lifecycle.seams
    return Finding(
        f"the learning rate jumps from {before:.3g} to {after:.3g} at step {onset_step:,}{often}",
        severity=Severity.WARNING if worse else Severity.NOTE,
        metric=LEARNING_RATE.name,
        began=onset_step,
        ended=int(rates.steps[int(up[-1])]),
        observed=after,
        bound=FACTOR.bound(trace, f"{FACTOR.on(trace):g} x the rate logged before", before)
        if not resumed
        else Bound(RESUMED * before, f"{RESUMED:g} x the rate before the resume"),
        evidence=(*followed, *evidence),
        counter=counter,
        causes=(NOT_RESTORED, *CAUSES[:2]) if resumed else (),
    )


def _spikes(trace: Trace, steps: list[int]) -> tuple[str, ...]:
    """Say what spikes within the updates after a jump."""
    sentences = []
    for metric, factor, floor in SPIKES:
        series = trace.get(metric.name)
        if series is None:
            continue
        indices = np.searchsorted(series.steps, steps)
        for spike in jumps(series, factor, floor):
            if ((indices <= spike.index) & (spike.index < indices + AFTER)).any():
                position = f"at step {series.steps[spike.index]:,}"
                sentences.append(f"{metric.title} spikes {position}: {spike.value:.3g}")
                break
    return tuple(sentences)


def _ends_early(trace: Trace, rates: Series, first: int) -> bool:
    remaining = len(rates) - first
    if remaining < FEWEST:
        return False
    if trace.budget is not None:
        return bool(rates.steps[first] < PLANNED * trace.budget.steps)
    return remaining >= TAIL * len(rates)


def _report_zero_rate(rates: Series, first: int, trace: Trace) -> Finding:
    onset_step = int(rates.steps[first])
    trend = standing(trace, since=onset_step)
    evidence, counter = weigh.sides(trend)
    kl_is_zero = len(rates) - first >= IDLE * len(rates) and _kl_is_zero(trace, onset_step)
    idle = (first == 0 or kl_is_zero) and not weigh.content(trend)
    evidence = (*evidence, "their KL is zero as well") if kl_is_zero else evidence
    return Finding(
        f"the learning rate is zero from step {onset_step:,} on, {len(rates) - first} of "
        f"{len(rates)} logged updates: nothing is learnt there",
        severity=Severity.WARNING if idle else Severity.NOTE,
        metric=LEARNING_RATE.name,
        began=onset_step,
        ended=int(rates.steps[-1]),
        observed=0.0,
        bound=Bound(0.0, "a schedule should end with its run"),
        evidence=evidence,
        counter=counter,
    )


def _kl_is_zero(trace: Trace, onset_step: int) -> bool:
    """Return True if the KL of every update from a step on is 0, and usually was not before."""
    kl = trace.numbers(APPROX_KL.name)
    if kl is None:
        return False
    kl_after, kl_before = (
        np.abs(kl.since(onset_step).values),
        np.abs(kl.until(onset_step - 1).values),
    )
    if len(kl_after) < FEWEST or not len(kl_before):
        return False
    return bool(kl_after.max() <= MAX_ROUNDED_KL < MOVED_KL <= float(np.median(kl_before)))


NOT_RESTORED = "a resume that did not restore the scheduler"
CAUSES = (
    "a schedule set for another length than the run's",
    "a schedule with restarts",
    NOT_RESTORED,
)

RULE = Rule(
    name="learning-rate-jump",
    needs=(LEARNING_RATE,),
    at_least=10,
    check=check,
    doc=__doc__,
    causes=CAUSES,
    remedies=(
        "give the scheduler the run's real number of updates",
        "restore the scheduler's state on resume",
        "restart at a lower rate, with a warm-up",
    ),
    thresholds=(FACTOR,),
)
