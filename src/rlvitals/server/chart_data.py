"""Pack the charts of a run for a range of steps and the width of a screen."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import isfinite

import numpy as np

from rlvitals import metrics
from rlvitals.types import Series, Trace
from rlvitals.views.charts.chart import Chart, Packer
from rlvitals.views.figures.figure import Line


def pack(
    charts: Iterable[Chart], judged: Trace, trace: Trace, steps: tuple[int, int] | None
) -> dict[str, object]:
    """Return the charts and their columns, as JSON.

    `judged` is the trace that the charts were made of, `trace` its current state. `steps` is the
    visible range, both ends included; None: all.
    """
    first, last = steps or (trace.first_step, trace.last_step)
    packer = Packer()
    cuts: dict[int, Series] = {}
    documents = []
    for chart in charts:
        lines = []
        for line in chart.panel.lines:
            series = _current(line, judged, trace)
            if steps is not None:
                series = cuts.setdefault(id(series), _cut(series, first, last))
            lines.append(replace(line, series=series))
        panel = replace(chart.panel, lines=tuple(lines))
        document = packer.chart(replace(chart, panel=panel, first=first, last=last))
        # By curve: the metric whose new points continue it; None for what a rule computed.
        document["metrics"] = [
            line.metric if judged.get(line.metric) is line.series else None
            for line in chart.panel.lines
        ]
        document["band"] = _healthy_band(chart, trace)
        documents.append(document)
    return {"first": first, "last": last, "charts": documents, "columns": packer.columns}


def columns(series: Series, steps: tuple[int, int] | None) -> Mapping[str, list[float | int | str]]:
    """Return a series as JSON columns; NaN and infinities as texts."""
    visible = series if steps is None else _cut(series, *steps)
    values = [value if isfinite(value) else str(value) for value in visible.values.tolist()]
    return {"steps": visible.steps.tolist(), "values": values}


def _current(line: Line, judged: Trace, trace: Trace) -> Series:
    """Return the newest points of a line; a curve that a rule computed stays as it is."""
    if judged.get(line.metric) is line.series:
        return trace.get(line.metric) or line.series
    return line.series


def _cut(series: Series, first: int, last: int) -> Series:
    """Return the points in a range of steps, and one neighbour on either side."""
    order = np.argsort(series.steps, kind="stable")
    if (order != np.arange(len(order))).any():
        series = series.where(order)
    begin = max(int(series.steps.searchsorted(first)) - 1, 0)
    end = int(series.steps.searchsorted(last, side="right")) + 1
    return series.where(slice(begin, end))


def _healthy_band(chart: Chart, trace: Trace) -> list[float | None] | None:
    """Return the ends of the healthy range of a chart's metric; None without one."""
    names = {line.metric for line in chart.panel.lines}
    metric = metrics.find(names.pop()) if len(names) == 1 else None
    if metric is None:
        return None
    band = metric.band(trace.profile)
    ends = [
        bound.value if bound is not None and isfinite(bound.value) else None
        for bound in (band.floor(trace), band.ceiling(trace))
    ]
    return ends if any(end is not None for end in ends) else None
