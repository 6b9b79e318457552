"""The few values that a run is watched by, each with its bounds and its judgement."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rlvitals import metrics
from rlvitals.crucial import ASKED, Value, crucial
from rlvitals.rules.standing import OUTCOME_METRICS
from rlvitals.show import wording
from rlvitals.show.figures.figure import Figure, Kind, Limit, Line, Panel, Subject, Words
from rlvitals.show.figures.panels import finished

NEEDS = tuple(
    {
        metric.name: metric
        for asked in ASKED.values()
        for one in asked
        for metric in (*OUTCOME_METRICS, *one.metrics)
    }.values()
)

SIGNS = {"good": "✓", "bad": "✗", "neutral": "·", "unknown": "?"}


def panels(subjects: Sequence[Subject]) -> Sequence[Panel]:
    """Draw a panel for each value that any run has; of one run, its judgement above."""
    told = [crucial(one.found) for one in subjects]
    titles = dict.fromkeys(value.title for own in told for value in own.values)
    drawn = [
        _panel(subjects, title, [_named(own.values, title) for own in told]) for title in titles
    ]
    if len(subjects) == 1 and told[0].together:
        words = (Words(told[0].together, wording.COLOURS[told[0].together_sign]),)
        drawn.append(Panel("Ratio, clipping, KL together", kind=Kind.WORDS, words=words))
    return tuple(drawn)


def _named(values: Sequence[Value], title: str) -> Value | None:
    return next((one for one in values if one.title == title), None)


def _panel(subjects: Sequence[Subject], title: str, values: Sequence[Value | None]) -> Panel:
    lines = tuple(
        Line(title, one.metric, subject.trace[one.metric], run)
        for run, (one, subject) in enumerate(zip(values, subjects, strict=True))
        if one is not None and one.key
    )
    known = [one for one in values if one is not None]
    metric = metrics.find(known[0].metric) if known else None
    panel = Panel(title, "" if metric is None else metric.unit, lines)
    panel = finished(subjects, panel, ())
    if len(subjects) > 1:
        return panel
    one = known[0]
    words = Words(f"{SIGNS[one.sign]} {one.why}", wording.COLOURS[one.sign] or "ink")
    if not lines:
        return replace(panel, absent=one.why)
    ends = [
        bound for bound in (one.low, one.high) if bound is not None and np.isfinite(bound.value)
    ]
    limits = tuple(
        Limit(bound.value, f"{bound.origin} {wording.number(bound.value)}") for bound in ends
    )
    return replace(panel, limits=limits, said=words)


FIGURE = Figure("crucial", "Crucial values", needs=NEEDS, panels=panels, columns=2)
