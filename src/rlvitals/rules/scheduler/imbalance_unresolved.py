"""The load stays uneven: the balance penalty does not come down.

## What it sees
Past half of the run seen, the mean of `scheduler/balance_penalty` over the last fifth is above a
quarter of what it was over the first fifth, and above 0.25 (a quarter of a replica's capacity).
Where the setting `replica_speeds` tells how fast each replica is, the choices of the last fifth
are held against shares in proportion to speed: within 10 % of all requests of them it is a note,
for then it is not where requests go that is wrong but when. Without it the replicas are taken as
equal, and the finding says so.

## Why it matters
The penalty is the gap between the fullest and the emptiest replica. While it stays, requests wait
at one replica for what another could serve.

## What to do
Raise the weight of the load-balance penalty, and check that it is part of the reward at all:
some modes only log it.

## When it is wrong
Unequal replicas should be loaded unequally: set `replica_speeds`. At low load a gap costs nothing.
With an outcome that improves this is a note.

## References
- Mitzenmacher 2001, "The Power of Two Choices in Randomized Load Balancing".
"""

from collections.abc import Mapping

from rlvitals.metrics.catalogue.scheduler import BALANCE_PENALTY
from rlvitals.rules import weigh
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold, Undecided
from rlvitals.rules.standing import standing
from rlvitals.rules.workload import SPEEDS_SETTING, Optimum, latest_shares, misplaced_share, optimum
from rlvitals.signals.level import first_last_change
from rlvitals.types import Profile, Trace

MIN_PENALTY_LEFT = Threshold(
    "imbalance-unresolved.remains", 0.25, "part of the balance penalty at the start"
)
MAX_BALANCE_PENALTY = Threshold(
    "imbalance-unresolved.high", 0.25, "balance penalty, as a part of a replica's capacity"
)
MAX_CHOICE_DISTANCE = Threshold(
    "imbalance-unresolved.apart", 0.1, "share of requests sent elsewhere than speed would have it"
)
Sentences = tuple[str, ...]


def check(trace: Trace) -> Answer:
    """Compare the end with the start: near zero once balanced."""
    if trace.budget is not None and trace.last_step < 0.5 * trace.budget.steps:
        return Undecided("less than half of the budget is spent")
    penalty = trace[BALANCE_PENALTY.name].finite()
    levels = first_last_change(penalty.values)
    if levels is None:
        return Undecided("too few values of the balance penalty", (BALANCE_PENALTY.name,))
    origin = "a quarter of its own start, and of a replica's capacity"
    limit = max(
        MAX_BALANCE_PENALTY.bound(trace, origin),
        MIN_PENALTY_LEFT.bound(trace, origin, scale=levels[0]),
        key=lambda bound: bound.value,
    )
    if levels[1] <= limit.value:
        return Clear()
    trend = standing(trace)
    evidence, counter = weigh.sides(trend)
    fits, shares = _against_the_best(trace)
    return Finding(
        f"the load stays uneven: balance penalty {levels[0]:.2f} at first, {levels[1]:.2f} at the "
        "end",
        severity=Severity.NOTE if fits else weigh.severity(trend),
        metric=BALANCE_PENALTY.name,
        began=int(penalty.steps[0]),
        ended=int(penalty.steps[-1]),
        observed=levels[1],
        bound=limit,
        evidence=evidence if fits else (*shares, *evidence),
        counter=(*shares, *counter) if fits else counter,
    )


def _against_the_best(trace: Trace) -> tuple[bool, Sentences]:
    """Tell whether the choices fit speeds that are known, and say what they were held against."""
    shares = latest_shares(trace)
    best = optimum(trace, len(shares))
    if best is None:
        return False, (f"replicas are taken as equal: no {SPEEDS_SETTING} is set",)
    distance = misplaced_share(shares, best) if shares else None
    if distance is None or not best.known:
        return False, (best.assumption,)
    fits = distance <= MAX_CHOICE_DISTANCE.on(trace)
    how = "fit" if fits else "do not fit"
    sentence = (
        f"the last choices {how} the replicas' speeds: {distance:.0%} of them belong elsewhere"
    )
    return fits, (sentence, *(() if fits else (_describe_largest(shares, best),)))


def _describe_largest(shares: Mapping[str, float], best: Optimum) -> str:
    """Name the replica that gets most beyond its due."""
    name = max(shares, key=lambda replica: shares[replica] - (best.share(replica) or 0.0))
    fair_share = best.share(name) or 0.0
    return f"replica {name} gets {shares[name]:.0%} of them and has {fair_share:.0%} of the speed"


RULE = Rule(
    name="imbalance-unresolved",
    needs=(BALANCE_PENALTY,),
    at_least=50,  # decisions
    check=check,
    doc=__doc__,
    causes=("the balance penalty weighs too little, or is not part of the reward",),
    remedies=("raise the load-balance penalty", "check that the reward contains it"),
    profiles=(Profile.SCHEDULER_PPO,),
    explained_by=(
        "action-collapse",
        "entropy-collapse",
        "temperature-out-of-range",
        "updates-hardly-move",
    ),
    thresholds=(MIN_PENALTY_LEFT, MAX_BALANCE_PENALTY, MAX_CHOICE_DISTANCE),
)
