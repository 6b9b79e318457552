"""The agent explores to the end as it did at the start, and never uses what it has learned.

## What it sees
One of three, with an outcome that got nowhere:
- `exploration/entropy` of discrete actions above 97 % of ln(actions) over the second half of the
  run, or above 90 % and no longer falling;
- `exploration/epsilon` of one half or more over the second half of the run: a warning where it
  stands where it started or rose again, a note where it is falling;
- an entropy bonus (`exploration/entropy_coef`, constant) that pays a random action more per step
  than the task pays: coefficient x dimensions x ln 2 against |return| / episode length.
Or updates without direction: entropy of discrete actions that ends above 80 % of ln(actions),
where the KL of all updates adds up to more than twice what the policy's distance from uniform,
ln(actions) less entropy, has become. The KL of steps that have nothing to do with each other adds
up to their common distance; that of n steps in one direction is n times their sum. An outcome that
is proven to improve, or holds its best, clears it; one that cannot be told does not.
"Nowhere": proven flat or falling, or, where a trend cannot be told, less than 15 % of the way from
a random to a solved policy. An epsilon of 1 in every row, or an entropy above 99.5 % of ln(actions)
in every row, is a policy that acts at random from the first to the last: a warning unless the
outcome improves, or holds its best. Asked once half of the budget is spent; without a budget, once
the run has ended.

## Why it matters
Choosing at random, the agent sees the states that random choices lead to, and its return stays
theirs, whatever its critic has learned meanwhile.

## What to do
Lower the entropy coefficient, or let exploration decay sooner. If the coefficient is small
already, nothing pulls the policy away from its start: look whether rewards differ, whether
observations carry what the task needs, whether updates move the policy at all.

## When it is wrong
High entropy beside a return that rises is healthy, and nothing is said of it. Some tasks stay
without a first success for long: where the outcome never changes at all, this rule cannot tell.
A schedule made for a longer run than this one explores to its end: that is what it says.

## References
- Ahmed et al. 2019, "Understanding the Impact of Entropy on Policy Optimization".
- Haarnoja et al. 2018, "Soft Actor-Critic Algorithms and Applications", on the reward's scale.
- Mnih et al. 2015, "Human-level control through deep reinforcement learning", on epsilon's decay.
"""

import math

import numpy as np

from rlvitals.metrics.catalogue.exploration import ENTROPY, ENTROPY_COEF, EPSILON
from rlvitals.metrics.catalogue.outcome import EPISODE_LENGTH, RETURN
from rlvitals.metrics.catalogue.policy import APPROX_KL
from rlvitals.metrics.metric import Bound
from rlvitals.rules import kinds, weigh
from rlvitals.rules.answers import verdict_trend
from rlvitals.rules.course import is_lost_before
from rlvitals.rules.falling import falls_by
from rlvitals.rules.known_task import NO_PROGRESS_SHARE, environment
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold, Undecided
from rlvitals.rules.shapes import last_stretch_above
from rlvitals.rules.spent import too_early
from rlvitals.rules.standing import MIN_OUTCOME_POINTS, Standing, outcome, standing, way_share
from rlvitals.rules.width import max_entropy
from rlvitals.signals.spread import median
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Profile, Series, Trace

MAX_ENTROPY_SHARE = Threshold(
    "exploration-never-ends.entropy", 0.97, "share of ln(actions) above which nothing was decided"
)
MAX_LATE_EPSILON = Threshold(
    "exploration-never-ends.epsilon", 0.5, "share of random actions over the second half"
)
MAX_BONUS_RATIO = Threshold(
    "exploration-never-ends.bonus", 1.0, "entropy bonus per step over what the task pays per step"
)
MAX_SETTLED_ENTROPY = 0.90  # of ln(actions), where it no longer falls
UNCHANGED_SHARE = 0.97  # of its first value: it has not begun to fall
MIN_UNIFORM_ENTROPY = 0.995  # of ln(actions): of two actions, none is likelier than 0.54
MIN_RANDOM_EPSILON = 0.999  # epsilon, of which 1 is printed with three digits
MIN_WANDERING_ENTROPY = 0.8  # of ln(actions), at the end
MAX_DRIFT = Bound(0.5, "of the KL of all updates: steps in no direction come as far as their sum")


