"""The outcome gets no better, although enough of the run is over to show it.

## What it sees
The 95 % interval of the outcome's change over the whole run lies below what would count as
learning: a tenth of the way from a random to a solved policy where the environment is known (in a
game where only people's scores are known, three tenths of the first level if that is less), else
half the standard deviation of a single episode, whatever the window of the logged mean; of a loss
a twentieth of its first level. A language model is judged by its right answers
where they are logged, and by batches that each draw new prompts: a proven gain counts however small
its share of the first level is, and one that came early and stayed is a plateau. Or a return only
fell, from its very start on, and never came back. Or nothing is proven of it, and the updates
cannot have changed the policy, or one of discrete actions is uniform to the end. Asked once 40 % of
the run's budget is spent, or the run is known to be over; without a budget, once it has ended.
Falling is an error, flat a warning.

Where the environment is not known, a level that does not move is that of a policy that did not
learn, unless the log has a sign of a good one: fewer than 20 values, a fifth of them exactly the
best, single returns of 0 and 1 of which more than half are 1, a policy that is sure from the first
rows on, or a training's return that rises beside a flat evaluation. A rise is flat too if its whole
interval lies below what counts. A noisy outcome counts as flat there if it gained no half of the
standard deviation of a single value, and a gain of eight tenths is excluded, by blocks or, of
single returns and evaluations that gained less than two tenths, by a line; so does a language
model's mean reward that gained less than two tenths of the standard deviation of a single response.
Batches of groups of which three quarters earn exactly the least of all, as many at the end as at
the start, are flat however the others scatter.
Where no test tells, the shape of a finished run's curve may: a model fitted to published curves
gives the probability that it improved, is flat or lost what it had (decision 128). Of a language
model it is asked whether 20 batches or more are flat, unless prompts are selected by difficulty.
All these are a note: the verdict is that the run stalled, and the exit code that it cannot be told.
20 values that are all the same and pay nothing, zero or less, are a warning again.

## Why it matters
Everything else a trainer logs can look well while this does not: advantages are normalised, so
that KL and clip fraction stay in their bands even on a constant reward.

## What to do
Read the findings folded under this one first: they are its likely reasons. If there are none,
check that the reward reaches the learner, that observations carry what the task needs, and that
a known-good configuration learns on this code.

## When it is wrong
Sparse rewards pay late: MountainCar stays at -200 for hundreds of episodes before it learns.
A run resumed from a good checkpoint is flat at the top (a scheduler that is known to begin from
another's decisions is not judged for it); a win rate in self-play is one half by construction.
The interval comes from the run's own noise, so a noisy return is not
judged.

## References
- Henderson et al. 2018, "Deep Reinforcement Learning that Matters".
- Machado et al. 2018, "Revisiting the Arcade Learning Environment", on random and solved scores.
"""

import numpy as np

from rlvitals.metrics.catalogue.outcome import REWARD
from rlvitals.metrics.catalogue.reward import COMPONENT
from rlvitals.metrics.metric import Bound
from rlvitals.rules import causes, kinds
from rlvitals.rules.answers import prefer_evaluation, verdict_trend
from rlvitals.rules.gains import MIN_GAIN_POINTS, is_likely_flat
from rlvitals.rules.going_on import liveness
from rlvitals.rules.likely_outcome import likely_answer, likely_outcome, loses_part
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
from rlvitals.rules.spent import MIN_BUDGET_SHARE, too_early
from rlvitals.rules.standing import (
    OUTCOME_METRICS,
    SCATTER_ORIGIN,
    Standing,
    describe_progress,
    label,
    outcome,
    standing,
    up,
)
from rlvitals.rules.untaught import floor_share
from rlvitals.signals.level import bound_change
from rlvitals.signals.outcome_change import MIN_GAIN_SD
from rlvitals.types import Trace

NO_LEARNING_PERSISTENCE = persistence("no-learning")
MIN_FLAT_BUDGET_SHARE = Threshold(
    "no-learning.spent",
    MIN_BUDGET_SHARE,
    "share of the budget, before which a flat start is ordinary",
    high=1.0,
)
SELF_PLAY_METRIC = "outcome/win_rate_ema"


def check(trace: Trace) -> Answer:
    """Judge the whole run, once there is enough of it."""
    reason = too_early(trace, MIN_FLAT_BUDGET_SHARE.on(trace))
    if reason and liveness(trace).live is not False:
        return Undecided(reason, ("total_steps",))
    trend = verdict_trend(trace)
    trace = prefer_evaluation(trace)
    if trace.profile in kinds.LANGUAGE and standing(trace).improves:
        return Clear()  # what it is paid for rises: other rules ask whether answers follow
    if trend.state == "unknown":
        return _judge_by_shape(trace, trend)
    if not trend.stalls or trend.state == "fallen back":
        return Clear()  # it did learn: whether it kept that is return_collapse's business
    if trend.metric == SELF_PLAY_METRIC:
        return Undecided("a win rate may be one half by construction: log a score besides")
    picked = outcome(trace)
    steps = (trace.first_number,) if picked is None else picked[1].steps
    severity = Severity.ERROR if trend.state == "falling" else Severity.WARNING
    doubt = _doubt(trace, trend)
    return Finding(
        _sentence(trend),
        severity=Severity.NOTE if doubt else severity,
        metric=trend.metric,
        began=int(steps[0]),
        ended=trace.last_step,
        observed=trend.last - trend.first,
        bound=Bound(trend.material, trend.material_from),
        limit_on_curve=False,
        evidence=_evidence(trace, trend),
        counter=doubt,
    )


