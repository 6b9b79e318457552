"""Training runs on samples of a policy that is many updates old.

## What it sees
In at least half of 20 successive updates (10 where fewer than 40 are logged), one of:
`optimiser/policy_lag` above the run's own `max_policy_lag`, else above 8 versions; or
`language/cancelled_share`, the rollouts thrown away because they were too old, above a quarter. A
note; a warning where the outcome is proven to stall or fall.

## Why it matters
The gradient is that of the policy that sampled. Importance weights correct a lag of a few updates;
beyond that most weights are clipped, or a few samples carry the update, and runs collapse.

## What to do
A lag that grows: sampling is faster than training; bound the queue. A lag that is high from the
start: synchronise the weights more often, or begin fewer rollouts ahead. Rollouts that are thrown
away: long responses outlive their policy; let them continue after a synchronisation and correct by
importance weights.

## When it is wrong
With a decoupled objective (AReaL) or truncated importance sampling, lags of 8 train well. Where
the framework counts samples instead of updates (PipelineRL), only its own limit is judged.

## References
- Fu et al. 2025, "AReaL: A Large-Scale Asynchronous Reinforcement Learning System", section 5.2.
- Khatri et al. 2025, "The Art of Scaling Reinforcement Learning Compute for LLMs": a lag of 8.
- PrimeIntellect-ai/prime-rl issue 964: a collapse of an asynchronous run.
"""

from rlvitals.metrics.absence import describe_absence
from rlvitals.metrics.catalogue.optimiser import POLICY_LAG
from rlvitals.metrics.catalogue.rollouts import CANCELLED_SHARE
from rlvitals.metrics.metric import Bound
from rlvitals.rules import kinds
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Threshold, Undecided
from rlvitals.rules.shapes import SHORT_WINDOW, above
from rlvitals.rules.weigh import by_learning
from rlvitals.signals.spread import median
from rlvitals.types import Series, Trace

MAX_SAMPLE_LAG = Threshold(
    "samples-stale.lag", 8.0, "versions; by default the run's max_policy_lag"
)
MAX_CANCELLED_SHARE = Threshold("samples-stale.cancelled", 0.25, "share of rollouts", high=1.0)


def check(trace: Trace) -> Answer:
    """Judge the age of the samples, then the share that was discarded for its age."""
    lag, cancelled = (
        trace.numbers(metric.name, SHORT_WINDOW) for metric in (POLICY_LAG, CANCELLED_SHARE)
    )
    limit = _lag_limit(trace)
    finding = None
    if lag is not None and limit is not None:
        finding = _finding(trace, POLICY_LAG.name, lag, limit)
    elif cancelled is None:
        lacks = "the age of the samples is not logged"
        return Undecided(
            describe_absence(trace, lacks, POLICY_LAG, CANCELLED_SHARE, min_count=SHORT_WINDOW),
            (POLICY_LAG.name,),
        )
    if finding is None and cancelled is not None:
        limit = MAX_CANCELLED_SHARE.bound(trace, "default")
        finding = _finding(trace, CANCELLED_SHARE.name, cancelled, limit)
    return finding or Clear()


def _lag_limit(trace: Trace) -> Bound | None:
    """Return the limit on the lag; None where its unit has none."""
    run_limit = trace.number("max_policy_lag")
    if run_limit is not None and run_limit > 0 and MAX_SAMPLE_LAG.name not in trace.thresholds:
        return Bound(run_limit, "this run's max_policy_lag")
    measured = trace.measured.get(POLICY_LAG.name)
    if measured is not None and measured.framework == "pipeline-rl":
        return None  # it counts samples
    return MAX_SAMPLE_LAG.bound(trace, "default")


def _finding(trace: Trace, name: str, series: Series, limit: Bound) -> Finding | None:
    stretch = above(series, limit.value)
    if stretch is None or not stretch.goes_on:
        return None
    level = median(stretch.of(series).values) or 0.0
    summary = (
        f"samples are {level:.3g} updates old in the median update"
        if name == POLICY_LAG.name
        else f"{level:.0%} of rollouts are too old and discarded"
    )
    return by_learning(trace, summary, (name, series), (stretch.start, level), limit, (), ())


RULE = Rule(
    name="samples-stale",
    needs=(),
    needs_any=(POLICY_LAG, CANCELLED_SHARE),
    at_least=SHORT_WINDOW,
    check=check,
    doc=__doc__,
    causes=(
        "weights reach the sampler rarely",
        "samples wait in a queue: sampling is faster than training",
        "responses take longer than several updates",
    ),
    remedies=(
        "synchronise the sampler's weights more often",
        "lower {max_policy_lag:the number of updates that sampling may run ahead}",
        "correct by importance weights, and log their effective sample size",
    ),
    profiles=kinds.LANGUAGE,
    thresholds=(MAX_SAMPLE_LAG, MAX_CANCELLED_SHARE),
)
