"""Make the charts of several runs: a curve for each run, by steps, samples or time."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rlvitals import metrics
from rlvitals.comparison.grouping import RunGroup
from rlvitals.comparison.scores import Axis
from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Trace
from rlvitals.views.charts import overlay as overlays
from rlvitals.views.charts.chart import Chart
from rlvitals.views.figures import figure
from rlvitals.views.figures.panels import annotate, healthy_band
from rlvitals.views.report import contents
from rlvitals.views.report.page import Measure

METRIC_CHART = "all-metric-"  # before the metric, in the name of its chart
OUTCOME_PIXELS = 320  # height of the outcome's chart


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """A judged run, with its name on the page and the path that it was given by."""

    name: str
    diagnosis: Diagnosis
    path: str

    @property
    def trace(self) -> Trace:
        """The diagnosed trace."""
        return self.diagnosis.trace


class OverlayCharts:
    """Charts of all runs over one axis; a line's `part` is the number of its group."""

    def __init__(
        self, runs: Sequence[ComparedRun], groups: Sequence[RunGroup], axis: Axis = "steps"
    ) -> None:
        """Place runs on an axis. Raises UsageError where a run's log has no such axis."""
        self.runs, self.groups, self.axis = runs, groups, axis
        numbers = {id(m.trace): n for n, group in enumerate(groups) for m in group.members}
        self.group_numbers = [numbers[id(run.trace)] for run in runs]
        ends = [self._ends(run.trace) for run in runs if run.trace.series]
        self.first = min((first for first, _ in ends), default=0)
        self.last = max((last for _, last in ends), default=1)

    def _ends(self, trace: Trace) -> tuple[int, int]:
        if self.axis == "steps":
            return trace.first_step, trace.last_step
        logged = [series for series in trace.series.values() if len(series)]
        starting = min(logged, key=lambda series: series.steps.min(), default=None)
        lasting = max(logged, key=lambda series: series.steps.max(), default=None)
        if starting is None or lasting is None:
            return 0, 1
        places = [
            overlays.on_axis(trace, series, self.axis).steps for series in (starting, lasting)
        ]
        return int(places[0].min()), int(places[1].max())

    @property
    def unit(self) -> tuple[str, float]:
        """The unit of the axis as it is written, and the units of each place of a point."""
        if self.axis == "steps":
            return self.runs[0].trace.step_unit, 1.0
        if self.axis != "time":
            return self.axis, 1.0
        seconds = self.last / overlays.PLACES_PER_SECOND
        # Unit, its seconds, and the shortest axis that it is used for.
        units = (("hours", 3600.0, 7200.0), ("minutes", 60.0, 300.0), ("seconds", 1.0, 0.0))
        name, size = next(
            (name, size) for name, size, min_seconds in units if seconds >= min_seconds
        )
        return f"{name} of training", 1 / (overlays.PLACES_PER_SECOND * size)

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the groups in the legend; of a single run with its name."""
        return tuple(map(self._label, range(len(self.groups))))

    def _label(self, number: int) -> str:
        label = self.groups[number].label
        pairs = zip(self.runs, self.group_numbers, strict=True)
        names = [run.name for run, group in pairs if group == number]
        # A legend describes up to four single runs by name and settings.
        if len(names) == 1 and len(self.groups) > 4:
            return names[0]
        return label if len(names) > 1 or names[0] in label else f"{names[0]}: {label}"

    def chart(self, name: str, chart_name: str, tall: int = 0, min_runs: int = 2) -> Chart | None:
        """Draw a metric of all runs; None where fewer than `min_runs` log it."""
        lines = []
        for index, (run, number) in enumerate(zip(self.runs, self.group_numbers, strict=True)):
            series = run.trace.get(name)
            if series is not None and len(series):
                # A group's mean is drawn over its runs: no run needs an average of its own.
                is_alone = self.group_numbers.count(number) == 1
                lines.append(figure.Line(run.name, name, series, index, number, smooth=is_alone))
        if len(lines) < min_runs:
            return None
        metric = metrics.find(name)
        bounded = [metric] if metric is not None and not metric.family else []
        panel = figure.Panel(
            contents.metric_title(name), metric.unit if metric else "", tuple(lines),
            linear=name in contents.LINEAR_METRICS,
        )  # fmt: skip
        subjects = [figure.Subject(run.name, run.diagnosis) for run in self.runs]
        panel = self._to_axis(annotate(subjects, panel, bounded))
        return Chart(chart_name, panel, self.first, self.last, tall)

    def _to_axis(self, panel: figure.Panel) -> figure.Panel:
        """Return the panel with its steps replaced by places on the axis."""
        if self.axis == "steps":
            return panel
        lines = [
            replace(
                line,
                series=overlays.on_axis(self.runs[line.run].trace, line.series, self.axis),
            )
            for line in panel.lines
        ]
        by_run = {line.run: line.series for line in panel.lines}
        marks = [
            replace(
                mark,
                began=overlays.find_place(
                    self.runs[mark.run].trace, by_run[mark.run], self.axis, mark.began
                ),
            )
            for mark in panel.marks
        ]
        return replace(panel, lines=tuple(lines), marks=tuple(marks))

    def healthy(self, chart: Chart) -> list[float | None] | None:
        """Return the ends of the healthy range of a chart's metric; None where runs differ."""
        lines = chart.panel.lines
        bands = [healthy_band(line.metric, self.runs[line.run].trace) for line in lines]
        return bands[0] if all(band == bands[0] for band in bands) else None

    def measures(self, outcome: str) -> Iterator[tuple[str, tuple[Measure, ...]]]:
        """Yield the metrics of each kind that two runs log, without the outcome."""
        names = {name for run in self.runs for name in run.trace.series} - {outcome}
        kinds: dict[str, list[Measure]] = {kind: [] for kind in contents.KIND_TITLES}
        for name in sorted(names, key=contents.catalogue_order):
            chart = self.chart(name, f"{METRIC_CHART}{name}")
            if chart is None:
                continue
            metric = metrics.find(name)
            count = len(chart.panel.lines)
            logged = (
                "" if count == len(self.runs) else f"logged by {count} of {len(self.runs)} runs"
            )
            kinds[metric.kind if metric else ""].append(
                Measure(name, chart, logged, metric.meaning if metric else "")
            )
        for kind, group in kinds.items():
            if group:
                yield contents.KIND_TITLES[kind], tuple(group)
