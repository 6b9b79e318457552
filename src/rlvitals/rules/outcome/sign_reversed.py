"""The policy gets surer of what pays less: it is trained the wrong way round.

## What it sees
A return that is proven to fall, or ends lower by more than what counts, to below what the
untrained policy earned, while the entropy of discrete actions falls too, in steps of ordinary size.
Three things tell it from a policy that became certain too soon: three quarters of the fall had come
while entropy was still above 75 % of its first level; at most a tenth of the later returns, none
where no fall is proven, stand above the first ones; and the median KL per update, where it is
logged, is below 0.05 nats. An error.

Where the environment is known and the run ends below random actions, by three times the scatter of
its last third, and at half of its first entropy or less, which was at least half of the most, no
size of the fall is asked for: a policy that knows nothing would earn more than one that is sure.

Nor is one asked for where a policy that was uniform at first loses a fifth of its entropy while
twelve blocks of the return fall in order (Kendall's test at 0.1 %), at most a tenth of them above
the first: close to the least that a task pays there is little left to lose.

Where it is known, returns can show the sign themselves: nine in ten are impossible, their negatives
are not, and the first ones are what random actions earn with the other sign, within a half. Or, in
an environment that pays each step the same, each return is minus what its steps should have paid.
A warning, whatever the outcome does.

A Q-learner shows it by epsilon: while that falls from a half or more to a fifth or less, the return
falls as well (Kendall's test at 1 %, over up to twenty blocks, six at least), its last third lies
below its first block by three times the scatter from block to block and, unless it ends below
random actions (see above), by more than what counts, and at most a tenth of the later blocks stand
above the first. What was learned earns less than random actions. A warning.

## Why it matters
A policy gradient raises the probability of what earned more than expected. With one sign wrong it
raises that of what earned less, and does so in good order: losses, KL and clip fraction look well.

## What to do
Take one step on a single sample with a positive advantage: the probability of its action has to
rise. Then look at the sign of the loss (optimisers minimise), of the advantage (return less value,
not value less return), and of the reward: a cost that is paid as a reward.

## When it is wrong
An entropy bonus of the wrong sign makes a policy certain as well, of any action: then entropy falls
first. A policy that was good when the log began, and is destroyed by its first updates. A Q-learner
whose values are wrong for another reason: targets of other rows, a rate that is too high.

## References
- Sutton et al. 1999, "Policy Gradient Methods for Reinforcement Learning with Function
  Approximation".
- Achiam 2018, "Spinning Up in Deep RL", on the sign of the policy's loss.
"""

import numpy as np

from rlvitals.metrics.catalogue.exploration import ENTROPY, ENTROPY_COEF, EPSILON
from rlvitals.metrics.catalogue.outcome import RETURN, REWARD
from rlvitals.metrics.catalogue.policy import APPROX_KL
from rlvitals.metrics.metric import Bound
from rlvitals.rules import kinds
from rlvitals.rules.answers import verdict_trend
from rlvitals.rules.gains import order_chance
from rlvitals.rules.known_task import environment, task
from rlvitals.rules.paid import negated_returns, step_reward
from rlvitals.rules.rule import (
    Answer,
    Clear,
    Finding,
    Rule,
    Severity,
    Threshold,
    Undecided,
    persistence,
)
from rlvitals.rules.spent import too_early
from rlvitals.rules.standing import label, least_that_counts, outcome
from rlvitals.rules.width import max_entropy
from rlvitals.signals.finite import Array
from rlvitals.signals.rolling import block_means
from rlvitals.signals.spread import noise_sd
from rlvitals.types import Series, Trace

SIGN_PERSISTENCE = persistence("sign-reversed")
FIRST_POINTS = 3  # of the returns, at least: those of a hardly trained policy
MIN_ENTROPY_THEN = Threshold(
    "sign-reversed.entropy",
    0.75,
    "share of the first entropy that is left when most of the fall has come",
    high=1.0,
)
MAX_ABOVE_START = 0.1  # share of the later returns above the first ones
LAST_ENTROPY_POINTS = 5  # their median is the level of entropy


def check(trace: Trace) -> Answer:
    """Ask the returns' own sign, else for a fall, and whether entropy came down after it."""
    return _negative_returns(trace) or _surer_of_less(trace)


