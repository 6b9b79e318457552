"""Many responses are cut at the length limit instead of ending by themselves.

## What it sees
`language/truncated_share` above 0.3 in at least half of 20 successive updates (10 where fewer
than 40 are logged). What the model gets right decides: a warning where that is proven not to
improve, an error above 0.8 (which includes runs in which no response ends at all); a note where
it improves or, up to 0.8, cannot be told.

## Why it matters
A cut response usually earns nothing although its beginning may be right, so the reward teaches
to be short, or nothing. Where the limit is what stops a response, lengths say nothing either.

## What to do
Raise the response limit if answers are cut that would have been right; otherwise find out why
the model does not end: no end token in the data, a wrong stop token, a reward for length. Masking
truncated responses out of the loss hides the symptom, and in NSR removes most negatives.

## When it is wrong
Reasoning is often trained against a limit it meets at first. Where right answers rise all the
same, only compute is lost.

## References
- Yu et al. 2025, "DAPO", section 3.4, overlong responses.
- Liu et al. 2025, "Understanding R1-Zero-Like Training" (Dr. GRPO), length bias.
"""

from rlvitals.metrics.language import TERMINATED_LENGTH_MEAN, TRUNCATED_SHARE
from rlvitals.metrics.metric import Bound
from rlvitals.records import Trace
from rlvitals.rules import kinds
from rlvitals.rules.answers import learned
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity
from rlvitals.rules.shapes import SHORT_WINDOW, Stretch, above
from rlvitals.rules.standing import Standing
from rlvitals.rules.weigh import sides
from rlvitals.signals.spread import median

MANY = Bound(0.3, "default")  # a third of the batch is judged by where it was cut
NEARLY_ALL = 0.8


def check(trace: Trace) -> Answer:
    """Find a lasting share of cut responses and weigh it by what is learned meanwhile."""
    cut = trace[TRUNCATED_SHARE.name]
    stretch = above(cut, MANY.value)
    if stretch is None:
        return Clear()
    level = median(stretch.of(cut).finite().values) or 0.0
    now = learned(trace, since=stretch.began)
    evidence, counter = sides(now)
    return Finding(
        f"{level:.0%} of responses are cut at the length limit in the median update, "
        f"{stretch.worst:.0%} at most",
        severity=stretch.severity(_severity(now, level)),
        metric=TRUNCATED_SHARE.name,
        began=stretch.began,
        ended=stretch.ended,
        observed=level,
        bound=MANY,
        evidence=(*_none_ends(trace, stretch), *_limit(trace), *evidence),
        counter=counter,
    )


def _severity(now: Standing, level: float) -> Severity:
    if now.improves:
        return Severity.NOTE
    if now.stalled:
        return Severity.ERROR if level > NEARLY_ALL else Severity.WARNING
    return Severity.WARNING if level > NEARLY_ALL and now.state == "unknown" else Severity.NOTE


def _none_ends(trace: Trace, stretch: Stretch) -> tuple[str, ...]:
    ended = trace.get(TERMINATED_LENGTH_MEAN.name)
    during = None if ended is None else stretch.of(ended).finite()
    if during is None or not len(during):
        return ()
    none = int((during.values == 0).sum())
    if 2 * none < len(during):
        return ()
    return (f"in {none} of {len(during)} updates no response ended by itself",)


def _limit(trace: Trace) -> tuple[str, ...]:
    limit = trace.number("max_completion_length")
    return () if limit is None else (f"the run's response limit is {limit:g} tokens",)


RULE = Rule(
    name="responses-truncated",
    needs=(TRUNCATED_SHARE,),
    at_least=SHORT_WINDOW,
    check=check,
    doc=__doc__,
    causes=(
        "the response limit is shorter than the task needs",
        "the model does not end: no end token learned, wrong stop token",
        "a reward that grows with length",
    ),
    remedies=(
        "read some cut responses: are they nearly done, or rambling?",
        "raise {max_completion_length} where they are nearly done",
        "check the end token, the chat template and what the reward pays for length",
    ),
    profiles=kinds.LANGUAGE,
    explained_by=(
        "response-length-explodes",
        "eos-missing",
        "threshold-off-correctness",
    ),
)
