"""Q values leave what any return can be, or their errors grow to the size of a whole return.

## What it sees
`value/q_mean` (for actor-critics minus the actor's loss) beyond 3 x what the run's own returns
allow, from some step to the end, and still growing or beside an outcome proven not to improve.
They allow the largest |return| seen, or its
mean reward per step for ever, |return| / episode length / (1 - gamma), where that is more; with
an entropy bonus also coefficient x dimensions x ln 2 / (1 - gamma). Where only the loss is logged,
as with DQN: a typical temporal-difference error (the loss's root; for a Huber loss its slope)
above a quarter of the largest |return|, at least 3 x its own lowest level, with an outcome proven
not to improve; or, all along, above twice the root mean square of the returns, by which a Q of 0
everywhere errs at most. Where the outcome improves this is a note at most.

## Why it matters
A Q-learner chases its own predictions: an error that is fed back into its target grows by itself.
From then on actions are ranked by the error, not by what they earn.

## What to do
Lower the learning rate. Give the targets a network of their own that follows slowly (tau 0.005,
or a copy every thousand steps). Keep gamma below 1, and mark ends of episodes as terminal: without
them a sum of rewards has no end. Scale or clip rewards; take the lower of two critics.

## When it is wrong
Rewards that are scaled for the learner but not in the log make Q values look too large: set the
limit, or log the return the learner sees. Optimism that shrinks again is how Q-learning starts:
what does not grow is reported only where nothing is learned. Where gamma is not known it is
taken for 0.99.

## References
- van Hasselt et al. 2018, "Deep Reinforcement Learning and the Deadly Triad".
- Fujimoto et al. 2018, "Addressing Function Approximation Error in Actor-Critic Methods".
- Stable-Baselines3, `dqn/dqn.py`, `sac/sac.py`, `td3/td3.py`: what their losses are.
"""

import math

import numpy as np

from rlvitals.metrics.absence import describe_absence
from rlvitals.metrics.catalogue.exploration import ENTROPY_COEF
from rlvitals.metrics.catalogue.optimiser import LOSS as TRAINING_LOSS
from rlvitals.metrics.catalogue.outcome import EPISODE_LENGTH
from rlvitals.metrics.catalogue.value import LOSS, Q_MEAN
from rlvitals.rules import weigh
from rlvitals.rules.known_task import DEFAULT_GAMMA, environment
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold, Undecided
from rlvitals.rules.shapes import SHORT_WINDOW, last_stretch_above, start
from rlvitals.rules.standing import MIN_OUTCOME_POINTS, outcome, standing
from rlvitals.signals.spread import median
from rlvitals.types import Profile, Series, Trace

Q_LIMIT_FACTOR = Threshold("q-divergence.factor", 3.0, "mean |Q|, x what the run's returns allow")
MAX_TD_ERROR_SHARE = Threshold(
    "q-divergence.error", 0.25, "typical TD error over the largest |return|"
)
MIN_TD_ERROR_GROWTH = 3.0  # x the lowest level of ten points
MIN_TD_ERROR_RATIO = 2.0  # x the root mean square of the returns
MIN_Q_POINTS = 5


def check(trace: Trace) -> Answer:
    """Ask Q itself where it is logged, else the TD errors."""
    picked = outcome(trace)
    if picked is None or not np.abs(picked[1].values).max() > 0:
        return Undecided("no returns to compare with", ("outcome/return",))
    largest = float(np.abs(picked[1].values).max())
    q = trace.get(Q_MEAN.name)
    q = None if q is None else q.finite()
    if q is not None and len(q) >= MIN_OUTCOME_POINTS:
        return _by_q(trace, q, largest)
    return _by_error(trace, largest)


def _by_q(trace: Trace, q: Series, largest: float) -> Answer:
    largest_q, origin = _largest_q(trace, largest)
    limit = Q_LIMIT_FACTOR.bound(trace, f"{Q_LIMIT_FACTOR.on(trace):g} x {origin}", largest_q)
    size = Series(q.steps, q.times, np.abs(q.values))
    stretch = last_stretch_above(size, limit.value)
    if stretch is None or len(size.since(stretch.start)) < MIN_Q_POINTS:
        return Clear()
    trend = standing(trace, since=stretch.start)
    trend = standing(trace) if trend.state == "unknown" else trend
    if not (_grows(size) or trend.stalls):
        return Clear()  # optimism that shrinks
    severe = stretch.worst > 10.0 * limit.value  # x the limit: no kind of return is as large
    evidence, counter = weigh.sides(trend)
    return Finding(
        f"Q values diverge: {q.values[-1]:.4g} on average, where returns never exceeded "
        f"{largest:.4g} in size",
        severity=weigh.severity(
            trend,
            stalled=Severity.ERROR if severe else Severity.WARNING,
            unknown=Severity.WARNING if severe else Severity.NOTE,
        ),
        metric=Q_MEAN.name,
        began=stretch.start,
        ended=stretch.end,
        observed=float(q.values[-1]),
        bound=limit,
        evidence=evidence,
        counter=counter,
    )


