"""The engine that samples and the trainer that learns disagree on the same tokens.

## What it sees
In at least half of 20 successive updates (10 where fewer than 40 are logged), one of:
`policy/sampler_kl` above 0.01 nats per token, mean difference of log-probabilities above 0.1, of
probabilities above 0.03, effective sample size below 0.8, correlation below 0.97, tokens masked by
a correction above 0.05, sequences above 0.25. Five times that KL, and as much more of the others,
for a mixture of experts, 8-bit or 4-bit weights, or samples that may be old; a tenth where the
settings name float32 alone. Or a KL that grew fivefold to a quarter of that; or a version of the
sampler's weights that stands still. A note; a warning where the outcome is proven to stall or fall
and two measures say it, or one that grows; a warning too where the gap is ten times the limit,
which no rounding gives, and the outcome does not improve or a second measure says it.

## Why it matters
PPO's and GRPO's gradients are those of samples from the policy being trained. Samples from another
one bias it; after some hundred updates many such runs collapse at once.

## What to do
The pattern tells: a gap that grows with every update and never closes means that the weights do
not arrive; one that falls back again and again means that they arrive rarely; one that is there
from the first update means another temperature, template or precision. Mend that before
correcting by importance weights.

## When it is wrong
The mean of the importance weight is no evidence: it is 1 whatever the difference, and it is not
asked. Largest differences of single tokens are near 1 in healthy runs with long responses. The
bounds are what engines in 16 bits reach; few healthy runs stand behind them.

## References
- Yao et al. 2025, "Your Efficient RL Framework Secretly Brings You Off-Policy RL Training".
- Liu et al. 2025, "When Speed Kills Stability: Demystifying RL Collapse from the Training-Inference
  Mismatch".
- Zheng et al. 2025, "Group Sequence Policy Optimization", section 5.3, on mixtures of experts.
"""

import re

import numpy as np

from rlvitals.metrics.catalogue.optimiser import (
    EXPERT_IMBALANCE,
    POLICY_LAG,
    POLICY_LAG_MAX,
    ROUTER_LOSS,
)
from rlvitals.metrics.catalogue.rollouts import CANCELLED_SHARE, PARTIAL_SHARE, TURNS_MEAN
from rlvitals.metrics.catalogue.sampler import (
    CHI2_TOKEN,
    ESS,
    KL,
    KL_SIGNED,
    LOGP_DIFFERENCE_MAX,
    LOGP_DIFFERENCE_MEAN,
    MIXED_VERSIONS,
    PROB_CORRELATION,
    PROB_DIFFERENCE_MEAN,
    RATIO_CLIPPED_SHARE,
    RATIO_DEVIATION,
    RATIO_HIGH_SHARE,
    REJECTED_SEQUENCES,
    REJECTED_TOKENS,
    VERSION,
)
from rlvitals.metrics.metric import Bound, Metric
from rlvitals.rules import kinds
from rlvitals.rules.answers import learning_trend
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold
from rlvitals.rules.shapes import SHORT_WINDOW, Stretch, above
from rlvitals.rules.weigh import content, sides
from rlvitals.signals.level import first_last_change
from rlvitals.signals.spread import median
from rlvitals.signals.trend import trend
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Series, Trace

MAX_SAMPLER_KL = Threshold(
    "sampler-mismatch.kl",
    0.01,
    "KL from sampler to trainer, nats per token, where both compute in 16 bits and in step; the"
    " limits of the other measures go with it",
)
LOOSE_FACTOR = 5.0  # x the limit: for routed experts, 8-bit weights and old samples
FLOAT32_FACTOR = 0.1  # x the limit, where all data types in the settings are float32
QUANTISED_SETTINGS = (
    "fp8", "int8", "float8", "awq", "gptq", "nf4", "int4", "4bit", "8bit", "mxfp", "nvfp",
)  # fmt: skip
DATA_TYPE_SETTING = re.compile(r"dtype=(?:torch\.)?(\w+)")
MIN_GAP_GROWTH, MIN_GAP_SHARE = 5.0, 0.25  # a growing gap: x its first fifth, of the limit
# Synchronisations: times that a gap fell below this share of its height.
MIN_UNSYNCED_SHARE = 0.5  # last share of the run without a new version
MAX_UPDATE_LAG = 2.0  # versions: beyond one step of pipelining
MAX_DROPPED_SHARE = 0.05  # of tokens or sequences, by a correction


@dataclass(frozen=True, slots=True)
class Measure:
    """One number for the gap; its limit goes with that of the KL."""

    metric: Metric
    unit: str
    per_kl: float  # its limit over that of the KL
    from_one: bool = False  # 1 where the two agree


