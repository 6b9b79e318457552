"""The sampling temperature beside what leads it: pulses, pressure, latency."""

from collections.abc import Sequence
from dataclasses import replace

from rlvitals.metrics import exploration, outcome, scheduler
from rlvitals.show.figures.figure import Figure, Panel, Subject
from rlvitals.show.figures.panels import first_of, stretches, together

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
    return tuple(
        replace(panel, stretches=pulses, stretch_label="pulse" if pulses else "")
        for panel in found
        if panel.lines
    )


FIGURE = Figure(
    "temperature",
    "Temperature",
    needs=(exploration.TEMPERATURE, exploration.BASE_TEMPERATURE),
    panels=panels,
)
