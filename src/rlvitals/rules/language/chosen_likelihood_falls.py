"""Preference training makes the preferred responses less likely, and the others even less.

## What it sees
The log-probability of chosen responses (held-out ones where they are logged) falls by more than a
tenth of where it was, beyond its scatter, while the margin between chosen and rejected rises. A
note: some of it is how the loss works, which only asks for the difference. A warning where an
evaluation gets worse meanwhile (held-out accuracy of pairs, margin, loss), the share of pairs that
are ordered rightly does, or the policy no longer writes what it was given as an example: the token
accuracy is below three quarters of its first point, or a chosen response takes five times as many
nats as at first. An error, and the run has collapsed, where two of these agree of which one is that
the policy no longer writes its examples.

## Why it matters
Probability that leaves both sides of a pair goes to texts that are in neither: the model may then
write what no one has compared. Accuracy and margin go on looking well.

## What to do
Read what the model writes. Add the likelihood of chosen responses to the loss (`rpo_alpha`, `sft`),
raise `beta`, lower the learning rate, train fewer epochs; drop pairs whose two sides hardly differ.

## When it is wrong
With long responses a fall of a few nats is nothing: what the model samples decides. Responses that
were not written by the model itself start unlikely and may stay so.

## References
- Rafailov et al. 2024, "From r to Q*: Your Language Model is Secretly a Q-Function".
- Pal et al. 2024, "Smaug: Fixing Failure Modes of Preference Optimisation with DPO-Positive".
- Razin et al. 2025, "Unintentional Unalignment: Likelihood Displacement in DPO".
"""

import math
from collections.abc import Iterator

import numpy as np

from rlvitals.metrics.catalogue.outcome import ACCURACY as TOKEN_ACCURACY
from rlvitals.metrics.catalogue.outcome import EVAL_ACCURACY as EVAL_TOKEN_ACCURACY
from rlvitals.metrics.catalogue.preference import (
    ACCURACY,
    CHOSEN_LOGP,
    CHOSEN_REWARD,
    EVAL_CHOSEN_LOGP,
    EVAL_MARGIN,
    MARGIN,
    REJECTED_LOGP,
)
from rlvitals.metrics.metric import Bound
from rlvitals.rules.held_out import HeldOut, evaluations, worsens
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold, Undecided
from rlvitals.signals.blocks import block_means
from rlvitals.signals.level import first_last_change
from rlvitals.signals.spread import noise_sd
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Profile, Series, Trace

MAX_CHOSEN_FALL = Threshold(
    "chosen-likelihood-falls.fall", 0.1, "share of the first log-probability"
)
MIN_LOGP_POINTS = 10  # of the log-probability
MIN_LOGP_ERRORS = 5.0  # standard errors of the difference between two fifths
MIN_TOKEN_ACCURACY = 0.75  # x its first point, which is before most updates
MIN_DEVIATIONS = 3.0  # standard deviations of one point
MIN_NATS_RATIO = 5.0  # x the first nats of a chosen response; 0.4 to 2.2 in healthy runs


@dataclass(frozen=True, slots=True)
class Course:
    """The first and last fifth of a series."""

    first: float
    last: float
    error: float  # of their difference, from the scatter between neighbours
    best_step: int  # step of the best block


@dataclass(frozen=True, slots=True)
class Collapse:
    """A number that shows that the policy no longer writes what it was shown."""

    metric: str
    sentence: str
    observed: float
    bound: Bound


def check(trace: Trace) -> Answer:
    """Compare the first and the last fifth; then ask the evaluations how bad that is."""
    name = next(
        (n for n in (EVAL_CHOSEN_LOGP.name, CHOSEN_LOGP.name) if _enough(trace, n)),
        None,
    )
    if name is None:
        return Undecided("log-probabilities of chosen responses are too few", (CHOSEN_LOGP.name,))
    logp, margin = _course(trace[name].finite()), _course(trace[MARGIN.name].finite())
    collapses = (*_token_accuracy(trace), *_many_nats(trace))
    drop, limit = logp.first - logp.last, MAX_CHOSEN_FALL.on(trace) * abs(logp.first)
    falls = logp.first < 0 and drop > max(limit, MIN_LOGP_ERRORS * logp.error)
    if not falls or margin.last - margin.first <= MIN_LOGP_ERRORS * margin.error:
        return _collapse_finding(trace, collapses) if collapses else Clear()
    worse = _worse(trace)
    prefix = "held-out " if name == EVAL_CHOSEN_LOGP.name else ""
    return Finding(
        f"{prefix}chosen responses become less likely, {logp.first:.3g} to {logp.last:.3g} nats, "
        f"while the margin rises from {margin.first:.3g} to {margin.last:.3g}",
        severity=_severity(worse, collapses),
        metric=name,
        began=logp.best_step,
        ended=int(trace[name].finite().steps[-1]),
        observed=logp.last,
        bound=Bound(logp.first - limit, f"{MAX_CHOSEN_FALL.on(trace):.0%} below where it was"),
        evidence=(*_other_trends(trace), *worse, *(collapse.sentence for collapse in collapses)),
        counter=() if worse or collapses else ("no evaluation is seen to get worse",),
    )