@dataclass(frozen=True, slots=True)
class _Kept:
    """One way in which exploration went on, and how it is said."""

    metric: str
    onset_step: int
    observed: float
    bound: Bound
    sentence: str
    stands: bool  # where it started, or as bad as that
    causes: tuple[str, ...]
    remedies: tuple[str, ...] = ()
    wanders: bool = False  # updates move the policy, and in no direction


def check(trace: Trace) -> Answer:
    """Find exploration that did not end, then ask where the outcome got to."""
    if reason := too_early(trace, 0.5):  # of the run
        return Undecided(reason, ("total_steps",))
    ways = (_epsilon, _entropy, _bonus, _drift)
    measures = [measure for way in ways if (measure := way(trace)) is not None]
    if not measures:
        return Undecided("how much there is to decide is not known", ("n_actions", "env_id"))
    answers = [
        _judge_outcome(trace, exploration)
        for exploration in measures
        if isinstance(exploration, _Kept)
    ]
    findings = (answer for answer in answers if isinstance(answer, Finding))
    return next(findings, answers[0] if answers else Clear())


def _judge_outcome(trace: Trace, exploration: _Kept) -> Answer:
    """Ask where the outcome got to: beside one that rises, exploring on is healthy."""
    trend = standing(trace)
    if trend.improves:
        return Clear()
    if _never_changes(trace):
        return Undecided("the outcome never changes: nothing tells one action from another")
    share = way_share(trace, trend)
    if exploration.wanders and not weigh.content(verdict_trend(trace)):
        return _finding(trace, exploration, trend, share, "they lead nowhere")
    if _never_chooses(trace) and not weigh.content(verdict_trend(trace)):
        result = "the policy acts at random from the first row to the last"
        return _finding(trace, exploration, trend, share, result)
    is_unsolved = share is not None and share < NO_PROGRESS_SHARE
    if trend.state == "holding its best" or not (trend.stalls or is_unsolved):
        return Undecided(f"exploration goes on, but {trend.sentence}", ("outcome/return",))
    return _finding(trace, exploration, trend, share)


