"""The few values that a run is watched by: what each is now, how it changed, its bound, its word.

Which they are depends on the kind of training; the judgements are the rules' own.

Sources: TRL's "Logging" page, "Crucial values"; Hugging Face's table of PPO's five crucial values.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.diagnosis.summary import Sign
from rlvitals.diagnosis.training_summary import ENTROPY_RULES, entropy_answer
from rlvitals.metrics.absence import describe_absence
from rlvitals.metrics.catalogue import (
    exploration,
    language,
    optimiser,
    outcome,
    policy,
    reward,
    scheduler,
    value,
)
from rlvitals.metrics.metric import Bound, Metric
from rlvitals.rules import kinds
from rlvitals.rules.answers import isolate_outcome, verdict_trend
from rlvitals.rules.policy import ratio_off_one
from rlvitals.rules.rule import Finding, Severity
from rlvitals.rules.standing import label, standing
from rlvitals.signals.level import first_last_change
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Profile, Series, Trace

Part = Literal["goals", "stability"]
MIN_KEY_METRIC_POINTS = 10  # fewer have no level
NOT_LOGGED = "not logged"


@dataclass(frozen=True, slots=True)
class Asked:
    """A value that is looked for: the first of `metrics` that is logged."""

    title: str
    healthy: str  # in words
    metrics: tuple[Metric, ...]
    rules: tuple[str, ...]  # that judge it
    part: Part = "stability"


@dataclass(frozen=True, slots=True)
class Value:
    """One crucial value of a run, and what is to be said of it."""

    title: str
    healthy: str
    part: Part
    metric: str  # canonical; the first that was looked for where none is logged
    key: str = ""  # as the log calls it; empty where it is not logged
    sign: Sign = "unknown"
    why: str = NOT_LOGGED
    now: float | None = None  # the last number
    first: float | None = None  # level of the first fifth of its numbers
    last: float | None = None  # of the last fifth
    low: Bound | None = None
    high: Bound | None = None
    counts: Bound | None = None  # of an outcome, the least change that counts

    @property
    def lacks_numbers(self) -> bool:
        """Whether it has no numbers to show, and another reason than that it is not logged."""
        return not self.key and self.why != NOT_LOGGED


@dataclass(frozen=True, slots=True)
class Crucial:
    """All of them, and what ratio, clip fraction and KL say together; empty without a ratio."""

    values: tuple[Value, ...]
    together: str = ""
    together_sign: Sign = "unknown"


OUTCOME_SPEC = Asked(
    "Reward", "goes up", (), ("return-collapse", "no-learning", "plateau"), "goals"
)
RLHF_SPEC = replace(OUTCOME_SPEC, title="RLHF reward", metrics=(outcome.RLHF_REWARD,))
SCORE_SPEC = replace(OUTCOME_SPEC, title="Score", metrics=(outcome.SCORE,))
ENTROPY_SPEC = Asked(
    "Entropy",
    "is kept, or falls slowly",
    (exploration.ENTROPY, exploration.ENTROPY_SEQUENCE, exploration.ENTROPY_SUM, exploration.STD),
    (*ENTROPY_RULES, "exploration-explodes"),
    "goals",
)
REFERENCE_KL_SPEC = Asked(
    "KL to the reference",
    "small and positive",
    (policy.KL_TO_REFERENCE, policy.KL_TO_REFERENCE_PER_TOKEN),
    ("reference-kl-out-of-range", "kl-penalty-dominates"),
    "goals",
)
KL_SPEC = Asked(
    "KL per update",
    "below its target",
    (policy.APPROX_KL, policy.KL_SIGNED),
    ("kl-above-target", "kl-spike"),
)
GOAL_KL_SPEC = replace(
    KL_SPEC, part="goals"
)  # where there is no reference, it is this that is kept low
RATIO_SPEC = Asked("Probability ratio", "about 1", (policy.RATIO,), ("ratio-off-one",))
CLIP_SPEC = Asked(
    "Clip fraction",
    "low, and not 0",
    (policy.CLIP_FRACTION, policy.CLIP_FRACTION_EFFECTIVE),
    ("clip-fraction-high", "updates-hardly-move"),
)
VALUE_LOSS_SPEC = Asked(
    "Value loss",
    "steady, without spikes or NaN",
    (value.LOSS, value.CRITIC_LOSS, value.LOSS_SUM, value.TD_ERROR),
    ("value-loss-explosion", "value-loss-vanishes"),
)
EXPLAINED_VARIANCE_SPEC = Asked(
    "Explained variance", "high", (value.EXPLAINED_VARIANCE,), ("critic-explains-nothing",)
)
KL_COEF_SPEC = Asked(
    "KL coefficient", "does not run away", (policy.KL_COEF,), ("kl-coefficient-runaway",)
)
GRADIENT_SPEC = Asked(
    "Gradient norm",
    "falls and settles",
    (optimiser.GRAD_NORM,),
    ("gradient-explosion", "gradient-not-settling", "gradient-always-clipped"),
)
LOSS_SPEC = Asked(
    "Loss", "falls smoothly", (optimiser.LOSS,), ("loss-not-decreasing", "loss-oscillating")
)
TEMPERATURE_SPEC = Asked(
    "Temperature",
    "between its ends, but for pulses",
    (exploration.TEMPERATURE,),
    ("temperature-out-of-range", "exploration-cut-under-load", "pulses-without-stagnation"),
)
BALANCE_SPEC = Asked(
    "Imbalance", "near 0 once balanced", (scheduler.BALANCE_PENALTY,), ("imbalance-unresolved",)
)
ZERO_STD_SPEC = Asked(
    "Groups without a signal", "few", (reward.GROUP_ZERO_STD,), ("zero-variance-groups",)
)
SAMPLES_SPEC = Asked(
    "Samples kept",
    "stable, and never none",
    (language.NEGATIVE_SHARE, language.POSITIVE_SHARE, language.POS_NEG_RATIO),
    ("samples-all-filtered", "positive-share-falls"),
)
Q_SPEC = Asked(
    "Q value", "within what returns allow", (value.Q_MEAN, value.Q_MAX), ("q-divergence",)
)
LEARNING_RATE_SPEC = Asked(
    "Learning rate", "as scheduled", (optimiser.LEARNING_RATE,),
    ("learning-rate-jump", "learning-rate-too-high"),
)  # fmt: skip

_FILTERED_RUN_SPECS = (
    OUTCOME_SPEC,
    REFERENCE_KL_SPEC,
    ENTROPY_SPEC,
    SAMPLES_SPEC,
    LOSS_SPEC,
    GRADIENT_SPEC,
)
_CONTROL_SPECS = (
    OUTCOME_SPEC,
    GOAL_KL_SPEC,
    ENTROPY_SPEC,
    RATIO_SPEC,
    CLIP_SPEC,
    VALUE_LOSS_SPEC,
    EXPLAINED_VARIANCE_SPEC,
)
KEY_METRIC_SPECS: Mapping[Profile, tuple[Asked, ...]] = {
    Profile.RLHF_PPO: (
        OUTCOME_SPEC, RLHF_SPEC, SCORE_SPEC, REFERENCE_KL_SPEC, ENTROPY_SPEC, RATIO_SPEC,
        CLIP_SPEC, KL_SPEC, VALUE_LOSS_SPEC, KL_COEF_SPEC,
    ),
    Profile.CONTROL_PPO: _CONTROL_SPECS,
    Profile.UNKNOWN: _CONTROL_SPECS,
    Profile.SCHEDULER_PPO: (
        OUTCOME_SPEC, GOAL_KL_SPEC, ENTROPY_SPEC, CLIP_SPEC, GRADIENT_SPEC, TEMPERATURE_SPEC,
        BALANCE_SPEC, VALUE_LOSS_SPEC,
    ),
    Profile.GRPO: (
        OUTCOME_SPEC, REFERENCE_KL_SPEC, ENTROPY_SPEC, RATIO_SPEC, CLIP_SPEC, ZERO_STD_SPEC,
        GRADIENT_SPEC,
    ),
    Profile.PSR: _FILTERED_RUN_SPECS,
    Profile.NSR: _FILTERED_RUN_SPECS,
    Profile.W_REINFORCE: _FILTERED_RUN_SPECS,
    Profile.ON_POLICY: (
        OUTCOME_SPEC, ENTROPY_SPEC, VALUE_LOSS_SPEC, EXPLAINED_VARIANCE_SPEC, GRADIENT_SPEC,
    ),
    Profile.OFF_POLICY: (OUTCOME_SPEC, VALUE_LOSS_SPEC, Q_SPEC, LOSS_SPEC),
    Profile.SUPERVISED: (OUTCOME_SPEC, GRADIENT_SPEC, LEARNING_RATE_SPEC),
}  # fmt: skip
# Without one of these a kind of training has nothing to be watched by; the others it may lack.
OPTIONAL_SPECS = (
    RATIO_SPEC,
    KL_COEF_SPEC,
    TEMPERATURE_SPEC,
    BALANCE_SPEC,
    SAMPLES_SPEC,
    Q_SPEC,
    RLHF_SPEC,
    SCORE_SPEC,
)


def crucial(diagnosis: Diagnosis) -> Crucial:
    """Say what a run is watched by. What its kind rarely logs is left out where it is missing."""
    grouped = diagnosis.trace.profile in kinds.GROUPED  # many train without a reference
    optional = {
        spec.title for spec in (*OPTIONAL_SPECS, *((REFERENCE_KL_SPEC,) if grouped else ()))
    }
    values: dict[str, Value] = {}
    for spec in KEY_METRIC_SPECS[diagnosis.trace.profile]:
        item = (
            _outcome(diagnosis, spec)
            if spec.rules is OUTCOME_SPEC.rules
            else _value(diagnosis, spec)
        )
        if item.key or spec.title not in optional:
            values.setdefault(item.metric, item)
    together = _together(diagnosis)
    shown_values = tuple(values.values())
    return Crucial(shown_values) if together is None else Crucial(shown_values, *together)


def _value(diagnosis: Diagnosis, spec: Asked) -> Value:
    trace = diagnosis.trace
    metric = next((m for m in spec.metrics if m.name in trace and len(trace[m.name])), None)
    empty = Value(spec.title, spec.healthy, spec.part, spec.metrics[0].name)
    if metric is None:
        return empty
    series = trace[metric.name]
    low, high = _bounds(trace, metric)
    sign, reason = _judge_by_rules(diagnosis, spec, series, (low, high))
    key = trace.measured[metric.name].key
    full = replace(empty, metric=metric.name, key=key, low=low, high=high, sign=sign, why=reason)
    return _on(full, series)


def _bounds(trace: Trace, metric: Metric) -> tuple[Bound | None, Bound | None]:
    """Return the healthy ends that say more than what is possible at all.

    Of the lower ends those count that a run has set itself, and the ratio's: many a healthy run
    lies below others.
    """
    band = metric.band(trace.profile)
    low, high = band.floor(trace), band.ceiling(trace)
    if (
        low is not None
        and metric is not policy.RATIO
        and not low.origin.startswith("the run's ")  # set by the run
    ):
        low = None
    return low, None if high is not None and high.value == metric.possible.high else high


def _on(item: Value, series: Series) -> Value:
    """Fill in the last number, and the levels of both ends."""
    numbers = series.values[~np.isnan(series.values)]
    first, last = first_last_change(series.values) or (None, None)
    return replace(item, now=float(numbers[-1]) if len(numbers) else None, first=first, last=last)


def _outcome(diagnosis: Diagnosis, spec: Asked) -> Value:
    """Judge the outcome as the verdict does; one that is asked for by name, by itself."""
    trace = diagnosis.trace
    name = next((m.name for m in spec.metrics if trace.numbers(m.name, MIN_KEY_METRIC_POINTS)), "")
    trend = standing(isolate_outcome(trace, name, trace[name])) if name else verdict_trend(trace)
    if spec.metrics and not name:
        return Value(spec.title, spec.healthy, spec.part, spec.metrics[0].name)
    sign: Sign = "bad" if trend.stalls else "unknown"
    if trend.improves or trend.state == "holding its best":
        sign = "good"
    reason = trend.sentence
    gravest = None if spec.metrics else _gravest(diagnosis, spec.rules)
    if gravest is not None and gravest.severity > Severity.NOTE:
        sign, reason = "bad", gravest.summary
    text = label(trend.metric) if trend.metric else ""
    title = text[:1].upper() + text[1:] or spec.title
    item = Value(title, spec.healthy, spec.part, trend.metric, sign=sign, why=reason)
    if trend.metric not in trace:
        return item
    counts = Bound(trend.material, trend.material_from) if np.isfinite(trend.material) else None
    full = replace(item, key=trace.measured[trend.metric].key, counts=counts)
    return _on(full, trace[trend.metric])


def _gravest(diagnosis: Diagnosis, rules: Sequence[str]) -> Finding | None:
    matches = [finding for rule, finding in diagnosis.findings if rule.name in rules]
    return max(matches, key=lambda finding: finding.severity, default=None)


def _judge_by_rules(
    diagnosis: Diagnosis, spec: Asked, series: Series, bounds: tuple[Bound | None, Bound | None]
) -> tuple[Sign, str]:
    """Let the rules speak: what they find, what they have cleared, what they cannot judge."""
    bad = series.bad_count
    if bad and not np.isfinite(series.values[-1]):
        return "bad", f"it is no number at the end, as in {bad:,} of {series.count:,} rows"
    finding = _gravest(diagnosis, spec.rules)
    if finding is not None:
        return ("bad" if finding.severity > Severity.NOTE else "neutral"), finding.summary
    if spec.title == ENTROPY_SPEC.title and entropy_answer(diagnosis) == "no":
        return "bad", "most of it is gone"
    beyond, inside = _beyond(series, *bounds)
    if not any(rule.name in spec.rules for rule in diagnosis.clear):
        return _missing_judgement(diagnosis, spec, beyond or inside)
    if beyond:
        return "neutral", f"{beyond}; no rule calls that a fault"
    return "good", inside or "no rule finds fault with it"


def _missing_judgement(diagnosis: Diagnosis, spec: Asked, bounds_text: str) -> tuple[Sign, str]:
    """Say why no rule has judged a value."""
    muted = [mute.reason for mute in diagnosis.muted if mute.rule.name in spec.rules]
    if muted:
        return "neutral", f"muted: {muted[0]}"
    undecided = [answer.why for rule, answer in diagnosis.undecided if rule.name in spec.rules]
    if undecided:
        return "unknown", f"cannot tell: {undecided[0]}"
    return (
        "neutral",
        f"{bounds_text}; no rule judges it here" if bounds_text else "no rule judges it here",
    )


def _beyond(series: Series, low: Bound | None, high: Bound | None) -> tuple[str, str]:
    """Say how often a value lies outside its bounds; where it hardly does, how often inside."""
    values = series.finite().values
    if not len(values) or (low is None and high is None):
        return "", ""
    above = np.zeros(len(values), bool) if high is None else values > high.value
    below = np.zeros(len(values), bool) if low is None else values < low.value
    for outside, bound, side in ((above, high, "above"), (below, low, "below")):
        if bound is not None and outside.mean() >= 0.05:  # of the rows
            return f"{side} {bound.value:g} in {outside.mean():.0%} of its rows", ""
    within = float((~above & ~below).mean())
    return "", f"within its bounds in {'all' if within == 1 else f'{within:.1%}'} of its rows"


def _together(diagnosis: Diagnosis) -> tuple[str, Sign] | None:
    """Say what ratio, clip fraction and KL per update show together: drastic updates, or not."""
    trace = diagnosis.trace
    ratio = trace.numbers(policy.RATIO.name, MIN_KEY_METRIC_POINTS)
    kl = next(
        (n for n in (policy.APPROX_KL.name,) if trace.numbers(n, MIN_KEY_METRIC_POINTS)), None
    )
    clips = (policy.CLIP_FRACTION.name, policy.CLIP_FRACTION_EFFECTIVE.name)
    clip = next((n for n in clips if trace.numbers(n, MIN_KEY_METRIC_POINTS)), None)
    if ratio is None:
        return None
    off = _gravest(diagnosis, (ratio_off_one.RULE.name,))
    if off is not None and off.metric == policy.RATIO.name and off.evidence:
        return f"{off.summary}; {'; '.join(off.evidence)}: updates are too drastic", "bad"
    if kl is None or clip is None:
        title, metric = (
            ("KL per update", policy.APPROX_KL) if kl is None
            else ("the clip fraction", policy.CLIP_FRACTION)
        )  # fmt: skip
        lacks = describe_absence(
            trace, f"{title} is not logged", metric, min_count=MIN_KEY_METRIC_POINTS
        )
        return f"ratio, clipping and KL cannot be held together: {lacks}", "unknown"
    if off is not None and off.metric == policy.RATIO.name:
        return f"{off.summary}, while few samples are clipped and KL is low", "bad"
    high = _gravest(diagnosis, (*KL_SPEC.rules, "clip-fraction-high"))
    if high is not None:
        return f"the ratio stays about 1, but {high.summary}", "neutral"
    return "the ratio is about 1, few samples are clipped, and KL per update is low", "good"
