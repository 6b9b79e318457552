"""Responses grow and grow, and what they are for does not.

## What it sees
Mean response length at more than twice its start in at least half of 20 successive updates (10
where fewer than 40 are logged), together with one of: the reward rises while right answers do not
(a length bias); what is learned stalls; ever more responses are cut at the limit. Growth with
rising right answers is what training to reason looks like, and is not reported.

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

from rlvitals.metrics.language import LENGTH_MEAN, LENGTH_STD, TRUNCATED_SHARE
from rlvitals.metrics.metric import Bound
from rlvitals.records import Trace
from rlvitals.rules import kinds
from rlvitals.rules.answers import learned
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Undecided
from rlvitals.rules.shapes import SHORT_WINDOW, Stretch, above, start, window
from rlvitals.rules.standing import Standing, standing
from rlvitals.signals.level import first_last_change
from rlvitals.signals.spread import median

FACTOR = 2.0  # of its own start
SPREAD = 5.0  # of the spread's own start: some responses never end
CUT_MORE = 0.2  # share of responses more than at the start


def check(trace: Trace) -> Answer:
    """Ask for growth, then for a witness that it is not what is wanted."""
    lengths = trace[LENGTH_MEAN.name]
    first = start(lengths)
    if not first:
        return Undecided("responses were empty at the start: there is no scale")
    stretch = above(lengths, FACTOR * first)
    if stretch is None:
        return Clear()
    last = median(lengths.finite().tail(window(lengths)).values) or stretch.worst
    now = learned(trace)
    biased, cut = _bias(trace, now), _cut(trace)
    witness = (*biased, *cut, *_scatter(trace))
    if now.improves and not (biased or cut):
        return Clear()
    if now.state == "unknown" and not cut:
        return Undecided(
            f"responses grew from {first:.4g} to {last:.4g} tokens, and {now.sentence}"
        )
    if not now.improves and not biased:
        witness = (f"meanwhile {now.sentence}", *witness)
    severity = Severity.WARNING if biased or now.stalled else Severity.NOTE
    return Finding(
        f"responses grew from {first:.4g} to {last:.4g} tokens, and what they are for did not",
        severity=stretch.severity(severity),
        metric=LENGTH_MEAN.name,
        began=_began(trace, stretch, first),
        ended=stretch.ended,
        observed=stretch.worst,
        bound=Bound(FACTOR * first, f"{FACTOR:g} x this run's start"),
        evidence=witness,
        counter=(f"{now.sentence} all the same",) if now.improves else (),
    )


def _began(trace: Trace, stretch: Stretch, first: float) -> int:
    """Return the first step beyond the limit, or earlier, where the growth set in."""
    lengths = trace[LENGTH_MEAN.name].finite().until(stretch.began)
    under = lengths.where(lengths.values <= first)
    return int(under.steps[-1]) if len(under) else stretch.began


def _bias(trace: Trace, meant: Standing) -> tuple[str, ...]:
    paid = standing(trace)
    if paid.metric == meant.metric or not (paid.improves and meant.stalled):
        return ()
    return (f"{paid.sentence}, but {meant.sentence}",)


def _cut(trace: Trace) -> tuple[str, ...]:
    share = trace.get(TRUNCATED_SHARE.name)
    levels = None if share is None else first_last_change(share.values)
    if levels is None or levels[1] - levels[0] < CUT_MORE:
        return ()
    return (f"responses cut at the limit go from {levels[0]:.0%} to {levels[1]:.0%}",)


def _scatter(trace: Trace) -> tuple[str, ...]:
    spread = trace.get(LENGTH_STD.name)
    first = None if spread is None else start(spread)
    levels = None if spread is None else first_last_change(spread.values)
    if not first or levels is None or levels[1] < SPREAD * first:
        return ()
    return (f"their spread goes from {first:.3g} to {levels[1]:.3g} tokens",)


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
    ),
)
