"""Figure: distributions of rewards, log-probabilities, ratios and advantages as quantile bands.

Unlike a mean, a distribution shows heavy tails, two modes and a shrinking spread. Read from
logged histograms and tables of samples.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from rlvitals import metrics
from rlvitals.metrics.catalogue import language, policy, reward
from rlvitals.signals.quantiles import quantiles
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Histogram, Series, Table, Trace
from rlvitals.views.figures.figure import Figure, Kind, Line, Panel, Subject
from rlvitals.views.figures.panels import annotate, natural

QUANTILE_LEVELS = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
DISTRIBUTION_METRICS = (  # in the order of the panels, before other distributions
    (reward.DISTRIBUTION, "Rewards"),
    (policy.ADVANTAGE_DISTRIBUTION, "Advantages"),
    (policy.RATIO, "Probability ratio"),
    (language.LOGPROBS, "Log-probabilities"),
    (language.REF_LOGPROBS, "Reference log-probabilities"),
    (policy.KL_TO_REFERENCE_DISTRIBUTION, "KL to the reference"),
    (language.LENGTH_DISTRIBUTION, "Response lengths"),
    (language.QUERY_LENGTH_DISTRIBUTION, "Prompt lengths"),
)
DISTRIBUTION_TITLES = {metric.name: title for metric, title in DISTRIBUTION_METRICS}
DISTRIBUTION_ORDER = {name: index for index, name in enumerate(DISTRIBUTION_TITLES)}


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """The quantiles of a logged distribution: `values` [n, 7] at `steps` [n]."""

    steps: NDArray[np.int64]
    times: NDArray[np.float64]
    values: NDArray[np.float64]


def panels(subjects: Sequence[Subject]) -> Sequence[Panel]:
    """Return a panel for each distribution that any run logs."""
    spreads_by_run = [spreads(subject.trace) for subject in subjects]
    names = sorted({name for run_spreads in spreads_by_run for name in run_spreads}, key=_rank)[:12]
    return tuple(
        _panel(subjects, name, [run_spreads.get(name) for run_spreads in spreads_by_run])
        for name in names
    )


def spreads(trace: Trace) -> dict[str, Spread]:
    """Return the distributions of a run by name, except those of network weights."""
    # Of network weights, which have hundreds of histograms.
    weight_keywords = (
        "gradient",
        "param",
        "weight",
        "layer",
        ".bias",
        "/bias",
    )
    by_name = {
        key: of_histograms(logged)
        for key, logged in trace.histograms.items()
        if logged and not any(name_part in key.lower() for name_part in weight_keywords)
    }
    for table in trace.tables.values():
        for name, spread in _of_table(table):
            by_name.setdefault(name, spread)
    return {name: spread for name, spread in by_name.items() if np.isfinite(spread.values).any()}


def of_histograms(histograms: Sequence[Histogram]) -> Spread:
    """Return the quantiles at each step, from the last histogram logged there."""
    by_step = {histogram.step: histogram for histogram in histograms}
    ordered = [by_step[step] for step in sorted(by_step)]
    return Spread(
        np.array([histogram.step for histogram in ordered], np.int64),
        np.array([histogram.time for histogram in ordered], np.float64),
        np.array(
            [quantiles(histogram.edges, histogram.counts, QUANTILE_LEVELS) for histogram in ordered]
        ),
    )


def _of_table(table: Table) -> Iterator[tuple[str, Spread]]:
    """Yield the distribution of each numeric column: rewards, advantages."""
    order = np.argsort(table.steps, kind="stable")
    steps, starts, counts = np.unique(table.steps[order], return_index=True, return_counts=True)
    if not len(steps) or np.median(counts) < 4:  # too few for quantiles
        return
    for column, cells in table.columns.items():
        if not all(isinstance(cell, float) or cell is None for cell in cells):
            continue
        numbers = np.array([np.nan if cell is None else cell for cell in cells], np.float64)
        by_step = np.split(numbers[order], starts[1:])
        finite = [numbers_of_step[np.isfinite(numbers_of_step)] for numbers_of_step in by_step]
        if not any(map(len, finite)):
            continue
        rows = [
            np.quantile(sample, QUANTILE_LEVELS)
            if len(sample)
            else np.full(len(QUANTILE_LEVELS), np.nan)
            for sample in finite
        ]
        advantage = column == "advantage"  # in TRL's completions
        name = policy.ADVANTAGE_DISTRIBUTION.name if advantage else f"{column}, each sample"
        yield name, Spread(steps, np.full(len(steps), np.nan), np.array(rows))


def _rank(name: str) -> tuple[int, list[tuple[bool, int, str]]]:
    return DISTRIBUTION_ORDER.get(name, len(DISTRIBUTION_ORDER)), natural(name)


def _panel(subjects: Sequence[Subject], name: str, run_spreads: Sequence[Spread | None]) -> Panel:
    metric = metrics.find(name)
    several = len(subjects) > 1
    lines = tuple(
        line
        for run, spread in enumerate(run_spreads)
        if spread is not None
        for line in quantile_lines(spread, name, run, several=several)
    )
    title = name if metric is None else DISTRIBUTION_TITLES.get(name, metric.title)
    unit = "" if metric is None else metric.unit.partition("/")[0]
    kind = Kind.LINES if several else Kind.BANDS
    bounded = () if metric is None or metric.family else (metric,)
    return annotate(subjects, Panel(title, unit, lines, kind=kind), bounded)


def quantile_lines(spread: Spread, metric: str, run: int, *, several: bool) -> Iterator[Line]:
    """Yield the quantiles of a run's distribution; of several runs the median, 5 % and 95 %."""
    quantile_names = ("lowest", "5 %", "25 %", "median", "75 %", "95 %", "highest")
    curves = (  # index, part and label
        [(3, 0, "median"), (1, 1, "5 %, 95 %"), (5, 1, "5 %, 95 %")]
        if several
        else [(column, 0, label) for column, label in enumerate(quantile_names)]
    )
    for column, part, label in curves:
        series = Series(spread.steps, spread.times, spread.values[:, column])
        yield Line(label, metric, series, run, part, smooth=False, quantile=not several)


def has_distribution(trace: Trace) -> bool:
    """Return whether a run logs any distribution."""
    return bool(spreads(trace))


FIGURE = Figure(
    "distributions",
    "Distributions",
    needs=tuple(metric for metric, _ in DISTRIBUTION_METRICS),
    panels=panels,
    columns=2,
    logged=has_distribution,
)
