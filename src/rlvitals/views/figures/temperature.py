"""The sampling temperature beside what leads it: pulses, pressure, latency, and by which lag."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rlvitals.diagnosis.coupling import coupling
from rlvitals.metrics.catalogue import exploration, outcome, scheduler
from rlvitals.signals.lagged import Lagged
from rlvitals.views.figures.figure import Across, Figure, Kind, Limit, Panel, Subject, Words
from rlvitals.views.figures.panels import first_of, stretches, together

TEMPERATURES = ((exploration.TEMPERATURE, "in force"), (exploration.BASE_TEMPERATURE, "base"))
LATENCIES = (outcome.LATENCY, scheduler.LATENCY_EMA, scheduler.RAW_LATENCY)
PRESSURES = ((scheduler.LATENCY_PRESSURE, "latency"), (scheduler.QPS_PRESSURE, "request rate"))


def panels(subjects: Sequence[Subject]) -> Sequence[Panel]:
    """Draw temperature, latency and pressure under each other, pulses across all."""
    pulses = tuple(
        pulse
        for run, one in enumerate(subjects)
        if (switch := one.trace.get(exploration.IS_PULSING.name)) is not None
        for pulse in stretches(switch, run)
    )
    found = (
        together(subjects, TEMPERATURES, "Temperature", smooth=False),
        first_of(subjects, *LATENCIES, title="Latency"),
        together(subjects, PRESSURES, "Pressure", smooth=False),
    )
    shaded = [
        replace(panel, stretches=pulses, stretch_label="pulse" if pulses else "")
        for panel in found
        if panel.lines
    ]
    return (*shaded, *_lags(subjects))


def _lags(subjects: Sequence[Subject]) -> Sequence[Panel]:
    """Draw how the changes of temperature and latency go together, by how much later."""
    told = [(run, one, coupling(one.trace)) for run, one in enumerate(subjects)]
    known = [(run, one, own.found) for run, one, own in told if own is not None and own.found]
    if not known:
        return ()
    across = tuple(
        Across(one.label, _lag(found), np.array(found.correlations), run=run, shape="bars")
        for run, one, found in known
    )
    widest = max(found.limit for _, _, found in known)
    limits = tuple(Limit(side * widest, "may be chance" if side > 0 else "") for side in (1, -1))
    panel = Panel(
        "Temperature against latency, by lag",
        "correlation of changes",
        across=across,
        limits=limits,
        kind=Kind.ACROSS,
        x_label="rows by which temperature follows latency (below 0: goes ahead of it)",
    )
    (first, *more) = [own.short for _, _, own in told if own is not None]
    return (panel if more else replace(panel, said=Words(first, "dim")),)


def _lag(found: Lagged) -> NDArray[np.float64]:
    reach = len(found.correlations) // 2
    return np.arange(-reach, reach + 1, dtype=np.float64)


FIGURE = Figure(
    "temperature",
    "Temperature",
    needs=(exploration.TEMPERATURE, exploration.BASE_TEMPERATURE),
    panels=panels,
)
