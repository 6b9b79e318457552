"""A run in five sentences: is reward rising, KL small, entropy falling slowly, clipping rare,
the critic useful? Each sentence is made from the run's own numbers or says what is missing;
what this kind of training does not have is not missed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from rlvitals.errors import quantity
from rlvitals.metrics.absence import find_sibling
from rlvitals.metrics.catalogue import exploration, policy, value
from rlvitals.metrics.catalogue.progress import BATCH_SIZE
from rlvitals.metrics.metric import Metric
from rlvitals.rules import kinds
from rlvitals.rules.answers import verdict_trend
from rlvitals.rules.form import describe_form_gain
from rlvitals.rules.held_out import describe_beside
from rlvitals.rules.policy import kl_spike
from rlvitals.rules.rule import Finding, Rule, Severity
from rlvitals.rules.standing import Standing
from rlvitals.rules.value import critic_explains_nothing
from rlvitals.signals.level import MIN_CHANGE_VALUES, first_last_change
from rlvitals.signals.spread import median
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Profile, Trace

Sign = Literal["good", "bad", "neutral", "unknown"]
MAX_SLOW_ENTROPY_LOSS = 0.7  # of its first level: a greater loss is fast or far
STRONG_UPDATE_RULES = (
    "clip-fraction-high",
    "kl-above-target",
    "kl-spike",
)  # beside them no update is gentle
MIN_ENTROPY_FALL = 0.1  # of its first level: less is noise
# How each is said, and its unit: the first that is logged counts.
ENTROPY_UNITS: Mapping[str, tuple[str, str]] = {
    "exploration/entropy": ("", "nats"),
    "exploration/entropy_sequence": ("", "nats a response"),
    "exploration/entropy_sum": (" summed over a batch", "nats"),
}
# What is not missed there: a Q-learner has no clipped ratio, a group baseline no critic.
UNUSUAL_SENTENCES: Mapping[Profile, tuple[str, ...]] = {
    **dict.fromkeys(kinds.GROUPED, ("critic",)),
    Profile.ON_POLICY: ("KL", "clipping"),
    Profile.OFF_POLICY: ("KL", "entropy", "clipping"),
    Profile.SUPERVISED: ("KL", "entropy", "clipping", "critic"),
}


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of the summary, and whether it is good news."""

    topic: str  # "reward", "KL", "entropy", "clipping", "critic" or "preflight"
    text: str
    sign: Sign


def tldr(trace: Trace, rule_findings: Sequence[tuple[Rule, Finding]] = ()) -> tuple[Sentence, ...]:
    """Write the sentences: a failed preflight, reward, KL, entropy, clipping, critic."""
    findings = {rule.name: finding for rule, finding in rule_findings}
    trend = verdict_trend(trace)
    # Nothing is praised beside a finding that asks for action.
    evaluated = describe_beside(trace, trend)
    praised = trend.improves and not evaluated
    may_praise = praised and all(f.severity <= Severity.NOTE for f in findings.values())
    reward = _reward(trend, findings, describe_form_gain(trace), may_praise=may_praise)
    if evaluated and reward.sign != "bad":
        reward = replace(reward, text=f"{reward.text[:-1]}; {evaluated}.")
    sentences = (
        reward,
        _kl(trace, may_praise=may_praise),
        _entropy(trace, trend, findings.get("entropy-collapse"), may_praise=may_praise),
        _clipping(trace, findings, may_praise=may_praise),
        _critic(trace, trend, may_praise=may_praise),
    )
    unusual = UNUSUAL_SENTENCES.get(trace.profile, ())
    notes = [note.partition("preflight failed: ")[2] for note in trace.notes]
    preflight = f"The preflight failed: {'; '.join(filter(None, notes))}."
    return (
        *((Sentence("preflight", preflight, "bad"),) if any(notes) else ()),
        *(s for s in sentences if s.sign != "unknown" or s.topic not in unusual),
    )


def _reward(
    trend: Standing, findings: Mapping[str, Finding], form: str, *, may_praise: bool
) -> Sentence:
    against = findings.get("return-collapse") or findings.get("return-up-success-flat")
    if against is not None and against.severity > Severity.NOTE:
        return Sentence("reward", f"{_capitalise(against.summary)}.", "bad")
    if form:
        return Sentence("reward", f"{form} {_capitalise(trend.sentence)}.", "bad")
    if plateau := findings.get("plateau"):  # it rose, and rises no more
        text = _capitalise(plateau.summary)
        if plateau.metric == trend.metric:
            text += f"; it was {trend.first:.4g} at the start"
        return Sentence("reward", f"{text}.", "neutral")
    sign: Sign = "good" if may_praise else "bad" if trend.stalls else "unknown"
    if trend.improves and (against is not None or not may_praise):
        sign = "neutral"
    text = _capitalise(trend.sentence)
    if against is not None and trend.improves:
        text = f"{text}. {_capitalise(against.summary)}"
    ending = {"good": ". Learning works.", "bad": ". It is not learning."}
    if trend.state == "at its ceiling" and trend.last - trend.first < trend.material:
        return Sentence("reward", f"{text}. There is nothing left to gain.", sign)
    return Sentence("reward", text + ending.get(sign, "."), sign)