def _surer_of_less(trace: Trace) -> Answer:
    if EPSILON.name in trace and ENTROPY.name not in trace:
        return _greedy_is_worse(trace)
    picked = outcome(trace)
    is_low = picked is not None and _is_below_random(trace, *picked)
    min_points = 12 if is_low else 20  # a known level needs no proven fall
    entropy, entropy_bound = trace.numbers(ENTROPY.name, min_points), max_entropy(trace)
    if picked is None or len(picked[1]) < min_points:
        return Undecided(f"fewer than {min_points} values of the outcome", (RETURN.name,))
    if entropy is None or entropy_bound is None:
        lack = (
            "" if entropy_bound is None else f"{ENTROPY.name} has fewer than {min_points} numbers"
        )
        return Undecided(lack or "no entropy of discrete actions is logged", (ENTROPY.name,))
    if reason := too_early(trace):
        return Undecided(reason, ("total_steps",))
    trend, kl = verdict_trend(trace), trace.numbers(APPROX_KL.name)
    large = kl is not None and float(np.median(kl.values)) > 0.05  # nats
    last_entropy = float(np.median(entropy.tail(LAST_ENTROPY_POINTS).values))
    # A policy that is sure in its first row was not trained to it by the sign of what came after.
    is_open = float(entropy.values[0]) >= entropy_bound.value / 2
    below_random = is_low and is_open and last_entropy <= entropy.values[0] / 2
    falls_in_order = _falls_in_order(picked[1], entropy, entropy_bound)
    is_worse = trend.state == "falling" or trend.sags or below_random or falls_in_order
    pay = step_reward(trace)
    is_noise = pay is not None and pay.scatters is not None  # `impossible-value` says it
    if not is_worse or trend.metric != picked[0] or large or is_noise:
        return Clear()
    max_share_above = MAX_ABOVE_START if trend.state == "falling" else 0.0
    min_fall, origin = least_that_counts(trace, *picked)
    if below_random:
        min_fall, origin = 0.0, "a level below random actions"
    elif falls_in_order and trend.state != "falling":
        min_fall, origin = 0.0, "no fall, in twelve blocks"
        max_share_above = 0.25  # of single values, whose noise their blocks do not have
    return _surer(trace, *picked, entropy, Bound(-min_fall, origin), max_share_above)


def _falls_in_order(series: Series, entropy: Series, uniform: Bound) -> bool:
    """Return True if blocks of the outcome fall in order as a uniform policy gets surer.

    A fall to what a task pays least is small where random actions hardly earn more, and its order
    tells all the same. By chance in one of a thousand flat outcomes.
    """
    if len(series) < 24:
        return False  # two values a block
    levels = block_means(series.values, 12)
    above = float((levels[1:] > levels[0]).mean())
    first = float(np.median(entropy.values[:FIRST_POINTS]))
    last = float(np.median(entropy.tail(LAST_ENTROPY_POINTS).values))
    is_surer = first >= 0.9 * uniform.value and last <= 0.8 * first
    return is_surer and above <= MAX_ABOVE_START and order_chance(-levels) <= 0.001


