"""Draw curves and their bands over an x-axis other than steps: lags, levels, times."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from rlvitals.views.drawing.axes import AXIS_TICK_STEPS, set_scale
from rlvitals.views.drawing.themes import Theme
from rlvitals.views.figures.figure import Across, Panel

AXIS_MARGIN = 0.04  # of an axis, at each end
GROUP_DASHES = ("solid", (0, (5, 2)), (0, (1.5, 1.5)))  # for curves that reuse a colour


def draw(axes: Axes, panel: Panel, theme: Theme) -> None:
    """Draw the curves of a panel and set its axis limits."""
    set_scale(axes, "linear", 1.0)
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=AXIS_TICK_STEPS))
    run_count = len({curve.run for curve in panel.across})
    for index, curve in enumerate(panel.across):
        _curve(axes, curve, theme, (index - (run_count - 1) / 2) / max(run_count, 1))
    # The limits of both axes.
    columns = [curve.values for curve in panel.across]
    columns += [
        edge for curve in panel.across for edge in (curve.low, curve.high) if edge is not None
    ]
    values = np.concatenate([*columns, np.array([limit.value for limit in panel.limits])])
    finite = values[np.isfinite(values)]
    low = float(finite.min()) if panel.low is None else panel.low
    high = float(finite.max()) if panel.high is None else panel.high
    air = AXIS_MARGIN * ((high - low) or abs(high) or 1.0)
    axes.set_ylim(low - air, high + air)
    x = np.concatenate([curve.x for curve in panel.across])
    first, last = float(x.min()), float(x.max())
    side = AXIS_MARGIN / 2 * ((last - first) or 1.0)
    axes.set_xlim(first - side, last + side)


def _curve(axes: Axes, curve: Across, theme: Theme, offset: float) -> None:
    ink = theme.curve(curve.run)
    ls = GROUP_DASHES[curve.run // len(theme.curves) % len(GROUP_DASHES)]
    style = "steps-post" if curve.shape == "steps" else "default"
    if curve.shape == "bars":  # side by side
        width = 0.7 * float(np.diff(curve.x).min()) if len(curve.x) > 1 else 0.7
        axes.vlines(curve.x + offset * width, 0, curve.values, color=ink, lw=3.5)
        axes.axhline(0, color=theme.dim, lw=0.8)
        return
    if curve.low is not None and curve.high is not None:
        band = (curve.x, curve.low, curve.high)
        if curve.shape == "steps":
            axes.fill_between(*band, color=ink, alpha=0.16, lw=0, step="post")
        else:
            axes.fill_between(*band, color=ink, alpha=0.16, lw=0)
    axes.plot(curve.x, curve.values, color=ink, ls=ls, lw=2.2, drawstyle=style)
