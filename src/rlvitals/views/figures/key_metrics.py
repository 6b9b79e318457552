"""Figure: the crucial values of a run with their bounds and judgements."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from rlvitals import metrics
from rlvitals.diagnosis.key_metrics import KEY_METRIC_SPECS, Crucial, crucial
from rlvitals.rules.standing import OUTCOME_METRICS
from rlvitals.views import phrases
from rlvitals.views.figures.figure import Figure, Kind, Limit, Line, Panel, Subject, Words
from rlvitals.views.figures.panels import annotate


def panels(subjects: Sequence[Subject]) -> Sequence[Panel]:
    """Return a panel for each value that any run logs, with a single run's judgement."""
    by_run = [crucial(subject.found) for subject in subjects]
    titles = dict.fromkeys(
        value.title for run_values in by_run for value in run_values.values if value.key
    )
    charts = []
    for title in titles:
        values = [
            next((value for value in run_values.values if value.title == title), None)
            for run_values in by_run
        ]
        lines = tuple(
            Line(title, value.metric, subject.trace[value.metric], run)
            for run, (value, subject) in enumerate(zip(values, subjects, strict=True))
            if value is not None and value.key
        )
        first = next(value for value in values if value is not None and value.key)
        metric = metrics.find(first.metric)
        unit = "" if metric is None else metric.unit
        panel = annotate(subjects, Panel(title, unit, lines), ())
        if len(subjects) <= 1:
            signs = {"good": "✓", "bad": "✗", "neutral": "·", "unknown": "?"}
            sentence = Words(
                f"{signs[first.sign]} {first.why}", phrases.SIGN_COLOURS[first.sign] or "ink"
            )
            limits = tuple(
                Limit(bound.value, f"{bound.origin} {phrases.number(bound.value)}")
                for bound in (first.low, first.high)
                if bound is not None and np.isfinite(bound.value)
            )
            panel = replace(panel, limits=limits, said=sentence)
        charts.append(panel)
    if len(subjects) == 1 and (words := tuple(_besides(by_run[0]))):
        charts.append(Panel("Besides", kind=Kind.WORDS, words=words))
    return tuple(charts)


def _besides(key_metrics: Crucial) -> Iterator[Words]:
    """Yield the joint judgement and the values without a curve."""
    if key_metrics.together:
        yield Words(
            f"Ratio, clipping, KL: {key_metrics.together}",
            phrases.SIGN_COLOURS[key_metrics.together_sign],
        )
    yield from (
        Words(f"{value.title}: {value.why}", "dim")
        for value in key_metrics.values
        if value.lacks_numbers
    )
    absent = [
        value.title for value in key_metrics.values if not value.key and not value.lacks_numbers
    ]
    if absent:
        yield Words(f"Not logged: {', '.join(absent)}", "dim")


FIGURE = Figure(
    "crucial",
    "Crucial values",
    needs=tuple(
        {
            metric.name: metric
            for questions in KEY_METRIC_SPECS.values()
            for question in questions
            for metric in (*OUTCOME_METRICS, *question.metrics)
        }.values()
    ),
    panels=panels,
    columns=2,
)
