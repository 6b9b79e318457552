"""Logs in, Trace out: canonical names, sign and scale, one source for each metric."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rlvitals.metrics import names, profile, seams
from rlvitals.metrics.metric import Metric
from rlvitals.metrics.names import lookup
from rlvitals.metrics.names.name import Name, Table
from rlvitals.records import Budget, Lifecycle, Log, Measured, Profile, Series, Setting, Trace


SPANS = 0.5  # of the run's last step: a column that ends before counts other steps, or stopped


@dataclass(frozen=True, slots=True)
class Given:
    """What a person says about a run: it overrules what the log says."""

    mapping: Mapping[str, Metric] = field(default_factory=dict)  # key in the log -> metric
    settings: Mapping[str, Setting] = field(default_factory=dict)  # canonical names
    profile: Profile | None = None


@dataclass(frozen=True, slots=True)
class _Column:
    """One log's column that claims to be a canonical metric."""

    name: str
    series: Series
    measured: Measured
    rank: tuple[bool, int, int] = (False, 0, 0)  # spans the run, numbers it holds, the earlier log


def trace(
    logs: Sequence[Log],
    given: Given | None = None,
    *,
    name: str = "",
    lifecycle: Lifecycle | None = None,
) -> Trace:
    """Name the columns of a run's logs canonically; what no table covers is listed.

    A metric that several logs or keys hold is taken once, from the column with most numbers among those
    that span the run.
    """
    given = given or Given()
    best: dict[str, _Column] = {}
    unmapped: list[str] = []
    settings: dict[str, Setting] = {}
    twice = 0
    last = max((int(s.steps.max()) for log in logs for s in log.series.values() if len(s)), default=0)
    for order, log in enumerate(logs):
        table = lookup.choose(log.source, log.series, names.TABLES)
        settings = {**_settings(log, table), **settings}
        for key, series in log.series.items():
            column = _column(log, table, key, series, given)
            if column is None:
                unmapped.append(key)
                continue
            # One of four environments' own log counts a quarter of the run's steps.
            spans = len(series) > 0 and series.steps.max() >= SPANS * last
            numbers = int(np.isfinite(series.values).sum())
            column = replace(column, rank=(bool(spans), numbers, -order))
            twice += column.name in best
            if column.name not in best or column.rank > best[column.name].rank:
                best[column.name] = column
    settings |= given.settings
    return _finish(best, settings, given, lifecycle, logs, tuple(unmapped), twice, name)


def _column(
    log: Log, table: Table | None, key: str, series: Series, given: Given
) -> _Column | None:
    found = _meaning(table, key, given)
    if found is None:
        return None
    metric, name, framework = found
    values = series.values if name.scale == 1.0 else name.scale * series.values
    measured = Measured(framework, key, name.how, name.estimator, name.window, log.where)
    return _Column(metric, Series(series.steps, series.times, values), measured)


def _meaning(table: Table | None, key: str, given: Given) -> tuple[str, Name, str] | None:
    if metric := given.mapping.get(key):
        return metric.name, Name(metric, "as mapped by you"), "yours"
    for candidate in (table, names.GENERIC):
        if candidate is not None and (found := lookup.find(candidate, key)):
            return *found, candidate.framework
    return None


def _settings(log: Log, table: Table | None) -> dict[str, Setting]:
    """Translate a log's settings; a name that no table knows keeps its own."""
    known = {**names.GENERIC.settings, **(table.settings if table else {})}
    return {known.get(key, key): value for key, value in log.settings.items()}


def _finish(  # noqa: PLR0913 - the parts of one noun, gathered by the one caller above
    best: Mapping[str, _Column],
    settings: Mapping[str, Setting],
    given: Given,
    lifecycle: Lifecycle | None,
    logs: Sequence[Log],
    unmapped: tuple[str, ...],
    twice: int,
    name: str,
) -> Trace:
    straight = {key: seams.straighten(column.series) for key, column in best.items()}
    measured = {key: column.measured for key, column in best.items()}
    own_notes = [f"{log.where}: {note}" if log.where else note for log in logs for note in log.notes]
    if twice:
        own_notes.append(
            f"{twice} metrics stand in more than one place; each is read from the fullest"
        )
    resumed = max((s.seams for s in straight.values()), key=len, default=())
    for step in resumed:
        own_notes.append(f"resumed at step {step:,}: the later attempt is judged")
    shuffled = max((s.shuffled for s in straight.values()), default=0)
    if shuffled:
        own_notes.append(f"steps go back in {shuffled} places: judged in the order of steps")
    life = lifecycle or Lifecycle(attempts=1 + len(resumed))
    total = settings.get("total_steps")
    budget = None
    if isinstance(total, int | float) and not isinstance(total, bool) and 0 < total < np.inf:
        budget = Budget(int(total), "the run's total_steps")
    return Trace(
        series={key: s.series for key, s in straight.items() if len(s.series)},
        measured=measured,
        settings=dict(settings),
        profile=given.profile or profile.infer(best.keys(), measured, settings),
        budget=budget,
        lifecycle=life,
        notes=tuple(own_notes),
        unmapped=unmapped,
        step_unit=next((log.step_unit for log in logs if log.step_unit != "steps"), "steps"),
        name=name,
    )

