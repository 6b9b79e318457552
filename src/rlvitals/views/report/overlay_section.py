"""Compare the runs of a report: the sentence, and charts that hold the curves of all of them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from rlvitals.comparison import compare, grouping
from rlvitals.comparison.compare import CompareOptions
from rlvitals.comparison.grouping import Member
from rlvitals.comparison.scores import Axis
from rlvitals.errors import UsageError
from rlvitals.views import comparison_text
from rlvitals.views.charts import overlay as overlays
from rlvitals.views.charts.chart import Packed, Packer
from rlvitals.views.report import overlay_charts, sections, tables
from rlvitals.views.report.elements import chart, section, table
from rlvitals.views.report.markup import Html, el, join
from rlvitals.views.report.overlay_charts import ComparedRun, OverlayCharts
from rlvitals.views.report.page import Grid, Overlay


def overlay(runs: Sequence[ComparedRun], axis: Axis = "steps") -> Overlay:
    """Compare runs, the first group being the reference, and draw what two of them log.

    Raises UsageError where a run cannot be placed on the axis.
    """
    members = [Member(run.trace, run.path) for run in runs]
    options = CompareOptions(axis=axis)
    drawer = OverlayCharts(runs, grouping.groups(members), axis)
    try:
        result = compare.compare(members, options)
    except UsageError as error:
        return _metric_charts(
            drawer, f"The outcomes of these runs are not compared: {error.problem}"
        )
    labels = [group.label for group in drawer.groups]
    outcome = drawer.chart(
        result.metric, f"all-outcome-{result.metric}", overlay_charts.OUTCOME_PIXELS
    )
    drawn = _metric_charts(
        drawer, comparison_text.headline(result), "" if outcome is None else result.metric
    )
    bands = overlays.outcome_bands(members, labels, options, result)
    # No table for single runs, which the runs' own table tells.
    has_seeds = any(len(group.runs) > 1 for group in result.groups)
    groups = tables.groups(result) if has_seeds else Grid((), ())
    return replace(
        drawn,
        explanation=comparison_text.explanation(result),
        groups=groups,
        outcome=outcome,
        bands={**drawn.bands, **({outcome.name: bands} if outcome is not None else {})},
        healthy={
            **drawn.healthy,
            **({outcome.name: drawer.healthy(outcome)} if outcome is not None else {}),
        },
    )


def _metric_charts(drawer: OverlayCharts, headline: str, outcome: str = "") -> Overlay:
    """Return the overlay without its outcome, a metric with a separate chart."""
    measures = tuple(drawer.measures(outcome))
    charts = [measure.chart for _, group in measures for measure in group]
    unit, scale = drawer.unit
    return Overlay(
        headline=headline,
        explanation="",
        labels=drawer.labels,
        groups=Grid((), ()),
        outcome=None,
        bands={chart.name: overlays.seed_bands(chart.panel.lines) for chart in charts},
        healthy={chart.name: drawer.healthy(chart) for chart in charts},
        settings=tables.differing_settings([(run.name, run.trace) for run in drawer.runs]),
        measures=measures,
        unit=unit,
        scale=scale,
    )


def pack(drawn: Overlay, packer: Packer) -> Packed:
    """Pack the charts of all runs; columns that the runs' own charts have are shared."""
    charts = [
        overlays.pack(
            packer, chart, drawn.labels, drawn.bands.get(chart.name, []), drawn.healthy[chart.name]
        )
        for chart in drawn.charts
    ]
    first = min((chart.first for chart in drawn.charts), default=0)
    last = max((chart.last for chart in drawn.charts), default=1)
    return {
        "first": first,
        "last": last,
        "unit": drawn.unit,
        "scale": drawn.scale,
        "seams": [],
        "charts": charts,
    }


def answer(drawn: Overlay, packed: Packed) -> Html:
    """Return the sentence, its numbers, the outcome's chart and the table of groups."""
    outcome = [] if drawn.outcome is None else [_documents(packed)[0]]
    return el(
        "header",
        el("h2", drawn.headline),
        *([el("p", drawn.explanation)] if drawn.explanation else []),
        chart(drawn.outcome),
        *([el("p", overlays.legend(outcome), class_="about")] if outcome else []),
        *([table(drawn.groups, stacked=True)] if drawn.groups.rows else []),
        class_="answer",
    )


def evidence(drawn: Overlay, packed: Packed) -> Html:
    """Return the settings that differ, and a chart of each metric."""
    settings = section("Settings that differ", table(drawn.settings))
    blocks = [settings.laid_out(-1)]  # the anchors of runs begin at 0
    if drawn.measures:
        charts = _documents(packed)[drawn.outcome is not None :]
        metric_section = sections.measures(drawn.measures)
        axis = f" The x-axis is {drawn.unit}." if drawn.scale != 1 else ""
        legend = el("p", f"{overlays.legend(charts)}{axis}", class_="about")
        inner = join(legend, sections.group_names(drawn.labels), metric_section.inner)
        blocks.append(replace(metric_section, inner=inner).laid_out(-1))
    return el("section", *blocks, class_="all-runs")


def _documents(packed: Packed) -> list[Packed]:
    return cast("list[Packed]", packed["charts"])
