"""The outcome rose, and rises no more, short of its ceiling.

## What it sees
The outcome improved over the run, its last 30 % no longer change materially beside the range it
went through, and it is not at the environment's maximum. A note: it decides the verdict between
learning and plateau.

## Why it matters
What is spent from here on buys nothing. A plateau below the known maximum is a chance to change
something; a plateau at an unknown one may simply be the end.

## What to do
Where the policy's entropy is low, restore exploration; where it is high, anneal it. Lower the
learning rate. Otherwise stop the run and save the rest of its budget.

## When it is wrong
Progress comes in steps on tasks with bottlenecks: a plateau may end by itself.

## References
- Machado et al. 2018, "Revisiting the Arcade Learning Environment".
"""

from rlvitals.rules import causes
from rlvitals.rules.answers import evaluated
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold, Undecided
from rlvitals.rules.standing import OUTCOME_METRICS, label, outcome, standing, way_gone
from rlvitals.signals.plateau import MIN_PLATEAU_POINTS, PLATEAU_TOLERANCE, plateau_start
from rlvitals.types import Trace

WITHIN = Threshold(
    "plateau.within",
    PLATEAU_TOLERANCE,
    "share of the run's own range within which its end stays",
    high=1.0,
)

STILL = 0.1  # of the run's gain: a tail that rises by less has levelled off


def check(trace: Trace) -> Answer:
    """Look for a flat end after a rise."""
    trace = evaluated(trace)
    picked = outcome(trace)
    if picked is None or len(picked[1]) < MIN_PLATEAU_POINTS:
        return Undecided(
            f"fewer than {MIN_PLATEAU_POINTS} values of the outcome", ("outcome/return",)
        )
    now = standing(trace)
    if now.state == "unknown":
        return Undecided(now.sentence)
    if now.state != "rising":
        return Clear()
    name, series = picked
    within = WITHIN.bound(trace, "share of this run's own range within which the end stays")
    start = plateau_start(series.values, tolerance=within.value)
    if start is None:
        return Clear()
    step = int(series.steps[start])
    tail = standing(trace, since=step)
    goes_on = tail.state == "rising" and tail.last - tail.first > STILL * (now.last - now.first)
    if goes_on or tail.state == "at its ceiling":
        return Clear()
    part = (series.steps[-1] - step) / max(int(series.steps[-1] - series.steps[0]), 1)
    said = label(name)
    way = way_gone(trace, now)
    return Finding(
        f"{said} has not changed over the last {part:.0%} of the run: {now.last:.4g}",
        severity=Severity.NOTE,
        metric=name,
        began=step,
        ended=int(series.steps[-1]),
        observed=now.last,
        bound=within,
        evidence=(f"that is {way}",) if way else (),
    )


RULE = Rule(
    name="plateau",
    needs=(),
    needs_any=OUTCOME_METRICS,
    check=check,
    doc=__doc__,
    causes=("the policy's best within reach", "exploration spent", "learning rate annealed away"),
    remedies=(
        "stop here and save the rest of the budget",
        "restore exploration where entropy is low",
        "lower {learning_rate} where the outcome still scatters",
    ),
    explained_by=causes.LEARNING,
    verdict="plateau",
    thresholds=(WITHIN,),
)
