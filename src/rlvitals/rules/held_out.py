"""Evaluations on held-out data: their series, direction and sample size."""

import math
import re
from collections.abc import Iterable
from dataclasses import replace

from rlvitals.metrics.catalogue.optimiser import EVAL_LOSS, LOSS
from rlvitals.metrics.catalogue.outcome import (
    ACCURACY,
    EVAL_ACCURACY,
    EVAL_RETURN,
    EVAL_REWARD,
    EVAL_SUCCESS_RATE,
    EVAL_TASK,
    RETURN,
    REWARD,
    SUCCESS_RATE,
)
from rlvitals.metrics.catalogue.preference import ACCURACY as PAIRS
from rlvitals.metrics.catalogue.preference import EVAL_ACCURACY as EVAL_PAIRS
from rlvitals.metrics.catalogue.reward import COMPONENT, EVAL_COMPONENT
from rlvitals.metrics.catalogue.throughput import EVAL_ELAPSED, EVAL_SAMPLES_PER_SECOND
from rlvitals.metrics.reward_names import pays_right_answers
from rlvitals.rules import kinds
from rlvitals.rules.answers import isolate_outcome
from rlvitals.rules.standing import OUTCOME_NAMES, Standing, label, standing
from rlvitals.signals.blocks import block_means
from rlvitals.signals.spread import median, noise_sd
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Profile, Series, Trace

MIN_EVALS = 4  # fewer show no trend
BEST_OF_PATTERN = re.compile(r"(?:best|pass|max)(?:@|_at_)|passk|pass(?!1$)\d+$")

# What is held out, and the same quantity in training; the first that falls names the finding.
EVALUATION_PAIRS = (
    (EVAL_RETURN.name, RETURN.name),
    (EVAL_SUCCESS_RATE.name, SUCCESS_RATE.name),
    (EVAL_REWARD.name, REWARD.name),
    (EVAL_PAIRS.name, PAIRS.name),
    (EVAL_ACCURACY.name, ACCURACY.name),
    (EVAL_LOSS.name, LOSS.name),
)


@dataclass(frozen=True, slots=True)
class HeldOut:
    """One evaluation, and the training metric that measures the same; "" where none does."""

    name: str
    twin: str
    series: Series  # finite points

    @property
    def sign(self) -> float:
        """Return +1 where more is better, -1 for a loss."""
        return -1.0 if self.name == EVAL_LOSS.name else 1.0

    @property
    def title(self) -> str:
        """Say its name."""
        text = label(self.name)
        if self.name.startswith(EVAL_COMPONENT.name):
            return f"held-out {self.name.rsplit('/', 1)[-1]}"
        if self.name == EVAL_PAIRS.name:
            return "held-out accuracy of pairs"
        return f"held-out {text.removeprefix('eval ').removeprefix('task/')}"


def evaluations(trace: Trace) -> list[HeldOut]:
    """List the evaluations with enough points, those that training measures as well first."""
    supervised = trace.profile is Profile.SUPERVISED
    exclusions = set() if supervised else {EVAL_LOSS.name}
    if kinds.trains_pairs(trace):
        exclusions.add(EVAL_ACCURACY.name)
    pairs = [(n, twin) for n, twin in EVALUATION_PAIRS if n not in exclusions]
    pairs += [
        (f"{EVAL_COMPONENT.name}/{suffix}", f"{COMPONENT.name}/{suffix}")
        for suffix in trace.family(EVAL_COMPONENT.name)
        if pays_right_answers(suffix)
    ]
    tasks = (suffix for suffix in trace.family(EVAL_TASK.name))
    pairs += [(f"{EVAL_TASK.name}/{s}", "") for s in tasks if not BEST_OF_PATTERN.search(s)]
    return _held_out(trace, pairs)


def _held_out(trace: Trace, pairs: Iterable[tuple[str, str]]) -> list[HeldOut]:
    return [
        HeldOut(name, twin if twin in trace else "", points)
        for name, twin in pairs
        if name in trace and len(points := trace[name].finite()) >= MIN_EVALS
    ]


