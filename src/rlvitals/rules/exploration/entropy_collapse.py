"""The policy stopped exploring before it had learned.

## What it sees
`exploration/entropy` below a quarter of what it could be, from some step to the end, with an
outcome proven not to improve since then, nor over the whole run, and not at its ceiling. A return
that ends with more than half of what it had gained since its first level was not lost. What entropy
could be is ln(actions) where the actions are known (the run's settings, the environment, the first
entropy), else the run's own start. The run's own `entropy_min` takes precedence. Below a twentieth
it is an error. An update of 1 nat after which entropy is below 0.001 nats, for half of the run and
to its end, waits for no proof: such a policy has no gradient left. A language model whose entropy
is below a twentieth of its start, and low for half of the run, with an outcome that had risen and
is proven level since, short of nine tenths, is noted. For continuous actions `exploration/std` is
read instead, or the standard deviation that entropy and the number of
dimensions make, against its own start; for SAC, where neither is logged, an entropy coefficient
below a thousandth of its first value.

## Why it matters
A policy that is nearly certain tries nothing new. If it is certain of something poor, it stays
there: the gradient of what it never does is zero.

## What to do
Raise the entropy coefficient, or the floor or temperature where there is one; lower the learning
rate if the entropy fell within a few updates; look at the reward's scale. Go back to a
checkpoint from before.

## When it is wrong
An outcome that was lost no later than the entropy may have been broken by what broke the entropy:
then this is a note. So it is where the return first stood at its best with an entropy as low.
Falling entropy is what learning looks like: with an outcome that rises, or stands at its ceiling,
this rule is silent. Differential entropies of continuous actions may be negative and have no floor:
there the standard deviation is read instead. A policy that starts narrow is not told from one that
collapsed at once.

## References
- Ahmed et al. 2019, "Understanding the Impact of Entropy on Policy Optimization".
- Yu et al. 2025, "DAPO", section 3.1.
"""

from dataclasses import replace

import numpy as np

from rlvitals.metrics.catalogue.exploration import ENTROPY, ENTROPY_COEF, STD, TEMPERATURE
from rlvitals.metrics.catalogue.policy import APPROX_KL
from rlvitals.metrics.metric import Bound
from rlvitals.rules import kinds
from rlvitals.rules.answers import verdict_trend
from rlvitals.rules.gains import MIN_SOLVED_LEVEL
from rlvitals.rules.rule import (
    Answer,
    Clear,
    Finding,
    Rule,
    Severity,
    Threshold,
    Undecided,
    persistence,
)
from rlvitals.rules.shapes import Stretch, last_stretch_below, start
from rlvitals.rules.standing import (
    MIN_OUTCOME_POINTS,
    Standing,
    least_that_counts,
    outcome,
    standing,
)
from rlvitals.rules.weigh import content
from rlvitals.rules.width import MAX_DECIDED_ENTROPY, max_entropy, width
from rlvitals.signals.outcome_course import MIN_BLOCK_SD, course_of
from rlvitals.types import Series, Trace

# p = .95 and p = .99 of two actions.
MIN_ENTROPY_SHARE = Threshold(
    "entropy-collapse.low", 0.25, "share of what entropy could be, or of its own start", high=1.0
)
SEVERE_ENTROPY_SHARE = Threshold(
    "entropy-collapse.severe", 0.05, "the same, for an error", high=1.0
)
MIN_ALPHA_SHARE = 1e-3  # of SAC's first alpha: healthy runs keep a hundredth
OUTCOME_ONSET_SHARE = 0.25  # of the gain, or of the loss: the outcome has begun to fall
MIN_LOW_UPDATES = 5  # updates below the limit: one low batch is no collapse