def _second_half(trace: Trace, series: Series) -> Series:
    return series.since(trace.first_step + (trace.last_step - trace.first_step) // 2)


def _epsilon(trace: Trace) -> _Kept | Clear | None:
    series = trace.get(EPSILON.name)
    if series is None or len(series := series.finite()) < MIN_OUTCOME_POINTS:
        return None
    late_values = _second_half(trace, series).values
    level = median(late_values)
    if (
        level is None
        or level < MAX_LATE_EPSILON.on(trace)
        or late_values[-1] < MAX_LATE_EPSILON.on(trace)
    ):
        return Clear()
    lowest = int(series.values.argmin())
    # Twice its lowest: it was small, and is large again.
    has_risen = bool(late_values[-1] >= 2.0 * series.values[lowest])
    is_unchanged = has_risen or bool(late_values[-1] >= UNCHANGED_SHARE * series.values[0])
    does = "as at the start" if is_unchanged else f"from {series.values[0]:.3g} at the start"
    if has_risen:
        does = f"after {series.values[lowest]:.0%}"
    high = last_stretch_above(series, MAX_LATE_EPSILON.on(trace))
    onset_step = high.start if has_risen and high is not None else int(series.steps[0])
    return _Kept(
        EPSILON.name,
        onset_step,
        level,
        MAX_LATE_EPSILON.bound(trace, "default: every second action"),
        f"{late_values[-1]:.0%} of the actions are still random, {does}",
        is_unchanged,
        (
            "epsilon's schedule does not decay within this run",
            "a final epsilon that was left at its start",
        ),
        ("let epsilon decay sooner, to a smaller final value",),
    )


def _entropy(trace: Trace) -> _Kept | Clear | None:
    series, highest = trace.get(ENTROPY.name), max_entropy(trace)
    if series is None or highest is None or len(series := series.finite()) < MIN_OUTCOME_POINTS:
        return None
    late_series = _second_half(trace, series)
    if len(late_series) < MIN_OUTCOME_POINTS // 2:
        return None
    coef = trace.number("entropy_coef") or 0.0
    share = float(np.median(late_series.values)) / highest.value
    high = MAX_ENTROPY_SHARE.bound(trace, f"of ln(actions), {highest.origin}")
    if share <= high.value and (share <= MAX_SETTLED_ENTROPY or _falls(late_series)):
        return Clear()
    # A higher coefficient is a cause by itself.
    causes = [] if coef < 0.05 else [f"the entropy coefficient, {coef:g}, is too high"]
    if not coef:
        causes.append("an entropy coefficient too high for these rewards")
        causes.append("nothing pulls the policy from its start: reward, observations, updates")
    # Below three quarters of ln(actions) exploration had ended.
    undecided_stretch = last_stretch_above(series, 0.75 * highest.value)
    limit = (
        high
        if share > high.value
        else Bound(MAX_SETTLED_ENTROPY, f"of ln(actions), {highest.origin}")
    )
    return _Kept(
        ENTROPY.name,
        int(series.steps[0]) if undecided_stretch is None else undecided_stretch.start,
        share,
        limit,
        f"the policy is still {share:.1%} of uniform ({late_series.values[-1]:.3g} of "
        f"{highest.value:.3g} nats)",
        stands=True,
        causes=tuple(causes),
    )


def _falls(series: Series) -> bool:
    middle = len(series) // 2
    first, last = median(series.values[:middle]), median(series.values[middle:])
    return first is None or last is None or last < UNCHANGED_SHARE * first


def _bonus(trace: Trace) -> _Kept | Clear | None:
    """Compare a constant entropy coefficient's pay with the task's, per step."""
    coef, returns = trace.get(ENTROPY_COEF.name), trace.get(RETURN.name)
    length, env = trace.get(EPISODE_LENGTH.name), environment(trace)
    if coef is None or returns is None or length is None or env is None or not env.action_dim:
        return None
    coef = coef.finite()
    if len(coef) < MIN_OUTCOME_POINTS or np.ptp(coef.values) > 0:
        return None  # tuned: whether it runs away is another rule's business
    late_medians = [
        median(np.abs(_second_half(trace, s).finite().values)) for s in (returns, length)
    ]
    if late_medians[0] is None or not late_medians[1] or not late_medians[0]:
        return None
    paid = late_medians[0] / late_medians[1]
    bonus = float(coef.values[0]) * env.action_dim * math.log(2)
    limit = MAX_BONUS_RATIO.bound(trace, "default: as much as the task pays")
    if bonus <= limit.value * paid:
        return Clear()
    return _Kept(
        ENTROPY_COEF.name,
        int(coef.steps[0]),
        bonus / paid,
        limit,
        f"a random action earns {bonus:.3g} a step for its entropy, the task pays {paid:.3g}",
        stands=True,
        causes=(f"the entropy coefficient, {coef.values[0]:g}, is too high for these rewards",),
    )


def _drift(trace: Trace) -> _Kept | Clear | None:
    """Compare the way that all updates went with the distance they came to."""
    entropy, kl = (
        trace.numbers(metric.name, MIN_OUTCOME_POINTS) for metric in (ENTROPY, APPROX_KL)
    )
    ceiling = max_entropy(trace)
    if entropy is None or kl is None or ceiling is None or len(kl) < 20:
        return None
    if "clamped" in getattr(trace.measured.get(APPROX_KL.name), "estimator", ""):
        return None
    level = float(np.median(entropy.tail(max(len(entropy) // 10, 3)).values))
    way, distance = float(np.abs(kl.values).sum()), ceiling.value - level
    share = level / ceiling.value
    if share < MIN_WANDERING_ENTROPY or distance >= MAX_DRIFT.value * way:
        return Clear()
    return _Kept(
        ENTROPY.name,
        int(entropy.steps[0]),
        distance / way,
        MAX_DRIFT,
        f"updates of {way:.3g} nats in all leave the policy {max(distance, 0.0):.2g} nats from "
        f"uniform ({share:.1%} of {ceiling.value:.3g})",
        stands=True,
        causes=(
            "updates without direction: advantages or actions that belong to other samples",
            "rewards or observations that tell nothing",
        ),
        remedies=(
            "check on one rollout that each advantage stands beside its own state and action",
            "check that rewards vary and that observations carry what the task needs",
        ),
        wanders=True,
    )


def _never_chooses(trace: Trace) -> bool:
    """Return True if every row of a run is that of a policy that acts at random."""
    epsilon, entropy = (
        trace.numbers(metric.name, MIN_OUTCOME_POINTS) for metric in (EPSILON, ENTROPY)
    )
    if epsilon is not None:
        return float(epsilon.values.min()) >= MIN_RANDOM_EPSILON
    highest = max_entropy(trace)
    if entropy is None or highest is None:
        return False
    return float(entropy.values.min()) >= MIN_UNIFORM_ENTROPY * highest.value


def _never_changes(trace: Trace) -> bool:
    picked = outcome(trace)
    return picked is not None and not np.ptp(picked[1].values)


def _finding(
    trace: Trace,
    exploration: _Kept,
    trend: Standing,
    share: float | None,
    result: str = "the outcome got nowhere",
) -> Finding:
    lost_earlier = bool(is_lost_before(trace, exploration.onset_step)) or falls_by(
        trace, exploration.onset_step
    )
    evidence = [f"meanwhile {trend.sentence}" if trend.stalls else trend.sentence]
    if share is not None:
        evidence.append(f"that is {share:.0%} of the way from a random to a solved policy")
    return Finding(
        f"exploration never ends: {exploration.sentence}, and {result}",
        severity=Severity.WARNING if exploration.stands and not lost_earlier else Severity.NOTE,
        metric=exploration.metric,
        began=exploration.onset_step,
        ended=trace.last_step,
        observed=exploration.observed,
        bound=exploration.bound,
        limit_on_curve=exploration.metric == EPSILON.name,
        evidence=tuple(evidence),
        counter=("the outcome had been lost before, or with it",) if lost_earlier else (),
        causes=exploration.causes,
        remedies=exploration.remedies,
    )


RULE = Rule(
    name="exploration-never-ends",
    needs=(),
    needs_any=(ENTROPY, EPSILON, ENTROPY_COEF),
    at_least=MIN_OUTCOME_POINTS,
    check=check,
    doc=__doc__,
    causes=(
        "the entropy coefficient is too high for the reward's scale",
        "an exploration schedule made for a longer run",
        "no signal: rewards or observations that tell nothing",
    ),
    remedies=(
        "lower the entropy coefficient",
        "let epsilon decay sooner, to a smaller final value",
        "check that rewards vary and that observations carry what the task needs",
    ),
    profiles=(*kinds.CONTROL, Profile.SCHEDULER_PPO),
    explained_by=(
        "setting-out-of-range",
        "value-loss-vanishes",
        "environment-changed",
        "impossible-value",
        "exploration-explodes",
        "constant-reward",
        "clip-fraction-high",
        "updates-hardly-move",
        "frozen-metric",
    ),
    verdict="stalled",
    thresholds=(MAX_ENTROPY_SHARE, MAX_LATE_EPSILON, MAX_BONUS_RATIO),
)