def _collapse_finding(trace: Trace, collapses: tuple[Collapse, ...]) -> Finding:
    """Report a policy that collapsed before the first fifth was over."""
    collapse = collapses[0]
    series = trace[collapse.metric].finite()
    return Finding(
        f"the policy no longer writes the responses that it was shown: {collapse.sentence}",
        severity=_severity((), collapses),
        metric=collapse.metric,
        began=int(series.steps[0]),
        ended=int(series.steps[-1]),
        observed=collapse.observed,
        bound=collapse.bound,
        evidence=(*(each.sentence for each in collapses[1:]), *_other_trends(trace)),
    )


def _severity(worse: tuple[str, ...], collapses: tuple[Collapse, ...]) -> Severity:
    """Two witnesses of a collapse make an error."""
    if collapses and len(worse) + len(collapses) > 1:
        return Severity.ERROR
    return Severity.WARNING if worse or collapses else Severity.NOTE


def _enough(trace: Trace, name: str) -> bool:
    return name in trace and len(trace[name].finite()) >= MIN_LOGP_POINTS


def _course(series: Series) -> Course:
    width = max(1, len(series) // 5)  # a fifth
    blocks = block_means(series.values, width)
    error = (noise_sd(series.values) or 0.0) * math.sqrt(2 / width)
    best = int(blocks[:-1].argmax()) if len(blocks) > 1 else 0
    best_index = len(series) - width * (len(blocks) - best)
    return Course(float(blocks[0]), float(blocks[-1]), error, int(series.steps[best_index]))


def _worse(trace: Trace) -> tuple[str, ...]:
    evaluations_used = [e for e in evaluations(trace) if len(e.series) >= MIN_LOGP_POINTS]
    # The margin has no scale of its own; its sign says who is ahead.
    if _enough(trace, EVAL_MARGIN.name):
        margin = trace[EVAL_MARGIN.name].finite()
        course = _course(margin)
        if course.first > 0 > course.last + MIN_LOGP_ERRORS * course.error:
            evaluations_used.append(HeldOut(EVAL_MARGIN.name, "", margin))
    sentences = tuple(sentence for e in evaluations_used if (sentence := worsens(trace, e)))
    return sentences or _own_accuracy(trace)


def _own_accuracy(trace: Trace) -> tuple[str, ...]:
    if not _enough(trace, ACCURACY.name):
        return ()
    course = _course(trace[ACCURACY.name].finite())
    if course.first - course.last <= max(0.05, MIN_LOGP_ERRORS * course.error):
        return ()
    return (f"pairs ordered rightly fall from {course.first:.0%} to {course.last:.0%}",)


def _token_accuracy(trace: Trace) -> Iterator[Collapse]:
    """Find a policy that predicts far fewer tokens of the responses than at its first point."""
    for metric, prefix in ((TOKEN_ACCURACY, ""), (EVAL_TOKEN_ACCURACY, "held-out ")):
        if not _enough(trace, metric.name):
            continue
        values = trace[metric.name].finite().values
        first, last = float(values[0]), _course(trace[metric.name].finite()).last
        noise = MIN_DEVIATIONS * (noise_sd(values) or 0.0)
        if last < MIN_TOKEN_ACCURACY * first and first - last > noise:
            sentence = f"{prefix}token accuracy goes from {first:.3g} to {last:.3g}"
            bound = Bound(MIN_TOKEN_ACCURACY * first, f"{MIN_TOKEN_ACCURACY:g} x its first point")
            yield Collapse(metric.name, sentence, last, bound)


def _many_nats(trace: Trace) -> Iterator[Collapse]:
    """Find chosen responses that take several times their first nats."""
    series = trace[CHOSEN_LOGP.name].finite()
    first, last = float(np.median(series.values[:3])), _course(series).last
    if first >= 0 or last > MIN_NATS_RATIO * first:
        return
    # Batches of short responses come first now and then.
    noise = noise_sd(np.log(-series.values[series.values < 0])) or 0.0
    if math.log(last / first) > MIN_DEVIATIONS * noise:
        sentence = f"a chosen response takes {-last:.3g} nats, {-first:.3g} at first"
        bound = Bound(MIN_NATS_RATIO * first, f"{MIN_NATS_RATIO:g} x its first points")
        yield Collapse(CHOSEN_LOGP.name, sentence, last, bound)


def _other_trends(trace: Trace) -> tuple[str, ...]:
    sentences = []
    for metric, template in (
        (REJECTED_LOGP, "rejected responses go from {:.3g} to {:.3g} nats"),
        (CHOSEN_REWARD, "the reward of chosen responses goes from {:.3g} to {:.3g}"),
    ):
        levels = first_last_change(trace[metric.name].values) if metric.name in trace else None
        if levels is not None and bool(np.isfinite(levels).all()):
            sentences.append(template.format(*levels))
    return tuple(sentences)


RULE = Rule(
    name="chosen-likelihood-falls",
    needs=(CHOSEN_LOGP, MARGIN),
    at_least=MIN_LOGP_POINTS,
    check=check,
    doc=__doc__,
    causes=(
        "learning rate too high, or too many epochs",
        "beta too small",
        "pairs whose two sides hardly differ, or responses that are not the model's own",
    ),
    remedies=(
        "read what the model writes",
        "lower the learning rate, or train fewer epochs",
        "raise beta",
        "add the likelihood of chosen responses to the loss",
    ),
    profiles=(Profile.SUPERVISED,),
    explained_by=("learning-rate-jump", "gradient-explosion", "evaluation-falls"),
    verdict="collapsed",
    thresholds=(MAX_CHOSEN_FALL,),
)
