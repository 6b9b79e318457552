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
        negative_share = trace[NEGATIVE_SHARE.name].finite()
        return NEGATIVE_SHARE.name, Series(
            negative_share.steps, negative_share.times, 1.0 - negative_share.values
        )
    if POSITIVE_SAMPLES.name not in trace or NEGATIVE_SAMPLES.name not in trace:
        return None
    positive, negative = trace[POSITIVE_SAMPLES.name], trace[NEGATIVE_SAMPLES.name]
    _, rows, within = np.intersect1d(positive.steps, negative.steps, return_indices=True)
    common = positive.where(rows)
    total = common.values + negative.values[within]
    keep = total > 0
    nonempty = common.where(keep)
    return POSITIVE_SAMPLES.name, Series(
        nonempty.steps, nonempty.times, nonempty.values / total[keep]
    ).finite()
