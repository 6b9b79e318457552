"""The sampling temperature outside of its pulses, and what it follows there."""

import numpy as np

from rlvitals.metrics.catalogue.exploration import IS_PULSING, TEMPERATURE
from rlvitals.signals.lagged import Lagged, lag_correlation
from rlvitals.types import Series, Trace

TEMPERATURE_WINDOW = 20  # decisions outside of pulses


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
