"""Ever more is generated for each update, and ever less of it is trained on.

## What it sees
`language/generation_batches` above twice its own first tenth, and above 2; or
`language/kept_share` below 0.3 and half of its start: both over the last fifth and in at least
half of 20 successive updates up to the end (10 where fewer than 40 are logged). Else responses
whose slowest hundredth takes ten times the median (`language/response_time_p99`) in at least half
of 20 successive updates. The first two are a note, a warning where what the model gets right is
proven to stall or fall; the last is a note.

## Why it matters
Dynamic sampling throws away groups that are all right or all wrong. As prompts become too easy,
or were too hard from the start, most of the generation, which is most of the cost, is thrown
away; at its limit of batches a trainer stops, or trains on what little is left. Stragglers leave
every other engine idle.

## What to do
Change the prompts, not the sampler: drop what is solved, and what has never been solved. For
stragglers, lower the response limit, or finish the longest responses in the next update.

## When it is wrong
At the end of a run that has learned its prompts this is success, and the note says so.

## References
- Yu et al. 2025, "DAPO", section 3.2, dynamic sampling.
- Kimi Team 2025, "Kimi k1.5", partial rollouts.
"""

import numpy as np

from rlvitals.metrics.absence import describe_absence
from rlvitals.metrics.catalogue.progress import BATCH_SIZE
from rlvitals.metrics.catalogue.reward import GROUP_ALL_RIGHT, GROUP_ALL_WRONG
from rlvitals.metrics.catalogue.rollouts import (
    DROPPED,
    GENERATION_BATCHES,
    KEPT_SHARE,
    RESPONSE_TIME_MEDIAN,
    RESPONSE_TIME_P99,
)
from rlvitals.metrics.catalogue.throughput import PHASE_TIME, WAIT_SHARE
from rlvitals.metrics.metric import Bound
from rlvitals.rules import kinds
from rlvitals.rules.answers import last_share
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold, Undecided
from rlvitals.rules.shapes import (
    SHORT_WINDOW,
    above,
    below,
    last_stretch_above,
    start,
)
from rlvitals.rules.weigh import by_learning
from rlvitals.signals.level import first_last_change
from rlvitals.signals.spread import median
from rlvitals.types import Series, Trace

GENERATION_BATCHES_FACTOR = Threshold(
    "generation-starved.factor", 2.0, "batches per update over those of the start"
)
MIN_KEPT_GROUP_SHARE = Threshold(
    "generation-starved.kept", 0.3, "share of generated groups that is trained on"
)
STRAGGLER_FACTOR = Threshold(
    "generation-starved.straggle", 10.0, "99th percentile over median of seconds"
)
# No run must log these: only who samples dynamically can.
GENERATION_METRICS = (GENERATION_BATCHES, KEPT_SHARE, RESPONSE_TIME_P99)
MIN_GENERATION_POINTS = 2 * SHORT_WINDOW
MAX_SHARE_OF_START = 0.5
EASY_ACCURACY, HARD_ACCURACY = 0.8, 0.2  # share of right answers

EASY_PROMPTS_CAUSE = "the prompts have become too easy: most groups are all right"
HARD_PROMPTS_CAUSE = "the prompts are too hard: most groups are all wrong"
ALIKE_SCORES_CAUSE = "a verifier that scores every answer alike"


def check(trace: Trace) -> Answer:
    """Ask what dynamic sampling needs and keeps, then who waits for whom."""
    if all(trace.numbers(m.name, MIN_GENERATION_POINTS) is None for m in GENERATION_METRICS):
        lacks = "neither dynamic sampling nor the time of responses is logged"
        return Undecided(
            describe_absence(trace, lacks, *GENERATION_METRICS, min_count=MIN_GENERATION_POINTS)
        )
    for ask in (_more_batches, _low_kept_share, _stragglers):
        finding = ask(trace)
        if finding is not None:
            return finding
    return Clear()


def _more_batches(trace: Trace) -> Finding | None:
    batches = trace.numbers(GENERATION_BATCHES.name, MIN_GENERATION_POINTS)
    first = None if batches is None else start(batches)
    if batches is None or not first:
        return None
    levels = first_last_change(batches.values)
    limit = GENERATION_BATCHES_FACTOR.bound(
        trace, f"{GENERATION_BATCHES_FACTOR.default:g} x this run's start", first
    )
    # At 2 batches, half of what is generated is thrown away.
    min_batches = Bound(max(limit.value, 2.0), limit.origin)
    stretch = above(batches, min_batches.value)
    if levels is None or levels[1] <= min_batches.value or stretch is None or not stretch.goes_on:
        return None
    tries = batches.since(stretch.start).values
    thrown = f"{tries.sum() - len(tries):,.0f} of {tries.sum():,.0f} batches generated since then"
    return _weigh_finding(
        trace,
        f"{levels[1]:.3g} batches are generated for each update, {first:.3g} at the start",
        (GENERATION_BATCHES.name, batches),
        (stretch.start, levels[1]),
        min_batches,
        (f"{thrown} were thrown away", *_cost(trace, batches, stretch.start)),
    )


def _low_kept_share(trace: Trace) -> Finding | None:
    kept_share = trace.numbers(KEPT_SHARE.name, MIN_GENERATION_POINTS)
    first = None if kept_share is None else start(kept_share)
    if kept_share is None or not first:
        return None
    levels = first_last_change(kept_share.values)
    limit = MIN_KEPT_GROUP_SHARE.bound(trace, "default")
    low = below(kept_share, min(limit.value, MAX_SHARE_OF_START * first))
    if levels is None or low is None or not low.goes_on:
        return None
    if levels[1] >= min(limit.value, MAX_SHARE_OF_START * first):
        return None
    return _weigh_finding(
        trace,
        f"{levels[1]:.0%} of the generated groups are trained on, {first:.0%} at the start",
        (KEPT_SHARE.name, kept_share),
        (low.start, levels[1]),
        limit,
        (),
    )


