"""The policy is too far from the reference model, has not left it at all, or KL is negative.

## What it sees
KL above twice the run's own `kl_target`, where one is set, in the unit that the run logs. Without
one, KL per token (a KL per sequence is divided by the response length, or by the response limit;
where only log-probabilities under both models are logged, their difference) and what is learned
meanwhile: above 0.2 nats while nothing better is learned; still growing over the last half of the
run while nothing better is learned: over-optimisation; below 0.0001 all that time: the policy has
not moved, though rewards differ. A run that learns is only noted above half a nat per token.

Before all that: a mean over the last half of the run below zero beyond its own noise (a 99.9 %
interval over blocks longer than the series' memory), by more than 0.01 nats per sequence or 0.001
per token. Below -1 nat per sequence, however it wanders, or where what is learned stalls, a
warning; else a note. Single batches below 0 are ordinary. `policy/kl_to_teacher` is asked as well.

## Why it matters
KL is the price of the score. A reward model is trusted near the text it was trained on; beyond
that the score goes on rising while the text gets worse. At zero, nothing was learned, whatever
the loss says; at exactly zero the reference is the policy itself, or the weights do not change at
their precision. E[log pi - log pi_ref] is a KL only for samples of pi: negative on average,
responses were not drawn from the policy whose log-probabilities are taken. The penalty turns into
a bonus for leaving the reference, and the ratios of PPO are wrong as well. A reverse KL to a
teacher that is summed over its likeliest tokens alone falls below zero by the mass that the policy
has on the others: the loss then pays for leaving the teacher.

## What to do
Too far: raise `kl_coef` (or `beta`), lower the learning rate, stop earlier, and read responses.
Not moved: raise the learning rate, lower the coefficient, check that weights are trainable and
that the adapter is switched off for the reference; keep a float32 copy of weights that are updated
in bfloat16 at 1e-6. Negative: sample with temperature 1 and without top-k, top-p or a repetition
penalty, or divide the logits by the same temperature when taking log-probabilities; check that
padding is masked in both, that both run without dropout, and that the sampler's weights are the
current ones. Below the teacher: keep more tokens, or count what they leave out as one more token.

## When it is wrong
Training by verified rewards needs no reference and goes far from it. KL grows with the length of
responses: compare per token. An estimator that adds a control variate can dip slightly below zero
by rounding.

## References
- Gao, Schulman and Hilton 2023, "Scaling Laws for Reward Model Overoptimization".
- Ziegler et al. 2019, "Fine-Tuning Language Models from Human Preferences", adaptive KL target.
- Schulman 2020, "Approximating KL Divergence", http://joschu.net/blog/kl-approx.html.
- verl-project/verl issue 5041: a reverse KL over the top k tokens loses the teacher's mass.
- huggingface/trl v0.11.4, ppo_trainer.py, step: warns where mean KL falls below -1.
"""

from dataclasses import replace

import numpy as np

from rlvitals.metrics.catalogue.language import LOGPROBS
from rlvitals.metrics.catalogue.optimiser import GRAD_NORM, LEARNING_RATE
from rlvitals.metrics.catalogue.policy import KL_TO_REFERENCE, KL_TO_REFERENCE_PER_TOKEN
from rlvitals.metrics.catalogue.surrogate import KL_TO_TEACHER
from rlvitals.metrics.metric import Bound
from rlvitals.rules import kinds, reference
from rlvitals.rules.answers import learning_trend
from rlvitals.rules.rule import (
    Answer,
    Clear,
    Curve,
    Finding,
    Rule,
    Severity,
    Threshold,
    Undecided,
)
from rlvitals.rules.shapes import SHORT_WINDOW, above
from rlvitals.rules.untaught import alike
from rlvitals.rules.weigh import sides
from rlvitals.signals.blocks import block_means
from rlvitals.signals.level import first_last_change
from rlvitals.signals.spread import median
from rlvitals.signals.trend import trend
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Series, Trace