def _judge_by_shape(trace: Trace, trend: Standing) -> Finding | Undecided:
    likely = likely_outcome(trace) if likely_answer(trace) == "flat" else None
    if likely is None:
        return Undecided(trend.sentence, ("outcome/return",) if not trend.metric else ())
    levels = f"{likely.first:.4g} to {likely.last:.4g}, best {likely.best:.4g}"
    summary, onset = "does not improve", trace.first_number
    limit = Bound(likely.first, "mean of its first sixth")
    if loses_part(trace, likely):
        summary, onset = "did not keep what it gained", likely.best_step
        limit = Bound(likely.best, "mean of this run's own best sixth")
    is_language = trace.profile in kinds.LANGUAGE
    hint = "evaluate on fixed prompts" if is_language else "--set env_id=... may tell"
    return Finding(
        f"{label(likely.metric)} probably {summary}: {levels}",
        severity=Severity.NOTE,
        metric=likely.metric,
        began=onset,
        ended=trace.last_step,
        observed=likely.last,
        bound=limit,
        evidence=(likely.evidence,),
        counter=(f"no test proves it, and its level may be a good one: {hint}",),
    )


def _evidence(trace: Trace, trend: Standing) -> tuple[str, ...]:
    picked, change = outcome(trace), trend.last - trend.first
    low, high = sorted(up(trend.metric) * end for end in (trend.low, trend.high))
    if picked is not None:
        low, high = bound_change(low, high, picked[1].values)
    evidence = []
    # That of a line through all points: the levels of a bent curve may go the other way.
    agrees = low <= change <= high or low * change > 0 < high * change
    if agrees and not (trend.state == "falling" and low < 0 < high):
        evidence.append(f"95 % interval of the trend over the run: {low:+.3g} to {high:+.3g}")
    if sd := trend.material / MIN_GAIN_SD if trend.material_from == SCATTER_ORIGIN else 0.0:
        size = f"{change / sd:+.2g} sd of a single value"
        evidence.append(f"from its first level to its last it changes by {size}")
    if trend.metric == REWARD.name and (share := floor_share(trace)):
        evidence.append(f"{share:.0%} of the batches earn the least of all: they have no contrast")
    way = describe_progress(trace, trend)
    return (*evidence, *([way] if way else []))


def _is_doubtful(trace: Trace, trend: Standing) -> bool:
    """Return True if the level at which a return is flat may be a good one."""
    flat = trend.state == "flat" and trend.metric.endswith("return") and bool(trend.why)
    return flat and not _pays_nothing(trace)


def _pays_nothing(trace: Trace) -> bool:
    """Return True if the outcome is one number throughout and pays nothing: no policy earned it."""
    picked = outcome(trace)
    if picked is None or len(picked[1]) < MIN_GAIN_POINTS:
        return False
    values = picked[1].values
    return float(np.ptp(values)) == 0 and float(values[0]) <= 0


def _doubt(trace: Trace, trend: Standing) -> tuple[str, ...]:
    """Say why a flat level may not be a failure; empty where it is proven."""
    if _is_doubtful(trace, trend):
        return ("its level may be a good one: --set env_id=... may tell",)
    if not is_likely_flat(trend) or trend.metric.endswith("return"):
        return ()
    return ("batches scatter, so that a small gain is not excluded: evaluate on fixed prompts",)


def _sentence(trend: Standing) -> str:
    name = label(trend.metric)
    worse = "falls" if up(trend.metric) > 0 else "rises"
    does = worse if trend.state == "falling" else "is flat"
    says = "does not improve" if trend.sags else f"does not improve, it {does}"
    if trend.hardly:
        says = "hardly improves"
    return f"{name} {says}: {trend.first:.4g} to {trend.last:.4g}, best {trend.best:.4g}"


RULE = Rule(
    name="no-learning",
    needs=(),
    needs_any=(*OUTCOME_METRICS, COMPONENT),
    check=check,
    doc=__doc__,
    causes=(
        "no signal: constant, zero or misrouted reward",
        "learning rate far too low or far too high",
        "observations that do not carry what the task needs",
        "a bug between environment and learner",
    ),
    remedies=(
        "check that rewards vary within a batch and reach the learner",
        "run a known-good configuration of this task on this code",
        "try {learning_rate:learning rates} of a third and three times the present one",
    ),
    explained_by=("return-collapse", *causes.MECHANISM_RULES, "loss-not-decreasing"),
    verdict="stalled",
    thresholds=(MIN_FLAT_BUDGET_SHARE, NO_LEARNING_PERSISTENCE),
    persists=NO_LEARNING_PERSISTENCE,
)
