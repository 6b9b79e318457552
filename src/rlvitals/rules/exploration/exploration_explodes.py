"""Exploration grows without end: the actions drown in noise.

## What it sees
One of five, from some step to the end:
- the width of continuous actions above 3 x its start: `exploration/std`, or where only entropy
  is logged exp(entropy / dimensions - 1.4189), the geometric mean of a Gaussian's standard
  deviations;
- `exploration/std` above 3 x the largest action throughout, where the environment is known;
- `exploration/entropy` of a language model above 2 nats per token and above 1.5 x its start;
- `exploration/entropy` of discrete actions back above 90 % of ln(actions), after it had been below
  75 %: what was decided is undecided again;
- SAC's `exploration/entropy_coef`, while it tunes itself, above 10 x all it was before it last
  fell, and above its own first value.
The outcome weighs it: a note where it improves, a warning where it is proven not to. Where that
cannot be told, a width beyond 10 x is a warning, else a note. A width that was beyond the largest
action throughout is a warning also where the outcome improves, if nine tenths of the budget are
spent and it ends far from solved.

## Why it matters
An action is the policy's choice plus noise. Once the noise is wider than the range of actions,
every action sits at one bound or the other, whatever the policy wanted: the gradient teaches it
nothing, and the entropy bonus pushes the width up further.

## What to do
Lower the entropy coefficient: its bonus has no upper end for a Gaussian. Bound the log standard
deviation, or squash actions. Lower the learning rate where the width jumped within a few updates.
For SAC look at the target entropy: one the policy cannot reach raises alpha for ever.

## When it is wrong
Where only the sign of an action counts, a wide policy can be a good one, which is why a return
that rises makes it a note. State-dependent exploration logs another width; its growth says the
same. A policy that starts narrow on purpose widens first.

## References
- Haarnoja et al. 2018, "Soft Actor-Critic Algorithms and Applications", section 5.
- Andrychowicz et al. 2021, "What Matters for On-Policy Deep Actor-Critic Methods?", section 3.2.
- Cui et al. 2025, "The Entropy Mechanism of Reinforcement Learning for Reasoning Language Models".
"""

from dataclasses import replace

import numpy as np

from rlvitals.metrics.catalogue.exploration import ENTROPY, ENTROPY_COEF, STD
from rlvitals.metrics.metric import Bound
from rlvitals.rules import kinds, weigh
from rlvitals.rules.course import is_lost_before
from rlvitals.rules.falling import falls_by
from rlvitals.rules.known_task import environment
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold, Undecided
from rlvitals.rules.shapes import Stretch, last_stretch_above, start
from rlvitals.rules.spent import ends_far
from rlvitals.rules.standing import MIN_OUTCOME_POINTS, standing
from rlvitals.rules.width import max_entropy, width
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Series, Trace

WIDTH_FACTOR = Threshold(
    "exploration-explodes.width", 3.0, "width of continuous actions, x its own start"
)
MAX_TOKEN_ENTROPY = Threshold(
    "exploration-explodes.per-token", 2.0, "entropy of a language model, nats per token"
)
ALPHA_FACTOR = Threshold(
    "exploration-explodes.coefficient", 10.0, "SAC's alpha, x its lowest before"
)
UNIFORM_ENTROPY_SHARE = 0.9  # of ln(actions)
TOKEN_ENTROPY_FACTOR = 1.5  # x the start, for entropy per token
MIN_POINTS_BEYOND = 5  # points beyond the limit
START_TOLERANCE = 1.25  # x the start: the start is left


@dataclass(frozen=True, slots=True)
class _Grown:
    """A quantity that left its limit behind, and how it is said."""

    metric: str
    series: Series
    stretch: Stretch
    first: float
    limit: Bound
    sentence: str
    certain: bool = False  # no action is left in its range
    throughout: bool = False  # from the first update on


def check(trace: Trace) -> Answer:
    """Take the first of the five that is logged and grew; then ask the outcome."""
    ways = (
        (_token_entropy,)
        if trace.profile in kinds.LANGUAGE
        else (_width, _exceeds_range, _becomes_uniform, _coefficient)
    )
    measures = [measure for way in ways if (measure := way(trace)) is not None]
    if not measures:
        return Undecided("actions are discrete, or their number of dimensions is not known")
    growth = next((measure for measure in measures if isinstance(measure, _Grown)), None)
    return Clear() if growth is None else _finding(trace, growth)


