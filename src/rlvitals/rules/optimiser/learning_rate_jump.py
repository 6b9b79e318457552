"""The learning rate jumps up, or reaches zero long before the run ends.

## What it sees
`optimiser/learning_rate` more than 5 x the value logged before, after any warm-up (the rise from
the start to the first fall or pause): a note, or a warning where KL or the gradient norm
spikes within the next 20 updates and the outcome does not improve afterwards. Where the run was
resumed, a rate twice or half of the one before is judged so too. Or at zero over the last tenth
of the run (5 points at least), or before nine tenths of its budget: a note. At zero in every update
of the run, or for the last quarter of the updates while their KL is zero too, or for their last
half after more than 20 different rates, so that the rate's zero is no rounding of the log: a
warning, unless the outcome is good all the same.

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
from rlvitals.rules.optimiser.learning_rate_too_high import MAX_LEARNING_RATE
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold
from rlvitals.rules.shapes import KL_SPIKE_LIMITS, jumps
from rlvitals.rules.standing import standing
from rlvitals.types import Series, Trace

LEARNING_RATE_FACTOR = Threshold(
    "learning-rate-jump.factor", 5.0, "x the rate logged before", low=1.0
)
RESUME_RATE_FACTOR = 2.0  # x, or half, across a resume: no schedule moves as far within a row
MIN_REMAINING_POINTS = 5  # points: a schedule that ends with the run leaves one at most
MAX_ROUNDED_KL = 1e-7  # nats: float32's zero
MIN_MOVED_KL = 1e-4  # nats: an update that moved the policy
# Metric, factor over the median before, floor.
RATE_SPIKE_LIMITS = ((APPROX_KL, *KL_SPIKE_LIMITS), (GRAD_NORM, 10.0, 0.0))


def check(trace: Trace) -> Answer:
    """Look for a jump after the warm-up, then for an early end."""
    rates = trace[LEARNING_RATE.name].finite()
    highest = float(np.abs(rates.values).max())
    if highest == 0:
        return _report_zero_rate(rates, 0, trace)
    jump_rows = _jumps_up(rates, LEARNING_RATE_FACTOR.on(trace))
    if not _follows_kl(trace, rates):
        if (resume_jumps := _at_a_resume(trace, rates)) is not None:
            return _report_jump(trace, rates, resume_jumps)
        if jump_rows.size:
            return _report_jump(trace, rates, jump_rows)
    # Schedules end at 0 or its rounding.
    nonzero = np.flatnonzero(np.abs(rates.values) > 1e-9 * highest)
    first = int(nonzero[-1]) + 1
    return _report_zero_rate(rates, first, trace) if _ends_early(trace, rates, first) else Clear()


def _follows_kl(trace: Trace, rates: Series) -> bool:
    """Tell a rate that is steered: it goes up and down all along, by its KL or by restarts."""
    is_rise, is_fall = np.diff(rates.values) > 0, np.diff(rates.values) < 0
    is_steered = min(float(is_rise.mean()), float(is_fall.mean())) >= 0.1  # of the updates, each
    return is_steered or trace.number("desired_kl") is not None


def _jumps_up(rates: Series, factor: float) -> np.typing.NDArray[np.int64]:
    """Return the indices after each jump, warm-up left out."""
    values = rates.values
    grows = values[1:] > values[:-1]
    fall_rows = np.flatnonzero(~grows)
    warm = int(fall_rows[0]) if fall_rows.size else len(values)
    # A rate that stands still from the start has no warm-up: `falls` begins at once.
    jump_rows = np.flatnonzero((values[1:] > factor * np.abs(values[:-1])) & grows) + 1
    return jump_rows[jump_rows > warm]


def _at_a_resume(trace: Trace, rates: Series) -> np.typing.NDArray[np.int64] | None:
    """Return where a resume goes on with another rate: its scheduler began anew."""
    for step in trace.lifecycle.seams:
        i = int(np.searchsorted(rates.steps, step))
        if 1 < i < len(rates):  # a warm-up from zero doubles in its second row
            rate_before, rate_after = abs(float(rates.values[i - 1])), abs(float(rates.values[i]))
            if (
                max(rate_before, rate_after) >= RESUME_RATE_FACTOR * min(rate_before, rate_after)
                and rate_before != rate_after
            ):
                return np.array([i], dtype=np.int64)
    return None


def _restarts(rates: Series, jump_rows: np.typing.NDArray[np.int64]) -> bool:
    """Tell a schedule with warm restarts: every jump goes back to the same rate."""
    new_rates = rates.values[jump_rows]
    # Restarts return to one rate, within a tenth.
    return jump_rows.size > 1 and float(new_rates.max()) <= 1.1 * float(new_rates.min())


def _report_jump(trace: Trace, rates: Series, jump_rows: np.typing.NDArray[np.int64]) -> Finding:
    first = int(jump_rows[0])
    onset_step = int(rates.steps[first])
    rate_before, rate_after = float(rates.values[first - 1]), float(rates.values[first])
    spike_text = _spikes(trace, [int(rates.steps[i]) for i in jump_rows])
    trend = standing(trace, since=onset_step)
    evidence, counter = weigh.sides(trend)
    count_text = f", the first of {jump_rows.size} such jumps" if jump_rows.size > 1 else ""
    restarts = _restarts(rates, jump_rows)
    if restarts:
        counter = (*counter, "each jump goes back to the same rate: warm restarts, as scheduled")
    # Where nothing is logged that could spike, a rate that no network is trained with will do.
    harmful = (spike_text or rate_after > MAX_LEARNING_RATE.on(trace)) and not restarts
    worse = harmful and not weigh.content(trend)
    at_resume = onset_step in trace.lifecycle.seams
    return Finding(
        f"the learning rate jumps from {rate_before:.3g} to {rate_after:.3g} "
        f"at step {onset_step:,}{count_text}",
        severity=Severity.WARNING if worse else Severity.NOTE,
        metric=LEARNING_RATE.name,
        began=onset_step,
        ended=int(rates.steps[int(jump_rows[-1])]),
        observed=rate_after,
        bound=LEARNING_RATE_FACTOR.bound(
            trace, f"{LEARNING_RATE_FACTOR.on(trace):g} x the rate logged before", rate_before
        )
        if not at_resume
        else Bound(
            RESUME_RATE_FACTOR * rate_before, f"{RESUME_RATE_FACTOR:g} x the rate before the resume"
        ),
        evidence=(*spike_text, *evidence),
        counter=counter,
        causes=(SCHEDULER_LOST_CAUSE, *RATE_JUMP_CAUSES[:2]) if at_resume else (),
    )


def _spikes(trace: Trace, steps: list[int]) -> tuple[str, ...]:
    """Say what spikes within the updates after a jump."""
    sentences = []
    for metric, factor, floor in RATE_SPIKE_LIMITS:
        series = trace.get(metric.name)
        if series is None:
            continue
        indices = np.searchsorted(series.steps, steps)
        for spike in jumps(series, factor, floor):
            if ((indices <= spike.index) & (spike.index < indices + 20)).any():  # updates
                position = f"at step {series.steps[spike.index]:,}"
                sentences.append(f"{metric.title} spikes {position}: {spike.value:.3g}")
                break
    return tuple(sentences)


def _ends_early(trace: Trace, rates: Series, first: int) -> bool:
    remaining = len(rates) - first
    if remaining < MIN_REMAINING_POINTS:
        return False
    if trace.budget is not None:
        return bool(rates.steps[first] < 0.9 * trace.budget.steps)
    return remaining >= 0.1 * len(rates)  # of the run


def _report_zero_rate(rates: Series, first: int, trace: Trace) -> Finding:
    onset_step = int(rates.steps[first])
    trend = standing(trace, since=onset_step)
    evidence, counter = weigh.sides(trend)
    kl_is_zero = len(rates) - first >= 0.25 * len(rates) and _kl_is_zero(trace, onset_step)
    is_long = len(rates) - first >= 0.5 * len(rates) and _is_exact(rates)
    idle = (first == 0 or kl_is_zero or is_long) and not weigh.content(trend)
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


def _is_exact(rates: Series) -> bool:
    """Return True if rates are logged with all digits, so that a zero is no rounding."""
    # Of 20 different values: a zero then hides a fortieth of the highest rate at most.
    return len(np.unique(rates.values)) > 20


def _kl_is_zero(trace: Trace, onset_step: int) -> bool:
    """Return True if the KL of every update from a step on is 0, and usually was not before."""
    kl = trace.numbers(APPROX_KL.name)
    if kl is None:
        return False
    kl_after = np.abs(kl.since(onset_step).values)
    kl_before = np.abs(kl.until(onset_step - 1).values)
    if len(kl_after) < MIN_REMAINING_POINTS or not len(kl_before):
        return False
    return bool(kl_after.max() <= MAX_ROUNDED_KL < MIN_MOVED_KL <= float(np.median(kl_before)))


SCHEDULER_LOST_CAUSE = "a resume that did not restore the scheduler"
RATE_JUMP_CAUSES = (
    "a schedule set for another length than the run's",
    "a schedule with restarts",
    SCHEDULER_LOST_CAUSE,
)

RULE = Rule(
    name="learning-rate-jump",
    needs=(LEARNING_RATE,),
    at_least=10,
    check=check,
    doc=__doc__,
    causes=RATE_JUMP_CAUSES,
    remedies=(
        "give the scheduler the run's real number of updates",
        "restore the scheduler's state on resume",
        "restart at a lower rate, with a warm-up",
    ),
    thresholds=(LEARNING_RATE_FACTOR,),
)