# Guides name 0.01 to 0.1 nats per token as usual; twice that asks for a second witness.
MAX_REFERENCE_KL = Threshold(
    "reference-kl-out-of-range.high", 0.2, "KL a token, in nats, with no gain"
)
MIN_REFERENCE_KL = Threshold(
    "reference-kl-out-of-range.low", 1e-4, "KL a token, in nats, that is no move"
)
MAX_NOTED_KL = Threshold(
    "reference-kl-out-of-range.plain", 0.5, "KL a token, in nats, that is noted"
)
KL_ORIGIN = "nats per token, default"
NOTED_KL_ORIGIN = "nats per token, default: 1.6 x as likely as under the reference"
KL_GROWTH_FACTOR = 1.5  # over the last half of the run
MIN_NEGATIVE_UPDATES = 20
# What rounding can do, and what is a fault whatever the outcome does: TRL's own limit.
SEQUENCE_KL_LIMITS = (Bound(-0.01, "nats per sequence, default: what rounding can do"), -1.0)
TOKEN_KL_LIMITS = (Bound(-1e-3, "nats per token, default: what rounding can do"), -0.05)


@dataclass(frozen=True, slots=True)
class Course:
    """KL per token where the length is known, else per sequence."""

    series: Series
    metric: str
    unit: str
    per_token: bool  # whether it is per token
    how: tuple[str, ...]


def check(trace: Trace) -> Answer:
    """Ask for the sign first, then for the run's own target, the level, the course."""
    if (below_teacher := _below_teacher(trace)) is not None:
        return below_teacher
    course = _course(trace)
    if course is None:
        return Undecided("KL to the reference has no number", (KL_TO_REFERENCE.name,))
    for answer in (
        _negative(trace, course),
        _above_target(trace),
        _too_high(trace, course),
        _grows(trace, course),
        _stays_at_reference(trace, course),
    ):
        if answer is not None:
            return answer
    return Clear()


def _course(trace: Trace) -> Course | None:
    kl = reference.token_kl(trace)
    if kl is not None:
        how = (kl.how,) if kl.how else ()
        return Course(kl.series, kl.metric, "nats per token", per_token=True, how=how)
    name = KL_TO_REFERENCE.name
    if name in trace and len(series := trace[name].finite()):
        return Course(series, name, "nats per sequence", per_token=False, how=())
    return None


def _negative(trace: Trace, course: Course) -> Answer | None:
    """Judge KL as it is logged: its sign is the same by any reduction."""
    per_sequence = KL_TO_REFERENCE.name in trace
    name = KL_TO_REFERENCE.name if per_sequence else course.metric
    kl = trace[name].finite() if per_sequence else course.series
    rounding, warns = SEQUENCE_KL_LIMITS if per_sequence else TOKEN_KL_LIMITS
    negative = reference.below_zero(kl, rounding.value) if len(kl) >= MIN_NEGATIVE_UPDATES else None
    if negative is None:
        return None
    if not np.isfinite(negative.high) and not (per_sequence and negative.mean < warns):
        return Undecided("KL is negative, but too sluggish to tell a level from noise")
    return _negative_finding(trace, name, kl, negative, model="the reference")


def _below_teacher(trace: Trace) -> Finding | None:
    name = KL_TO_TEACHER.name
    kl = trace.numbers(name, MIN_NEGATIVE_UPDATES)
    negative = None if kl is None else reference.below_zero(kl, TOKEN_KL_LIMITS[0].value)
    if kl is None or negative is None or not np.isfinite(negative.high):
        return None
    return replace(
        _negative_finding(trace, name, kl, negative, model="the teacher"),
        causes=(
            "a reverse KL over the likeliest tokens alone, which leaves mass out",
            *NEGATIVE_KL_CAUSES,
        ),
        remedies=("keep more of the teacher's tokens", *NEGATIVE_KL_REMEDIES),
    )


def _negative_finding(
    trace: Trace, name: str, kl: Series, negative: reference.Negative, *, model: str
) -> Finding:
    """Return the finding of a KL to `model` whose mean is below zero."""
    unit = KL_UNITS.get(name, "nats per token")
    rounding, warns = SEQUENCE_KL_LIMITS if name == KL_TO_REFERENCE.name else TOKEN_KL_LIMITS
    outcome_trend = learning_trend(trace)
    evidence, counter = sides(outcome_trend)
    is_severe = negative.mean < warns or outcome_trend.stalls
    # E[exp(-k1)] <= 1 of any policy: a mean of ten below -1 has a chance below exp(-10).
    proof = "of responses of the policy itself, such a mean has a chance below 1 in 20,000"
    if np.isfinite(negative.high):
        proof = f"the interval of that mean ends at {negative.high:.3g}"
    return Finding(
        f"KL to {model} averages {negative.mean:.3g} {unit} over the last {negative.updates} "
        "updates: below zero, which no KL can be",
        severity=Severity.WARNING if is_severe else Severity.NOTE,
        metric=name,
        began=negative.first_step,
        ended=int(kl.steps[-1]),
        observed=negative.mean,
        bound=rounding,
        evidence=(proof, *evidence),
        counter=counter,
        causes=NEGATIVE_KL_CAUSES,
        remedies=NEGATIVE_KL_REMEDIES,
    )


