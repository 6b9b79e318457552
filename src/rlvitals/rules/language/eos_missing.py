"""Responses stop ending by themselves: end-of-sequence tokens vanish from the batches.

## What it sees
`language/eos_tokens` below half of its own start in at least half of 10 successive updates.
Below a tenth, and to the end, nearly no response is complete: an error where the score does not
improve. Where it does improve this is a note, unless KL to the reference says that the text has
left everything the reference would write (above one nat per token): then it is a warning. No end
token in any update is a note, a warning where the score is proven to stall.

## Why it matters
A reward model has seen finished answers. On text that is merely cut off its score means little,
and a policy that is paid by length learns first of all never to end.

## What to do
Look at a few responses. Set a penalty for a missing end token; check that the chat template and
the stop token belong to this model, that padding is not the end token's id in the loss, and that
nothing pays for length.

## When it is wrong
Tasks whose responses have a fixed length by design. The count is of one process and depends on
the batch size, so only the run's own start is a scale.

## References
- Singhal et al. 2023, "A Long Way to Go: Investigating Length Correlations in RLHF".
- huggingface/trl, ppo_trainer.py: `missing_eos_penalty` and `val/num_eos_tokens`.
"""

from rlvitals.metrics.catalogue.language import EOS_TOKENS
from rlvitals.metrics.metric import Bound
from rlvitals.rules import kinds, reference
from rlvitals.rules.answers import learning_trend
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold, Undecided
from rlvitals.rules.shapes import SHORT_WINDOW, Stretch, below, start
from rlvitals.rules.standing import Standing
from rlvitals.rules.weigh import severity as weighed
from rlvitals.rules.weigh import sides
from rlvitals.signals.spread import median
from rlvitals.types import Trace

MIN_EOS_RATIO = Threshold(
    "eos-missing.fewer", 0.5, "part of the end tokens per batch at the run's own start", high=1.0
)
SEVERE_EOS_RATIO = Threshold("eos-missing.gone", 0.1, "the same, for an error", high=1.0)


def check(trace: Trace) -> Answer:
    """Compare the count with the run's own start."""
    counts = trace[EOS_TOKENS.name]
    first = start(counts)
    if first == 0 and not counts.finite().values.any():
        return _never(trace)
    if not first:
        return Undecided("no response ended by itself at the start: there is nothing to lose")
    limit = MIN_EOS_RATIO.bound(trace, f"{MIN_EOS_RATIO.on(trace):g} x this run's start", first)
    stretch = below(counts, limit.value, SHORT_WINDOW)
    if stretch is None:
        return Clear()
    last = median(counts.finite().tail(SHORT_WINDOW).values) or 0.0
    trend = learning_trend(trace, since=stretch.start)
    evidence, counter = sides(trend)
    far = reference.far(trace, stretch.start)
    return Finding(
        f"responses stop ending by themselves: {first:.4g} end tokens per batch at the start, "
        f"{last:.4g} now",
        severity=stretch.severity(
            _severity(
                trend,
                stretch,
                vanishes=last < SEVERE_EOS_RATIO.on(trace) * first,
                strayed=bool(far),
            )
        ),
        metric=EOS_TOKENS.name,
        began=stretch.start,
        ended=stretch.end,
        observed=stretch.worst,
        bound=limit,
        evidence=(*evidence, *far),
        counter=counter,
    )


def _never(trace: Trace) -> Finding:
    """Report that no response has ever ended: it is no habit that the model could have learned."""
    counts = trace[EOS_TOKENS.name].finite()
    trend = learning_trend(trace)
    evidence, counter = sides(trend)
    return Finding(
        f"no response has ended by itself in any of {len(counts)} updates",
        severity=weighed(trend),
        metric=EOS_TOKENS.name,
        began=int(counts.steps[0]),
        ended=int(counts.steps[-1]),
        observed=0.0,
        bound=Bound(0.0, "end tokens in a batch"),
        evidence=evidence,
        counter=counter,
        causes=(
            EOS_IS_PAD_CAUSE,
            "the response limit is shorter than any answer",
            "no stop token is set",
        ),
    )


def _severity(trend: Standing, stretch: Stretch, *, vanishes: bool, strayed: bool) -> Severity:
    if trend.improves:
        return Severity.WARNING if strayed else Severity.NOTE
    return Severity.ERROR if trend.stalls and vanishes and stretch.goes_on else Severity.WARNING


EOS_IS_PAD_CAUSE = "the end token is masked out of the loss, often because it doubles as padding"

RULE = Rule(
    name="eos-missing",
    needs=(EOS_TOKENS,),
    at_least=2 * SHORT_WINDOW,
    check=check,
    doc=__doc__,
    causes=(
        "a reward that grows with length",
        "no penalty for a response without an end token",
        EOS_IS_PAD_CAUSE,
    ),
    remedies=(
        "read some responses from the end of the run",
        "set missing_eos_penalty, or give no reward to unfinished responses",
        "check the stop token and the padding token against the tokenizer",
    ),
    profiles=kinds.LANGUAGE,
    explained_by=(
        "response-length-explodes",
        "reference-kl-out-of-range",
        "learning-rate-jump",
        "gradient-explosion",
        "component-dominates",
        "length-is-paid",
    ),
    thresholds=(MIN_EOS_RATIO, SEVERE_EOS_RATIO),
)