# Where log-probabilities differ by d, KL is about d^2 / 2 and chi^2 about d^2: at a KL of .01 the
# typical |d| is .14, and for heavy tails less. An effective sample size is 1 / (1 + chi^2).
SAMPLER_MEASURES = (
    Measure(KL, "nats per token (k3)", 1.0),
    Measure(KL_SIGNED, "nats per token (k1)", 1.0),
    Measure(LOGP_DIFFERENCE_MEAN, "nats on average", 10.0),
    Measure(RATIO_DEVIATION, "of the importance weight on average", 10.0),
    Measure(PROB_DIFFERENCE_MEAN, "of probability on average", 3.0),
    Measure(CHI2_TOKEN, "chi-squared per token", 5.0),
    Measure(ESS, "of the effective sample size lost", 20.0, from_one=True),
    Measure(PROB_CORRELATION, "of correlation lost", 3.0, from_one=True),
    # What a correction masks: of tokens, and of sequences with one masked token or more.
    Measure(REJECTED_TOKENS, "of tokens are masked", 5.0),
    Measure(REJECTED_SEQUENCES, "of sequences are masked", 25.0),
)

NO_SYNC_CAUSE = "the trainer's weights do not reach the sampler"
STALE_CAUSE = "old samples: weights synchronised rarely, samples queued, or begun before an update"
TEXT_CAUSE = "text tokenised anew between sampling and training, or by another chat template"
DISTRIBUTION_CAUSE = (
    "log-probabilities of another distribution: temperature, top-p or top-k of the sampler"
)
NUMERICS_CAUSE = (
    "the engines compute differently: 8-bit weights, experts routed differently, kernels"
)
SAMPLER_CAUSES = (NO_SYNC_CAUSE, STALE_CAUSE, DISTRIBUTION_CAUSE, TEXT_CAUSE, NUMERICS_CAUSE)


def check(trace: Trace) -> Answer:
    """Ask each measure, in the order of how well it can be trusted; then look for growth."""
    limit, loose = _limit(trace)
    gaps = [(m, gap) for m in SAMPLER_MEASURES if (gap := _gap(trace, m)) is not None]
    # A limit of a half of what can be lost would say nothing: the scale ends at 1.
    limits = [min(limit.value * m.per_kl, 0.5) for m, _ in gaps]
    beyond = [
        (m, gap, top, stretch)
        for (m, gap), top in zip(gaps, limits, strict=True)
        if (stretch := above(gap, top)) is not None
    ]
    stands = _stands_still(trace)
    if beyond:
        measure, gap, top, stretch = beyond[0]
        bound = Bound(top, limit.origin if top == limit.value else f"goes with {limit.origin}")
        other_measures = tuple(
            f"{median(stretch.of(g).values) or 0.0:.3g} {m.unit} as well"
            for m, g, _, _ in beyond[1:]
        )
        return _finding(trace, (measure, gap), stretch, bound, (*other_measures, *loose, *stands))
    for (measure, gap), top in zip(gaps, limits, strict=True):
        opened = _find_growth(gap, MIN_GAP_SHARE * top)
        if opened is not None:
            bound = Bound(
                MIN_GAP_SHARE * top, f"a quarter of the limit, and {MIN_GAP_GROWTH:g} x its start"
            )
            return _finding(trace, (measure, gap), opened, bound, (*loose, *stands))
    return _no_version(trace, stands) if stands else Clear()


def _limit(trace: Trace) -> tuple[Bound, tuple[str, ...]]:
    """Return the limit on the KL, and why it is a loose one."""
    reasons = []
    each = [f"{k}={v}".lower() for k, v in trace.settings.items()]
    settings_text = " ".join(each)
    if (
        any(m.name in trace for m in (ROUTER_LOSS, EXPERT_IMBALANCE))
        or "num_experts" in settings_text
    ):
        reasons.append("a mixture of experts")
    on = [setting for setting in each if not setting.endswith(("=false", "=none", "=0", "="))]
    if any(scheme in setting for setting in on for scheme in QUANTISED_SETTINGS):
        reasons.append("8-bit or 4-bit weights")
    lag = trace.get(POLICY_LAG.name)
    allowed = trace.number("max_policy_lag")
    old = lag is not None and (median(lag.values) or 0.0) > 0
    if old or (allowed is not None and allowed > 0):
        reasons.append("samples that may be old")
    if (
        not reasons
        and (types := DATA_TYPE_SETTING.findall(settings_text))
        and not set(types) - {"float32", "fp32"}
    ):
        return MAX_SAMPLER_KL.bound(
            trace, f"{FLOAT32_FACTOR:g} x the default, in float32", FLOAT32_FACTOR
        ), ()
    if not reasons:
        return MAX_SAMPLER_KL.bound(trace, "default"), ()
    reason = " and ".join(reasons)
    return MAX_SAMPLER_KL.bound(trace, f"{LOOSE_FACTOR:g} x the default", LOOSE_FACTOR), (
        f"judged loosely: {reason}",
    )


