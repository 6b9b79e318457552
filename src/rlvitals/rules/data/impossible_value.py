"""Values that a metric cannot have, whatever the run does.

## What it sees
At least three values, and a tenth of them, outside what is possible: returns above the
environment's highest or below its lowest (where the environment is logged and its range known);
shares outside 0-1, explained variance above 1; negative times, norms, lengths, standard deviations
and probability ratios; a KL below zero by an estimator that cannot be (k2, k3, exact); an entropy
of discrete actions below zero or above ln(actions). Also returns that do not fit the episode
lengths, where the environment pays the same for each step (CartPole 1, Acrobot and MountainCar
-1): more than a tenth off to both sides, or since a step up to which they did fit. Fewer such
values are a note, and so are
those that only look misnamed: shares in per cent, one number over and over that stands for "not
measured", and any number of a log whose trainer is not known. Rounding is allowed for.

## Why it matters
CartPole pays +1 a step: a return below zero means the reward's sign is flipped. A return above
the maximum means it is scaled, counted twice, or taken over several episodes. One that does not
fit the length means that rewards carry noise, or were changed on the way. A clip fraction of
1.3 is a sum where a mean was meant. Whatever such a curve does then says little about the run,
and every rule that reads it is misled.

## What to do
Returns: compare the reward of one random episode with the environment's documentation; look at
wrappers. Other metrics: read the line that computes the number, its sign, its reduction, its mask.

## When it is wrong
A wrapper that reshapes or rescales rewards on purpose: then drop the environment's name, or read
the raw return from a monitor placed below the wrapper. A name of one's own that equals a known
one but measures something else.

## References
- Gymnasium's environment registry: reward thresholds and episode limits.
- Schulman 2020, "Approximating KL Divergence": k2 and k3 are never negative, k1 is.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from rlvitals import metrics
from rlvitals.metrics.catalogue.exploration import ENTROPY, STD
from rlvitals.metrics.catalogue.outcome import EVAL_RETURN, RETURN
from rlvitals.metrics.catalogue.policy import (
    APPROX_KL,
    KL_TO_REFERENCE,
    KL_TO_REFERENCE_PER_TOKEN,
    KL_TO_WARM_START,
)
from rlvitals.metrics.catalogue.sampler import KL as SAMPLER_KL
from rlvitals.metrics.metric import SHARE, Bound
from rlvitals.rules import kinds
from rlvitals.rules.known_task import environment
from rlvitals.rules.paid import step_reward
from rlvitals.rules.rule import Answer, Clear, Curve, Finding, Rule, Severity, Undecided
from rlvitals.rules.standing import label
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Profile, Series, Trace

MIN_IMPOSSIBLE_VALUES = 3
RANGE_SLACK_SHARE = 0.01  # of an environment's range, for rounding in logs
LIMIT_ROUNDING = 1e-3  # of the limit or of the metric's usual size: the variance of equal numbers
FLOAT32_KL_ROUNDING = 1e-5  # nats, float32: exp(d) - d - 1 of a tiny d
BFLOAT16_KL_ROUNDING = 1e-3  # nats, bfloat16, which language models are trained in
SIGN_CHECKED_KLS = (
    APPROX_KL,
    SAMPLER_KL,
    KL_TO_REFERENCE,
    KL_TO_REFERENCE_PER_TOKEN,
    KL_TO_WARM_START,
)
# Counters and clocks are no measure of learning: their being in order clears nothing.
METRIC_RANGE_ORIGIN = "what this metric can be"


@dataclass(frozen=True, slots=True)
class Limit:
    """One end of what a metric can be."""

    name: str  # canonical
    series: Series  # finite points
    bound: Bound
    above: bool  # whether it is an upper end
    slack: float
    certain: bool = True  # that the log means by this name what the catalogue does

    @property
    def beyond(self) -> Series:
        """The points that cannot be."""
        worst = self.series.values.max() if self.above else self.series.values.min()
        if worst <= self.bound.value if self.above else worst >= self.bound.value:
            return self.series.tail(0)
        off = self.series.values - self.bound.value
        return self.series.where(off > self.slack if self.above else off < -self.slack)


def check(trace: Trace) -> Answer:
    """Compare every metric with both ends of what is possible; the gravest answer counts."""
    limits = [limit for limit in _limits(trace) if len(limit.series) >= MIN_IMPOSSIBLE_VALUES]
    findings = [answer for limit in limits if (answer := _judge(limit)) is not None]
    unfit = _unfit(trace)
    findings += [] if unfit is None else [unfit]
    if findings:
        worst = max(f.severity for f in findings)
        first = min((f for f in findings if f.severity == worst), key=lambda f: f.began)
        other_summaries = tuple(f.summary for f in findings if f is not first)
        return replace(first, evidence=(*first.evidence, *other_summaries))
    if all(limit.name.startswith(("progress/", "throughput/", "scheduler/")) for limit in limits):
        return Undecided("no metric is logged whose possible values are known", ("env_id",))
    return Clear()


def _limits(trace: Trace) -> Iterator[Limit]:
    yield from _returns(trace)
    yield from _kls(trace)
    yield from _entropies(trace)
    for name, series in trace.series.items():
        metric = metrics.find(name)
        if metric is None or not (points := series.finite()):
            continue
        certain = _has_known_framework(trace, name)
        low, high = metric.possible.low, metric.possible.high
        if low is not None:
            slack = LIMIT_ROUNDING * (1.0 if high is not None else _usual(points, low))
            yield Limit(
                name,
                points,
                Bound(low, METRIC_RANGE_ORIGIN),
                above=False,
                slack=slack,
                certain=certain,
            )
        if high is not None:
            yield Limit(
                name,
                points,
                Bound(high, METRIC_RANGE_ORIGIN),
                above=True,
                slack=LIMIT_ROUNDING,
                certain=certain,
            )


def _usual(series: Series, low: float) -> float:
    """Return the usual size of a metric, where its values ask for it: some are below `low`."""
    return float(np.median(np.abs(series.values))) if series.values.min() < low else 0.0


def _has_known_framework(trace: Trace, name: str) -> bool:
    source = trace.measured.get(name)
    # The source of these has not been read.
    return source is not None and source.framework not in ("generic", "")


def _returns(trace: Trace) -> Iterator[Limit]:
    env = environment(trace)
    name = RETURN.name if RETURN.name in trace else EVAL_RETURN.name
    if env is None or name not in trace or trace.profile not in (*kinds.CONTROL, Profile.UNKNOWN):
        return
    slack = RANGE_SLACK_SHARE * abs(env.way or 1.0)
    points, origin = trace[name].finite(), f"{env.name}'s own range"
    if env.max_return is not None:
        yield Limit(name, points, Bound(env.max_return, origin), above=True, slack=slack)
    if env.min_return is not None:
        yield Limit(name, points, Bound(env.min_return, origin), above=False, slack=slack)


def _kls(trace: Trace) -> Iterator[Limit]:
    slack = BFLOAT16_KL_ROUNDING if trace.profile in kinds.LANGUAGE else FLOAT32_KL_ROUNDING
    for metric in SIGN_CHECKED_KLS:
        source = trace.measured.get(metric.name)
        if (
            metric.name not in trace
            or source is None
            or source.estimator not in ("k2", "k3", "exact", "k1 clamped")
        ):
            continue
        origin = f"KL by the {source.estimator} estimator"
        # TRL's RLOOTrainer logs k1 where its GRPOTrainer logs k3, under one name.
        certain = source.framework != "trl-grpo" and _has_known_framework(trace, metric.name)
        bound = Bound(0.0, origin)
        points = trace[metric.name].finite()
        yield Limit(metric.name, points, bound, above=False, slack=slack, certain=certain)


def _entropies(trace: Trace) -> Iterator[Limit]:
    name = ENTROPY.name
    if name not in trace or STD.name in trace:
        return
    points, certain = trace[name].finite(), _has_known_framework(trace, name)
    env, n_actions = environment(trace), trace.number("n_actions")
    actions = env.actions if env is not None and env.actions else n_actions
    if actions is not None and np.isfinite(actions) and actions > 1:
        max_entropy = float(np.log(actions))
        bound = Bound(max_entropy, f"ln {actions:g}, the uniform policy's")
        sure = certain and env is not None
        yield Limit(
            name, points, bound, above=True, slack=RANGE_SLACK_SHARE * max_entropy, certain=sure
        )
    elif trace.profile not in kinds.LANGUAGE:
        return
    bound = Bound(0.0, "discrete choices have no negative entropy")
    yield Limit(name, points, bound, above=False, slack=LIMIT_ROUNDING, certain=certain)


def _judge(limit: Limit) -> Finding | None:
    beyond = limit.beyond
    if not len(beyond):
        return None
    often = len(beyond) >= max(MIN_IMPOSSIBLE_VALUES, 0.1 * len(limit.series))  # of the values
    if limit.name in (RETURN.name, EVAL_RETURN.name) and not often:
        return None  # one odd episode
    worst = float(beyond.values[int(np.abs(beyond.values - limit.bound.value).argmax())])
    misnamed = _other_meaning(limit, beyond)
    certain = often and limit.certain and not misnamed
    return Finding(
        f"{len(beyond)} of {len(limit.series)} values of {label(limit.name)} are "
        f"{'above' if limit.above else 'below'} what is possible ({limit.bound.value:.4g}): "
        f"{worst:.4g} at the extreme",
        severity=Severity.WARNING if certain else Severity.NOTE,
        metric=limit.name,
        began=int(beyond.steps[0]),
        ended=int(beyond.steps[-1]),
        observed=worst,
        bound=limit.bound,
        counter=() if limit.certain else ("the log's own name may mean something else",),
        causes=misnamed or _causes(limit),
        remedies=() if limit.name in (RETURN.name, EVAL_RETURN.name) else IMPOSSIBLE_VALUE_REMEDIES,
    )


def _unfit(trace: Trace) -> Finding | None:
    """Find returns that episodes of their length cannot have earned."""
    pay = step_reward(trace)
    if pay is None or len(pay.points_without_reward) or pay.endless:
        return None
    row = pay.broke if pay.scatters is None else pay.scatters
    if row is None:
        return None
    share = pay.share
    worst = float(share.values[row:][int(np.abs(share.values[row:] - 1.0).argmax())])
    rate_text = f"{pay.env.name} pays {pay.env.pays:g} a step"
    return Finding(
        f"returns do not fit the episode lengths since step {int(share.steps[row]):,}: {worst:.2f} "
        f"times what the steps should have paid at the extreme ({rate_text})",
        severity=Severity.WARNING,
        metric=RETURN.name,
        began=int(share.steps[row]),
        ended=int(share.steps[-1]),
        observed=worst,
        bound=Bound(1.0, f"{rate_text}: the return over that"),
        causes=("rewards carry noise", "a wrapper changes rewards on the way"),
        curve=Curve("return / (length x reward of a step)", share),
    )


def _other_meaning(limit: Limit, beyond: Series) -> tuple[str, ...]:
    """Say what a number is that is no measurement on this scale."""
    if np.unique(beyond.values).size == 1 and len(beyond) > 1:
        return (f"{beyond.values[0]:g} stands for 'not measured'",)
    metric = metrics.find(limit.name)
    share = metric is not None and metric.possible == SHARE
    # A share that is logged in per cent.
    if share and limit.above and beyond.values.max() <= 100.0 * (1.0 + LIMIT_ROUNDING):
        return ("it is logged in per cent", "it is summed where a mean was meant")
    return ()


def _causes(limit: Limit) -> tuple[str, ...]:
    if limit.name in (RETURN.name, EVAL_RETURN.name):
        flipped = not limit.above and limit.bound.value >= 0
        return ("the reward's sign is flipped", "a penalty is added to it") if flipped else ()
    sign = ("its sign is flipped",) if not limit.above else ()
    return (*sign, "it is summed where a mean was meant", "its mask or its denominator is wrong")


IMPOSSIBLE_VALUE_REMEDIES = (
    "read the line that computes it: sign, reduction, mask, denominator",
    "distrust what is concluded from it until then",
)

RULE = Rule(
    name="impossible-value",
    needs=(),
    at_least=MIN_IMPOSSIBLE_VALUES,
    check=check,
    doc=__doc__,
    causes=(
        "a wrapper rescales or reshapes the reward",
        "rewards are counted over several episodes or environments",
    ),
    remedies=(
        "compare one random episode's reward with the environment's documentation",
        "place the monitor below the wrappers that change the reward",
    ),
)
