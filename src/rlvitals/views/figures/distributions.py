"""How rewards, log-probabilities, ratios and advantages are spread at each step: quantile bands.

A mean hides what a distribution shows: tails that a few samples make, two groups where one is
meant, a spread that closes. Drawn from histograms, and from tables of samples, as logged.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlvitals import metrics
from rlvitals.metrics.catalogue import language, policy, reward
from rlvitals.signals.quantiles import quantiles
from rlvitals.types import Histogram, Series, Table, Trace
from rlvitals.views.figures.figure import Figure, Kind, Line, Panel, Subject
from rlvitals.views.figures.panels import finished, natural

LEVELS = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
NAMES = ("lowest", "5 %", "25 %", "median", "75 %", "95 %", "highest")
BESIDE = ((3, 0, "median"), (1, 1, "5 %, 95 %"), (5, 1, "5 %, 95 %"))  # of several runs
NAMED = (  # in the order of the panels; what else is logged follows
    (reward.DISTRIBUTION, "Rewards"),
    (policy.ADVANTAGE_DISTRIBUTION, "Advantages"),
    (policy.RATIO, "Probability ratio"),
    (language.LOGPROBS, "Log-probabilities"),
    (language.REF_LOGPROBS, "Reference log-probabilities"),
    (policy.KL_TO_REFERENCE_DISTRIBUTION, "KL to the reference"),
    (language.LENGTH_DISTRIBUTION, "Response lengths"),
    (language.QUERY_LENGTH_DISTRIBUTION, "Prompt lengths"),
)
TITLES = {metric.name: title for metric, title in NAMED}
ORDER = {name: at for at, name in enumerate(TITLES)}
MOST = 12  # panels
INSIDE = ("gradient", "param", "weight", "layer", ".bias", "/bias")  # of a network: hundreds
SAMPLED = 4  # rows of a table at one step: of fewer there are no quantiles
ADVANTAGE = "advantage"  # a column of TRL's completions


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """The quantiles of one distribution, as it was logged: `values` [n, 7] at `steps` [n]."""

    steps: NDArray[np.int64]
    times: NDArray[np.float64]
    values: NDArray[np.float64]


def panels(subjects: Sequence[Subject]) -> Sequence[Panel]:
    """Draw a panel for each distribution that any run logs."""
    found = [spreads(one.trace) for one in subjects]
    names = sorted({name for own in found for name in own}, key=_rank)[:MOST]
    return tuple(_panel(subjects, name, [own.get(name) for own in found]) for name in names)


def spreads(trace: Trace) -> dict[str, Spread]:
    """Return every distribution of a run, but those of its network's weights, by name."""
    found = {
        key: of_histograms(logged)
        for key, logged in trace.histograms.items()
        if logged and not any(word in key.lower() for word in INSIDE)
    }
    for table in trace.tables.values():
        for name, spread in _of_table(table):
            found.setdefault(name, spread)
    return {name: one for name, one in found.items() if np.isfinite(one.values).any()}


def of_histograms(logged: Sequence[Histogram]) -> Spread:
    """Return the quantiles by step; of a step that was logged twice, of the later one."""
    by_step = {one.step: one for one in logged}
    kept = [by_step[step] for step in sorted(by_step)]
    return Spread(
        np.array([one.step for one in kept], np.int64),
        np.array([one.time for one in kept], np.float64),
        np.array([quantiles(one.edges, one.counts, LEVELS) for one in kept]),
    )


def _of_table(table: Table) -> Iterator[tuple[str, Spread]]:
    """Return what a table holds numbers of: the rewards of each completion, its advantage."""
    order = np.argsort(table.steps, kind="stable")
    steps, starts, counts = np.unique(table.steps[order], return_index=True, return_counts=True)
    if not len(steps) or np.median(counts) < SAMPLED:
        return
    for column, cells in table.columns.items():
        if not all(isinstance(cell, float) or cell is None for cell in cells):
            continue
        numbers = np.array([np.nan if cell is None else cell for cell in cells], np.float64)
        parts = np.split(numbers[order], starts[1:])
        known = [part[np.isfinite(part)] for part in parts]
        if not any(map(len, known)):
            continue
        rows = [np.quantile(p, LEVELS) if len(p) else np.full(len(LEVELS), np.nan) for p in known]
        advantage = column == ADVANTAGE
        name = policy.ADVANTAGE_DISTRIBUTION.name if advantage else f"{column}, each sample"
        yield name, Spread(steps, np.full(len(steps), np.nan), np.array(rows))


def _rank(name: str) -> tuple[int, list[tuple[bool, int, str]]]:
    return ORDER.get(name, len(ORDER)), natural(name)


def _panel(subjects: Sequence[Subject], name: str, found: Sequence[Spread | None]) -> Panel:
    metric = metrics.find(name)
    several = len(subjects) > 1
    parts = BESIDE if several else [(at, 0, said) for at, said in enumerate(NAMES)]
    lines = tuple(
        Line(
            said, name, Series(own.steps, own.times, own.values[:, at]), run, part, smooth=False
        )
        for run, own in enumerate(found) if own is not None
        for at, part, said in parts
    )  # fmt: skip
    title = name if metric is None else TITLES.get(name, metric.title)
    unit = "" if metric is None else metric.unit.partition("/")[0]
    kind = Kind.LINES if several else Kind.BANDS
    wanted = () if metric is None or metric.family else (metric,)
    return finished(subjects, Panel(title, unit, lines, kind=kind), wanted)


def logged(trace: Trace) -> bool:
    """Tell whether a run logs any distribution."""
    return bool(spreads(trace))


FIGURE = Figure(
    "distributions",
    "Distributions",
    needs=tuple(metric for metric, _ in NAMED),
    panels=panels,
    columns=2,
    logged=logged,
)