def _levels(trace: Trace, *names: str) -> tuple[str, float, float] | None:
    """Return the first of the metrics that is logged, with its first and last level."""
    for name in names:
        series = trace.get(name)
        if series is not None and (levels := first_last_change(series.values)):
            return name, *levels
    return None


def _absence(trace: Trace, topic: str, text: str, *metrics: Metric) -> Sentence:
    """Say `text`, that nothing is logged, or which number is, and whether it is in too few rows."""
    logged = find_sibling(trace, *metrics)
    subject, _, so = text.partition(": ")
    if logged is not None:
        metric, count = logged
        subject = f"{metric.title} has {quantity(count, 'number')}, too few"
        if not count:
            subject = f"{metric.title} is logged without a number"
        if count >= MIN_CHANGE_VALUES:
            subject = f"Of the {topic}, only {metric.title} is logged"
    elif topic == "KL" and any(name.startswith("policy/kl_") for name in trace.series):
        subject = "KL per update is not logged"
    return Sentence(topic, f"{subject}{f': {so}' if so else ''}.", "unknown")


def _kl(trace: Trace, *, may_praise: bool) -> Sentence:
    reference = _levels(trace, "policy/kl_to_reference")
    update_kl = _levels(trace, "policy/approx_kl")
    signed = _levels(trace, "policy/kl_signed")
    if update_kl is None and reference is None and signed is not None:
        values = np.abs(trace[signed[0]].finite().values)
        text = f"The signed estimate of KL per update is {median(values) or 0.0:.2g} in the median"
        return Sentence("KL", f"{text} and {values.max():.2g} at most, signs aside.", "neutral")
    if update_kl is None and reference is None:
        text = "KL is not logged: how far updates move is not known"
        return _absence(trace, "KL", text, policy.APPROX_KL, policy.KL_TO_REFERENCE)
    if update_kl is None:
        _, first, last = reference or ("", np.nan, np.nan)
        text = f"KL to the reference goes {first:.3g} to {last:.3g} nats a response."
        return Sentence("KL", text, "bad" if last < 0 else "neutral")
    values = trace[update_kl[0]].finite().values
    ceiling = policy.APPROX_KL.band(trace.profile).ceiling(trace)
    middle = median(values) or 0.0
    text = f"KL per update is {middle:.2g} in the median and {values.max():.2g} at most"
    if ceiling is None or ceiling.origin == "default":
        return Sentence("KL", f"{text}; no target is set.", "neutral")
    size, sign = "stable", _good_if(may_praise)
    if values.max() > kl_spike.TARGET_KL_FACTOR.on(trace) * ceiling.value:
        size, sign = "far too large now and then", "neutral"
    if middle > ceiling.value:
        size, sign = "too large", "bad"
    return Sentence("KL", f"{text}, target {ceiling.value:g}: updates are {size}.", sign)


def _entropy(
    trace: Trace, trend: Standing, collapse: Finding | None, *, may_praise: bool
) -> Sentence:
    if collapse is not None:
        return Sentence("entropy", f"{_capitalise(collapse.summary)}.", "bad")
    levels = _levels(trace, *ENTROPY_UNITS)
    if levels is None:
        text = "Entropy is not logged: exploration is not known"
        std = _levels(trace, exploration.STD.name)
        if std is not None and find_sibling(trace, exploration.ENTROPY) is None:
            text = f"The actions' standard deviation goes {std[1]:.3g} to {std[2]:.3g}."
            return Sentence("entropy", f"Entropy is not logged. {text}", "neutral")
        return _absence(trace, "entropy", text, exploration.ENTROPY)
    name, first, last = levels
    of, unit = ENTROPY_UNITS[name]
    ends = f"{first:.3g}", f"{last:.3g}"
    course = f"stays at {ends[1]}" if ends[0] == ends[1] else f"goes {ends[0]} to {ends[1]}"
    text = f"Entropy{of} {course} {unit}"
    if name == "exploration/entropy_sum" and (batch := _batch(trace)):
        text += f", {first / batch:.3g} to {last / batch:.3g} a decision in batches of {batch:,}"
    # At 0.001 nats the rarer one of two actions is taken once in 9,000 decisions.
    certain = trend.improves and last < 0.001 and trace[name].finite().values.min() >= 0
    if certain or first <= 0 or last > (1 - MIN_ENTROPY_FALL) * first:
        text += ": the policy tries nothing else any more" if certain else ""
        return Sentence("entropy", f"{text}.", "neutral")
    lost_share = 1 - last / first
    if lost_share <= MAX_SLOW_ENTROPY_LOSS or trend.improves:
        praise = "" if trend.improves and not may_praise else ": from exploring to exploiting"
        return Sentence("entropy", f"{text}{praise}.", _good_if(may_praise))
    return Sentence(
        "entropy", f"{text}: {lost_share:.0%} of it is gone with no gain to show.", "bad"
    )


