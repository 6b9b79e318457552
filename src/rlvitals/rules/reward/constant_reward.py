"""Rewards do not differ at all: there is nothing to tell a good action from a bad one.

## What it sees
Rewards of a batch of responses without any spread in 10 successive updates, or an outcome (score,
reward, return) that is exactly the same number for as long: to the end of the run or for a fifth of
it; or one that has been its own lowest number ever since it fell there, for longer than a random
order of its values would leave at the end in 1 of 1,000 draws. Not where the outcome
climbed to its highest value and stays there, and not where answers are right: that is convergence.
A language model that has no gradient besides is stalled, even while its mean reward wanders upwards
with the prompts. A return that never stood above its level is a flat start: a note, until 40 % of a
known budget are spent, and while a run of unknown budget goes on. Spread over single steps is no
evidence: many environments pay the same for every step. A return that is the least that the
environment gives is a note: nothing has succeeded yet.

A return that is one whole number, -10 or less, in the last ten episodes and more, although epsilon
makes some actions random, is a warning also where it was climbed to: nothing that is done changes
it. Episodes that run to a time limit at a cost of 1 a step look so, and none that reaches a goal.

Returns of 0 in an environment that pays the same for each step (CartPole 1, Acrobot and
MountainCar -1) are an error whatever else is shown: the reward no longer arrives.

Where rewards do differ, a part of them that is one number in every update of the run, 40 at least,
is noted: it never told responses apart. Of a scheduler's reward a part of 0 is not: it has no
weight, or there was nothing to penalise.

## Why it matters
Advantages are differences. Without any, the update is zero or normalised noise, and noise keeps
KL and clip fraction looking healthy.

## What to do
Score a response known to be good and one known to be bad, by hand. Then look for what made them
equal: a parser that never matches, an exception scored as a default, a reward clipped at its limit.

## When it is wrong
Sparse rewards are constant until the first success: give them time, or a shaped reward. Rounded
logs make small differences vanish.

## References
- Henderson et al. 2018, "Deep Reinforcement Learning that Matters", on reward scale.
- Shao et al. 2024, "DeepSeekMath", GRPO's group-relative advantage.
"""

from dataclasses import replace

import numpy as np

from rlvitals.metrics.absence import describe_absence
from rlvitals.metrics.catalogue.exploration import EPSILON
from rlvitals.metrics.catalogue.outcome import RETURN, REWARD, SCORE
from rlvitals.metrics.catalogue.reward import COMPONENT, GROUP_STD, SCORE_STD, STD
from rlvitals.metrics.metric import Bound
from rlvitals.metrics.reward_names import SOLVED_SHARE, pays_right_answers
from rlvitals.rules import kinds
from rlvitals.rules.answers import last_share, verdict_trend
from rlvitals.rules.episode_window import episodes_per_point, memory
from rlvitals.rules.falling import VISIBLE_LOSS_SHARE
from rlvitals.rules.known_task import environment
from rlvitals.rules.paid import step_reward
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
from rlvitals.rules.shapes import MIN_LASTING_SHARE
from rlvitals.rules.spent import too_early
from rlvitals.rules.standing import Standing, label, standing
from rlvitals.rules.untaught import at_top, lifeless
from rlvitals.rules.weigh import content, sides
from rlvitals.signals.level import stays_above
from rlvitals.types import Profile, Series, Trace

MIN_REWARD_POINTS = 10
MIN_CONSTANT_UPDATES = Threshold(
    "constant-reward.updates", float(MIN_REWARD_POINTS), "updates over which rewards do not differ",
    low=MIN_REWARD_POINTS,
)  # fmt: skip
MIN_DEAD_UPDATES = 40  # a part may be earned by chance only after so many
MIN_EQUAL_SHARE = 0.9  # of ten rows: one different sample is no signal
PAY_METRICS = (GROUP_STD, SCORE_STD, STD, SCORE, RETURN, REWARD)
SPREAD_NAMES = tuple(metric.name for metric in PAY_METRICS[:3])
LEVEL_NAMES = tuple(metric.name for metric in PAY_METRICS[3:])


def check(trace: Trace) -> Answer:
    """Look at the reward as a whole, then at its parts."""
    answer = _nothing(trace) or _stuck(trace) or _judge_run(trace)
    return answer if isinstance(answer, Finding) else _tail(trace) or _dead_part(trace) or answer