def _is_below_random(trace: Trace, name: str, series: Series) -> bool:
    """Return True if the last third lies below what random actions earn, beyond its scatter."""
    env, last = task(trace, name, series.values), series.values[-(len(series) // 3) :]
    level = None if env is None else env.random_return
    return level is not None and float(last.mean() + 3.0 * last.std()) < level


def _negative_returns(trace: Trace) -> Finding | None:
    """Find returns that a known environment gives with the other sign."""
    env, series = environment(trace), negated_returns(trace)
    if env is None or series is None:
        return None
    random_text = (
        "" if env.random_return is None else f", random actions earn {env.random_return:g}"
    )
    return Finding(
        f"the reward has the wrong sign: returns of {env.name} are {series.values.min():.4g} to "
        f"{series.values.max():.4g}{random_text}",
        severity=Severity.ERROR,
        metric=RETURN.name,
        began=int(series.steps[0]),
        ended=int(series.steps[-1]),
        observed=float(np.median(series.values)),
        bound=Bound(0.0, "the sign of what the environment pays"),
        causes=("the reward is negated, in a wrapper or in the program",),
        remedies=("compare the reward of one step with the environment's documentation",),
    )


def _surer(  # noqa: PLR0913, PLR0917 - the outcome, and what it is held against
    trace: Trace, name: str, series: Series, entropy: Series, limit: Bound, max_share_above: float
) -> Answer:
    """Compare the step at which most of the fall had come with the entropy of that step."""
    # Returns of the untrained policy: those before the first update, and 5 % of all at most.
    untrained = len(series.until(int(entropy.steps[0])))
    count = max(min(untrained, round(0.05 * len(series))), FIRST_POINTS)
    first = float(np.median(series.values[:count]))
    last = float(series.values[-(len(series) // 3) :].mean())
    above = float((series.values[count:] > first).mean())
    if last - first >= limit.value or above > max_share_above:
        return Clear()
    windows = np.lib.stride_tricks.sliding_window_view(series.values, FIRST_POINTS)
    low = np.median(windows, axis=1) <= first - 0.75 * (first - last)
    step = int(series.steps[int(low.argmax())])
    entropies = entropy.until(step).tail(FIRST_POINTS).values
    first_entropy, last_entropy = (
        float(entropy.values[0]),
        float(np.median(entropy.tail(LAST_ENTROPY_POINTS).values)),
    )
    fall_entropy = float(np.median(entropies)) if len(entropies) else first_entropy
    # Entropy below 95 % of its first level: the policy is more certain.
    min_entropy = MIN_ENTROPY_THEN.on(trace) * first_entropy
    if fall_entropy < min_entropy or last_entropy > 0.95 * first_entropy:
        return Clear()
    entropy_text = f"still {fall_entropy:.3g} nats"
    return Finding(
        f"the policy gets surer of what pays less: {label(name)} falls from {first:.4g} to "
        f"{last:.4g}, entropy from {first_entropy:.3g} to {last_entropy:.3g} nats",
        severity=Severity.ERROR,
        metric=name,
        began=int(series.steps[0]),
        ended=int(series.steps[-1]),
        observed=last - first,
        bound=limit,
        limit_on_curve=False,
        evidence=(
            f"at step {step:,}, with most of the fall behind it, entropy was {entropy_text}",
        ),
    )


def _min_fall(trace: Trace, name: str, levels: Array) -> tuple[float, str]:
    """Return the least fall that counts, and where that comes from."""
    own_fall = (3.0 * (noise_sd(levels) or 0.0), "3 sd of its blocks")
    picked = outcome(trace)
    if picked is None or picked[0] != name or _is_below_random(trace, *picked):
        return own_fall
    return max(own_fall, least_that_counts(trace, *picked))


def _greedy_is_worse(trace: Trace) -> Answer:
    """Compare the returns of random actions with those of the learned ones."""
    min_points = 6  # that all fall have a chance of 1 in 720
    name = next((m.name for m in (RETURN, REWARD) if m.name in trace), RETURN.name)
    series, epsilon = (trace.numbers(n, min_points) for n in (name, EPSILON.name))
    if series is None or epsilon is None:
        return Undecided(f"fewer than {min_points} returns or epsilons", (RETURN.name,))
    if reason := too_early(trace):
        return Undecided(reason, ("total_steps",))
    first_epsilon, last_epsilon = (float(epsilon.values[i]) for i in (0, -1))
    levels = np.array([v.mean() for v in np.array_split(series.values, 20) if v.size])
    first, last = float(levels[0]), float(levels[-len(levels) // 3 :].mean())
    min_fall, origin = _min_fall(trace, name, levels)
    share_above = float((levels[1:] > first).mean())
    is_over = first_epsilon >= 0.5 and last_epsilon <= 0.2
    is_falling = order_chance(-levels) <= 0.01 and first - last >= min_fall
    if not (is_over and is_falling) or share_above > MAX_ABOVE_START:
        return Clear()
    return Finding(
        f"what is learned earns less than random actions: {label(name)} falls from {first:.4g} to "
        f"{last:.4g} while epsilon falls from {first_epsilon:.3g} to {last_epsilon:.3g}",
        severity=Severity.WARNING,
        metric=name,
        began=int(series.steps[0]),
        ended=int(series.steps[-1]),
        observed=last - first,
        bound=Bound(-min_fall, origin),
        limit_on_curve=False,
        causes=(
            "the sign of the target, of the loss or of the reward is wrong",
            "targets belong to other states or actions",
            "the learning rate is too high for the values to settle",
        ),
        remedies=(
            "check on one transition that the value of a good action rises",
            "print reward, target and value of ten transitions",
        ),
    )


RULE = Rule(
    name="sign-reversed",
    needs=(),
    needs_any=(ENTROPY, EPSILON, ENTROPY_COEF),
    at_least=6,
    check=check,
    doc=__doc__,
    profiles=kinds.CONTROL,
    causes=(
        "the sign of the advantage or of the policy's loss is wrong",
        "the sign of the reward that is learned from is wrong: a cost is maximised",
        "the entropy bonus has the wrong sign",
    ),
    remedies=(
        "take one step on one sample with a positive advantage: its action's probability must rise",
        "check that the loss that is minimised is minus the objective",
        "check the sign of the reward on one good and one bad episode",
    ),
    explained_by=(
        "setting-out-of-range",
        "not-a-number",
        "environment-changed",
        "learning-rate-too-high",
        "learning-rate-jump",
        "kl-above-target",
        "kl-spike",
        "value-loss-explosion",
        "q-divergence",
        "critic-target-frozen",
        "learning-starts-late",
    ),
    verdict="stalled",
    thresholds=(MIN_ENTROPY_THEN, SIGN_PERSISTENCE),
    persists=SIGN_PERSISTENCE,
)
