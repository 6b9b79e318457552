"""The few values that a run is watched by, each with its bounds and its judgement."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from rlvitals import metrics
from rlvitals.diagnosis.key_metrics import ASKED, Crucial, Value, crucial
from rlvitals.rules.standing import OUTCOME_METRICS
from rlvitals.views import phrases
from rlvitals.views.figures.figure import Figure, Kind, Limit, Line, Panel, Subject, Words
from rlvitals.views.figures.panels import finished

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
    """Draw a panel for each value that any run logs; of one run, with its judgement above."""
    told = [crucial(one.found) for one in subjects]
    titles = dict.fromkeys(value.title for own in told for value in own.values if value.key)
    drawn = [
        _panel(subjects, title, [_named(own.values, title) for own in told]) for title in titles
    ]
    if len(subjects) == 1 and (words := tuple(_besides(told[0]))):
        drawn.append(Panel("Besides", kind=Kind.WORDS, words=words))
    return tuple(drawn)


def _besides(told: Crucial) -> Iterator[Words]:
    """Say what has no curve: what some of them show together, and what is not logged."""
    if told.together:
        yield Words(f"Ratio, clipping, KL: {told.together}", phrases.COLOURS[told.together_sign])
    yield from (Words(f"{one.title}: {one.why}", "dim") for one in told.values if one.untold)
    absent = [one.title for one in told.values if not one.key and not one.untold]
    if absent:
        yield Words(f"Not logged: {', '.join(absent)}", "dim")


def _named(values: Sequence[Value], title: str) -> Value | None:
    return next((one for one in values if one.title == title), None)


def _panel(subjects: Sequence[Subject], title: str, values: Sequence[Value | None]) -> Panel:
    lines = tuple(
        Line(title, one.metric, subject.trace[one.metric], run)
        for run, (one, subject) in enumerate(zip(values, subjects, strict=True))
        if one is not None and one.key
    )
    first = next(one for one in values if one is not None and one.key)
    metric = metrics.find(first.metric)
    unit = "" if metric is None else metric.unit
    panel = finished(subjects, Panel(title, unit, lines), ())
    if len(subjects) > 1:
        return panel
    words = Words(f"{SIGNS[first.sign]} {first.why}", phrases.COLOURS[first.sign] or "ink")
    limits = tuple(
        Limit(bound.value, f"{bound.origin} {phrases.number(bound.value)}")
        for bound in (first.low, first.high)
        if bound is not None and np.isfinite(bound.value)
    )
    return replace(panel, limits=limits, said=words)


FIGURE = Figure("crucial", "Crucial values", needs=NEEDS, panels=panels, columns=2)