def _largest_q(trace: Trace, largest: float) -> tuple[float, str]:
    """Return the largest |Q| that this run's returns allow, and how that is known."""
    env, set_gamma = environment(trace), trace.number("gamma")
    gamma = DEFAULT_GAMMA if set_gamma is None or not 0 <= set_gamma < 1 else set_gamma
    lengths = trace.get(EPISODE_LENGTH.name)
    length = median(lengths.finite().values) if lengths is not None else None
    if not length and env is not None and env.horizon:
        length = float(env.horizon)
    for_ever = largest / max(length or 1.0, 1.0) / (1.0 - gamma)
    origin = f"the largest |return|, {largest:.4g}"
    if for_ever > largest:
        origin = f"its reward per step for ever, {for_ever:.4g} at gamma {gamma:g}"
    largest_q = max(largest, for_ever)
    coef = trace.get(ENTROPY_COEF.name)
    if coef is not None and len(coef := coef.finite()):
        # More than most action spaces have.
        count = env.action_dim if env is not None and env.action_dim else 20.0
        # Nats per dimension of a uniform action in [-1, 1].
        bonus = float(np.abs(coef.values).max()) * count * math.log(2) / (1.0 - gamma)
        largest_q, origin = largest_q + bonus, f"{origin}, and an entropy bonus of {bonus:.3g}"
    return largest_q, origin


def _grows(size: Series) -> bool:
    third = max(len(size) // 3, 1)
    middle, last = median(size.values[third : 2 * third]), median(size.values[-MIN_Q_POINTS:])
    return middle is not None and last is not None and last > 1.2 * middle  # x its middle


def _by_error(trace: Trace, largest: float) -> Answer:
    """Judge by what a loss says of a typical error, beside the largest return."""
    name_and_errors = _errors(trace)
    if name_and_errors is None:
        lacks = "neither Q values nor a loss are logged"
        return Undecided(
            describe_absence(trace, lacks, Q_MEAN, LOSS, TRAINING_LOSS, min_count=2 * SHORT_WINDOW),
            (Q_MEAN.name, LOSS.name),
        )
    name, errors = name_and_errors
    tops = np.lib.stride_tricks.sliding_window_view(errors.values, SHORT_WINDOW)
    lowest, first = float(np.median(tops, axis=1).min()), start(errors) or 0.0
    limit = MAX_TD_ERROR_SHARE.bound(
        trace, f"{MAX_TD_ERROR_SHARE.on(trace):.0%} of the largest |return|", largest
    )
    stretch = last_stretch_above(errors, limit.value)
    last = float(np.median(errors.values[-MIN_Q_POINTS:]))
    has_grown = (
        last >= MIN_TD_ERROR_GROWTH * lowest
        or lowest >= MIN_TD_ERROR_RATIO * _root_mean_square(trace)
    )
    if stretch is None or len(errors.since(stretch.start)) < MIN_Q_POINTS or not has_grown:
        return Clear()
    trend = standing(trace, since=stretch.start)
    trend = standing(trace) if trend.state == "unknown" else trend
    if not trend.stalls:
        return Clear()
    return Finding(
        f"Q values diverge: a typical error of one step is {last:.3g} ({first:.3g} at the start), "
        f"where whole episodes never earned more than {largest:.4g}",
        severity=Severity.WARNING,
        metric=name,
        began=stretch.start,
        ended=stretch.end,
        observed=last,
        bound=limit,
        evidence=weigh.sides(trend)[0],
    )


def _root_mean_square(trace: Trace) -> float:
    picked = outcome(trace)
    return math.inf if picked is None else float(np.sqrt(np.square(picked[1].values).mean()))


def _errors(trace: Trace) -> tuple[str, Series] | None:
    """Return typical TD errors, in units of reward, taken from a loss."""
    for name in (LOSS.name, TRAINING_LOSS.name):
        loss = trace.numbers(name)
        if loss is None or not loss.values.any():
            continue
        # Some programs log a loss of 0 until the replay buffer holds a batch.
        loss = loss.since(int(loss.steps[int(loss.values.nonzero()[0][0])]))
        if len(loss) < 2 * SHORT_WINDOW:
            continue
        values = np.maximum(loss.values, 0.0)
        how = trace.measured[name].how if name in trace.measured else ""
        root = np.sqrt(values)
        if "Huber" in how:
            # Half the square up to an error of 1, then the error less a half.
            root = np.where(values < 0.5, np.sqrt(2) * root, values + 0.5)
        return name, Series(loss.steps, loss.times, root)
    return None


RULE = Rule(
    name="q-divergence",
    needs=(),
    needs_any=(Q_MEAN, LOSS, TRAINING_LOSS),
    at_least=MIN_OUTCOME_POINTS,
    check=check,
    doc=__doc__,
    causes=(
        "learning rate too high",
        "no target network, or one that follows at once",
        "gamma of 1, or ends of episodes that are not marked as terminal",
        "rewards of a scale the learner was not set for",
    ),
    remedies=(
        "lower the learning rate",
        "let the target network follow more slowly",
        "check that ends of episodes reach the learner, and keep gamma below 1",
        "scale or clip rewards",
    ),
    profiles=(Profile.OFF_POLICY,),
    explained_by=(
        "setting-out-of-range",
        "learning-rate-too-high",
        "learning-rate-jump",
        "impossible-value",
    ),
    verdict="unstable",
    thresholds=(Q_LIMIT_FACTOR, MAX_TD_ERROR_SHARE),
)