def _nothing(trace: Trace) -> Finding | None:
    """Find returns of 0 where every step pays: no healthy run has them, however it learns."""
    pay = step_reward(trace)
    if pay is None or len(pay.points_without_reward) < MIN_CONSTANT_UPDATES.on(trace):
        return None
    no_reward, break_index = pay.points_without_reward, pay.broke
    onset_step = no_reward.steps[0] if break_index is None else pay.share.steps[break_index]
    between = int(onset_step), int(no_reward.steps[-1])
    rate_text = f"{pay.env.name} pays {pay.env.pays:g} a step"
    answer = _finding(trace, RETURN.name, between, len(no_reward), trace[RETURN.name])
    return replace(
        answer, severity=Severity.ERROR, evidence=(rate_text, *answer.evidence), counter=()
    )


def _stuck(trace: Trace) -> Finding | None:
    """Find returns that random actions do not change: every episode costs the same."""
    name = next((n for n in (RETURN.name, REWARD.name) if n in trace), "")
    series, epsilon = (trace.numbers(n, MIN_REWARD_POINTS) for n in (name, EPSILON.name))
    if series is None or epsilon is None or too_early(trace):
        return None
    value = float(series.values[-1])
    different = np.flatnonzero(series.values != value)
    first = int(different[-1]) + 1 if len(different) else 0
    count = len(series) - first
    episodes = count * episodes_per_point(trace, name, series)
    too_few = count < 3 or episodes < MIN_REWARD_POINTS  # rows
    # A lost game pays -1 many times in a row.
    if value > -MIN_REWARD_POINTS or value != np.rint(value) or not first or too_few:
        return None
    start, end = int(series.steps[first]), int(series.steps[-1])
    random = epsilon.since(start).values
    if not len(random) or random.min() < 0.01:
        return None
    return Finding(
        f"{label(name)} is {value:.4g} in the last {count} rows, {episodes:.0f} episodes, although "
        f"{random[-1]:.0%} of the actions are random: no episode ends otherwise",
        severity=Severity.WARNING,
        metric=name,
        began=start,
        ended=end,
        observed=episodes,
        bound=Bound(MIN_REWARD_POINTS, "default: so many episodes"),
        limit_on_curve=False,
        causes=(
            "every episode runs to its time limit: the policy goes round in circles",
            "actions do not reach the environment",
        ),
        remedies=("look at one greedy episode", "check the states that are learned from"),
    )


def _tail(trace: Trace) -> Finding | None:
    """Find an outcome that varied, fell, and has been one number ever since."""
    outcomes = [(n, s.finite()) for n in LEVEL_NAMES if (s := trace.get(n)) is not None]
    long_outcomes = ((n, s) for n, s in outcomes if len(s) >= 2 * MIN_REWARD_POINTS)
    name, series = next(long_outcomes, ("", None))
    if series is None:
        return None
    varied = np.flatnonzero(series.values != series.values[-1])
    first = int(varied[-1]) + 1 if len(varied) else 0
    count = len(series) - first
    rises = series.values[-1] > series.values.min()
    if not first or count < MIN_CONSTANT_UPDATES.on(trace) or rises:
        return None
    if _by_chance(series.values, first):
        return None
    between = _onset_step(trace, name, series, first), int(series.steps[-1])
    return _finding(trace, name, between, count, series)


def _by_chance(values: np.ndarray, first: int) -> bool:
    """Return True if a random order of the values may leave the lowest alone from `first` on.

    A few successes among failures leave many failures at the end: more often than in 1 of 1,000.
    """
    higher_count = int(np.count_nonzero(values[:first] > values[-1]))
    index = np.arange(higher_count)
    chance = float(np.prod((first - index) / (len(values) - index)))
    return chance > 1e-3


def _onset_step(trace: Trace, name: str, series: Series, first: int) -> int:
    """Return the step from which a mean over episodes can have fallen to what it became."""
    values, first_step = series.values[:first], int(series.steps[first])
    high = float(values.max()) - VISIBLE_LOSS_SHARE * float(values.max() - series.values[first])
    decline_step = int(series.steps[int(np.flatnonzero(values >= high)[-1])])
    return max(decline_step, first_step - round(memory(trace, name, first_step)))


