"""Rewards stop coming from the judge: they are missing, a default, or errors, for some updates.

## What it sees
One of four, the surest first. Rollouts that end in an error in more than a fifth of the cases, in
half of 10 updates. Rewards that are missing (null or NaN) in 3 or more successive rows that hold
everything else. A reward, or a part of it, that from one update to the next is exactly one number
for every response in 3 or more updates, far outside its scatter before, while entropy, length and
KL do not move: a policy cannot fall that far without moving. A reward that drops to a lower level
in one update while those stand still and the time of a step changes at the same update.

A note where it was short and is over; a warning where it goes on at the end of the log, and where
it took a tenth of the run: of errors and missing rewards only if nothing better is learned; an
error where nine in ten rollouts fail to the end.

## Why it matters
A timeout that is scored 0 is a lesson: whatever was written is called wrong. Advantages are then
noise, or zero, and a good run is judged by its broken stretch.

## What to do
Look at the judge's or sandbox's own log at that time: rate limits, timeouts, full disks. Give what
could not be scored no reward at all, leave it out of the loss, retry with a pause, and stop the run
when too much fails. Take up again at the checkpoint before.

## When it is wrong
A harder stage of a curriculum lowers rewards in one update as well, and longer problems take
longer. A part of the reward that only some tasks have is missing where the batch holds none.

## References
- verl issue #6673, prime-rl #964, NeMo-RL #2207: rewards of failed calls.
- huggingface/trl, grpo_trainer.py: a reward function may return None; all None is logged as null.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rlvitals.metrics.catalogue.exploration import ENTROPY
from rlvitals.metrics.catalogue.language import LENGTH_MEAN
from rlvitals.metrics.catalogue.outcome import REWARD, SCORE
from rlvitals.metrics.catalogue.policy import APPROX_KL, KL_TO_REFERENCE, KL_TO_REFERENCE_PER_TOKEN
from rlvitals.metrics.catalogue.reward import COMPONENT, COMPONENT_STD, GROUP_STD, STD
from rlvitals.metrics.catalogue.rollouts import ABORTED_SHARE, ERROR_SHARE
from rlvitals.metrics.catalogue.throughput import STEP_TIME
from rlvitals.metrics.metric import Bound
from rlvitals.rules import kinds
from rlvitals.rules.answers import learning_trend
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold
from rlvitals.rules.shapes import SHORT_WINDOW, above
from rlvitals.rules.standing import label
from rlvitals.rules.weigh import content, sides
from rlvitals.signals.changepoint import change_point
from rlvitals.signals.spread import median, noise_sd, robust_sd
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Series, Trace

MAX_ROLLOUT_ERROR_SHARE = Threshold(
    "judge-outage.errors", 0.2, "share of rollouts that end in an error"
)
MIN_OUTAGE_UPDATES = Threshold(
    "judge-outage.updates", 3.0, "successive updates without real rewards"
)
LEVEL_BEFORE_UPDATES = 20  # before an outage; their median is the level
ONSET_UPDATES = 5  # on either side of the onset
MIN_LONG_OUTAGE_SHARE = 0.1  # of the run
# What a policy moves before it can earn less.
POLICY_MOVEMENT_NAMES = (
    ENTROPY.name,
    LENGTH_MEAN.name,
    KL_TO_REFERENCE.name,
    KL_TO_REFERENCE_PER_TOKEN.name,
    APPROX_KL.name,
)


@dataclass(frozen=True, slots=True)
class Outage:
    """A stretch of updates without real rewards."""

    metric: str
    description: str
    first_step: int  # step
    last_step: int
    updates: int
    share: float  # of the run's updates
    goes_on: bool
    evidence: tuple[str, ...] = ()


def check(trace: Trace) -> Answer:
    """Ask each sign in turn; the longest of a kind speaks."""
    failing = _errors(trace)
    if failing is not None:
        return failing
    rewards = [n for n in (REWARD.name, SCORE.name) if n in trace]
    parts = [n for n in trace.series if n.startswith(f"{COMPONENT.name}/")]
    outages = [out for n in rewards if (out := _missing(trace, n)) is not None]
    outages = outages or [
        out for n in (*rewards, *parts) if (out := _default(trace, n)) is not None
    ]
    if outages:
        return _finding(trace, max(outages, key=lambda out: out.updates))
    partly = [drop for n in rewards if (drop := _drop(trace, n)) is not None]
    return partly[0] if partly else Clear()


def _errors(trace: Trace) -> Finding | None:
    for metric in (ERROR_SHARE, ABORTED_SHARE):
        shares = trace.get(metric.name)
        limit = MAX_ROLLOUT_ERROR_SHARE.on(trace)
        stretch = above(shares, limit, SHORT_WINDOW) if shares is not None else None
        if shares is None or stretch is None:
            continue
        level = stretch.middle(shares)
        trend = learning_trend(trace, since=stretch.start)
        evidence, counter = sides(trend)
        lasts = stretch.goes_on or (stretch.share >= MIN_LONG_OUTAGE_SHARE and not content(trend))
        is_total = stretch.goes_on and level >= 0.9  # of the rollouts
        return Finding(
            f"{level:.0%} of rollouts end in an error, {stretch.worst:.0%} at worst",
            severity=Severity(lasts + is_total),
            metric=metric.name,
            began=stretch.start,
            ended=stretch.end,
            observed=level,
            bound=MAX_ROLLOUT_ERROR_SHARE.bound(trace, "default"),
            evidence=evidence,
            counter=counter,
        )
    return None


def _missing(trace: Trace, name: str) -> Outage | None:
    """Find rows that hold the rest of an update and no reward."""
    rows = next((trace[n] for n in POLICY_MOVEMENT_NAMES if n in trace), None)
    if rows is None:
        return None
    steps = np.unique(rows.steps)
    has = np.isin(steps, trace[name].finite().steps)
    stretch = _longest(~has, steps)
    if stretch is None:
        return None
    first, last = stretch
    count = last - first + 1
    other_rows = np.concatenate((has[:first], has[last + 1 :]))
    # Otherwise the reward is not logged in every row.
    if count < MIN_OUTAGE_UPDATES.on(trace) or first == 0 or other_rows.mean() < 0.9:
        return None
    return Outage(
        name,
        f"{label(name)} is missing",
        int(steps[first]),
        int(steps[last]),
        count,
        count / len(steps),
        goes_on=last == len(steps) - 1,
    )


def _longest(flags: NDArray[np.bool_], steps: NDArray[np.int64]) -> tuple[int, int] | None:
    """Return the first and last index of the longest run of true flags."""
    if not len(steps) or not flags.any():
        return None
    edges = np.flatnonzero(np.diff(np.concatenate(([False], flags, [False])).astype(int)))
    starts, ends = edges[::2], edges[1::2]
    longest = int(np.argmax(ends - starts))
    return int(starts[longest]), int(ends[longest]) - 1


def _default(trace: Trace, name: str) -> Outage | None:
    """Find a sudden stretch in which every response earns the same number."""
    series = trace[name].finite()
    values = series.values
    if len(values) < LEVEL_BEFORE_UPDATES // 2 + MIN_OUTAGE_UPDATES.on(trace):
        return None
    atom = _longest_value(values)
    stretch = _longest((values == atom) & _uniform(trace, name, series), series.steps)
    if stretch is None:
        return None
    first, last = stretch
    count = last - first + 1
    values_before = series.where(slice(max(0, first - LEVEL_BEFORE_UPDATES), first)).values
    if count < MIN_OUTAGE_UPDATES.on(trace) or len(values_before) < LEVEL_BEFORE_UPDATES // 2:
        return None
    level, spread = median(values_before) or 0.0, robust_sd(values_before) or 0.0
    # Gone in one update, from where it had never been near: what sinks over several, or touches
    # the floor now and then, is a policy that gets worse.
    near = np.any(values_before - atom < 0.25 * (level - atom))  # a quarter of the way
    if not spread or level - atom < 4.0 * spread or near:  # standard deviations before
        return None
    moved = _policy_moves(trace, int(series.steps[first]))
    if moved is None or moved:
        return None
    return Outage(
        name,
        f"{label(name)} is {atom:.4g} for every response, {level:.3g} before,",
        int(series.steps[first]),
        int(series.steps[last]),
        count,
        count / len(series),
        goes_on=last == len(series) - 1,
        evidence=("entropy, length and KL did not move when it set in",),
    )


def _longest_value(values: NDArray[np.float64]) -> float:
    """Return the number that stands in most successive updates, the newest of equals."""
    starts = np.flatnonzero(np.diff(values, prepend=np.nan) != 0)
    lengths = np.diff(starts, append=len(values))
    return float(values[starts[len(starts) - 1 - int(np.argmax(lengths[::-1]))]])


def _uniform(trace: Trace, name: str, series: Series) -> NDArray[np.bool_]:
    """Tell the updates in which responses do not differ; true where no spread is logged."""
    suffix = name.removeprefix(f"{COMPONENT.name}/")
    is_component = suffix != name
    spread_names = (
        (f"{COMPONENT_STD.name}/{suffix}",) if is_component else (STD.name, GROUP_STD.name)
    )
    spread = next((trace[n].finite() for n in spread_names if n in trace), None)
    if spread is None or not len(spread):
        return np.ones(len(series), dtype=np.bool_)
    zero = spread.steps[spread.values == 0]
    return np.isin(series.steps, zero) | ~np.isin(series.steps, spread.steps)


def _policy_moves(trace: Trace, step: int) -> bool | None:
    """Tell whether what a policy moves had moved by `step`; None where nothing tells."""
    answer = None
    for name in POLICY_MOVEMENT_NAMES:
        if name not in trace:
            continue
        series = trace[name].finite()
        index = int(np.searchsorted(series.steps, step))
        values_before = series.values[max(0, index - LEVEL_BEFORE_UPDATES) : index]
        after = series.values[index : index + 2]
        if len(values_before) < 2 * ONSET_UPDATES or not len(after):
            continue
        answer = bool(answer)
        noise = max(noise_sd(values_before) or 0.0, robust_sd(values_before) or 0.0)
        gap = abs(float(after.mean()) - float(np.median(values_before)))
        if gap > 4.0 * noise:  # standard errors of a mean of so many updates
            return True
    return answer


def _drop(trace: Trace, name: str) -> Finding | None:
    """Find a drop in one update at which the time of a step changes and the policy does not."""
    series, times = trace[name].finite(), trace.get(STEP_TIME.name)
    change = change_point(series.values) if times is not None else None
    if times is None or change is None or change.size >= 0:
        return None
    step = int(series.steps[change.index])
    slower = change_point(times.values)
    if slower is None:
        return None
    near = np.searchsorted(series.steps, int(times.steps[slower.index]))
    if abs(int(near) - change.index) > ONSET_UPDATES or _policy_moves(trace, step) is not False:
        return None
    trend = learning_trend(trace, since=step)
    evidence, counter = sides(trend)
    return Finding(
        f"{label(name)} drops in one update, {change.before:.3g} to {change.after:.3g}, and a step "
        f"takes {slower.after:.3g} s instead of {slower.before:.3g} from then on",
        severity=Severity.NOTE,
        metric=name,
        began=step,
        ended=int(series.steps[-1]),
        observed=change.after - change.before,
        bound=Bound(0.0, "no drop without a change of the policy"),
        limit_on_curve=False,
        evidence=("entropy, length and KL did not move when it set in", *evidence),
        counter=counter,
    )


def _finding(trace: Trace, out: Outage) -> Finding:
    # Over the outage itself the outcome is what is in question.
    other_series = {
        n: s.where((s.steps < out.first_step) | (s.steps > out.last_step))
        for n, s in trace.series.items()
    }
    trend = learning_trend(replace(trace, series=other_series))
    evidence, counter = sides(trend)
    # Rewards of one number are decisive; missing ones may be logged elsewhere.
    is_decisive = bool(out.evidence) or not content(trend)
    lasts = out.goes_on or (out.share >= MIN_LONG_OUTAGE_SHARE and is_decisive)
    ending = "" if out.goes_on else "; it comes back afterwards"
    return Finding(
        f"{out.description} in {out.updates} successive updates{ending}",
        severity=Severity.WARNING if lasts else Severity.NOTE,
        metric=out.metric,
        began=out.first_step,
        ended=out.last_step,
        observed=float(out.updates),
        bound=MIN_OUTAGE_UPDATES.bound(trace, "default: successive updates"),
        limit_on_curve=False,
        evidence=(*out.evidence, *evidence),
        counter=counter,
    )


RULE = Rule(
    name="judge-outage",
    needs=(),
    needs_any=(REWARD, SCORE, ERROR_SHARE),
    at_least=SHORT_WINDOW,
    check=check,
    doc=__doc__,
    causes=(
        "the judge, sandbox or tool server was down, slow, or at its rate limit",
        "an exception in the reward function that is scored as a default",
        "a change of the judge, its prompt or its parser",
    ),
    remedies=(
        "read the judge's own log at that time",
        "give what could not be scored no reward, and leave it out of the loss",
        "retry with a pause, and stop the run where too much fails",
        "take up again at the checkpoint before this step",
    ),
    profiles=kinds.LANGUAGE,
    thresholds=(MAX_ROLLOUT_ERROR_SHARE, MIN_OUTAGE_UPDATES),
)
