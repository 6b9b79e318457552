"""A task teaches nothing: its groups have no contrast, where those of other tasks have.

## What it sees
`rollout/dead_groups` by task: above 0.9 in at least half of 20 successive updates (10 where fewer
than 40 are logged), to the end, of one or several tasks, while another task stays below 0.5 over
the last fifth. Whether they are all right or all wrong is told by their reward. A note: the hardest
task of a healthy run has stretches without contrast as well.

## Why it matters
The share of dead groups over all tasks looks ordinary. The task that is hopeless, or solved, costs
its whole generation in each update.

## What to do
All wrong: check the verifier on a known right answer, take easier problems of this task first. All
right: take harder ones, or leave the task to the evaluation.

## When it is wrong
A task that is kept in the mixture so that it is not forgotten is dead by design.

## References
- Yu et al. 2025, "DAPO", section 3.2, dynamic sampling.
"""

from rlvitals.metrics.catalogue.rollout_metrics import DEAD_GROUPS, REWARD_BY_TASK
from rlvitals.rules import kinds
from rlvitals.rules.answers import learning_trend
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold, Undecided
from rlvitals.rules.shapes import SHORT_WINDOW, Stretch, above
from rlvitals.rules.weigh import sides
from rlvitals.signals.level import first_last_change
from rlvitals.types import Series, Trace

MIN_DEAD_SHARE = Threshold(
    "tasks-without-signal.share", 0.9, "share of a task's groups without contrast", high=1.0
)


def check(trace: Trace) -> Answer:
    """Find tasks whose groups are dead to the end, next to one that is not."""
    shares = {
        task: series
        for task, series in sorted(trace.family(DEAD_GROUPS.name).items())
        if len(series.finite()) >= SHORT_WINDOW
    }
    if len(shares) < 2:
        return Undecided("fewer than two tasks have groups", (DEAD_GROUPS.name,))
    ends = {task: _end(series) for task, series in shares.items()}
    dead: dict[str, Stretch] = {}
    for task, series in shares.items():
        stretch = above(series, MIN_DEAD_SHARE.on(trace))
        if stretch is not None and stretch.goes_on and ends[task] > MIN_DEAD_SHARE.on(trace):
            dead[task] = stretch
    if not dead:
        return Clear()
    if min(ends.values()) >= 0.5:  # every task has dead groups
        return Undecided("the groups of every task are dead: there is no task to compare with")
    worst = max(dead, key=lambda task: (ends[task], task))
    hopeless = [task for task in dead if _is_lowest(trace, task)]
    evidence, counter = sides(learning_trend(trace))
    names = ", ".join(f"'{task}'" for task in sorted(dead))
    says = "all of its rewards are its lowest" if worst in hopeless else "its rewards are higher"
    return Finding(
        f"nothing is learned from {names}: all rollouts of a group earn the same in "
        f"{ends[worst]:.0%} of the groups",
        severity=Severity.NOTE,
        metric=f"{DEAD_GROUPS.name}/{worst}",
        began=dead[worst].start,
        ended=dead[worst].end,
        observed=ends[worst],
        bound=MIN_DEAD_SHARE.bound(trace, "default"),
        evidence=(says, *evidence),
        counter=counter,
    )


def _end(series: Series) -> float:
    levels = first_last_change(series.values)
    return levels[1] if levels else 0.0


def _is_lowest(trace: Trace, task: str) -> bool:
    """Tell whether a task's rewards are as low at the end as any task's ever were."""
    rewards = trace.get(f"{REWARD_BY_TASK.name}/{task}")
    family = trace.family(REWARD_BY_TASK.name).values()
    if rewards is None or not len(rewards.finite()):
        return False
    lowest = min(float(s.finite().values.min()) for s in family if len(s.finite()))
    highest = max(float(s.finite().values.max()) for s in family if len(s.finite()))
    return _end(rewards) <= lowest + 0.1 * (highest - lowest)


RULE = Rule(
    name="tasks-without-signal",
    needs=(),
    needs_any=(DEAD_GROUPS,),
    at_least=SHORT_WINDOW,
    check=check,
    doc=__doc__,
    causes=(
        "the task is too hard for this model, or its verifier accepts nothing",
        "the task is solved",
    ),
    remedies=(
        "look at this task's groups: solved, or hopeless?",
        "check its verifier on an answer known to be right",
        "take easier or harder problems of it, or leave it out",
    ),
    profiles=kinds.LANGUAGE,
    explained_by=("judge-outage", "zero-variance-groups"),
    thresholds=(MIN_DEAD_SHARE,),
)