def describe_beside(trace: Trace, trained: Standing) -> str:
    """Say that no evaluation of a language model follows a training that got better; else empty.

    Also that the best of several tries falls: the policy narrows to fewer answers. A statement and
    no alarm, as another set of prompts need not follow.
    """
    gains = trained.improves or trained.state == "holding its best"
    is_evaluated = trained.metric.startswith(("outcome/eval_", EVAL_COMPONENT.name))
    if trace.profile not in kinds.LANGUAGE or not gains or is_evaluated:
        return ""
    sets = evaluations(trace)
    trends = [direction(trace, evaluation) for evaluation in sets]
    tries = [
        (f"{EVAL_TASK.name}/{suffix}", "")
        for suffix in trace.family(EVAL_TASK.name)
        if BEST_OF_PATTERN.search(suffix)
    ]
    texts = []
    if trends and all(trend.stalls for trend in trends):
        names = ", ".join(evaluation.title for evaluation in sets[:2])
        does = "falls" if trends[0].state == "falling" else "does not follow"
        texts.append(f"{names} {does}: {trends[0].first:.4g} to {trends[0].last:.4g}")
    for evaluation in _held_out(trace, tries):
        trend = direction(trace, evaluation)
        if trend.state == "falling":
            texts.append(f"{evaluation.title} falls: {trend.first:.4g} to {trend.last:.4g}")
    return "; ".join(texts[:2])


def direction(trace: Trace, evaluation: HeldOut) -> Standing:
    """Judge an evaluation as an outcome of its kind is judged."""
    if evaluation.name == EVAL_LOSS.name:
        kind = LOSS.name
    elif evaluation.name in OUTCOME_NAMES:
        kind = evaluation.name
    else:
        values = evaluation.series.values
        a_share = values.min() >= 0 and values.max() <= 1
        kind = SUCCESS_RATE.name if a_share else REWARD.name
    trend = standing(isolate_outcome(trace, kind, evaluation.series))
    return replace(
        trend, metric=evaluation.name, why=trend.why.replace(label(kind), label(evaluation.name))
    )


def size_of(trace: Trace, evaluation: HeldOut) -> float | None:
    """Return how many samples one evaluation has; None where it is no share or not known."""
    values = evaluation.series.values
    seconds, speed = (trace.get(m.name) for m in (EVAL_ELAPSED, EVAL_SAMPLES_PER_SECOND))
    shares = evaluation.name != EVAL_LOSS.name and values.min() >= 0 and values.max() <= 1
    if not shares or seconds is None or speed is None:
        return None
    duration, rate = median(seconds.values), median(speed.values)
    # More samples are no size of an evaluation.
    if duration is None or rate is None or not 1 <= duration * rate < 1e9:
        return None
    return float(round(duration * rate))


def error_of(share: float, size: float) -> float:
    """Return the binomial standard error of a share of so many answers."""
    # A share of 0 or 1 among n is still uncertain: by Laplace's rule of succession.
    p = (share * size + 1) / (size + 2)
    return math.sqrt(p * (1 - p) / size)


def worsens(trace: Trace, evaluation: HeldOut) -> str:
    """Say that an evaluation ends materially below its start, beyond its scatter; else empty."""
    trend = direction(trace, evaluation)
    better = evaluation.sign * evaluation.series.values
    width = max(1, len(better) // 5)
    blocks = block_means(better, width)
    drop = float(blocks[0] - blocks[-1])
    error = (noise_sd(better) or 0.0) * math.sqrt(2 / width)
    is_proven = trend.state in ("falling", "fallen back")
    # Without a direction there is no scale either: a few evaluations are no evidence.
    # Or a fall by five standard errors.
    if not is_proven and not (drop >= max(trend.material, 5.0 * error) and drop > 0):
        return ""
    first, last = evaluation.sign * float(blocks[0]), evaluation.sign * float(blocks[-1])
    return f"{evaluation.title} gets worse: {first:.3g} to {last:.3g}"