def _gap(trace: Trace, measure: Measure) -> Series | None:
    """Return a measure's finite points as a distance from agreement."""
    logged = trace.get(measure.metric.name)
    points = None if logged is None else logged.finite()
    if points is None or len(points) < SHORT_WINDOW:
        return None
    values = 1.0 - points.values if measure.from_one else points.values
    return Series(points.steps, points.times, values)


def _find_growth(gap: Series, min_gap: float) -> Stretch | None:
    """Find a gap that rises over the whole run, by a factor; None where it does not."""
    levels = first_last_change(gap.values)
    if levels is None or levels[1] < min_gap or levels[1] < MIN_GAP_GROWTH * max(levels[0], 0.0):
        return None
    if not _grows(gap):
        return None
    first = int(np.argmax(gap.values > min_gap))
    worst = float(gap.values.max())
    first_step, last_step = int(gap.steps[first]), int(gap.steps[-1])
    return Stretch(first_step, last_step, worst, 1 - first / len(gap), goes_on=True)


def _grows(gap: Series) -> bool:
    levels = first_last_change(gap.values)
    if levels is None or levels[1] < MIN_GAP_GROWTH * max(levels[0], 0.0):
        return False
    fit = trend(np.sqrt(np.maximum(gap.values, 0.0)))  # distances add up; their squares bend
    return fit is not None and fit.rises


def _resets(gap: Series) -> int:
    """Count how often the gap closed again after it had opened to its usual height."""
    high = float(np.quantile(gap.values, 0.75))
    count, opened = 0, False
    for value in gap.values.tolist():
        if opened and value < 0.3 * high:  # of its height
            count, opened = count + 1, False
        opened = opened or value >= high
    return count


def _stands_still(trace: Trace) -> tuple[str, ...]:
    """Say that the sampler's version no longer rises while updates go on."""
    version = trace.get(VERSION.name)
    versions = None if version is None else version.finite()
    if versions is None or len(versions) < 2 * SHORT_WINDOW:
        return ()
    other_versions = np.flatnonzero(versions.values != versions.values[-1])
    index = int(other_versions[-1]) + 1 if other_versions.size else 0
    if len(versions) - index < max(SHORT_WINDOW, MIN_UNSYNCED_SHARE * len(versions)):
        return ()
    start_text = f"from step {versions.steps[index]:,} on"
    return (f"the sampler's weights stay at version {versions.values[-1]:g} {start_text}",)


def _no_version(trace: Trace, stands: tuple[str, ...]) -> Finding:
    versions = trace[VERSION.name].finite()
    other_versions = np.flatnonzero(versions.values != versions.values[-1])
    first_step = int(versions.steps[int(other_versions[-1]) + 1 if other_versions.size else 0])
    outcome_trend = learning_trend(trace, since=first_step)
    evidence, counter = sides(outcome_trend)
    return Finding(
        stands[0],
        severity=Severity.WARNING if outcome_trend.stalls else Severity.NOTE,
        metric=VERSION.name,
        began=first_step,
        ended=int(versions.steps[-1]),
        observed=float(versions.values[-1]),
        bound=Bound(MIN_UNSYNCED_SHARE, "share of the run without a synchronisation"),
        evidence=evidence,
        counter=counter,
        causes=(NO_SYNC_CAUSE, STALE_CAUSE),
    )


def _finding(
    trace: Trace,
    measured: tuple[Measure, Series],
    stretch: Stretch,
    bound: Bound,
    together: tuple[str, ...],
) -> Finding:
    measure, gap = measured
    level = median(stretch.of(gap).values) or 0.0
    outcome_trend = learning_trend(trace, since=stretch.start)
    evidence, counter = sides(outcome_trend)
    patterns, causes = _pattern(trace, gap, bound)
    joint = any(not sentence.startswith("judged") for sentence in together) or _grows(gap)
    is_kl = measure.metric.name in {KL.name, KL_SIGNED.name}
    # At 10 x the limit it is another policy, whatever the precision, even while rewards rise.
    far = is_kl and level >= 10.0 * bound.value and (joint or not content(outcome_trend))
    base_severity = Severity.WARNING if far or (outcome_trend.stalls and joint) else Severity.NOTE
    return Finding(
        f"sampler and trainer disagree: {level:.3g} {measure.unit} in the median update, "
        f"{stretch.worst:.3g} at most",
        severity=stretch.severity(base_severity),
        metric=measure.metric.name,
        began=stretch.start,
        ended=stretch.end,
        observed=level,
        bound=bound,
        evidence=(*patterns, *together, *_old_samples(trace), *evidence),
        counter=counter,
        causes=causes,
    )


