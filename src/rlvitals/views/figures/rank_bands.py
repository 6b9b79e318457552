"""Figure: losses, gradient norms and step times over the ranks, as quantile bands.

Ranks that the rules on ranks would name have a curve of their own: a slow one, one that differs,
one that stopped. A thousand curves would hide them.
"""

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np

from rlvitals.metrics.catalogue.throughput import STEP_TIME
from rlvitals.metrics.metric import Metric
from rlvitals.metrics.rank_values import METRICS
from rlvitals.rules.ranks.rank_differs import COMPARED_METRICS, differing_rows
from rlvitals.rules.ranks.rank_slow import SLOW_RATIO, slow_rows, step_times
from rlvitals.rules.ranks.rank_stopped import MISSED_ROWS, stopped_rows
from rlvitals.types import RankValues, Series, Trace
from rlvitals.views.figures.distributions import QUANTILE_LEVELS, Spread, quantile_lines
from rlvitals.views.figures.figure import Figure, Kind, Line, Panel, Subject
from rlvitals.views.figures.panels import annotate


def panels(subjects: Sequence[Subject]) -> Sequence[Panel]:
    """Return a panel for each metric that several ranks log, and one for the time of a step."""
    drawn = [
        _panel(subjects, metric, metric.title, [_values(s.trace, metric) for s in subjects])
        for metric in METRICS
        if metric is not STEP_TIME
    ]
    times = [_step_times(subject.trace) for subject in subjects]
    return [
        panel
        for panel in (*drawn, _panel(subjects, STEP_TIME, "Seconds per step", times))
        if panel.lines
    ]


def _values(trace: Trace, metric: Metric) -> tuple[str, RankValues] | None:
    values = trace.ranks.get(metric.name)
    return None if values is None else (metric.name, values)


def _step_times(trace: Trace) -> tuple[str, RankValues] | None:
    """Return the time of a step on each rank, logged or between the ranks' rows."""
    if not trace.ranks:
        return None
    name, steps, seconds, ranks = step_times(trace)
    if not len(steps):
        return None
    return name, RankValues(
        ranks, steps, np.full(seconds.shape, np.nan), seconds, np.isfinite(seconds)
    )


def _panel(
    subjects: Sequence[Subject],
    metric: Metric,
    title: str,
    of_runs: Sequence[tuple[str, RankValues] | None],
) -> Panel:
    several = len(subjects) > 1
    counts = {len(found[1].ranks) for found in of_runs if found is not None}
    with_bands = several or max(counts, default=0) >= 8  # of fewer ranks, each has a curve
    lines: list[Line] = []
    for run, found in enumerate(of_runs):
        if found is None:
            continue
        name, values = found
        if with_bands:
            lines += quantile_lines(_spread(values), name, run, several=several)
        if not several:
            rows = _named_rows(subjects[run].trace, metric, values) if with_bands else None
            lines += _rank_lines(name, values, rows)
    ranks = f" on {max(counts):,} ranks" if len(counts) == 1 else " on the ranks"
    kind = Kind.BANDS if with_bands and not several else Kind.LINES
    panel = Panel(f"{title}{ranks if counts else ''}", lines=tuple(lines), kind=kind)
    return annotate(subjects, panel, ())


def _spread(values: RankValues) -> Spread:
    """Return the quantiles over the ranks at each step that has a number."""
    finite = np.where(np.isfinite(values.values), values.values, np.nan)
    has_number = np.isfinite(finite).any(axis=0)
    quantiles = np.nanquantile(finite[:, has_number], QUANTILE_LEVELS, axis=0).T
    steps = values.steps[has_number]
    return Spread(steps, np.full(len(steps), np.nan), quantiles)


def _named_rows(trace: Trace, metric: Metric, values: RankValues) -> list[int]:
    """Return the rows of the ranks that the rules would name, by this metric; each once."""
    rows: list[list[int]] = [stopped_rows(values, MISSED_ROWS.on(trace))]
    if metric in COMPARED_METRICS:
        rows.append(differing_rows(values))
    if metric is STEP_TIME:
        rows.append(
            slow_rows(
                values.values[:, np.isfinite(values.values).all(axis=0)], SLOW_RATIO.on(trace)
            )
        )
    return list(dict.fromkeys(chain(*rows)))


def _rank_lines(name: str, values: RankValues, rows: Sequence[int] | None) -> Iterator[Line]:
    """Yield the curves of some ranks, the last with how many more there are; None: of all."""
    # A legend next to the title has room for three.
    drawn = range(len(values.ranks)) if rows is None else rows[:3]
    more_count = 0 if rows is None else len(rows) - len(drawn)
    for part, row in enumerate(drawn, 0 if rows is None else 1):
        logged = values.logged[row]
        is_last = part == len(drawn)
        more = f" and {more_count:,} more" if more_count and is_last else ""
        series = Series(values.steps[logged], values.times[row][logged], values.values[row][logged])
        yield Line(f"rank {values.ranks[row]}{more}", name, series, part=part, smooth=False)


def has_ranks(trace: Trace) -> bool:
    """Return whether several ranks of a run log a metric that is compared."""
    return bool(trace.ranks)


FIGURE = Figure(
    "ranks", "Ranks", needs=METRICS, panels=panels, logged=has_ranks,
)  # fmt: skip
