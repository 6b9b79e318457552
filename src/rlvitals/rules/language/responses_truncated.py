"""Many responses are cut at the length limit instead of ending by themselves.

## What it sees
`language/truncated_share` above 0.3 in at least half of 20 successive updates (10 where fewer
than 40 are logged). What the model gets right decides: a warning where that is proven not to
improve, an error above 0.8 (which includes runs in which no response ends at all); a note where
it improves or, up to 0.8, cannot be told. Where no response ended by itself in any update it is a
warning even while the reward rises. A note where a fifth of the responses or more end by themselves
and all earn the same reward as the cut ones: the limit does not make the reward constant. Else
`language/query_truncated_share` above 0.1 as often: a note that prompts are cut.

## Why it matters
A cut response usually earns nothing although its beginning may be right, so the reward teaches
to be short, or nothing. Where the limit is what stops a response, lengths say nothing either.

## What to do
Raise the response limit if answers are cut that would have been right; otherwise find out why
the model does not end: no end token in the data, a wrong stop token, a reward for length. Masking
truncated responses out of the loss hides the symptom, and in NSR removes most negatives. Where
none ever ended, from the first update on, it is no habit: the end token is not the model's own, or
it is padding's too. Raise the prompt limit where prompts are cut, or drop the longest.

## When it is wrong
Reasoning is often trained against a limit it meets at first. Where right answers rise all the
same, only compute is lost.

## References
- Yu et al. 2025, "DAPO", section 3.4, overlong responses.
- Liu et al. 2025, "Understanding R1-Zero-Like Training" (Dr. GRPO), length bias.
"""

import numpy as np

from rlvitals.metrics.catalogue.language import TERMINATED_LENGTH_MEAN, TRUNCATED_SHARE
from rlvitals.metrics.catalogue.outcome import REWARD, SCORE
from rlvitals.metrics.catalogue.rollouts import QUERY_TRUNCATED_SHARE
from rlvitals.rules import kinds
from rlvitals.rules.answers import last_share, learning_trend
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold
from rlvitals.rules.shapes import SHORT_WINDOW, Stretch, above
from rlvitals.rules.standing import Standing
from rlvitals.rules.weigh import sides
from rlvitals.signals.spread import median
from rlvitals.types import Series, Trace

# A third of the batch is judged by where it was cut.
MAX_TRUNCATED_SHARE = Threshold(
    "responses-truncated.share", 0.3, "share of responses cut at the limit", high=1.0
)
SEVERE_TRUNCATED_SHARE = Threshold(
    "responses-truncated.severe", 0.8, "the same, for an error", high=1.0
)
MAX_PROMPT_CUT_SHARE = Threshold(
    "responses-truncated.prompts", 0.1, "share of prompts as long as their limit", high=1.0
)


def check(trace: Trace) -> Answer:
    """Find a lasting share of cut responses and weigh it by what is learned meanwhile."""
    cut = trace[TRUNCATED_SHARE.name]
    stretch = above(cut, MAX_TRUNCATED_SHARE.on(trace))
    if stretch is None:
        return _prompts(trace)
    level = median(stretch.of(cut).finite().values) or 0.0
    trend = learning_trend(trace, since=stretch.start)
    evidence, counter = sides(trend)
    severe = level > SEVERE_TRUNCATED_SHARE.on(trace)
    never = Severity.WARNING if _never_ends(cut) else Severity.NOTE
    severity = stretch.severity(max(_severity(trend, severe=severe), never))
    if (reward := _constant_reward(trace, stretch)) is not None:
        severity = severity if severe else Severity.NOTE
        counter = (_describe_equal(reward, level, is_decided=not severe), *counter)
    return Finding(
        f"{level:.0%} of responses are cut at the length limit in the median update"
        + (f", {stretch.worst:.0%} at most" if round(stretch.worst, 2) > round(level, 2) else ""),
        severity=severity,
        metric=TRUNCATED_SHARE.name,
        began=stretch.start,
        ended=stretch.end,
        observed=level,
        bound=MAX_TRUNCATED_SHARE.bound(trace, "default"),
        evidence=(
            *_none_ends(trace, stretch),
            *_right(trace, level),
            *_prompts_cut(trace),
            *_limit(trace),
            *evidence,
        ),
        counter=counter,
        causes=(NO_EOS_CAUSE, *TRUNCATION_CAUSES) if _never_ends(cut) else (),
    )


def _constant_reward(trace: Trace, stretch: Stretch) -> float | None:
    """Return the reward of every response; None where rewards differ."""
    for name in (SCORE.name, REWARD.name):
        series = trace.get(name)
        values = np.empty(0) if series is None else stretch.of(series).finite().values
        if len(values) >= SHORT_WINDOW and np.ptp(values) == 0:
            return float(values[0])
    return None


