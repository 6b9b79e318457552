"""Logs in, Trace out: canonical names, sign and scale, one source for each metric."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rlvitals.metrics import axes, names, profile, seams, written
from rlvitals.metrics.metric import Metric
from rlvitals.metrics.names import lookup
from rlvitals.metrics.names.name import Name, Table
from rlvitals.records import Budget, Lifecycle, Log, Measured, Profile, Series, Setting, Trace

STEPS = "steps"
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
    off: bool = False  # zeros that stand for what the run does not use
    rank: tuple[bool, int, int] = (False, 0, 0)  # spans the run, numbers it holds, the earlier log


@dataclass(slots=True)
class _Gathered:
    """What a pass over the logs collects."""

    best: dict[str, _Column] = field(default_factory=dict)
    settings: dict[str, Setting] = field(default_factory=dict)
    unmapped: list[str] = field(default_factory=list)
    twice: set[str] = field(default_factory=set)  # metrics that several columns claim to be
    step_unit: str = STEPS
    logs: Sequence[Log] = ()  # as read, each on its main steps


def trace(
    logs: Sequence[Log],
    given: Given | None = None,
    *,
    name: str = "",
    lifecycle: Lifecycle | None = None,
) -> Trace:
    """Name the columns of a run's logs canonically; what no table covers is listed.

    A metric that several logs or keys hold is taken once, from the column with most numbers
    among those that span the run.
    """
    given = given or Given()
    found = _gather(logs, given)
    straight = {key: seams.straighten(column.series) for key, column in found.best.items()}
    measured = {key: column.measured for key, column in found.best.items()}
    resumed = max((s.seams for s in straight.values()), key=len, default=())
    shuffled = max((s.shuffled for s in straight.values()), default=0)
    settings = {**found.settings, **given.settings}
    return Trace(
        series={key: s.series for key, s in straight.items() if len(s.series)},
        measured=measured,
        settings=settings,
        profile=given.profile or profile.infer(found.best.keys(), measured, settings),
        budget=_budget(settings.get("total_steps")),
        lifecycle=lifecycle or _lifecycle(logs, attempts=1 + len(resumed)),
        notes=_notes(found.logs, len(found.twice), resumed, shuffled),
        unmapped=tuple(found.unmapped),
        step_unit=next((log.step_unit for log in logs if log.step_unit != STEPS), found.step_unit),
        name=name,
        histograms={key: found for log in logs for key, found in log.histograms.items()},
        texts={key: found for log in logs for key, found in log.texts.items()},
        tables={key: found for log in logs for key, found in log.tables.items()},
    )


def _lifecycle(logs: Sequence[Log], attempts: int) -> Lifecycle:
    """Put together what the logs say of the end: of an exit code 0 no traceback speaks."""
    endings = [log.ending for log in logs if log.ending is not None]
    exit_code = next((e.exit_code for e in endings if e.exit_code is not None), None)
    traceback = next((e.traceback for e in endings if e.traceback), "")
    return Lifecycle(None, exit_code, "" if exit_code == 0 else traceback, attempts)


def _gather(logs: Sequence[Log], given: Given) -> _Gathered:
    """Choose one column for each metric, over all logs of a run."""
    tables = [lookup.choose(log.source, log.series, names.TABLES) for log in logs]
    logs = [axes.aligned(log, table) for log, table in zip(logs, tables, strict=True)]
    found = _Gathered(logs=logs)
    last = max((int(s.steps.max()) for g in logs for s in g.series.values() if len(s)), default=0)
    main = next((table for table in tables if table is not None), None)
    found.step_unit = next((t.step_unit for t in tables if t is not None and t.step_unit), STEPS)
    for order, (log, own) in enumerate(zip(logs, tables, strict=True)):
        table = own or main  # a file of settings speaks as the run's logs do
        found.settings = {**_settings(log, table), **found.settings}
        for key, series in log.series.items():
            column = _column(log, table, key, series, given)
            if column is None:
                found.unmapped.append(key)
                continue
            if column.off:
                continue
            # One of four environments' own log counts a quarter of the run's steps.
            spans = len(series) > 0 and series.steps.max() >= SPANS * last
            numbers = int(np.isfinite(series.values).sum())
            column = replace(column, rank=(bool(spans), numbers, -order))
            best = found.best.setdefault(column.name, column)
            if best is not column:
                found.twice.add(column.name)
            if column.rank > best.rank:
                found.best[column.name] = column
    return found


def _column(
    log: Log, table: Table | None, key: str, series: Series, given: Given
) -> _Column | None:
    found = _meaning(table, key, given)
    if found is None:
        return None
    metric, name, framework = found
    values = series.values if name.scale == 1.0 else name.scale * series.values
    measured = Measured(framework, key, name.how, name.estimator, name.window, log.where)
    off = name.zero_if_off and not np.any(values)
    return _Column(metric, Series(series.steps, series.times, values), measured, off)


def _meaning(table: Table | None, key: str, given: Given) -> tuple[str, Name, str] | None:
    if metric := given.mapping.get(key):
        return metric.name, Name(metric, "as mapped by you"), "yours"
    for candidate in (table, names.GENERIC):
        if candidate is not None and (found := lookup.find(candidate, key)):
            return *found, candidate.framework
    return None


def _settings(log: Log, table: Table | None) -> dict[str, Setting]:
    """Translate a log's settings; a name that no table knows keeps its own."""
    found: dict[str, Setting] = {}
    for key, value in (written.settings(log.texts) | dict(log.settings)).items():
        own = lookup.setting(table, key) if table else None
        found[own or lookup.setting(names.GENERIC, key) or key] = value
    return found


def _notes(
    logs: Sequence[Log], twice: int, resumed: Sequence[int], shuffled: int
) -> tuple[str, ...]:
    said = [f"{g.where}: {note}" if g.where else note for g in logs for note in g.notes]
    if twice:
        stand = "metrics stand" if twice > 1 else "metric stands"
        said.append(f"{twice} {stand} in more than one place; each is read from the fullest")
    said += [f"resumed at step {step:,}: the later attempt is judged" for step in resumed]
    if shuffled:
        said.append(f"steps go back in {shuffled} places: judged in the order of steps")
    return tuple(said)


def _budget(total: Setting | None) -> Budget | None:
    if isinstance(total, int | float) and not isinstance(total, bool) and 0 < total < np.inf:
        return Budget(int(total), "the run's total_steps")
    return None
