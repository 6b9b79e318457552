"""Curves over an axis of their own, with the bands they lie in: by lag, by level, by how soon."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from rlvitals.views.drawing.axes import STEPS, set_scale
from rlvitals.views.drawing.themes import Theme
from rlvitals.views.figures.figure import Across, Panel

AIR = 0.04  # of an axis, left free at its ends
DASHES = ("solid", (0, (5, 2)), (0, (1.5, 1.5)))  # of curves whose colours come again


def draw(axes: Axes, panel: Panel, theme: Theme) -> None:
    """Draw the curves of a panel, and set its axes' ends."""
    set_scale(axes, "linear", 1.0)
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=STEPS))
    several = len({one.run for one in panel.across})
    for at, one in enumerate(panel.across):
        _curve(axes, one, theme, (at - (several - 1) / 2) / max(several, 1))
    _ends(axes, panel)


def _curve(axes: Axes, one: Across, theme: Theme, place: float) -> None:
    ink = theme.curve(one.run)
    ls = DASHES[one.run // len(theme.curves) % len(DASHES)]
    style = "steps-post" if one.shape == "steps" else "default"
    if one.shape == "bars":  # side by side, where there are several
        width = 0.7 * float(np.diff(one.x).min()) if len(one.x) > 1 else 0.7
        axes.vlines(one.x + place * width, 0, one.values, color=ink, lw=3.5)
        axes.axhline(0, color=theme.dim, lw=0.8)
        return
    if one.low is not None and one.high is not None:
        band = (one.x, one.low, one.high)
        if one.shape == "steps":
            axes.fill_between(*band, color=ink, alpha=0.16, lw=0, step="post")
        else:
            axes.fill_between(*band, color=ink, alpha=0.16, lw=0)
    axes.plot(one.x, one.values, color=ink, ls=ls, lw=2.2, drawstyle=style)


def _ends(axes: Axes, panel: Panel) -> None:
    parts = [one.values for one in panel.across]
    parts += [edge for one in panel.across for edge in (one.low, one.high) if edge is not None]
    values = np.concatenate([*parts, np.array([limit.value for limit in panel.limits])])
    known = values[np.isfinite(values)]
    low = float(known.min()) if panel.low is None else panel.low
    high = float(known.max()) if panel.high is None else panel.high
    air = AIR * ((high - low) or abs(high) or 1.0)
    axes.set_ylim(low - air, high + air)
    x = np.concatenate([one.x for one in panel.across])
    first, last = float(x.min()), float(x.max())
    side = AIR / 2 * ((last - first) or 1.0)
    axes.set_xlim(first - side, last + side)