def _width(trace: Trace) -> _Grown | Clear | None:
    policy_width = width(trace)
    if policy_width is None or len(policy_width.series) < MIN_OUTCOME_POINTS:
        return None
    values = policy_width.series.values
    first = min(float(values[0]), start(policy_width.series) or 0.0)
    if first <= 0:
        return None
    limit = WIDTH_FACTOR.bound(trace, f"{WIDTH_FACTOR.on(trace):g} x its own start", scale=first)
    stretch = _find_lasting_stretch(policy_width.series, limit.value, first)
    if stretch is None:
        return Clear()
    last = float(np.median(values[-MIN_POINTS_BEYOND:]))
    sentence = f"{policy_width.phrase} {first:.3g} to {last:.3g}"
    return _Grown(
        policy_width.metric,
        policy_width.series,
        stretch,
        first,
        limit,
        sentence,
        certain=last > 10.0 * first,  # x: from sd 1 and actions in [-1, 1], all are at a bound
    )


def _exceeds_range(trace: Trace) -> _Grown | None:
    """See actions that were wider than what the environment takes from the first update on."""
    env, std = environment(trace), trace.numbers(STD.name, MIN_OUTCOME_POINTS)
    if env is None or env.reach is None or std is None:
        return None
    limit = WIDTH_FACTOR.bound(
        trace, f"{WIDTH_FACTOR.on(trace):g} x {env.name}'s largest action", env.reach
    )
    if std.values.min() <= limit.value:
        return None
    worst = float(std.values.max())
    stretch = Stretch(int(std.steps[0]), int(std.steps[-1]), worst, 1.0, goes_on=True)
    sentence = f"the actions' standard deviation is {float(std.values[-1]):.3g} throughout, where "
    sentence += f"{env.name} takes {env.reach:g} at most"
    return _Grown(STD.name, std, stretch, env.reach, limit, sentence, certain=True, throughout=True)


def _becomes_uniform(trace: Trace) -> _Grown | Clear | None:
    """See a policy that had decided something and is uniform again."""
    entropy, highest = trace.get(ENTROPY.name), max_entropy(trace)
    if (
        entropy is None
        or highest is None
        or len(entropy := entropy.finite()) < 2 * MIN_OUTCOME_POINTS
    ):
        return None
    runs = np.lib.stride_tricks.sliding_window_view(entropy.values, MIN_POINTS_BEYOND)
    levels = np.median(runs, axis=1)
    limit = Bound(
        UNIFORM_ENTROPY_SHARE * highest.value,
        f"{UNIFORM_ENTROPY_SHARE:.0%} of ln(actions), {highest.origin}",
    )
    lowest_index = int(levels.argmin())
    if levels[lowest_index] > 0.75 * highest.value or levels[-1] <= limit.value:  # of ln(actions)
        return Clear()
    onset_index = lowest_index + int(np.flatnonzero(levels[lowest_index:] > limit.value)[0])
    onset_index += int(np.flatnonzero(entropy.values[onset_index:] > limit.value)[0])
    # It began where the policy began to lose what it had decided, not where all of it was gone.
    low_rows = np.flatnonzero(
        entropy.values[lowest_index:onset_index] <= START_TOLERANCE * levels[lowest_index]
    )
    onset_index = lowest_index + int(low_rows[-1]) + 1 if low_rows.size else onset_index
    after = entropy.where(slice(onset_index, None))
    lowest, last = float(levels[lowest_index]), float(levels[-1])
    stretch = Stretch(
        start=int(after.steps[0]),
        end=int(after.steps[-1]),
        worst=float(after.values.max()),
        share=len(after) / len(entropy),
        goes_on=True,
    )
    if is_lost_before(trace, int(after.steps[0])) is None:
        return Clear()  # nothing was learned that could be undone
    sentence = f"entropy is back at {last:.3g} of {highest.value:.3g} nats, from {lowest:.3g}"
    return _Grown(ENTROPY.name, entropy, stretch, lowest, limit, sentence)