def _pattern(trace: Trace, gap: Series, bound: Bound) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Say how the gap runs, and rank the causes by it."""
    levels = first_last_change(gap.values) or (0.0, 0.0)
    resets = _resets(gap)
    if _stands_still(trace):
        return (), _first(NO_SYNC_CAUSE, STALE_CAUSE)
    if resets >= 3 and levels[0] < MIN_GAP_GROWTH * levels[1]:  # synchronisations
        sentence = f"it closes again {resets} times, about every {len(gap) // resets} updates"
        return (sentence,), _first(STALE_CAUSE, NO_SYNC_CAUSE)
    if _grows(gap):
        sentence = (
            f"it grows with the updates, {levels[0]:.2g} to {levels[1]:.2g}, and never closes"
        )
        return (sentence,), _first(NO_SYNC_CAUSE, STALE_CAUSE)
    if _old_samples(trace):
        return (), _first(STALE_CAUSE, NO_SYNC_CAUSE)
    return _from_start(trace, gap, bound)


def _from_start(trace: Trace, gap: Series, bound: Bound) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Rank the causes of a gap that neither grows nor closes: few tokens, turns, or all of it."""
    if tail := _tail(trace):
        return tail, _first(NUMERICS_CAUSE, DISTRIBUTION_CAUSE)
    turns = trace.get(TURNS_MEAN.name)
    head = median(gap.values[: max(3, len(gap) // 10)]) or 0.0
    sentences = ("it is there from the first updates on",) if head > bound.value else ()
    # More than a question and its answer.
    if turns is not None and (median(turns.finite().values) or 0.0) > 2.0:
        return sentences, _first(TEXT_CAUSE, DISTRIBUTION_CAUSE)
    return sentences, _first(
        DISTRIBUTION_CAUSE, TEXT_CAUSE, NUMERICS_CAUSE
    ) if sentences else SAMPLER_CAUSES


def _first(*causes: str) -> tuple[str, ...]:
    return (*causes, *(cause for cause in SAMPLER_CAUSES if cause not in causes))


def _tail(trace: Trace) -> tuple[str, ...]:
    highest, mean = (trace.get(m.name) for m in (LOGP_DIFFERENCE_MAX, LOGP_DIFFERENCE_MEAN))
    if highest is None or mean is None:
        return ()
    high, usual = median(highest.finite().values) or 0.0, median(mean.finite().values) or 0.0
    # Where bf16 differs by .01 on average, some tokens differ by .3.
    if usual <= 0 or high < 30.0 * usual:
        return ()
    return (f"a few tokens differ by far the most: {high:.3g} nats against {usual:.3g} on average",)


def _old_samples(trace: Trace) -> tuple[str, ...]:
    """Say what shows that samples are old, or that many are left out for it."""
    sentences = []
    for metric, limit, template in (
        (POLICY_LAG, MAX_UPDATE_LAG, "samples are {:.3g} updates old"),
        (POLICY_LAG_MAX, 2 * MAX_UPDATE_LAG, "the oldest samples are {:.3g} updates old"),
        (PARTIAL_SHARE, MAX_DROPPED_SHARE, "{:.0%} of responses were begun before an update"),
        (MIXED_VERSIONS, MAX_DROPPED_SHARE, "{:.0%} of responses mix versions of the weights"),
        (CANCELLED_SHARE, MAX_DROPPED_SHARE, "{:.0%} of rollouts were too old and thrown away"),
        (RATIO_CLIPPED_SHARE, MAX_DROPPED_SHARE, "{:.0%} of importance weights are cut"),
        (RATIO_HIGH_SHARE, MAX_DROPPED_SHARE, "{:.0%} of importance weights are above their limit"),
        (REJECTED_TOKENS, MAX_DROPPED_SHARE, "{:.0%} of tokens are left out"),
        (REJECTED_SEQUENCES, 2 * MAX_DROPPED_SHARE, "{:.0%} of sequences lose tokens"),
    ):
        logged = trace.get(metric.name)
        level = None if logged is None else median(logged.finite().values)
        if level is not None and level > limit:
            sentences.append(f"in the median update of the run, {template.format(level)}")
    return tuple(sentences)


RULE = Rule(
    name="sampler-mismatch",
    needs=(),
    needs_any=(*(measure.metric for measure in SAMPLER_MEASURES), VERSION),
    at_least=SHORT_WINDOW,
    check=check,
    doc=__doc__,
    causes=SAMPLER_CAUSES,
    remedies=(
        "score one batch by both engines right after a synchronisation: the gap must be rounding",
        "check that weights are sent to the sampler after every update, and that caches are reset",
        "train on the sampler's own token ids, never on text tokenised again",
        "use the same temperature, and log-probabilities after it, on both sides",
        "correct by truncated importance weights, or allow less lag",
    ),
    profiles=kinds.LANGUAGE,
    thresholds=(MAX_SAMPLER_KL,),
)
