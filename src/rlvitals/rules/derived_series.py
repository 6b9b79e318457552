"""Series computed from several logged metrics: the positive share, a temperature without pulses."""

import numpy as np

from rlvitals.metrics.catalogue.exploration import IS_PULSING, TEMPERATURE
from rlvitals.metrics.catalogue.language import (
    NEGATIVE_SAMPLES,
    NEGATIVE_SHARE,
    POSITIVE_SAMPLES,
    POSITIVE_SHARE,
)
from rlvitals.signals.lagged import Lagged, lag_correlation
from rlvitals.types import Series, Trace

TEMPERATURE_WINDOW = 20  # decisions outside of pulses


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


def outside_pulses(trace: Trace) -> Series:
    """Return the temperature's numbers, without those of pulses; KeyError where none is logged."""
    temperature = trace[TEMPERATURE.name].finite()
    pulsing = trace.get(IS_PULSING.name)
    if pulsing is None:
        return temperature
    return temperature.where(~np.isin(temperature.steps, pulsing.steps[pulsing.values > 0]))


def temperature_lag(load: Series, temperature: Series) -> Lagged | None:
    """Correlate the changes of both at the steps that both have; None for too few of them.

    A positive lag: the temperature changes after the load.
    """
    load = load.finite()
    _, ours, theirs = np.intersect1d(load.steps, temperature.steps, return_indices=True)
    return lag_correlation(load.values[ours], temperature.values[theirs])