def _token_entropy(trace: Trace) -> _Grown | Clear | None:
    entropy = trace.get(ENTROPY.name)
    if entropy is None or len(entropy := entropy.finite()) < MIN_OUTCOME_POINTS:
        return None
    first = min(float(entropy.values[0]), start(entropy) or 0.0)
    default_limit = MAX_TOKEN_ENTROPY.bound(trace, "default, nats per token")
    limit = (
        default_limit
        if default_limit.value >= TOKEN_ENTROPY_FACTOR * first
        else Bound(TOKEN_ENTROPY_FACTOR * first, f"{TOKEN_ENTROPY_FACTOR:g} x its own start")
    )
    stretch = _find_lasting_stretch(entropy, limit.value, first)
    if stretch is None:
        return Clear()
    last = float(np.median(entropy.values[-MIN_POINTS_BEYOND:]))
    sentence = f"entropy per token goes {first:.3g} to {last:.3g} nats"
    return _Grown(ENTROPY.name, entropy, stretch, first, limit, sentence)


def _coefficient(trace: Trace) -> _Grown | Clear | None:
    coef = trace.get(ENTROPY_COEF.name)
    if (
        coef is None
        or len(coef := coef.finite()) < 2 * MIN_OUTCOME_POINTS
        or coef.values.min() <= 0
    ):
        return None
    # Medians of three: alpha may be thrown about by a single batch.
    triples = np.lib.stride_tricks.sliding_window_view(coef.values, 3)
    lowest = float(np.median(triples, axis=1).min())
    limit = ALPHA_FACTOR.bound(trace, f"{ALPHA_FACTOR.on(trace):g} x its lowest", scale=lowest)
    if limit.value < coef.values[0]:
        limit = Bound(float(coef.values[0]), "its first value, far above its lowest")
    stretch = _find_lasting_stretch(coef, limit.value, lowest)
    if stretch is None:
        return Clear()
    last = float(np.median(coef.values[-MIN_POINTS_BEYOND:]))
    sentence = f"the entropy coefficient goes {lowest:.3g} to {last:.3g}"
    return _Grown(ENTROPY_COEF.name, coef, stretch, lowest, limit, sentence)


def _find_lasting_stretch(series: Series, limit: float, first: float) -> Stretch | None:
    """Find the stretch above a limit that lasts to the end; it began where the start was left."""
    stretch = last_stretch_above(series, limit)
    if stretch is None or len(series.since(stretch.start)) < MIN_POINTS_BEYOND:
        return None
    above_start = last_stretch_above(series, min(limit, START_TOLERANCE * first))
    return stretch if above_start is None else replace(stretch, start=above_start.start)


def _finding(trace: Trace, growth: _Grown) -> Finding:
    trend = standing(trace, since=growth.stretch.start)
    if trend.state == "unknown":
        trend = standing(trace)
    evidence, counter = weigh.sides(trend)
    severity = weigh.severity(trend, unknown=Severity.WARNING if growth.certain else Severity.NOTE)
    if growth.throughout and ends_far(trace):
        severity = Severity.WARNING
    if is_lost_before(trace, growth.stretch.start):
        severity, counter = Severity.NOTE, (*counter, "the outcome had been lost before")
    elif falls_by(trace, growth.stretch.start):
        reason = "the outcome fell no later: what broke it may have done this too"
        severity, counter = Severity.NOTE, (*counter, reason)
    subject = "actions drown in noise" if growth.throughout else "exploration grows without end"
    return Finding(
        f"{subject}: {growth.sentence}",
        severity=severity,
        metric=growth.metric,
        began=growth.stretch.start,
        ended=growth.stretch.end,
        observed=growth.stretch.worst,
        bound=growth.limit,
        evidence=evidence,
        counter=counter,
    )


RULE = Rule(
    name="exploration-explodes",
    needs=(),
    needs_any=(ENTROPY, STD, ENTROPY_COEF),
    at_least=MIN_OUTCOME_POINTS,
    check=check,
    doc=__doc__,
    causes=(
        "the entropy coefficient is too high for the reward's scale",
        "learning rate too high: the log standard deviation jumps",
        "a target entropy that the policy cannot reach",
    ),
    remedies=(
        "lower the entropy coefficient",
        "bound the log standard deviation, or squash actions",
        "lower the learning rate",
    ),
    profiles=kinds.WITH_REWARD,
    explained_by=(
        "setting-out-of-range",
        "environment-changed",
        "learning-rate-too-high",
        "learning-rate-jump",
        "impossible-value",
    ),
    verdict="unstable",
    thresholds=(WIDTH_FACTOR, MAX_TOKEN_ENTROPY, ALPHA_FACTOR),
)
