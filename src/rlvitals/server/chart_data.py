"""Pack the charts of a run for a range of steps and the width of a screen."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import isfinite
from typing import cast

import numpy as np
from numpy.typing import NDArray

from rlvitals.server.run_page import RunPage
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Series, Trace
from rlvitals.views.charts.chart import Chart, Packed, Packer
from rlvitals.views.figures.figure import Kind, Line, Panel
from rlvitals.views.figures.panels import healthy_band


@dataclass(frozen=True, slots=True)
class Options:
    """What a screen shows of the charts."""

    steps: tuple[int, int] | None = None  # visible range, both ends included; None: all
    average: float | None = None  # share of the points; 0: none; None: as noisy as the curve is


def pack(
    charts: Iterable[Chart],
    page: RunPage,
    trace: Trace,
    logged: Mapping[str, Series],
    options: Options,
) -> dict[str, object]:
    """Return the charts of a page and their columns, as JSON.

    `page.logged` is what the charts were made of, `logged` its current state with all points.
    """
    first, last = options.steps or (trace.first_step, trace.last_step)
    packer = Packer()
    cuts: dict[int, Series] = {}
    documents = []
    for chart in charts:
        lines = []
        for line in chart.panel.lines:
            series = _current(line, page.logged, logged)
            if options.steps is not None:
                series = cuts.setdefault(id(series), _cut(series, first, last))
            lines.append(replace(line, series=series, smooth=_is_smooth(line, options)))
        panel = replace(chart.panel, lines=tuple(lines))
        document = packer.chart(replace(chart, panel=panel, first=first, last=last))
        if options.average:
            add_averages(packer, document, panel, options.average)
        # By curve: the metric whose new points continue it; None for what a rule computed.
        document["metrics"] = [
            line.metric if page.judged.get(line.metric) is line.series else None
            for line in chart.panel.lines
        ]
        names = {line.metric for line in chart.panel.lines}
        document["band"] = healthy_band(names.pop(), trace) if len(names) == 1 else None
        documents.append(document)
    return {"first": first, "last": last, "charts": documents, "columns": packer.columns}


def select(chart: Chart, options: Options) -> Chart:
    """Return a chart with the points and averages that a screen shows of it."""
    first, last = options.steps or (chart.first, chart.last)
    lines = [replace(line, smooth=_is_smooth(line, options)) for line in chart.panel.lines]
    if options.steps is not None:
        lines = [replace(line, series=_cut(line.series, first, last)) for line in lines]
    return replace(chart, panel=replace(chart.panel, lines=tuple(lines)), first=first, last=last)


def _is_smooth(line: Line, options: Options) -> bool:
    """Return whether the chart itself draws an average."""
    return line.smooth and options.average is None


def add_averages(packer: Packer, document: Packed, panel: Panel, share: float) -> None:
    """Pack the moving average of each curve that may have one."""
    curves = cast("list[Packed]", document["curves"])
    for line, curve in zip(panel.lines, curves, strict=True):
        if panel.kind is Kind.LINES and line.metric and len(line.series) > 1:
            steps, means = average(line.series, share)
            curve["average"] = packer.add(steps, means)


def average(series: Series, share: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the mean around each point over a share of the points, at most MAX_MEANS of them.

    The window is centred; near the ends it is shorter on both sides.
    """
    finite = (series if series.outline is None else series.outline.means).finite()
    count = len(finite)
    sums = np.concatenate(([0.0], np.cumsum(finite.values)))
    picked = np.unique(np.linspace(0, max(count - 1, 0), min(count, 1000)).astype(np.int64))
    half = np.minimum(np.minimum(picked, count - 1 - picked), round(share * count / 2))
    means = (sums[picked + half + 1] - sums[picked - half]) / (2 * half + 1)
    return finite.steps[picked], means


def columns(series: Series, steps: tuple[int, int] | None) -> Mapping[str, list[float | int | str]]:
    """Return a series, or its outline, as JSON columns; NaN and infinities as texts."""
    points = series if series.outline is None else series.outline.points
    visible = points if steps is None else _cut(points, *steps)
    values = [value if isfinite(value) else str(value) for value in visible.values.tolist()]
    return {"steps": visible.steps.tolist(), "values": values}


def _current(line: Line, drawn: Mapping[str, Series], logged: Mapping[str, Series]) -> Series:
    """Return all points of a line; a curve that a rule computed stays as it is."""
    if drawn.get(line.metric) is line.series:
        return logged.get(line.metric) or line.series
    return line.series


def _cut(series: Series, first: int, last: int) -> Series:
    """Return the points in a range of steps, and one neighbour on either side.

    Of a thinned series these are the points of its outline.
    """
    if series.outline is not None:
        series = series.outline.points
    if (series.steps[1:] < series.steps[:-1]).any():
        series = series.where(np.argsort(series.steps, kind="stable"))
    begin = max(int(series.steps.searchsorted(first)) - 1, 0)
    end = int(series.steps.searchsorted(last, side="right")) + 1
    return series.where(slice(begin, end))