def _above_target(trace: Trace) -> Answer | None:
    target = trace.number("kl_target")
    # A controller's target is in the unit of the KL that it sees: the one that is logged.
    name = next((n for n in KL_UNITS if n in trace), "")
    if not target or target < 0 or not name:
        return None
    # An adaptive controller holds KL well within twice its target.
    stretch = above(trace[name], 2.0 * target)
    if stretch is None:
        return None
    outcome_trend = learning_trend(trace, since=stretch.start)
    evidence, counter = sides(outcome_trend)
    return Finding(
        f"KL to the reference stays above twice its target: {stretch.worst:.3g} {KL_UNITS[name]} "
        f"at most, target {target:g}",
        severity=stretch.severity(Severity.NOTE if outcome_trend.improves else Severity.WARNING),
        metric=name,
        began=stretch.start,
        ended=stretch.end,
        observed=stretch.worst,
        bound=Bound(target, "the run's kl_target"),
        evidence=evidence,
        counter=counter,
    )


def _too_high(trace: Trace, course: Course) -> Answer | None:
    if not course.per_token:
        return None
    stretch = above(course.series, MAX_REFERENCE_KL.on(trace))
    if stretch is None:
        return None
    level = stretch.middle(course.series)
    outcome_trend = learning_trend(trace, since=stretch.start)
    far = level > MAX_NOTED_KL.on(trace)
    if not (outcome_trend.stalls or far):
        if outcome_trend.state != "unknown":
            return None
        return Undecided(f"KL is {level:.2g} {course.unit}, and {outcome_trend.sentence}")
    evidence, counter = sides(outcome_trend)
    severity = Severity.WARNING if outcome_trend.stalls else Severity.NOTE
    return Finding(
        f"the policy is far from the reference: KL {level:.3g} {course.unit} in the median, "
        f"{stretch.worst:.3g} at most",
        severity=stretch.severity(severity),
        metric=course.metric,
        began=stretch.start,
        ended=stretch.end,
        observed=level,
        bound=MAX_NOTED_KL.bound(trace, NOTED_KL_ORIGIN)
        if far
        else MAX_REFERENCE_KL.bound(trace, KL_ORIGIN),
        evidence=(*course.how, *reference.describe_logprob_shift(trace), *evidence),
        counter=counter,
        curve=_curve(course),
    )


def _curve(course: Course) -> Curve | None:
    return Curve("KL to the reference per token", course.series) if course.how else None