def check(trace: Trace) -> Answer:
    """Find where entropy stayed low, then ask what the outcome did since."""
    picked = _measure(trace)
    if isinstance(picked, Undecided):
        return picked
    name, series, limit = picked
    stretch = last_stretch_below(series, limit.value)
    if stretch is None or len(series.since(stretch.start)) < MIN_LOW_UPDATES:
        return Clear()
    trend = _outcome(trace, stretch)
    if (late := _after_gain(trace, series, limit, stretch)) is not None:
        answer = _finding(trace, name, series, limit, stretch, late)
        return replace(answer, severity=Severity.NOTE, counter=(f"over the run, {trend.sentence}",))
    if trend.improves or _keeps_gain(trace):
        return Clear()
    if not trend.stalls and not _has_no_gradient(trace, trend):
        return Undecided(f"entropy is low, but {trend.sentence}", ("outcome/return",))
    return _finding(trace, name, series, limit, stretch, trend)


def _measure(trace: Trace) -> tuple[str, Series, Bound] | Undecided:
    """Choose the series and the limit below which it has collapsed."""
    low = MIN_ENTROPY_SHARE.on(trace)
    entropy = trace.get(ENTROPY.name)
    entropy = None if entropy is None else entropy.finite()
    if entropy is None or not len(entropy) or width(trace) is not None:
        return _choose_width(trace)
    if (entropy.values < 0).any():
        return Undecided("entropy is differential and may be negative", (STD.name,))
    if floor := trace.number("entropy_min"):
        return ENTROPY.name, entropy, Bound(floor, "the run's entropy_min")
    highest = max_entropy(trace)
    if highest is not None:
        origin = f"{low:.0%} of ln(actions), {highest.origin}"
        return ENTROPY.name, entropy, MIN_ENTROPY_SHARE.bound(trace, origin, highest.value)
    first = start(entropy) or 0.0
    if first < MAX_DECIDED_ENTROPY:
        return ENTROPY.name, entropy, Bound(MAX_DECIDED_ENTROPY, "default: p > .998 for one action")
    return (
        ENTROPY.name,
        entropy,
        MIN_ENTROPY_SHARE.bound(trace, f"{low:.0%} of its own start", first),
    )


def _choose_width(trace: Trace) -> tuple[str, Series, Bound] | Undecided:
    """Choose the width of continuous actions, or what keeps SAC's policy wide."""
    policy_width = width(trace)
    if policy_width is not None and (first := start(policy_width.series)):
        bound = MIN_ENTROPY_SHARE.bound(
            trace, f"{MIN_ENTROPY_SHARE.on(trace):.0%} of its own start", first
        )
        return policy_width.metric, policy_width.series, bound
    coef = trace.get(ENTROPY_COEF.name)
    if coef is None or not len(coef := coef.finite()) or coef.values[0] <= 0:
        return Undecided("how wide the policy is, nothing tells", (STD.name, ENTROPY.name))
    limit = Bound(
        MIN_ALPHA_SHARE * float(coef.values[0]), f"{MIN_ALPHA_SHARE:g} of its first value"
    )
    return ENTROPY_COEF.name, coef, limit


def _outcome(trace: Trace, stretch: Stretch) -> Standing:
    """Judge the outcome since the collapse, or over the whole run where that is too short."""
    after = standing(trace, since=stretch.start)
    overall = standing(trace)
    verdict = verdict_trend(trace)
    if verdict.improves and verdict.last - verdict.first >= verdict.material:
        return verdict
    return overall if overall.improves or after.state == "unknown" else after


def _after_gain(trace: Trace, series: Series, limit: Bound, stretch: Stretch) -> Standing | None:
    """Return how a language model stands since an early gain ended with its entropy.

    None where entropy is not a twentieth of its start, or not low for half of the run, or where the
    outcome is not proven level since then, or is near all answers.
    """
    run_steps = trace.last_step - trace.first_step
    is_short = trace.last_step - stretch.start < run_steps / 2
    last = float(series.values[-MIN_LOW_UPDATES:].mean())
    severe = SEVERE_ENTROPY_SHARE.on(trace) / max(MIN_ENTROPY_SHARE.on(trace), 1e-9) * limit.value
    if trace.profile not in kinds.LANGUAGE or is_short or last >= severe:
        return None
    late, verdict = standing(trace, since=stretch.start), verdict_trend(trace)
    has_gained = verdict.improves or verdict.state == "holding its best"
    is_solved = verdict.state == "at its ceiling" or verdict.last >= MIN_SOLVED_LEVEL
    is_level = late.state in {"flat", "holding its best"} and late.high <= late.material
    return late if has_gained and is_level and not is_solved else None


