"""Compare the runs of a report: the sentence, and charts that hold the curves of all of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import cast

from rlvitals import metrics
from rlvitals.comparison import compare, grouping
from rlvitals.comparison.compare import CompareOptions
from rlvitals.comparison.grouping import Member
from rlvitals.comparison.result import Comparison
from rlvitals.errors import UsageError
from rlvitals.types import Trace
from rlvitals.views import comparison_text
from rlvitals.views.charts import overlay as overlays
from rlvitals.views.charts.chart import Chart, Packed, Packer
from rlvitals.views.figures import figure
from rlvitals.views.report import contents, sections, tables
from rlvitals.views.report.elements import chart, section, table
from rlvitals.views.report.markup import Html, el, join
from rlvitals.views.report.page import Grid, Measure, Overlay


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """A run of a report, with its name there and the path that it was given by."""

    name: str
    trace: Trace
    path: str


def overlay(runs: Sequence[ComparedRun]) -> Overlay:
    """Compare runs, the first group being the reference, and draw what two of them log."""
    members = [Member(run.trace, run.path) for run in runs]
    options = CompareOptions()
    drawer = _Drawer(runs, grouping.groups(members))
    try:
        result = compare.compare(members, options)
    except UsageError as error:
        return drawer.overlay(f"The outcomes of these runs are not compared: {error.problem}")
    labels = [group.label for group in drawer.groups]
    outcome = drawer.chart(result.metric, 320)
    drawn = drawer.overlay(
        comparison_text.headline(result), "" if outcome is None else result.metric
    )
    bands = overlays.outcome_bands(members, labels, options, result)
    return replace(
        drawn,
        explanation=comparison_text.explanation(result),
        groups=_groups(result),
        outcome=outcome,
        bands={**drawn.bands, **({outcome.name: bands} if outcome is not None else {})},
    )


def _groups(result: Comparison) -> Grid:
    """Return the table of the groups; empty of a pair of runs, which the sentence is about."""
    is_pair = len(result.groups) == 2 and all(  # noqa: PLR2004 - two groups
        len(group.runs) == 1 for group in result.groups
    )
    return Grid((), ()) if is_pair else tables.groups(result)


class _Drawer:
    """Make the charts of all runs; a line's `part` is the number of its group."""

    def __init__(self, runs: Sequence[ComparedRun], groups: Sequence[grouping.RunGroup]) -> None:
        self.runs, self.groups = runs, groups
        numbers = {id(m.trace): n for n, group in enumerate(groups) for m in group.members}
        self.group_numbers = [numbers[id(run.trace)] for run in runs]
        self.first = min(run.trace.first_step for run in runs)
        self.last = max(run.trace.last_step for run in runs)

    def chart(self, name: str, tall: int = 0) -> Chart | None:
        """Draw a metric of all runs; None where fewer than two log it."""
        logged = [
            (run.name, series, number)
            for run, number in zip(self.runs, self.group_numbers, strict=True)
            if (series := run.trace.get(name)) is not None and len(series)
        ]
        if len(logged) < 2:  # noqa: PLR2004 - two lines lie over each other
            return None
        lines = tuple(
            # A group's mean is drawn over its runs: no run needs an average of its own.
            figure.Line(
                label, name, series, 0, number, smooth=self.group_numbers.count(number) == 1
            )
            for label, series, number in logged
        )
        metric = metrics.find(name)
        panel = figure.Panel(
            contents.metric_title(name), metric.unit if metric else "", lines,
            linear=name in contents.LINEAR_METRICS,
        )  # fmt: skip
        chart_name = f"all-{'outcome' if tall else 'metric'}-{name}"
        return Chart(chart_name, panel, self.first, self.last, tall)

    def _measures(self, outcome: str) -> Iterator[tuple[str, tuple[Measure, ...]]]:
        """Yield the metrics of each kind that two runs log, without the outcome."""
        names = {name for run in self.runs for name in run.trace.series} - {outcome}
        kinds: dict[str, list[Measure]] = {kind: [] for kind in contents.KIND_TITLES}
        for name in sorted(names, key=contents.catalogue_order):
            drawn = self.chart(name)
            if drawn is None:
                continue
            metric = metrics.find(name)
            count = len(drawn.panel.lines)
            logged = (
                "" if count == len(self.runs) else f"logged by {count} of {len(self.runs)} runs"
            )
            kinds[metric.kind if metric else ""].append(
                Measure(name, drawn, logged, metric.meaning if metric else "")
            )
        for kind, group in kinds.items():
            if group:
                yield contents.KIND_TITLES[kind], tuple(group)

    def overlay(self, headline: str, outcome: str = "") -> Overlay:
        """Return the overlay without its outcome, a metric that has a chart of its own."""
        measures = tuple(self._measures(outcome))
        charts = [measure.chart for _, group in measures for measure in group]
        return Overlay(
            headline=headline,
            explanation="",
            labels=tuple(map(self._label, range(len(self.groups)))),
            groups=Grid((), ()),
            outcome=None,
            bands={chart.name: overlays.seed_bands(chart.panel.lines) for chart in charts},
            settings=tables.differing_settings([(run.name, run.trace) for run in self.runs]),
            measures=measures,
            unit=self.runs[0].trace.step_unit,
        )

    def _label(self, number: int) -> str:
        """Return a group's label in the legend; of a single run with its name."""
        label = self.groups[number].label
        names = [
            run.name
            for run, other in zip(self.runs, self.group_numbers, strict=True)
            if other == number
        ]
        return label if len(names) > 1 or names[0] in label else f"{names[0]}: {label}"


def pack(drawn: Overlay, packer: Packer) -> Packed:
    """Pack the charts of all runs; columns that the runs' own charts have are shared."""
    charts = [
        overlays.pack(packer, chart, drawn.labels, drawn.bands.get(chart.name, []))
        for chart in drawn.charts
    ]
    first = min((chart.first for chart in drawn.charts), default=0)
    last = max((chart.last for chart in drawn.charts), default=1)
    return {"first": first, "last": last, "unit": drawn.unit, "seams": [], "charts": charts}


def answer(drawn: Overlay, packed: Packed) -> Html:
    """Return the sentence, its numbers, the outcome's chart and the table of groups."""
    outcome = [] if drawn.outcome is None else [_documents(packed)[0]]
    return el(
        "header",
        el("h2", drawn.headline),
        *([el("p", drawn.explanation)] if drawn.explanation else []),
        chart(drawn.outcome),
        *([el("p", overlays.legend(outcome), class_="about")] if outcome else []),
        *([table(drawn.groups)] if drawn.groups.rows else []),
        class_="answer",
    )


def evidence(drawn: Overlay, packed: Packed) -> Html:
    """Return the settings that differ, and a chart of each metric."""
    settings = section("Settings that differ", table(drawn.settings))
    blocks = [settings.laid_out(-1)]  # the anchors of runs begin at 0
    if drawn.measures:
        charts = _documents(packed)[drawn.outcome is not None :]
        metric_section = sections.measures(drawn.measures)
        legend = el("p", overlays.legend(charts), class_="about")
        inner = join(legend, metric_section.inner)
        blocks.append(replace(metric_section, inner=inner).laid_out(-1))
    return el("section", *blocks, class_="all-runs")


def _documents(packed: Packed) -> list[Packed]:
    return cast("list[Packed]", packed["charts"])
