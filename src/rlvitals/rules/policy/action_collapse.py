"""The policy ends up choosing one action almost always.

## What it sees
The share of the most chosen action, by windows of 200 decisions (fewer in a short run), above
0.8 in every window from some step to the end, having been below it before, or, from the first
window on, where counts are all there is. It began where that action's share left its first
level for good. Where the setting `replica_speeds` tells how fast each replica is, one with more
than its equal part of the speed may take more: the limit then leaves the others a share that
shrinks as their speed does. Otherwise replicas are taken as equal, and the finding says so.

## Why it matters
A policy that has stopped trying the alternatives can no longer learn that they are better. A
share over the whole run hides it: 0.74 in all may be 0.96 at the end.

## What to do
Give exploration back before anything else: a higher entropy coefficient or temperature, then
look at what made one action look best: the reward's terms, the advantage's scale, the critic.

## When it is wrong
One action can be right: the fast replica of an unequal cluster (set `replica_speeds`), a task
solved by always moving right. Where the outcome rises meanwhile this is a note, and where it
cannot be judged a warning.

## References
- Yu et al. 2025, "DAPO", section 3.1, on entropy collapse.
"""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rlvitals.metrics.catalogue.exploration import ENTROPY
from rlvitals.metrics.catalogue.policy import ACTION, ACTION_COUNT
from rlvitals.metrics.metric import Bound
from rlvitals.rules.rule import Answer, Clear, Curve, Finding, Rule, Severity, Threshold, Undecided
from rlvitals.rules.standing import Standing, standing
from rlvitals.rules.workload import Optimum, optimum
from rlvitals.signals.level import first_last_change
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Profile, Series, Trace

MAX_WINDOW_DECISIONS = 200  # the standard error of a share of .8 is then .03
MIN_ACTION_WINDOWS = 5  # with fewer the windows are made shorter
MIN_DECISIONS = 30  # in fewer a share of .8 happens by chance too often
MAX_ACTION_SHARE = Threshold(
    "action-collapse.share", 0.8, "share of the decisions that one action takes", high=1.0
)
MIN_SHARE_RISE = 0.1  # above its first level: three standard errors of a window of 200


@dataclass(frozen=True, slots=True)
class Shares:
    """How often each action was chosen, window by window."""

    names: tuple[str, ...]  # [actions]
    values: NDArray[np.float64]  # [windows, actions], each row sums to 1
    starts: NDArray[np.int64]  # [windows], steps
    ends: NDArray[np.int64]  # [windows], steps
    size: str  # what one window is, in words


def check(trace: Trace) -> Answer:
    """Find an action whose share stays above the limit to the end."""
    shares = _shares(trace)
    if shares is None:
        return Undecided("too few decisions are logged", (ACTION.name,))
    if len(shares.names) == 1 and ACTION_COUNT.name not in trace.measured:
        return Undecided("only one action was ever chosen: the alternatives are not known")
    top = int(shares.values[-1].argmax())
    course = shares.values[:, top]
    best = optimum(trace, len(shares.names)) if trace.profile is Profile.SCHEDULER_PPO else None
    limit = _limit(trace, best, shares.names[top])
    is_above = course > limit.value
    if not is_above[-2:].all():
        return Clear()
    under = np.flatnonzero(~is_above)
    first = int(under[-1]) + 1 if len(under) else 0
    near_start = np.flatnonzero(course <= course[0] + MIN_SHARE_RISE)
    onset = min(int(near_start[-1]) + 1 if course[-1] > course[0] + MIN_SHARE_RISE else 0, first)
    return _finding(trace, shares, top, (onset, limit), best)


def _limit(trace: Trace, best: Optimum | None, name: str) -> Bound:
    """Raise the limit for a replica that should get more than an equal part."""
    best_share = None if best is None or not best.known else best.share(name)
    if best is None or best_share is None or best_share <= 1 / len(best.shares):
        return MAX_ACTION_SHARE.bound(trace, "default")
    margin = (1 - MAX_ACTION_SHARE.on(trace)) * (1 - best_share) / (1 - 1 / len(best.shares))
    return Bound(1 - margin, f"default, for a replica with {best_share:.0%} of the speed")


def _shares(trace: Trace) -> Shares | None:
    actions = trace.get(ACTION.name)
    if (
        actions is not None
        and len(actions := actions.finite()) >= MIN_ACTION_WINDOWS * MIN_DECISIONS
    ):
        return _by_decision(actions)
    counts = trace.family(ACTION_COUNT.name)
    return _by_count(counts) if len(counts) > 1 else None