def _has_no_gradient(trace: Trace, trend: Standing) -> bool:
    """Tell whether one update left nothing to choose: a gradient of 0 cannot bring it back."""
    kl = trace.numbers(APPROX_KL.name, MIN_OUTCOME_POINTS)
    entropy = trace.numbers(ENTROPY.name, MIN_OUTCOME_POINTS)
    if kl is None or entropy is None or trace.profile not in kinds.CONTROL or content(trend):
        return False
    worst = int(kl.values.argmax())
    after = entropy.since(int(kl.steps[worst]) + 1).values
    is_certain = len(after) >= len(entropy) / 2 and float(after.max()) <= 1e-3  # nats
    return is_certain and float(kl.values[worst]) >= 1.0 and float(after.min()) >= 0


def _keeps_gain(trace: Trace) -> bool:
    """Tell whether the outcome settled with half of what it gained: it fell, and was not lost.

    A harder stage of a curriculum, or a better opponent, costs a policy that is certain as much.
    """
    picked = outcome(trace)
    if picked is None or trace.profile not in kinds.CONTROL:
        return False
    material, _ = least_that_counts(trace, *picked)
    late_step = trace.last_step - round(0.4 * (trace.last_step - trace.first_step))
    is_settled = standing(trace, since=late_step).state not in {"falling", "fallen back"}
    return is_settled and course_of(picked[1].values).keeps(material)


def _finding(  # noqa: PLR0913, PLR0917 - what was measured, where it fell, what became of the run
    trace: Trace, name: str, series: Series, limit: Bound, stretch: Stretch, trend: Standing
) -> Finding:
    first, last = float(series.values[0]), float(series.values[-MIN_LOW_UPDATES:].mean())
    evidence = [f"since then {trend.sentence}"]
    half = last_stretch_below(series, 0.5 * first)
    run_steps = max(trace.last_step - trace.first_step, 1)
    if half is not None and name == ENTROPY.name and width(trace) is None:
        share = (half.start - trace.first_step) / run_steps
        evidence.append(f"half of it was gone at step {half.start:,}, {share:.0%} into the run")
    evidence += _low_temperature(trace, stretch)
    follows = _follows(trace, stretch)
    stood = "" if follows else _describe_best_entropy(trace)
    severe = (
        last < SEVERE_ENTROPY_SHARE.on(trace) / max(MIN_ENTROPY_SHARE.on(trace), 1e-9) * limit.value
    )
    nats = name == ENTROPY.name and width(trace) is None
    subject = "entropy is" if nats else "the actions' standard deviation is"
    subject = "the entropy coefficient is" if name == ENTROPY_COEF.name else subject
    unit = " nats" if nats else ""
    fall_text = f"down to {last:.2g}{unit}, from {first:.3g} at the start,"
    result_text = "is no better" if trend.stalls else "is not proven to be better"
    result_text = "has not risen since" if trend.state == "holding its best" else result_text
    low_text = f"as low as {last:.2g}{unit} from the start on,"
    return Finding(
        f"{subject} {fall_text if last < 0.9 * first else low_text} and the outcome {result_text}",
        severity=_severity(trend, severe=severe, follows=follows or bool(stood)),
        metric=name,
        began=stretch.start,
        ended=stretch.end,
        observed=last,
        bound=limit,
        evidence=tuple(evidence),
        counter=("the outcome fell no later: what broke it may have done this too",) * follows
        + ((stood,) if stood else ()),
    )


def _severity(trend: Standing, *, severe: bool, follows: bool) -> Severity:
    if follows:
        return Severity.NOTE
    return Severity.ERROR if severe or trend.state == "falling" else Severity.WARNING


