"""Figure: sampling temperature, pulses, pressure, latency and their lagged correlation."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rlvitals.diagnosis.coupling import coupling
from rlvitals.metrics.catalogue import exploration, outcome, scheduler
from rlvitals.signals.lagged import Lagged
from rlvitals.views.figures.figure import Across, Figure, Kind, Limit, Panel, Subject, Words
from rlvitals.views.figures.panels import first_of, stretches, together


def panels(subjects: Sequence[Subject]) -> Sequence[Panel]:
    """Return temperature, latency and pressure with shaded pulses, and the correlation by lag."""
    pulses = tuple(
        pulse
        for run, subject in enumerate(subjects)
        if (switch := subject.trace.get(exploration.IS_PULSING.name)) is not None
        for pulse in stretches(switch, run)
    )
    candidates = (
        together(
            subjects,
            ((exploration.TEMPERATURE, "in force"), (exploration.BASE_TEMPERATURE, "base")),
            "Temperature",
            smooth=False,
        ),
        first_of(
            subjects,
            outcome.LATENCY,
            scheduler.LATENCY_EMA,
            scheduler.RAW_LATENCY,
            title="Latency",
        ),
        together(
            subjects,
            ((scheduler.LATENCY_PRESSURE, "latency"), (scheduler.QPS_PRESSURE, "request rate")),
            "Pressure",
            smooth=False,
        ),
    )
    shaded = [
        replace(panel, stretches=pulses, stretch_label="pulse" if pulses else "")
        for panel in candidates
        if panel.lines
    ]
    return (*shaded, *_lags(subjects))


def _lags(subjects: Sequence[Subject]) -> Sequence[Panel]:
    """Return the correlation of changes in temperature and latency by lag."""
    couplings = [(run, subject, coupling(subject.trace)) for run, subject in enumerate(subjects)]
    lags = [
        (run, subject, result.found)
        for run, subject, result in couplings
        if result is not None and result.found
    ]
    if not lags:
        return ()
    across = tuple(
        Across(subject.label, _lag(lagged), np.array(lagged.correlations), run=run, shape="bars")
        for run, subject, lagged in lags
    )
    widest = max(lagged.limit for _, _, lagged in lags)
    limits = tuple(Limit(side * widest, "may be chance" if side > 0 else "") for side in (1, -1))
    panel = Panel(
        "Temperature against latency, by lag",
        "correlation of changes",
        across=across,
        limits=limits,
        kind=Kind.ACROSS,
        x_label="rows by which temperature follows latency (below 0: goes ahead of it)",
    )
    (first, *rest) = [result.short for _, _, result in couplings if result is not None]
    return (panel if rest else replace(panel, said=Words(first, "dim")),)


def _lag(lagged: Lagged) -> NDArray[np.float64]:
    reach = len(lagged.correlations) // 2
    return np.arange(-reach, reach + 1, dtype=np.float64)


FIGURE = Figure(
    "temperature",
    "Temperature",
    needs=(exploration.TEMPERATURE, exploration.BASE_TEMPERATURE),
    panels=panels,
)