def _dead_part(trace: Trace) -> Finding | None:
    """Note a part that is one number throughout, beside parts that are not."""
    parts = {
        name: points
        for name, series in trace.family(COMPONENT.name).items()
        if len(points := series.finite()) >= MIN_DEAD_UPDATES
    }
    dead = [name for name, series in parts.items() if np.ptp(series.values) == 0]
    if trace.profile is Profile.SCHEDULER_PPO:  # a part without weight, or nothing to take off
        dead = [name for name in dead if parts[name].values[0] != 0]
    # Right answers throughout are no fault, and where no part varies the whole is judged alone.
    dead = [o for o in dead if not (pays_right_answers(o) and parts[o].values[0] >= SOLVED_SHARE)]
    if not dead or len(dead) == len(parts):
        return None
    name, series = dead[0], parts[dead[0]]
    value = float(series.values[0])
    other_dead = (f"so are {', '.join(dead[1:])}",) if dead[1:] else ()
    return Finding(
        f"{label(f'{COMPONENT.name}/{name}')} is {value:.4g} in all {len(series):,} updates: it "
        "never told responses apart",
        severity=Severity.NOTE,
        metric=f"{COMPONENT.name}/{name}",
        began=int(series.steps[0]),
        ended=int(series.steps[-1]),
        observed=float(len(series)),
        bound=Bound(MIN_DEAD_UPDATES, "default: so many updates"),
        limit_on_curve=False,
        evidence=other_dead,
        causes=(
            "a check that never matches: a pattern, a tag, a parser",
            "something that every response does, or none can",
        ),
        remedies=("score by hand one response that should earn it", "drop it where all earn it"),
    )


def _judge_run(trace: Trace) -> Answer:
    """Look at the spread of a batch of responses, else at an outcome that never changes."""
    picked = _constant(trace)
    if picked is None:
        lacks = "no spread of rewards and no outcome is logged"
        reason = describe_absence(trace, lacks, *PAY_METRICS, min_count=MIN_REWARD_POINTS)
        return Undecided(reason, (STD.name,))
    name, series, (first, last) = picked
    count = last - first + 1
    lasts = last == len(series) - 1 or count >= MIN_LASTING_SHARE * len(series)
    if count < MIN_CONSTANT_UPDATES.on(trace) or not lasts:
        return Clear()
    first_step, last_step = int(series.steps[first]), int(series.steps[last])
    # A mean over episodes stands still while equal ones leave and join it: only once it holds
    # none of before were they all the same.
    if first and last_step - first_step < memory(trace, name, first_step):
        return Clear()
    right = last_share(trace.until(last_step))
    if right is not None and right >= SOLVED_SHARE:
        return Clear()
    trend = verdict_trend(trace) if trace.profile in kinds.LANGUAGE else standing(trace)
    if trend.state == "at its ceiling" or _at_its_top(name, series, first):
        return Clear()
    return _finding(trace, name, (first_step, last_step), count, series)


def _constant(trace: Trace) -> tuple[str, Series, tuple[int, int]] | None:
    """Return the series to judge with the stretch over which it is constant."""
    names = [*(SPREAD_NAMES if trace.profile in kinds.LANGUAGE else ()), *LEVEL_NAMES]
    logged = [(n, s) for n in names if (s := trace.numbers(n, MIN_REWARD_POINTS)) is not None]
    if not logged:
        return None
    name, series = logged[0]
    equal = series.values == 0 if name in SPREAD_NAMES else _repeats(series.values)
    return name, series, _stays(equal)


def _repeats(values: np.ndarray) -> np.ndarray:
    """Tell which points equal the number that stands longest."""
    kinds, counts = np.unique(values, return_counts=True)
    return np.asarray(values == kinds[int(counts.argmax())])


def _stays(equal: np.ndarray) -> tuple[int, int]:
    """Return the first and last index of the stretch; a single exception does not end it."""
    span = stays_above(equal.astype(np.float64), 0.5, MIN_REWARD_POINTS, MIN_EQUAL_SHARE)
    # Windows that qualify may lie apart: rewards of 0 and 1 differ, however rare a 1 is.
    if span is None or float(equal[span[0] : span[1] + 1].mean()) < MIN_EQUAL_SHARE:
        return 0, -1
    return span


def _at_its_top(name: str, series: Series, first: int) -> bool:
    """See a level that was climbed to: lower before, and never higher."""
    if name in SPREAD_NAMES or first == 0:
        return False
    return bool(series.values[first] == series.values.max() > series.values[:first].mean())


