"""Set scales and tick labels: few, short and distinct."""

from collections.abc import Sequence
from itertools import pairwise
from math import isfinite, log10

from matplotlib.axes import Axes
from matplotlib.ticker import (
    AsinhLocator,
    Formatter,
    LogLocator,
    MaxNLocator,
    NullLocator,
)

from rlvitals.views.drawing.curves import Scale

AXIS_TICK_STEPS = [1, 2, 2.5, 5, 10]
MAX_TICK_DIGITS = 9


class Short(Formatter):
    """Format ticks with the fewest digits that keep them distinct."""

    def __call__(self, x: float, pos: int | None = None) -> str:  # noqa: ARG002 - its interface
        """Format one tick."""
        return short(x, 3)

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        """Format all ticks of an axis."""
        finite = sorted(v for v in values if isfinite(v))
        largest = max((abs(v) for v in finite), default=0.0)
        smallest = min((abs(v) for v in finite if v), default=0.0)
        if largest > 1e3 * smallest:
            return [short(v, 1) for v in values]
        min_distance = min((b - a for a, b in pairwise(finite) if b > a), default=largest)
        # the fewest digits that are accurate relative to the ticks' distance
        digits = next(
            (
                d
                for d in range(1, MAX_TICK_DIGITS)
                if all(abs(float(f"{v:.{d - 1}e}") - v) <= 1e-3 * min_distance for v in finite)
            ),
            MAX_TICK_DIGITS,
        )
        return [short(v, digits, largest) for v in values]


def short(value: float, digits: int, largest: float | None = None) -> str:
    """Format a number as "12k", "0.05" or "3e-5"; `largest` sets the form for a complete axis."""
    size = abs(value) if largest is None else largest
    if value == 0 or not isfinite(value):
        return f"{value:g}"
    if size < 1e-3 or size >= 1e15:  # these use a power of ten
        mantissa, _, power = f"{value:.{digits - 1}e}".partition("e")
        if "." in mantissa:
            mantissa = mantissa.rstrip("0").rstrip(".")
        return f"{mantissa}e{int(power)}"
    if size < 1e4:  # smaller numbers have no unit letter
        return f"{value:.{digits}g}" if abs(value) < 10**digits else f"{value:.0f}"
    unit, letter = next(
        ((u, t) for u, t in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")) if size >= u),
        (1.0, ""),
    )
    scaled = value / unit
    return f"{scaled:.{digits}g}{letter}" if abs(scaled) < 10**digits else f"{scaled:.0f}{letter}"


def set_scale(axes: Axes, kind: Scale, width: float) -> None:
    """Set the scale of the y-axis and the ticks of both axes."""
    if kind == "log":
        axes.set_yscale("log")
        axes.yaxis.set_minor_locator(NullLocator())
    elif kind == "asinh":
        axes.set_yscale("asinh", linear_width=width)
        axes.yaxis.set_major_locator(AsinhLocator(width, numticks=6, base=0))
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        axes.yaxis.set_major_locator(MaxNLocator(5, steps=AXIS_TICK_STEPS))
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True, steps=AXIS_TICK_STEPS))
    axes.yaxis.set_major_formatter(Short())
    axes.xaxis.set_major_formatter(Short())


def set_log_ticks(axes: Axes, low: float, high: float) -> None:
    """Set at most seven ticks on a log scale."""
    decades = log10(high / low)
    # From 2.2 decades on, powers of ten suffice as ticks.
    subs = (1.0, 2.0, 5.0) if decades < 2.2 else (1.0,)
    axes.yaxis.set_major_locator(LogLocator(subs=subs, numticks=7))