def _describe_equal(reward: float, cut: float, *, is_decided: bool) -> str:
    if is_decided:
        return (
            f"{1 - cut:.0%} of responses end by themselves, and every response earns {reward:g}:"
            " the limit is not what makes rewards equal"
        )
    return (
        f"every response earns {reward:g}, and too few end by themselves to tell the limit from a"
        " reward function that returns this for every answer: score a right answer by hand"
    )


def _never_ends(cut: Series) -> bool:
    """Tell a model that ended no response in its first updates, nor since."""
    # Cut in every update, but for rounding.
    return bool(cut.finite().values.min(initial=1.0) >= 0.999)


def _right(trace: Trace, level: float) -> tuple[str, ...]:
    """Say how many responses must be both cut and right, as the shares add up to more than 1."""
    right = last_share(trace)
    overlap = 0.0 if right is None else right + level - 1.0
    return (f"at least {overlap:.0%} of responses are right although cut",) if overlap > 0 else ()


def _prompts_cut(trace: Trace) -> tuple[str, ...]:
    logged = trace.get(QUERY_TRUNCATED_SHARE.name)
    level = None if logged is None else median(logged.finite().values)
    if level is None or level <= MAX_PROMPT_CUT_SHARE.on(trace):
        return ()
    return (f"{level:.0%} of prompts are as long as their limit: they were probably cut",)


def _prompts(trace: Trace) -> Answer:
    """Look for prompts that fill the room they have, where responses have enough."""
    logged = trace.get(QUERY_TRUNCATED_SHARE.name)
    stretch = None if logged is None else above(logged, MAX_PROMPT_CUT_SHARE.on(trace))
    if logged is None or stretch is None:
        return Clear()
    level = median(stretch.of(logged).finite().values) or 0.0
    trend = learning_trend(trace, since=stretch.start)
    evidence, counter = sides(trend)
    limit = trace.number("max_prompt_length")
    sentences = () if limit is None else (f"the run's prompt limit is {limit:g} tokens",)
    return Finding(
        f"{level:.0%} of prompts are as long as their limit: they were probably cut",
        severity=Severity.NOTE,
        metric=QUERY_TRUNCATED_SHARE.name,
        began=stretch.start,
        ended=stretch.end,
        observed=level,
        bound=MAX_PROMPT_CUT_SHARE.bound(trace, "default"),
        evidence=(*sentences, *evidence),
        counter=counter,
        causes=("prompts are longer than the limit allows", "turns pile up in the context"),
        remedies=(
            "raise the prompt limit, or drop prompts that do not fit",
            "check which end is cut: the question is often at the end, the task at the start",
        ),
    )


def _severity(trend: Standing, *, severe: bool) -> Severity:
    if trend.improves:
        return Severity.NOTE
    if trend.stalls:
        return Severity.ERROR if severe else Severity.WARNING
    return Severity.WARNING if severe and trend.state == "unknown" else Severity.NOTE


def _none_ends(trace: Trace, stretch: Stretch) -> tuple[str, ...]:
    lengths = trace.get(TERMINATED_LENGTH_MEAN.name)
    during = None if lengths is None else stretch.of(lengths).finite()
    if during is None or not len(during):
        return ()
    none = int((during.values == 0).sum())
    if 2 * none < len(during):
        return ()
    return (f"in {none} of {len(during)} updates no response ended by itself",)


def _limit(trace: Trace) -> tuple[str, ...]:
    limit = trace.number("max_completion_length")
    return () if limit is None else (f"the run's response limit is {limit:g} tokens",)


NO_EOS_CAUSE = "the end token is not the model's own, or it is padding's too and masked out"
TRUNCATION_CAUSES = (
    "the response limit is shorter than the task needs",
    "the model does not end: no end token learned, wrong stop token",
    "a reward that grows with length",
)

RULE = Rule(
    name="responses-truncated",
    needs=(TRUNCATED_SHARE,),
    at_least=SHORT_WINDOW,
    check=check,
    doc=__doc__,
    causes=TRUNCATION_CAUSES,
    remedies=(
        "read some cut responses: are they nearly done, or rambling?",
        "raise {max_completion_length} where they are nearly done",
        "check the end token, the chat template and what the reward pays for length",
    ),
    profiles=kinds.LANGUAGE,
    explained_by=(
        "setting-out-of-range",
        "exploration-explodes",
        "response-length-explodes",
        "eos-missing",
        "threshold-off-correctness",
        "learning-rate-jump",
        "gradient-explosion",
        "component-dominates",
        "length-is-paid",
        "turns-inflate",
        "text-degenerates",
    ),
    thresholds=(MAX_TRUNCATED_SHARE, SEVERE_TRUNCATED_SHARE, MAX_PROMPT_CUT_SHARE),
)