def _finding(
    trace: Trace, name: str, between: tuple[int, int], count: int, series: Series
) -> Finding:
    trend = standing(trace, since=between[0])
    evidence, counter = sides(trend)
    value = float(series.until(between[1]).values[-1])
    spread = name in SPREAD_NAMES
    text = "rewards of a batch do not differ at all" if spread else f"{label(name)} is {value:.4g}"
    env = environment(trace)
    ends_earlier = not spread and bool((series.since(between[1] + 1).values > value).any())
    # Of a return of 0 the least that can be had says nothing: it is what a dead reward pays too.
    floor = () if env is None else (env.random_return, env.min_return or env.random_return)
    waits = name == RETURN.name and value in floor
    learns, notes = _learns(trace, trend, between[0])
    flat_start = _starts_flat(trace, name, series, between[0], value)
    counter = (*counter, *notes, *flat_start)
    severity = Severity.NOTE if learns or waits or ends_earlier or flat_start else Severity.WARNING
    if waits:
        until = "had succeeded until then" if ends_earlier else "has succeeded yet"
        counter = (*counter, f"it is the least that a policy gets: nothing {until}")
    throughout = between[0] == int(series.steps[0]) and count == len(series)
    # A return of exactly 0 where even a random policy earns something else: none arrives.
    never = name == RETURN.name and env is not None and value == 0 and bool(env.random_return)
    of_language = throughout and trace.profile in kinds.LANGUAGE
    if of_language or (never and severity is not Severity.NOTE):
        severity = Severity.ERROR
    equal = series.since(between[0]).until(between[1]).values == (0.0 if spread else value)
    origin = "default: so many in a row" if equal.all() else "default: so many alike"
    return Finding(
        f"{text} in {_times(equal, spread=spread)}",
        severity=severity,
        metric=name,
        began=between[0],
        ended=between[1],
        observed=float(np.count_nonzero(equal)),
        bound=MIN_CONSTANT_UPDATES.bound(trace, origin),
        limit_on_curve=False,
        evidence=evidence,
        counter=counter,
    )


def _starts_flat(
    trace: Trace, name: str, series: Series, began: int, value: float
) -> tuple[str, ...]:
    """Say why a return that hardly stood above its constant level may be a start; empty if not.

    Returns at the floor of a sparse task, before the first success, and at the top of a task whose
    training was resumed are constant rewards to a log that does not name the task.
    """
    if trace.profile in kinds.LANGUAGE or name not in LEVEL_NAMES:
        return ()
    first, reason = int(np.searchsorted(series.steps, began)), too_early(trace)
    if not reason:
        return ()
    if float(series.values[:first].max(initial=value)) - value <= 0.05 * abs(value):  # of the level
        return (f"it never stood above that: a flat start; {reason}",)
    if value > series.values.min() or not _by_chance(series.values, first):
        return ()
    return (f"it stood above that too seldom to tell: a flat start; {reason}",)


def _times(equal: np.ndarray, *, spread: bool) -> str:
    """Count the points of a stretch that are `equal`: it tolerates exceptions, and counts them."""
    points = "successive updates" if spread else "successive values"
    if not equal.all():
        return f"{np.count_nonzero(equal):,} of {equal.size:,} {points}"
    return f"{equal.size:,} {points if spread else 'values in a row'}"


def _learns(trace: Trace, trend: Standing, start_step: int) -> tuple[bool, tuple[str, ...]]:
    """Tell whether the outcome is well in spite of rewards that are alike, and what says so."""
    if trace.profile not in kinds.LANGUAGE:
        return content(trend) or content(verdict_trend(trace)), ()  # by its evaluation too
    solved = content(verdict_trend(trace)) and at_top(trace, start_step)
    notes = ("most batches earn the most that any did",) if solved else ()
    return (content(trend) or solved) and not lifeless(trace), notes


RULE = Rule(
    name="constant-reward",
    needs=(),
    needs_any=(STD, GROUP_STD, SCORE_STD, SCORE, RETURN, REWARD),
    at_least=MIN_REWARD_POINTS,
    check=check,
    doc=__doc__,
    profiles=kinds.WITH_REWARD,
    causes=(
        "a reward function that returns a default: parser, exception, timeout",
        "a task in which nothing succeeds yet",
        "rewards clipped at a limit",
    ),
    remedies=(
        "score one good and one bad sample by hand",
        "log how often the reward falls back to its default",
        "take easier tasks until some succeed",
    ),
    explained_by=(
        "setting-out-of-range",
        "not-a-number",
        "learning-starts-late",
        "learning-rate-too-high",
        "updates-hardly-move",
        "frozen-metric",
        "value-loss-explosion",
        "q-divergence",
        "action-collapse",
        "episodes-never-end",
        "entropy-collapse",
        "response-length-explodes",
        "response-length-collapses",
        "eos-missing",
        "responses-truncated",
        "reference-kl-out-of-range",
        "judge-outage",
    ),
    verdict="stalled",
    thresholds=(MIN_CONSTANT_UPDATES, persistence("constant-reward")),
    persists=persistence("constant-reward"),
)
