"""Ticks that a person can read: few, short, and each another text."""

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

UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
LETTERS_FROM = 1e4  # smaller numbers are written in full
STEPS = [1, 2, 2.5, 5, 10]  # of ticks
SMALL, LARGE = 1e-3, 1e15  # numbers beyond them are written with a power of ten
MOST_DIGITS = 9
DECADES = 1e3  # between the ticks of an axis that is not linear
SEVERAL = 2.2  # decades: enough to have ticks at tens alone
OFF = 1e-3  # of the distance of two ticks, by which a label may be off


class Short(Formatter):
    """Writes ticks with as few digits as tell them apart."""

    def __call__(self, x: float, pos: int | None = None) -> str:  # noqa: ARG002 - its interface
        """Write one tick."""
        return short(x, 3)

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        """Write all ticks of an axis."""
        known = sorted(v for v in values if isfinite(v))
        largest = max((abs(v) for v in known), default=0.0)
        smallest = min((abs(v) for v in known if v), default=0.0)
        if largest > DECADES * smallest:
            return [short(v, 1) for v in values]
        apart = min((b - a for a, b in pairwise(known) if b > a), default=largest)
        digits = next((d for d in range(1, MOST_DIGITS) if _exact(known, d, apart)), MOST_DIGITS)
        return [short(v, digits, largest) for v in values]


def _exact(values: Sequence[float], digits: int, apart: float) -> bool:
    """Tell whether so many digits say where ticks stand, beside their distance."""
    return all(abs(float(f"{v:.{digits - 1}e}") - v) <= OFF * apart for v in values)


def short(value: float, digits: int, largest: float | None = None) -> str:
    """Write a number as "12k", "0.05" or "3e-5"; `largest` decides which, for a whole axis."""
    size = abs(value) if largest is None else largest
    if value == 0 or not isfinite(value):
        return f"{value:g}"
    if size < SMALL or size >= LARGE:
        mantissa, _, power = f"{value:.{digits - 1}e}".partition("e")
        return f"{_bare(mantissa)}e{int(power)}"
    if size < LETTERS_FROM:
        return f"{value:.{digits}g}" if abs(value) < 10**digits else f"{value:.0f}"
    unit, letter = next(((u, t) for u, t in UNITS if size >= u), (1.0, ""))
    scaled = value / unit
    return f"{scaled:.{digits}g}{letter}" if abs(scaled) < 10**digits else f"{scaled:.0f}{letter}"


def _bare(mantissa: str) -> str:
    return mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa


def set_scale(axes: Axes, kind: Scale, width: float) -> None:
    """Give the y-axis its scale and both axes few ticks."""
    if kind == "log":
        axes.set_yscale("log")
        axes.yaxis.set_minor_locator(NullLocator())
    elif kind == "asinh":
        axes.set_yscale("asinh", linear_width=width)
        axes.yaxis.set_major_locator(AsinhLocator(width, numticks=6, base=0))
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        axes.yaxis.set_major_locator(MaxNLocator(5, steps=STEPS))
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True, steps=STEPS))
    axes.yaxis.set_major_formatter(Short())
    axes.xaxis.set_major_formatter(Short())


def set_log_ticks(axes: Axes, low: float, high: float) -> None:
    """Give a log scale a handful of ticks, however many decades it spans."""
    decades = log10(high / low)
    subs = (1.0, 2.0, 5.0) if decades < SEVERAL else (1.0,)
    axes.yaxis.set_major_locator(LogLocator(subs=subs, numticks=7))
