"""A chart as a browser is told it: compact columns, each once, and what stands on them.

A series of a few thousand points is told whole, a longer one by the extremes of as many columns
of pixels as a wide screen has: a spike of one point is in there. A number that is none is NaN or
infinite among the values, where it stood; how many there were is told beside them.
"""

import base64
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rlvitals.types import Series
from rlvitals.views.drawing.curves import Curve, curve, scale
from rlvitals.views.figures.figure import Line, Panel

WIDTH = 1000  # columns of pixels
WHOLE = 4 * WIDTH  # points, up to which a series is told whole: its extremes would be as many
AVERAGED = 400  # points of an average, at most
FLOAT32 = (1e-30, 1e30)  # sizes that it holds with all of its digits
CLOSE = 1e-4  # of their size, by which values must differ to be told apart by float32
BYTES = (1, 2, 4)  # of the distances between steps

Packed = dict[str, object]


@dataclass(frozen=True, slots=True, eq=False)
class Chart:
    """A panel as one chart of a page."""

    name: str  # its own on the page
    panel: Panel
    first: int  # steps that its x-axis spans
    last: int
    tall: int = 0  # pixels; 0: as small charts are


@dataclass(slots=True)
class Packer:
    """Packs charts; columns that several of them draw are packed once."""

    columns: list[Packed] = field(default_factory=list)
    drawn: dict[int, tuple[int, int | None, Curve]] = field(default_factory=dict)  # by series

    def chart(self, chart: Chart) -> Packed:
        """Pack a chart; its columns are added to `columns`."""
        panel = chart.panel
        found = [self._curve(line, chart) for line in panel.lines]
        kind, width = scale(panel, [made for _, _, made in found])
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
                [one.began, one.ended, one.label, one.severity.name.lower()] for one in panel.marks
            ],
            "curves": [
                {
                    "label": line.label,
                    "part": line.part,
                    "points": len(line.series),
                    "column": column,
                    "average": average,
                    "bad": made.counts,
                }
                for line, (column, average, made) in zip(panel.lines, found, strict=True)
            ],
        }

    def _curve(self, line: Line, chart: Chart) -> tuple[int, int | None, Curve]:
        key = id(line.series)
        if key not in self.drawn:
            made = curve(line, WIDTH, chart.first, chart.last)
            steps, values = shown(line.series, made)
            column = self._add(steps, values)
            average = None
            if made.smooth is not None:
                steps, means = made.smooth
                every = -(-len(steps) // AVERAGED)
                last_first = slice(None, None, -every)  # the last point is always among them
                average = self._add(steps[last_first][::-1], means[last_first][::-1])
            self.drawn[key] = column, average, made
        return self.drawn[key]

    def _add(self, steps: NDArray[np.int64], values: NDArray[np.float64]) -> int:
        self.columns.append({"steps": pack_steps(steps), "values": pack_values(values)})
        return len(self.columns) - 1


def shown(series: Series, made: Curve) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the points that are told: all, or what a wide screen shows of them."""
    if len(series) <= WHOLE:
        order = np.argsort(series.steps, kind="stable")
        return series.steps[order], series.values[order]
    values = made.values.copy()
    for steps, value in ((made.above, np.inf), (made.below, -np.inf)):
        gaps = np.isnan(values) & np.isin(made.steps, steps)
        values[gaps] = value
    return made.steps, values


def pack_values(values: NDArray[np.float64]) -> Packed:
    """Pack numbers in 4 bytes each, or in 8 where 4 would not hold them, or not tell them apart."""
    known = values[np.isfinite(values)]
    kind = "<f4" if _short(known) else "<f8"
    return {"f": int(kind[-1]), "b": _text(values.astype(kind))}


def _short(known: NDArray[np.float64]) -> bool:
    """Tell whether float32 holds some finite numbers as well as a picture needs them."""
    sizes = np.abs(known[known != 0])
    if not len(sizes):
        return True
    largest = float(sizes.max())
    if sizes.min() < FLOAT32[0] or largest > FLOAT32[1]:
        return False
    return bool(np.ptp(known) > CLOSE * largest) or bool((known == known.astype("<f4")).all())


def pack_steps(steps: NDArray[np.int64]) -> Packed:
    """Pack steps that never go back: where they are even by their distance, else each distance."""
    if not len(steps):
        return {"at": 0, "by": 0, "n": 0}
    apart = np.diff(steps)
    if len(apart) == 0 or (apart == apart[0]).all():
        return {"at": int(steps[0]), "by": int(apart[0]) if len(apart) else 0, "n": len(steps)}
    width = next((one for one in BYTES if apart.max() < 256**one), 8)
    kind = "<f8" if width == 8 else f"<u{width}"  # noqa: PLR2004 - bytes of a float64
    return {"at": int(steps[0]), "w": width, "b": _text(apart.astype(kind))}


def _text(column: NDArray[np.generic]) -> str:
    return base64.b64encode(column.tobytes()).decode("ascii")