def _stragglers(trace: Trace) -> Finding | None:
    slow, usual = (
        trace.numbers(m.name, MIN_GENERATION_POINTS)
        for m in (RESPONSE_TIME_P99, RESPONSE_TIME_MEDIAN)
    )
    if slow is None or usual is None:
        return None
    per = np.interp(slow.steps, usual.steps, usual.values)
    positive = slow.where(per > 0)
    ratio = Series(positive.steps, positive.times, positive.values / per[per > 0])
    limit = STRAGGLER_FACTOR.bound(trace, "default")
    stretch = above(ratio, limit.value) if len(ratio) else None
    if stretch is None:
        return None
    level = median(stretch.of(ratio).values) or 0.0
    return Finding(
        f"the slowest hundredth of responses takes {level:.3g} x the median: the rest waits",
        severity=Severity.NOTE,
        metric=RESPONSE_TIME_P99.name,
        began=stretch.start,
        ended=stretch.end,
        observed=level,
        bound=limit,
        evidence=_waits(trace),
        causes=(
            "a few responses run to the limit while the engines stand idle",
            "a tool, an environment or a judge that hangs for some requests",
        ),
        remedies=(
            "lower the response limit, or finish long responses in the next update",
            "set a timeout on tools and judges; score what times out as invalid, not as 0",
        ),
    )


def _cost(trace: Trace, batches: Series, start_step: int) -> tuple[str, ...]:
    """Say what the batches that were thrown away cost, where generation is timed."""
    phases = trace.family(PHASE_TIME.name)
    prefixes = ("gen", "rollout", "generation", "generate")
    timed = next((s for k, s in phases.items() if k.split("/")[0].startswith(prefixes)), None)
    spent = None if timed is None else timed.finite().since(start_step)
    if spent is None or not len(spent):
        return ()
    generated = np.maximum(np.interp(spent.steps, batches.steps, batches.values), 1.0)
    hours = float((spent.values * (1 - 1 / generated)).sum()) / 3600
    return (f"that is {hours:.2g} h of generation",) if hours > 0 else ()


def _waits(trace: Trace) -> tuple[str, ...]:
    waited = trace.get(WAIT_SHARE.name)
    share = None if waited is None else median(waited.finite().values)
    return () if share is None else (f"the trainer waits {share:.0%} of the time",)


def _side(trace: Trace) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Say which groups have no contrast, and rank the causes by it."""
    right, wrong = (
        None if (s := trace.get(m.name)) is None else median(s.finite().tail(20).values)
        for m in (GROUP_ALL_RIGHT, GROUP_ALL_WRONG)
    )
    if right is not None and wrong is not None and right != wrong:
        evidence = (f"{right:.0%} of groups are all right and {wrong:.0%} all wrong at the end",)
        return evidence, (
            (EASY_PROMPTS_CAUSE, ALIKE_SCORES_CAUSE)
            if right > wrong
            else (HARD_PROMPTS_CAUSE, ALIKE_SCORES_CAUSE)
        )
    share = last_share(trace)
    if share is None or HARD_ACCURACY <= share <= EASY_ACCURACY:
        return (), (EASY_PROMPTS_CAUSE, HARD_PROMPTS_CAUSE, ALIKE_SCORES_CAUSE)
    evidence = (f"{share:.0%} of answers are right at the end",)
    return evidence, (
        (EASY_PROMPTS_CAUSE, ALIKE_SCORES_CAUSE)
        if share > EASY_ACCURACY
        else (HARD_PROMPTS_CAUSE, ALIKE_SCORES_CAUSE)
    )


def _weigh_finding(  # noqa: PLR0913, PLR0917 - the fields of one finding
    trace: Trace,
    summary: str,
    curve: tuple[str, Series],
    onset: tuple[int, float],
    bound: Bound,
    evidence: tuple[str, ...],
) -> Finding:
    sided, causes = _side(trace)
    evidence = (*evidence, *sided, *_shrinking_batch(trace), *_waits(trace))
    return by_learning(trace, summary, curve, onset, bound, evidence, causes)


def _shrinking_batch(trace: Trace) -> tuple[str, ...]:
    """Say that the batch itself shrinks, and that samples are dropped."""
    sentences = []
    size = trace.numbers(BATCH_SIZE.name, MIN_GENERATION_POINTS)
    levels = None if size is None else first_last_change(size.values)
    if levels is not None and levels[1] < MAX_SHARE_OF_START * levels[0]:
        sentences.append(f"the batch shrank from {levels[0]:,.0f} to {levels[1]:,.0f} samples")
    for reason, dropped in trace.family(DROPPED.name).items():
        counts = dropped.finite()
        if len(counts) and last_stretch_above(counts, 0.0) is not None:
            sentences.append(f"{counts.values[-1]:,.0f} dropped ({reason.replace('_', ' ')})")
    return tuple(sentences)


RULE = Rule(
    name="generation-starved",
    needs=(),
    check=check,
    doc=__doc__,
    causes=(EASY_PROMPTS_CAUSE, HARD_PROMPTS_CAUSE, ALIKE_SCORES_CAUSE),
    remedies=(
        "drop prompts that are always right, or never; add harder ones, or easier ones",
        "stop here, where the prompts are learned",
        "generate more completions per prompt, so that a group has contrast more often",
    ),
    profiles=kinds.LANGUAGE,
    thresholds=(GENERATION_BATCHES_FACTOR, MIN_KEPT_GROUP_SHARE, STRAGGLER_FACTOR),
)