def _follows(trace: Trace, stretch: Stretch) -> bool:
    """Tell whether an outcome that had been gained was lost before entropy, or with it."""
    picked, entropy = outcome(trace), trace.get(ENTROPY.name)
    if picked is None or entropy is None:
        return False
    name, series = picked
    course = course_of(series.values)
    material, _ = least_that_counts(trace, name, series)
    if course.gain <= material or course.loss < 0.5 * course.gain:
        return False
    best = float(course.blocks[course.peak])
    fall = last_stretch_below(series, best - OUTCOME_ONSET_SHARE * course.gain)
    steps_before = entropy.until(stretch.start).steps[
        -3:
    ]  # rows: what falls together has one cause
    return fall is not None and fall.start <= 2 * stretch.start - int(steps_before[0])


def _describe_best_entropy(trace: Trace) -> str:
    """Say at what entropy the outcome stood at its best; empty where that was not as low.

    A policy that was certain of something good has not lost it by being certain.
    """
    picked, entropy = outcome(trace), trace.numbers(ENTROPY.name, MIN_LOW_UPDATES)
    if picked is None or entropy is None or trace.profile not in kinds.CONTROL:
        return ""
    name, series = picked
    course = course_of(series.values)
    material, _ = least_that_counts(trace, name, series)
    is_near_best = (
        course.blocks >= float(course.blocks[course.peak]) - OUTCOME_ONSET_SHARE * course.loss
    )
    ends = len(series) - 1 - course.width * np.arange(len(course.blocks))[::-1]  # of each block
    rows = np.searchsorted(entropy.steps, series.steps[ends[is_near_best]], side="right") - 1
    last = float(entropy.values[-MIN_LOW_UPDATES:].mean())
    low = entropy.values[rows[rows >= 0]] <= 2 * last
    if course.loss <= max(material, MIN_BLOCK_SD * course.noise) or 5 * low.sum() < len(
        is_near_best
    ):
        return ""
    return f"with entropy below {2 * last:.2g} nats the outcome stood at its best"


def _low_temperature(trace: Trace, stretch: Stretch) -> list[str]:
    """Name a sampling temperature that suppresses what entropy is left."""
    temperature = trace.get(TEMPERATURE.name)
    floor = TEMPERATURE.band(trace.profile).floor(trace)
    if temperature is None or floor is None:
        return []
    late_values = temperature.since(stretch.start).finite().values
    if not len(late_values) or late_values.mean() >= floor.value:
        return []
    sentence = f"the sampling temperature is low too ({late_values.mean():.2g})"
    return [f"{sentence}: lower qps_sensitivity or raise min_temperature"]


RULE = Rule(
    name="entropy-collapse",
    needs=(),
    needs_any=(ENTROPY, STD, ENTROPY_COEF),
    at_least=MIN_OUTCOME_POINTS,
    check=check,
    doc=__doc__,
    causes=(
        "learning rate too high for the reward's scale",
        "entropy coefficient too low, or negative",
        "a reward that one behaviour wins early",
    ),
    remedies=(
        "raise {entropy_coef}",
        "lower {learning_rate}",
        "normalise or clip rewards",
        "check temperature pulses and the entropy floor where there are any",
    ),
    profiles=kinds.WITH_REWARD,
    explained_by=(
        "setting-out-of-range",
        "environment-changed",
        "sign-reversed",
        "learning-rate-too-high",
        "action-collapse",
        "impossible-value",
        "critic-target-frozen",
        "q-divergence",
        "learning-rate-jump",
        "gradient-explosion",
        "ratio-off-one",
        "kl-above-target",
        "kl-spike",
        "clip-fraction-high",
        "policy-loss-explosion",
    ),
    verdict="collapsed",
    thresholds=(MIN_ENTROPY_SHARE, SEVERE_ENTROPY_SHARE, persistence("entropy-collapse")),
    persists=persistence("entropy-collapse"),
)