def _by_decision(decisions: Series) -> Shares:
    size = max(MIN_DECISIONS, min(MAX_WINDOW_DECISIONS, len(decisions) // MIN_ACTION_WINDOWS))
    count = len(decisions) // size
    edges = len(decisions) - size * np.arange(
        count, -1, -1
    )  # whole windows, up to the last decision
    actions = np.unique(decisions.values)
    rows = [(decisions.values[a:b, None] == actions).mean(axis=0) for a, b in pairwise(edges)]
    names = tuple(f"{action:g}" for action in actions)
    ends = decisions.steps[edges[1:] - 1]
    return Shares(names, np.array(rows), decisions.steps[edges[:-1]], ends, f"{size} decisions")


def _by_count(counts: dict[str, Series]) -> Shares | None:
    first = next(iter(counts.values()))
    if any(len(s) != len(first) for s in counts.values()) or len(first) < MIN_ACTION_WINDOWS:
        return None
    table = np.stack([np.nan_to_num(s.values) for s in counts.values()], axis=1)
    if (table < 0).any() or table.max() > 1e15:  # a float64 counts no further one by one
        return None  # no counts
    windows = np.array_split(np.arange(len(first)), min(10, len(first)))
    rows = np.array([table[w].sum(axis=0) for w in windows])
    if (rows.sum(axis=1) < MIN_DECISIONS).any():
        return None
    shares = rows / rows.sum(axis=1, keepdims=True)
    starts = np.array([first.steps[w[0]] for w in windows])
    ends = np.array([first.steps[w[-1]] for w in windows])
    return Shares(tuple(counts), shares, starts, ends, "a tenth of the run")


def _finding(
    trace: Trace, shares: Shares, top: int, onset_and_limit: tuple[int, Bound], best: Optimum | None
) -> Finding:
    course, (onset, limit) = shares.values[:, top], onset_and_limit
    trend = standing(trace, since=int(shares.starts[onset]))
    noun = "replica" if trace.profile is Profile.SCHEDULER_PPO else "action"
    share_text = " ".join(f"{share:.2f}".lstrip("0") for share in np.round(course, 2))
    evidence = [f"its share by windows of {shares.size}: {share_text}"]
    entropy = trace.get(ENTROPY.name)
    if entropy is not None and (levels := first_last_change(entropy.values, share=0.02)):
        evidence.append(f"entropy goes {levels[0]:.3g} to {levels[1]:.3g} nats")
    if best is not None:
        evidence.append(best.assumption)
    if not trend.improves:
        evidence.append(f"meanwhile {trend.sentence}")
    return Finding(
        f"the policy collapsed onto {noun} {shares.names[top]}: it takes {course[-1]:.0%} of the "
        f"last decisions, {course[0]:.0%} of the first",
        severity=_severity(trend),
        metric=_metric(trace),
        began=int(shares.starts[onset]),
        ended=int(shares.ends[-1]),
        observed=float(course[-1]),
        bound=limit,
        curve=Curve(f"share of {noun} {shares.names[top]}", _share_curve(shares, course)),
        evidence=tuple(evidence),
        counter=(f"meanwhile {trend.sentence}",) if trend.improves else (),
    )


def _metric(trace: Trace) -> str:
    if ACTION.name in trace:
        return ACTION.name
    return f"{ACTION_COUNT.name}/{next(iter(trace.family(ACTION_COUNT.name)))}"


def _share_curve(shares: Shares, course: NDArray[np.float64]) -> Series:
    return Series(shares.ends, np.full(len(course), np.nan), course)


def _severity(trend: Standing) -> Severity:
    if trend.improves:
        return Severity.NOTE
    return Severity.ERROR if trend.stalls else Severity.WARNING


RULE = Rule(
    name="action-collapse",
    needs=(),
    needs_any=(ACTION, ACTION_COUNT),
    at_least=MIN_ACTION_WINDOWS,
    check=check,
    doc=__doc__,
    causes=(
        "too little exploration: entropy coefficient, floor or temperature too low",
        "a reward that one action wins early, before its cost shows",
        "a critic that explains nothing, so that noise in the advantages picks a winner",
    ),
    remedies=(
        "raise {entropy_coef} or {temperature:the sampling temperature}",
        "raise the penalty for imbalance where the workload should be spread",
        "check the reward's terms on the collapsed action",
        "restart from a checkpoint before the step at which it began",
    ),
    profiles=(Profile.SCHEDULER_PPO,),
    explained_by=(
        "setting-out-of-range",
        "learning-rate-jump",
        "kl-above-target",
        "kl-spike",
        "temperature-out-of-range",
    ),
    verdict="collapsed",
    thresholds=(MAX_ACTION_SHARE,),
)
