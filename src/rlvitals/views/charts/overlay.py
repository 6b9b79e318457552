"""Draw the curves of several runs in one chart: a colour for each group, a band over its seeds."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from rlvitals.comparison import learning_curves, scores, statistics
from rlvitals.comparison.compare import CompareOptions
from rlvitals.comparison.grouping import Member
from rlvitals.comparison.result import Comparison
from rlvitals.comparison.scores import DEFAULT_MEAN_PERCENT, Axis
from rlvitals.rules.rule import Severity
from rlvitals.types import Series, Trace
from rlvitals.views.charts.chart import Chart, Packed, Packer
from rlvitals.views.figures.figure import Line, Mark

MAX_STYLED_GROUPS = 24  # eight colours, each solid, dashed and dotted
PLACES_PER_SECOND = 1000  # of an axis of time: charts have whole places


def on_axis(trace: Trace, series: Series, axis: Axis) -> Series:
    """Return a series by its places on an axis, ascending. Raises UsageError without the axis.

    A place is a step, a sample, an episode or a token, or a millisecond of training.
    """
    if axis == "steps":
        return series
    places = _places(trace, series, axis)
    order = np.argsort(places, kind="stable")
    return Series(places[order], series.times[order], series.values[order])


def find_place(trace: Trace, series: Series, axis: Axis, step: int) -> int:
    """Return the place on an axis of the point of a series that is nearest to a step."""
    return int(_places(trace, series, axis)[np.abs(series.steps - step).argmin()])


def _places(trace: Trace, series: Series, axis: Axis) -> NDArray[np.int64]:
    places = scores.places(trace, series, axis)
    return np.round(places * (PLACES_PER_SECOND if axis == "time" else 1)).astype(np.int64)


def pack(
    packer: Packer,
    chart: Chart,
    labels: Sequence[str],
    bands: Sequence[Packed],
    healthy: list[float | None] | None = None,
) -> Packed:
    """Pack a chart whose lines have the number of their group, in `labels`, as `part`.

    `healthy`: ends of the range in which the metric is healthy. The first error or warning of each
    run is marked on its curve; shaded stretches of several runs would cover each other.
    """
    panel = chart.panel
    document = packer.chart(replace(chart, panel=replace(panel, marks=())))
    curves = cast("list[Packed]", document["curves"])
    # The columns of a series are packed once, with the average that its own chart draws.
    for line, curve in zip(chart.panel.lines, curves, strict=True):
        curve["average"] = curve["average"] if line.smooth else None
    # Where the worst finding of each run began: place, curve, rule and severity.
    numbers = {line.run: number for number, line in enumerate(panel.lines)}
    marks: dict[int, Mark] = {}
    for mark in panel.marks:  # the most severe first
        if mark.severity is not Severity.NOTE:
            marks.setdefault(mark.run, mark)
    onsets = [
        [mark.began, numbers[run], mark.label, mark.severity.name.lower()]
        for run, mark in marks.items()
    ]
    return {
        **document,
        "groups": list(labels),
        "bands": list(bands),
        "band": healthy,
        "onsets": onsets,
    }


def colour_of(group: int) -> str:
    """Return the classes of a group's marks in charts.css: eight colours, each in three styles."""
    if group >= MAX_STYLED_GROUPS:
        return "rest"
    return f"curve{group % 8}{f' dash{group // 8}' if group >= 8 else ''}"


def legend(charts: Iterable[Packed]) -> str:
    """Return what the lines of packed overlays are, naming only those that are drawn."""
    documents = list(charts)
    curves = [curve for chart in documents for curve in cast("list[Packed]", chart["curves"])]
    text = "Each line is a run."
    if any(chart["bands"] for chart in documents):
        text = "A thin line is a run, a thick line the mean of a group's runs, its band the 95 %"
        text += " interval of the mean."
    # As in overlay.js: more bands cover each other.
    if any(len(cast("list[Packed]", chart["bands"])) > 8 for chart in documents):
        text += " Point at a line or a name to see its band."
    if any(curve["average"] is not None for curve in curves):
        text += " Where a line is faint, the line over it is its moving average."
    if any(chart["onsets"] for chart in documents):
        text += " A triangle is where the worst finding of a run began."
    if any(chart["band"] for chart in documents):
        text += " The green range is healthy."
    return text


def outcome_bands(
    members: Sequence[Member], labels: Sequence[str], options: CompareOptions, result: Comparison
) -> list[Packed]:
    """Return the interval of each group's score by step; none of a single run.

    A failed run counts as the lowest score after its end, as in the comparison.
    """
    bands: list[Packed] = []
    # The score at a step is the mean of the last tenth before it: it is drawn at their middle.
    centre = 1 - DEFAULT_MEAN_PERCENT / 200
    curves = learning_curves.learning_curves(members, options, result)
    for group, curve in zip(result.groups, curves, strict=True):
        finite = np.isfinite(curve.score_low) & np.isfinite(curve.score_high)
        if len(group.runs) > 1 and finite.any():
            columns = (curve.score, curve.score_low, curve.score_high)
            places = curve.place * (PLACES_PER_SECOND if options.axis == "time" else 1)
            rows = np.array([places * centre, *columns])[:, finite]
            bands.append(_band(labels.index(group.label), rows))
    return bands


def seed_bands(lines: Sequence[Line]) -> list[Packed]:
    """Return the mean of each group's runs with its t interval, on the steps that all of them log.

    Each run counts with its mean over a tenth of these steps around a place.
    """
    bands: list[Packed] = []
    for group in sorted({line.part for line in lines}):
        runs = [line.series.finite() for line in lines if line.part == group]
        if len(runs) < 2 or not all(map(len, runs)):  # one run has no interval
            continue
        first, last = max(run.steps.min() for run in runs), min(run.steps.max() for run in runs)
        if last <= first:
            continue
        places = np.linspace(first, last, 60 + 1)
        # Shorter near the ends, on both sides: a mean of one side would be off a steep curve.
        half = np.minimum(
            DEFAULT_MEAN_PERCENT / 200 * (last - first), np.minimum(places - first, last - places)
        )
        means = np.array([_window_means(run, places, half) for run in runs])
        shared = np.isfinite(means).all(axis=0)
        sample = [
            statistics.welch([column], None, statistics.CONFIDENCE_LEVEL)
            for column in means[:, shared].T
        ]
        ends = [(interval.value, interval.low, interval.high) for interval in sample]
        if ends:
            bands.append(_band(group, np.array([places[shared], *np.transpose(ends)])))
    return bands


def _window_means(
    series: Series, places: NDArray[np.float64], half: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the mean within `half` [n] steps of each place [n]; NaN where no point is."""
    if (series.steps[1:] < series.steps[:-1]).any():
        series = series.where(np.argsort(series.steps, kind="stable"))
    steps, values = series.steps, series.values
    begins = steps.searchsorted(places - half)
    ends = steps.searchsorted(places + half, side="right")
    with np.errstate(over="ignore"):
        return np.array([
            values[begin:end].mean() if end > begin else np.nan
            for begin, end in zip(begins, ends, strict=True)
        ])  # fmt: skip


def _band(group: int, rows: NDArray[np.float64]) -> Packed:
    """Return a band as JSON; `rows` are [4, n]: steps, means, lower and upper ends."""
    # Eight digits are more than a screen shows, and half of the text of all of them.
    steps, middle, low, high = ([float(f"{value:.8g}") for value in row] for row in rows)
    return {"part": group, "steps": steps, "middle": middle, "low": low, "high": high}
