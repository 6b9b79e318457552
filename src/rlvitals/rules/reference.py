"""How far a language model is from its reference, per token and per sequence.

TRL's PPO logs KL summed over a response, its GRPO the mean over tokens: the two differ by the
response length and are never compared with one bound.
"""

from dataclasses import dataclass

import numpy as np

from rlvitals.metrics.language import LENGTH_MEAN
from rlvitals.metrics.policy import KL_TO_REFERENCE, KL_TO_REFERENCE_PER_TOKEN
from rlvitals.records import Series, Trace
from rlvitals.signals.spread import median

FAR = 1.0  # nats per token: the usual token has become e times as likely as under the reference


@dataclass(frozen=True, slots=True)
class PerToken:
    """KL to the reference, nats per token."""

    series: Series  # finite points
    metric: str  # what it was taken from
    how: str  # how the tokens were counted; empty where it was logged so
    length: float = 1.0  # tokens that a logged value spans, the median over the run


def per_token(trace: Trace) -> PerToken | None:
    """Return KL per token; None where it is not logged or the response length is not known.

    Without a logged length the response limit stands in: then the true value is no smaller.
    """
    name = KL_TO_REFERENCE_PER_TOKEN.name
    if name in trace and len(found := trace[name].finite()):
        return PerToken(found, name, "")
    name = KL_TO_REFERENCE.name
    if name not in trace or not len(found := trace[name].finite()):
        return None
    logged = trace.get(LENGTH_MEAN.name)
    lengths = None if logged is None else logged.finite()
    if lengths is not None and len(lengths):
        per = np.maximum(np.interp(found.steps, lengths.steps, lengths.values), 1.0)
        middle = median(per) or 1.0
        how = f"per sequence / mean response length (median {middle:.4g} tokens)"
        return PerToken(_over(found, per), name, how, middle)
    limit = trace.number("max_completion_length")
    if limit is None or limit < 1:
        return None
    return PerToken(_over(found, limit), name, f"per sequence / response limit ({limit:g})", limit)


def far(trace: Trace, since: int) -> tuple[str, ...]:
    """Say that the text has left the reference behind, where KL since a step shows it."""
    found = per_token(trace)
    if found is None:
        return ()
    level = median(found.series.since(since).values)
    if level is None or level <= FAR:
        return ()
    return (f"KL to the reference is {level:.3g} nats per token meanwhile",)


def _over(series: Series, divisor: float | np.ndarray) -> Series:
    return Series(series.steps, series.times, series.values / divisor)