def _batch(trace: Trace) -> int:
    """Return how many decisions a batch holds, where it is set or logged and never changes."""
    size = trace.settings.get("batch_size", 0)
    logged = trace.numbers(BATCH_SIZE.name)
    if logged is not None and len(logged):
        size = logged.values[0] if np.ptp(logged.values) == 0 else 0
    return int(size) if isinstance(size, int | float) else 0


def _clipping(trace: Trace, findings: Mapping[str, Finding], *, may_praise: bool) -> Sentence:
    clip = _levels(trace, "policy/clip_fraction", "policy/clip_fraction_effective")
    ratio = _levels(trace, "policy/ratio")
    if clip is None and ratio is None:
        text = "Clip fraction and ratio are not logged"
        return _absence(trace, "clipping", text, policy.CLIP_FRACTION, policy.RATIO)
    texts: list[str] = []
    sign: Sign = "neutral"
    if clip is not None:
        values = trace[clip[0]].finite().values
        ceiling = policy.CLIP_FRACTION.band(trace.profile).ceiling(trace)
        share = f"{median(values) or 0.0:.2%} of samples are clipped, {values.max():.2%} at most"
        texts.append(share if values.any() else "no sample is clipped")
        if ceiling is not None:
            # High in at least 20 % of the updates.
            sign = "bad" if np.mean(values > ceiling.value) >= 0.2 else _good_if(may_praise)
    if ratio is not None:
        texts.append(f"the mean ratio ends at {ratio[2]:.3g}")
    if sign == "good" and any(name in findings for name in STRONG_UPDATE_RULES):
        sign = "neutral"
    ending = {"good": ": updates are gentle.", "bad": ": updates are too large."}.get(sign, ".")
    if "updates-hardly-move" in findings:
        ending, sign = ": updates hardly move the policy.", "bad"
    return Sentence("clipping", _capitalise("; ".join(texts)) + ending, sign)


def _good_if(may_praise: bool) -> Sign:  # noqa: FBT001 - the only thing that is asked
    """Call a number good only beside an outcome that improves: alone it proves nothing."""
    return "good" if may_praise else "neutral"


def _critic(trace: Trace, trend: Standing, *, may_praise: bool) -> Sentence:
    explained, loss = _levels(trace, "value/explained_variance"), _levels(trace, "value/loss")
    difference = _levels(trace, "optimiser/loss") if trace.profile is Profile.OFF_POLICY else None
    if explained is None and loss is None and difference is not None:
        text = f"The loss goes {difference[1]:.3g} to {difference[2]:.3g}."
        return Sentence("critic", text, "neutral")
    if explained is None and loss is None:
        metrics = value.EXPLAINED_VARIANCE, value.LOSS, value.Q_MEAN, value.MEAN
        return _absence(trace, "critic", "Nothing of a critic is logged", *metrics)
    texts: list[str] = []
    sign: Sign = "neutral"
    if loss is not None:
        texts.append(f"value loss goes {loss[1]:.3g} to {loss[2]:.3g}")
    if explained is not None:
        share = (
            f"the critic explains {max(explained[2], 0.0):.0%} of the returns' variance at the end"
        )
        worse = (
            f"the critic is worse than a constant: explained variance {explained[2]:.2g} at the end"
        )
        texts.append(share if explained[2] > -0.005 else worse)  # rounds to 0 %
        if trend.stalls and explained[2] < critic_explains_nothing.MIN_EXPLAINED_VARIANCE.on(trace):
            sign = "bad"
        elif explained[2] > 0.5:  # more than half
            sign = _good_if(may_praise)
    return Sentence("critic", f"{_capitalise('; '.join(texts))}.", sign)


def _capitalise(text: str) -> str:
    """Begin a sentence with a capital; the rest keeps its own, as in "RLHF"."""
    return text[0].upper() + text[1:]
