"""The positive share of a filtered run, from whichever of its metrics are logged."""

import numpy as np

from rlvitals.metrics.catalogue.language import (
    NEGATIVE_SAMPLES,
    NEGATIVE_SHARE,
    POSITIVE_SAMPLES,
    POSITIVE_SHARE,
)
from rlvitals.types import Series, Trace


def positive_share(trace: Trace) -> tuple[str, Series] | None:
    """Return the positive share as finite points, and the metric it was taken from."""
    if POSITIVE_SHARE.name in trace:
        return POSITIVE_SHARE.name, trace[POSITIVE_SHARE.name].finite()
    if NEGATIVE_SHARE.name in trace:
        rest = trace[NEGATIVE_SHARE.name].finite()
        return NEGATIVE_SHARE.name, Series(rest.steps, rest.times, 1.0 - rest.values)
    if POSITIVE_SAMPLES.name not in trace or NEGATIVE_SAMPLES.name not in trace:
        return None
    positive, negative = trace[POSITIVE_SAMPLES.name], trace[NEGATIVE_SAMPLES.name]
    _, at, within = np.intersect1d(positive.steps, negative.steps, return_indices=True)
    found = positive.where(at)
    total = found.values + negative.values[within]
    keep = total > 0
    kept = found.where(keep)
    return POSITIVE_SAMPLES.name, Series(kept.steps, kept.times, kept.values / total[keep]).finite()
