"""Responses grow and grow, and what they are for does not.

## What it sees
Mean response length at more than twice its start in at least half of 20 successive updates (10
where fewer than 40 are logged), together with one of: the reward rises while right answers do not
(a length bias); what is learned stalls; ever more responses are cut at the limit; an evaluation
gets worse. Growth with rising right answers is what training to reason looks like, and is not
reported. That two curves rise together says nothing: every two do. Where completions are logged
with their advantages, their correlation with length inside groups is given.

## Why it matters
Length is the easiest thing to learn. Reward models prefer long answers, and a loss that averages
over tokens within a response charges a long wrong answer less per token.

## What to do
Read the longest responses. Take length out of the reward (or normalise by it), sum the loss over
tokens instead of averaging within responses, penalise what runs into the limit.

## When it is wrong
A task may need the length before it pays: judge by right answers on held-out prompts.

## References
- Singhal et al. 2023, "A Long Way to Go: Investigating Length Correlations in RLHF".
- Liu et al. 2025, "Understanding R1-Zero-Like Training" (Dr. GRPO).
"""

import math

import numpy as np
from numpy.typing import NDArray

from rlvitals.metrics.catalogue.language import LENGTH_MEAN, LENGTH_STD, TRUNCATED_SHARE
from rlvitals.rules import kinds
from rlvitals.rules.answers import learning_trend
from rlvitals.rules.held_out import evaluations, worsens
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold, Undecided
from rlvitals.rules.shapes import SHORT_WINDOW, Stretch, above, end, start
from rlvitals.rules.standing import Standing, standing
from rlvitals.signals.level import first_last_change
from rlvitals.types import Trace

LENGTH_GROWTH_FACTOR = Threshold(
    "response-length-explodes.factor",
    2.0,
    "x its own start, that the response length has grown to",
    low=1.0,
)
MAX_CUT_INCREASE = Threshold(
    "response-length-explodes.cut",
    0.2,
    "share of responses cut at the limit, more than at the start",
    high=1.0,
)
MIN_CORRELATION_SAMPLES = 200  # completions, the newest ones


def check(trace: Trace) -> Answer:
    """Ask for growth, then for a witness that it is not what is wanted."""
    lengths = trace[LENGTH_MEAN.name]
    first = start(lengths)
    if not first:
        return Undecided("responses were empty at the start: there is no scale")
    limit = LENGTH_GROWTH_FACTOR.bound(
        trace, f"{LENGTH_GROWTH_FACTOR.on(trace):g} x this run's start", scale=first
    )
    stretch = above(lengths, limit.value)
    if stretch is None:
        return Clear()
    last = end(lengths)
    if last < limit.value:
        return Clear()  # it is over
    trend = learning_trend(trace)
    biased, cut = _bias(trace, trend), _cut(trace)
    worse_evaluations = _held_out(trace)
    witness = (*biased, *cut, *worse_evaluations, *_scatter(trace), *_within_groups(trace))
    if trend.improves and not (biased or cut or worse_evaluations):
        return Clear()
    if trend.state == "unknown" and not cut:
        return Undecided(
            f"responses grew from {first:.4g} to {last:.4g} tokens, and {trend.sentence}"
        )
    if not trend.improves and not biased:
        witness = (f"meanwhile {trend.sentence}", *witness)
    severity = Severity.WARNING if biased or trend.stalls else Severity.NOTE
    return Finding(
        f"responses grew from {first:.4g} to {last:.4g} tokens, and what they are for did not",
        severity=stretch.severity(severity),
        metric=LENGTH_MEAN.name,
        began=_onset_step(trace, stretch, first),
        ended=stretch.end,
        observed=stretch.worst,
        bound=limit,
        evidence=witness,
        counter=(f"{trend.sentence} all the same",) if trend.improves else (),
    )


def _onset_step(trace: Trace, stretch: Stretch, first: float) -> int:
    """Return the first step beyond the limit, or earlier, where the growth set in."""
    lengths = trace[LENGTH_MEAN.name].finite().until(stretch.start)
    under = lengths.where(lengths.values <= first)
    return int(under.steps[-1]) if len(under) else stretch.start


def _bias(trace: Trace, intended: Standing) -> tuple[str, ...]:
    paid = standing(trace)
    if paid.metric == intended.metric or not (paid.improves and intended.stalls):
        return ()
    return (f"{paid.sentence}, but {intended.sentence}",)


def _cut(trace: Trace) -> tuple[str, ...]:
    share = trace.get(TRUNCATED_SHARE.name)
    levels = None if share is None else first_last_change(share.values)
    if levels is None or levels[1] - levels[0] < MAX_CUT_INCREASE.on(trace):
        return ()
    return (f"responses cut at the limit go from {levels[0]:.0%} to {levels[1]:.0%}",)


def _scatter(trace: Trace) -> tuple[str, ...]:
    spread = trace.get(LENGTH_STD.name)
    first = None if spread is None else start(spread)
    levels = None if spread is None else first_last_change(spread.values)
    # At 5 x the first spread, some responses never end.
    if not first or levels is None or levels[1] < 5.0 * first:
        return ()
    return (f"their spread goes from {first:.3g} to {levels[1]:.3g} tokens",)


def _held_out(trace: Trace) -> tuple[str, ...]:
    evaluations_used = [e for e in evaluations(trace) if len(e.series) >= 10]  # points
    return tuple(sentence for e in evaluations_used if (sentence := worsens(trace, e)))


def _within_groups(trace: Trace) -> tuple[str, ...]:
    """Correlate length and advantage among the newest completions of the log.

    An advantage is taken within its group: what prompts share is out of it.
    """
    for table in trace.tables.values():
        if (
            not {"completion", "advantage"} <= set(table.columns)
            or len(table) < MIN_CORRELATION_SAMPLES
        ):
            continue
        rows = zip(table.columns["completion"], table.columns["advantage"], strict=True)
        samples = [
            (len(t), float(a))
            for t, a in rows
            if isinstance(t, str) and isinstance(a, int | float) and math.isfinite(a)
        ]
        pairs = np.array(samples[-2000:], dtype=np.float64)  # the newest completions
        if len(pairs) < MIN_CORRELATION_SAMPLES or not pairs.std(axis=0).all():
            continue
        matrix: NDArray[np.float64] = np.asarray(np.corrcoef(pairs.T), dtype=np.float64)
        r = float(matrix[0, 1])
        if abs(r) > 0.3:  # of 200 completions: four standard errors
            comparative = "longer" if r > 0 else "shorter"
            return (f"within a group the {comparative} completion is paid: correlation {r:+.2f}",)
    return ()


RULE = Rule(
    name="response-length-explodes",
    needs=(LENGTH_MEAN,),
    at_least=SHORT_WINDOW,
    check=check,
    doc=__doc__,
    causes=(
        "a reward that grows with length",
        "a loss averaged within each response, which charges long wrong answers less",
        "an entropy bonus or learning rate that breaks the end token",
    ),
    remedies=(
        "read the longest responses",
        "take length out of the reward, or penalise it near the limit",
        "use {loss_type:a token-summed loss} (dr_grpo, dapo)",
    ),
    profiles=kinds.LANGUAGE,
    explained_by=(
        "learning-rate-jump",
        "gradient-explosion",
        "threshold-off-correctness",
        "component-dominates",
        "setting-out-of-range",
        "exploration-explodes",
        "length-is-paid",
    ),
    thresholds=(LENGTH_GROWTH_FACTOR, MAX_CUT_INCREASE),
)
