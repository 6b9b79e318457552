"""Answers that gain in form and not in being right: what no verdict on a run leaves out.

A reward for the form of an answer is the first that a policy earns. It is no sign of learning what
the training is about.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from rlvitals.metrics.catalogue.reward import COMPONENT
from rlvitals.metrics.reward_names import FORM_PATTERN, checks_the_answer
from rlvitals.rules import kinds
from rlvitals.rules.answers import learning_trend
from rlvitals.rules.remembered import cache_by_trace
from rlvitals.rules.standing import MIN_OUTCOME_POINTS, MIN_SHARE_GAIN, SHARE_OUTCOMES, label
from rlvitals.signals.level import first_last_change
from rlvitals.signals.spread import noise_sd
from rlvitals.types import Series, Trace

UNTRAINED_POINTS = 5  # points that tell the level before training


@cache_by_trace
def describe_form_gain(trace: Trace) -> str:
    """Say that the form of the answers improved and right answers did not; empty where not so."""
    gain = _form(trace) if trace.profile in kinds.LANGUAGE else None
    if gain is None:
        return ""
    name, first, last = gain
    form = f"The form of the answers improved ({label(name)} {first:.3g} -> {last:.3g})"
    trend = learning_trend(trace)
    if not (trend.metric in SHARE_OUTCOMES or checks_the_answer(trend.metric)):
        return f"{form}; whether they are right is not logged."
    if trend.improves or trend.state == "holding its best":
        return ""
    result = "did not" if trend.stalls else "did not measurably"
    return f"{form}; right answers {result} ({trend.first:.3g} -> {trend.last:.3g})."


def of_evaluations(base: Mapping[str, Any], current: Mapping[str, Any]) -> str:
    """Say the same of two evaluations: dicts with `right` (a dict with `value`) and `rewards`."""
    gains = [
        (value - before, name, before, value)
        for name, value in current["rewards"].items()
        if FORM_PATTERN.search(name) and value is not None
        if (before := base["rewards"].get(name)) is not None
        if value - before >= MIN_SHARE_GAIN * max(1.0, abs(value))
    ]
    start, end = base["right"]["value"], current["right"]["value"]
    if not gains or end - start >= MIN_SHARE_GAIN:
        return ""
    _, name, before, value = max(gains)
    form = f"The form of the answers improved ({name} {before:.3g} -> {value:.3g})"
    return f"{form}; right answers did not ({start:.3g} -> {end:.3g})."


def _form(trace: Trace) -> tuple[str, float, float] | None:
    """Return the part of the reward for the form that gained most, and its levels."""
    parts = [
        (name, *levels)
        for name in sorted(trace.series)
        if name.startswith(f"{COMPONENT.name}/") and FORM_PATTERN.search(name)
        if (levels := _gain(trace[name].finite())) is not None
    ]
    return max(parts, key=lambda part: part[2] - part[1], default=None)


def _gain(series: Series) -> tuple[float, float] | None:
    """Return the level of the first points and of the last fifth; None where it is no gain.

    The first points alone: a form is often learned within a tenth of a run.
    """
    levels = first_last_change(series.values)
    if len(series) < MIN_OUTCOME_POINTS or levels is None:
        return None
    first, last = float(np.mean(series.values[:UNTRAINED_POINTS])), levels[1]
    scale = max(1.0, float(np.abs(series.values).max()))
    error = (noise_sd(series.values) or 0.0) / UNTRAINED_POINTS**0.5
    # Two standard errors of the first level.
    return (first, last) if last - first >= max(MIN_SHARE_GAIN * scale, 2.0 * error) else None