def _last_half(course: Course) -> Series | None:
    half = course.series.tail(len(course.series) // 2)
    return half if 2 * len(half) >= 40 else None  # updates: earlier a policy may not have moved yet


def _grows(trace: Trace, course: Course) -> Answer | None:
    half = _last_half(course)
    fit = None if half is None else trend(half.values)
    levels = None if half is None else first_last_change(half.values)
    if half is None or fit is None or levels is None or fit.change_low <= 0:
        return None
    first, last = levels
    # Far below the high bound growth is only the way there; per sequence nothing is known.
    material = MAX_REFERENCE_KL.on(trace) / 10 if course.per_token else 1.0
    if last < max(KL_GROWTH_FACTOR * first, material):
        return None
    outcome_trend = learning_trend(trace, since=int(half.steps[0]))
    if not outcome_trend.stalls:
        return None
    return Finding(
        f"KL to the reference goes on growing, {first:.3g} to {last:.3g} {course.unit} over the "
        "last half of the run, and buys nothing",
        severity=Severity.WARNING,
        metric=course.metric,
        began=int(half.steps[0]),
        ended=int(half.steps[-1]),
        observed=last,
        bound=Bound(
            KL_GROWTH_FACTOR * first, f"{KL_GROWTH_FACTOR:g} x its level at the middle of the run"
        ),
        evidence=(*course.how, *sides(outcome_trend)[0]),
        curve=_curve(course),
        causes=("over-optimisation of the reward model", "kl_coef or beta too small"),
    )


def _stays_at_reference(trace: Trace, course: Course) -> Answer | None:
    half = _last_half(course)
    if half is None or alike(trace, int(half.steps[0])):
        return None  # rewards that are all the same give it nothing to leave for
    level = float(block_means(np.abs(half.values), len(half))[0])
    exactly_zero = not np.any(half.values) and _trains(trace, half)
    limit = MIN_REFERENCE_KL.bound(trace, KL_ORIGIN, 1.0 if course.per_token else 10.0)
    outcome_trend = learning_trend(trace, since=int(half.steps[0]))
    if (
        level >= limit.value
        or outcome_trend.improves
        or (outcome_trend.state == "holding its best" and not exactly_zero)
    ):
        return None
    level_text = (
        "exactly 0: the reference is the policy itself"
        if exactly_zero
        else f"{level:.2g} {course.unit}"
    )
    return Finding(
        f"the policy has not left the reference: KL over the last half of the run is {level_text}",
        severity=Severity.WARNING if exactly_zero or outcome_trend.stalls else Severity.NOTE,
        metric=course.metric,
        began=int(course.series.steps[0]),
        ended=int(half.steps[-1]),
        observed=level,
        bound=limit,
        evidence=(*_learning_rate(trace, half), *sides(outcome_trend)[0]),
        causes=CONSTANT_KL_CAUSES
        if exactly_zero
        else (*(CONSTANT_KL_CAUSES[1:] if _trains(trace, half) else ()), *UNMOVED_POLICY_CAUSES),
        remedies=(
            "check that the reference is a frozen copy, and that weights are trainable",
            "raise {learning_rate}",
            "lower {kl_coef|beta}",
        ),
    )


def _learning_rate(trace: Trace, half: Series) -> tuple[str, ...]:
    """Say that gradients flow, and with what rate: bfloat16 keeps three digits of a weight."""
    rate = trace.get(LEARNING_RATE.name)
    if not _trains(trace, half) or rate is None:
        return ()
    middle = median(rate.since(int(half.steps[0])).values)
    return () if middle is None else (f"gradients are not zero; learning rate {middle:.2g}",)


def _trains(trace: Trace, half: Series) -> bool:
    norms = trace.get(GRAD_NORM.name)
    during = None if norms is None else norms.since(int(half.steps[0])).finite()
    return during is not None and len(during) > 0 and bool((during.values > 0).all())


KL_UNITS = {
    KL_TO_REFERENCE.name: "nats per sequence",
    KL_TO_REFERENCE_PER_TOKEN.name: "nats per token",
}
CONSTANT_KL_CAUSES = (
    "reference not frozen, or its adapter not switched off",
    "weights that do not change at this precision: bfloat16 with a learning rate near 1e-6",
)
UNMOVED_POLICY_CAUSES = ("learning rate too low", "kl_coef or beta too large")
NEGATIVE_KL_CAUSES = (
    "responses sampled at another temperature, or with top-k or top-p",
    "padding or prompt tokens counted in one of the two log-probabilities",
    "dropout on, or stale weights, in the sampler",
)
NEGATIVE_KL_REMEDIES = (
    "generate with temperature 1, top_k 0, top_p 1, or score with the same temperature",
    "check the attention and padding masks of policy and reference",
    "check that the first minibatch's ratio is 1",
)

RULE = Rule(
    name="reference-kl-out-of-range",
    needs=(),
    needs_any=(KL_TO_REFERENCE, KL_TO_REFERENCE_PER_TOKEN, LOGPROBS, KL_TO_TEACHER),
    at_least=SHORT_WINDOW,
    check=check,
    doc=__doc__,
    causes=(
        "kl_coef or beta too small, or zero",
        "learning rate too high",
        "a reward that pays for text the reference would not write",
    ),
    remedies=(
        "read responses from before and after this step",
        "raise {kl_coef|beta}",
        "lower {learning_rate}, or stop at the best score for its KL",
    ),
    profiles=kinds.LANGUAGE,
    explained_by=(
        "setting-out-of-range",
        "judge-outage",
        "learning-rate-jump",
        "gradient-explosion",
        "ratio-off-one",
        "kl-above-target",
        "kl-spike",
        "threshold-off-correctness",
        "response-length-explodes",
    ),
    thresholds=(MAX_REFERENCE_KL, MIN_REFERENCE_KL, MAX_NOTED_KL),
)
