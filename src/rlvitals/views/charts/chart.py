"""Pack charts for the browser as compact columns, each stored once.

A series of up to MAX_FULL_POINTS points is packed completely, a longer one by the minimum and
maximum of each pixel column of a wide screen, which keeps spikes of one point. NaN and infinite
values stay at their steps; `bad` counts them.
"""

import base64
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Series
from rlvitals.views.drawing.curves import Curve, curve, scale
from rlvitals.views.figures.figure import Line, Panel

CHART_WIDTH_PIXELS = 1000  # columns of pixels
MAX_FULL_POINTS = 4 * CHART_WIDTH_PIXELS  # points; the extremes of all columns would be as many
FLOAT32_RANGE = (1e-30, 1e30)  # magnitudes that float32 represents with full precision

Packed = dict[str, object]


@dataclass(frozen=True, slots=True, eq=False)
class Chart:
    """A panel, drawn as a chart of a page."""

    name: str  # unique on the page
    panel: Panel
    first: int  # step range of the x-axis
    last: int
    tall: int = 0  # pixels; 0: the height of small charts


@dataclass(slots=True)
class Packer:
    """Pack charts; a column that several charts share is packed once."""

    columns: list[Packed] = field(default_factory=list)
    drawn: dict[int, tuple[int, int | None, Curve]] = field(default_factory=dict)  # by series

    def chart(self, chart: Chart) -> Packed:
        """Pack a chart and append its columns to `columns`."""
        panel = chart.panel
        packed = [self._curve(line, chart) for line in panel.lines]
        kind, width = scale(panel, [curve for _, _, curve in packed])
        return {
            "name": chart.name,
            "title": panel.title,
            "unit": panel.unit,
            "tall": chart.tall,
            "scale": kind,
            "width": width,
            "low": panel.low,
            "high": panel.high,
            "limits": [[limit.value, limit.label] for limit in panel.limits],
            "marks": [
                [mark.began, mark.ended, mark.label, mark.severity.name.lower()]
                for mark in panel.marks
            ],
            "curves": [
                {
                    "label": line.label,
                    "part": line.part,
                    "quantile": line.quantile,
                    "points": line.series.count,
                    "column": column,
                    "average": average,
                    "bad": curve.counts,
                }
                for line, (column, average, curve) in zip(panel.lines, packed, strict=True)
            ],
        }

    def _curve(self, line: Line, chart: Chart) -> tuple[int, int | None, Curve]:
        key = id(line.series)
        if key not in self.drawn:
            drawn = curve(line, CHART_WIDTH_PIXELS, chart.first, chart.last)
            steps, values = visible_points(line.series, drawn)
            column = self.add(steps, values)
            average = None
            if drawn.smooth is not None:
                steps, means = drawn.smooth
                every = -(-len(steps) // 400)  # at most 400 points
                last_first = slice(None, None, -every)  # the last point is always among them
                average = self.add(steps[last_first][::-1], means[last_first][::-1])
            self.drawn[key] = column, average, drawn
        return self.drawn[key]

    def add(self, steps: NDArray[np.int64], values: NDArray[np.float64]) -> int:
        """Pack a column and return its number."""
        self.columns.append({"steps": pack_steps(steps), "values": pack_values(values)})
        return len(self.columns) - 1


def visible_points(series: Series, drawn: Curve) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the steps and values to pack: all, or those visible on a wide screen."""
    if len(series) <= MAX_FULL_POINTS and series.outline is None:
        order = np.argsort(series.steps, kind="stable")
        return series.steps[order], series.values[order]
    values = drawn.values.copy()
    for steps, value in ((drawn.above, np.inf), (drawn.below, -np.inf)):
        gaps = np.isnan(values) & np.isin(drawn.steps, steps)
        values[gaps] = value
    return drawn.steps, values


def pack_values(values: NDArray[np.float64]) -> Packed:
    """Pack numbers as float32, or as float64 if float32 cannot represent or distinguish them."""
    finite = values[np.isfinite(values)]
    kind = "<f4" if _short(finite) else "<f8"
    return {"f": int(kind[-1]), "b": _text(values.astype(kind))}


def _short(finite: NDArray[np.float64]) -> bool:
    """Return whether float32 represents finite numbers precisely enough for a chart."""
    sizes = np.abs(finite[finite != 0])
    if not len(sizes):
        return True
    largest = float(sizes.max())
    if sizes.min() < FLOAT32_RANGE[0] or largest > FLOAT32_RANGE[1]:
        return False
    # A smaller range than 1e-4 of the largest value needs float64.
    return bool(np.ptp(finite) > 1e-4 * largest) or bool((finite == finite.astype("<f4")).all())


def pack_steps(steps: NDArray[np.int64]) -> Packed:
    """Pack ascending steps: evenly spaced ones by their distance, others by each distance."""
    if not len(steps):
        return {"at": 0, "by": 0, "n": 0}
    distances = np.diff(steps)
    if len(distances) == 0 or (distances == distances[0]).all():
        return {
            "at": int(steps[0]),
            "by": int(distances[0]) if len(distances) else 0,
            "n": len(steps),
        }
    # Bytes of a distance between steps.
    width = next((size for size in (1, 2, 4) if distances.max() < 256**size), 8)
    kind = "<f8" if width == 8 else f"<u{width}"  # bytes of a float64
    return {"at": int(steps[0]), "w": width, "b": _text(distances.astype(kind))}


def _text(column: NDArray[np.generic]) -> str:
    return base64.b64encode(column.tobytes()).decode("ascii")
