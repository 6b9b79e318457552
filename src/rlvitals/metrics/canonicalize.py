"""Logs in, Trace out: canonical names, sign and scale, one count of steps, one source for each
metric.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rlvitals.metrics import frameworks, outcome_words, profile
from rlvitals.metrics.frameworks import lookup
from rlvitals.metrics.frameworks.key import Name, Table
from rlvitals.metrics.metric import Metric
from rlvitals.metrics.steps import align, axis, resume
from rlvitals.metrics.steps.align import UNSAID, Clock, Source
from rlvitals.types import (
    Budget,
    Histogram,
    Lifecycle,
    Log,
    Measured,
    Profile,
    Series,
    Setting,
    Trace,
)

# The same metrics once more, of another process; and other counts that rows stand at.
BESIDE = re.compile(r"rank/\d+/|axis/")
ADDED = re.compile(rf"{BESIDE.pattern}|machine/")
PERCENT = 100.0
MAX_NAMED = 5  # keys that a note names
BY_HAND = "KeyboardInterrupt"
SPANS = 0.5  # of the run's last step: a column that ends before counts other steps, or stopped


@dataclass(frozen=True, slots=True)
class Given:
    """What a person says about a run: it overrules what the log says."""

    mapping: Mapping[str, Metric] = field(default_factory=dict)  # key in the log -> metric
    settings: Mapping[str, Setting] = field(default_factory=dict)  # canonical names
    profile: Profile | None = None
    thresholds: Mapping[str, float] = field(default_factory=dict)  # "rule.word" -> number
    live: bool | None = None  # whether the run goes on; None: the evidence decides
    now: float | None = None  # seconds since the epoch at which it is judged; None: the clock's


@dataclass(frozen=True, slots=True)
class _Column:
    """One log's column that claims to be a canonical metric."""

    name: str
    series: Series
    measured: Measured
    off: bool = False  # zeros that stand for what the run does not use, or read under another key
    order: int = 0  # the log, by its place
    rank: tuple[bool, int, int] = (False, 0, 0)  # spans the run, numbers it holds, the earlier log


@dataclass(slots=True)
class _Gathered:
    """What a pass over the logs collects."""

    columns: list[list[_Column]] = field(default_factory=list)  # of each log
    settings: dict[str, Setting] = field(default_factory=dict)
    unmapped: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    logs: Sequence[Log] = ()  # each on its main steps, which its table may name


def trace(
    logs: Sequence[Log],
    given: Given | None = None,
    *,
    name: str = "",
    lifecycle: Lifecycle | None = None,
) -> Trace:
    """Name the columns of a run's logs canonically; what no table covers is listed.

    A metric that several logs or keys hold is taken once, from the column with most numbers
    among those that span the run. Logs that count other steps are brought to one count.
    """
    given = given or Given()
    found = _gather(logs, given)
    sources = _sources(found)
    ticking = align.align(sources)
    logs = [_in_step(log, clock) for log, clock in zip(found.logs, ticking, strict=True)]
    columns = _ranked(found.logs, found.columns, ticking)
    best = _fullest(columns)
    straight = {key: resume.straighten(column.series) for key, column in best.items()}
    measured = {key: column.measured for key, column in best.items()}
    resumed = max((s.seams for s in straight.values()), key=len, default=())
    shuffled = max((s.shuffled for s in straight.values()), default=0)
    settings = {**found.settings, **given.settings}
    notes = (*_notes(logs, resumed, shuffled), *found.notes)
    return Trace(
        series={key: s.series for key, s in straight.items() if len(s.series)},
        measured=measured,
        settings=settings,
        profile=given.profile or profile.infer(best.keys(), measured, settings),
        budget=_budget(settings.get("total_steps")),
        lifecycle=lifecycle or _lifecycle(logs, resumed),
        notes=(*notes, *_merging(logs, ticking, columns, best)),
        unmapped=tuple(dict.fromkeys(found.unmapped)),  # two logs of a run may hold the same
        step_unit=align.unit(sources),
        name=name,
        histograms={key: found for log in logs for key, found in log.histograms.items()},
        texts={key: found for log in logs for key, found in log.texts.items()},
        tables={key: found for log in logs for key, found in log.tables.items()},
    )


def unmapped(logs: Sequence[Log], given: Given) -> dict[str, Series]:
    """Return the columns that no table knows, at the run's steps: shown, never judged."""
    found = _gather(logs, given)
    ticking = align.align(_sources(found))
    unknown = {*found.unmapped}
    return {
        key: resume.straighten(_moved(series, clock)).series
        for log, clock in zip(found.logs, ticking, strict=True)
        for key, series in log.series.items()
        if key in unknown and len(series)
    }


def _lifecycle(logs: Sequence[Log], resumed: tuple[int, ...]) -> Lifecycle:
    """Put together what the logs say of the end: of an exit code 0 no traceback speaks."""
    endings = [log.ending for log in logs if log.ending is not None]
    exit_code = next((e.exit_code for e in endings if e.exit_code is not None), None)
    traceback = next((e.traceback for e in endings if e.traceback), "")
    if exit_code == 0:
        traceback = ""
    elif _by_hand(traceback):
        exit_code, traceback = None, ""
    return Lifecycle(
        exit_code=exit_code,
        traceback=traceback,
        attempts=max([1 + len(resumed), *(log.attempts for log in logs)]),
        seams=resumed,
        ended=bool(endings),
        signal=next((e.signal for e in endings if e.signal), ""),
        reason=next((e.reason for e in endings if e.reason), ""),
        end_step=max((e.step for e in endings if e.step is not None), default=None),
    )


def _by_hand(traceback: str) -> bool:
    """Tell a person's Ctrl-C, which fails nothing."""
    return traceback.strip().rpartition("\n")[2].startswith(BY_HAND)


def _gather(logs: Sequence[Log], given: Given) -> _Gathered:
    """Name the columns and settings of every log."""
    tables = [
        lookup.choose(log.source, _own(log.series), frameworks.TABLES, log.framework)
        for log in logs
    ]
    own_tables = [*zip(logs, tables, strict=True)]
    logs = [_distributions(_on_one_axis(log, table), table, given) for log, table in own_tables]
    found = _Gathered(logs=logs)
    main = next((table for table in tables if table is not None), None)
    for order, (log, own) in enumerate(zip(logs, tables, strict=True)):
        table = own or main  # a file of settings speaks as the run's logs do
        found.settings = {**_settings(log, table), **found.settings}
        named = {key: _column(log, table, key, s, given) for key, s in log.series.items()}
        known = [column for column in named.values() if column is not None and not column.off]
        found.columns.append([replace(column, order=order) for column in known])
        found.unmapped += [
            key for key, column in named.items() if column is None and not BESIDE.match(key)
        ]
    _take_outcomes(found)
    return found


def _take_outcomes(found: _Gathered) -> None:
    """Where no table knows an outcome, take the keys that name one in words of their own."""
    if any(column.name in outcome_words.JUDGED for own in found.columns for column in own):
        return
    for name, (key, others) in outcome_words.choose(found.unmapped).items():
        for order, log in enumerate(found.logs):
            if (series := log.series.get(key)) is None:
                continue
            is_percent = (
                name in outcome_words.SHARES and np.nanmax(series.values, initial=0.0) > 1.0
            )
            values = series.values / PERCENT if is_percent else series.values
            taken = Measured("unknown", key, "taken by its name", where=log.where)
            column = Series(series.steps, series.times, values)
            found.columns[order].append(_Column(name, column, taken, order=order))
        beside = [f"beside it: `{other}`" for other in others[:MAX_NAMED]]
        found.notes.append("; ".join((f"`{key}` is taken for {name} by its name", *beside)))
        found.unmapped = [one for one in found.unmapped if one != key]


def _on_one_axis(log: Log, table: Table | None) -> Log:
    """Put a log's series on its main steps, and say what they are where its reader cannot."""
    log = axis.aligned(log, table)
    log = replace(log, series=resume.without_repeats(log.series))
    if table is None or not table.step_unit or log.step_unit != UNSAID:
        return log
    return replace(log, step_unit=table.step_unit)


def _distributions(log: Log, table: Table | None, given: Given) -> Log:
    """Name a log's histograms canonically, as its series are; one that nobody knows keeps its key.

    Of two keys with one meaning the one that a person has mapped takes its name, else the first.
    """
    named: dict[str, Sequence[Histogram]] = {}
    mapped_first = sorted(log.histograms.items(), key=lambda pair: pair[0] not in given.mapping)
    for key, found in mapped_first:
        meaning = _meaning(table, key, given)
        name = key if meaning is None or meaning[0] in named else meaning[0]
        named[name] = found
    return replace(log, histograms=named)


def _sources(found: _Gathered) -> list[Source]:
    return [
        Source(log.step_unit, {column.name: column.series for column in own})
        for log, own in zip(found.logs, found.columns, strict=True)
    ]


def _moved(series: Series, clock: Clock) -> Series:
    steps = clock.translate(series.steps)
    return series if steps is series.steps else Series(steps, series.times, series.values)


def _at(step: int, clock: Clock) -> int:
    return int(clock.translate(np.array([step], dtype=np.int64))[0])


def _in_step(log: Log, clock: Clock) -> Log:
    """Bring what a log holds beside its series to the run's count of steps."""
    if clock.mine is None:
        return log
    return replace(
        log,
        histograms={
            key: [replace(one, step=_at(one.step, clock)) for one in found]
            for key, found in log.histograms.items()
        },
        texts={
            key: [replace(one, step=_at(one.step, clock)) for one in found]
            for key, found in log.texts.items()
        },
        tables={
            key: replace(found, steps=clock.translate(found.steps))
            for key, found in log.tables.items()
        },
    )


def _ranked(
    logs: Sequence[Log], columns: Sequence[Sequence[_Column]], ticking: Sequence[Clock]
) -> list[list[_Column]]:
    """Bring the columns to one count of steps, and rank them."""
    lasts = (  # a clock never goes back: of a log's steps the highest stays the highest
        _at(max(int(s.steps.max()) for s in log.series.values() if len(s)), clock)
        for log, clock in zip(logs, ticking, strict=True)
        if any(map(len, log.series.values()))
    )
    last = max(lasts, default=0)

    def ranked(column: _Column) -> _Column:
        series = _moved(column.series, ticking[column.order])
        # One of four environments' own log counts a quarter of the run's steps.
        spans = len(series) > 0 and bool(series.steps.max() >= SPANS * last)
        numbers = int(np.isfinite(series.values).sum())
        return replace(column, series=series, rank=(spans, numbers, -column.order))

    return [[ranked(column) for column in own] for own in columns]


def _fullest(columns: Iterable[Sequence[_Column]]) -> dict[str, _Column]:
    """Choose one column for each metric, over all logs of a run."""
    best: dict[str, _Column] = {}
    for column in (column for own in columns for column in own):
        if column.rank > best.setdefault(column.name, column).rank:
            best[column.name] = column
    return best


def _own(keys: Iterable[str]) -> list[str]:
    """Leave out keys that a recorder adds: they do not tell whose names the others are."""
    return [key for key in keys if not ADDED.match(key)]


def _column(
    log: Log, table: Table | None, key: str, series: Series, given: Given
) -> _Column | None:
    found = _meaning(table, key, given)
    if found is None:
        return None
    metric, name, framework = found
    values = series.values if name.scale == 1.0 else name.scale * series.values
    measured = Measured(framework, key, name.how, name.estimator, name.window, log.where)
    off = name.again or (name.zero_if_off and not np.any(values))
    return _Column(metric, Series(series.steps, series.times, values), measured, off)


def _meaning(table: Table | None, key: str, given: Given) -> tuple[str, Name, str] | None:
    if metric := given.mapping.get(key):
        return metric.name, Name(metric, "as mapped by you"), "yours"
    for candidate in (table, frameworks.GENERIC):
        if candidate is not None and (found := lookup.find(candidate, key)):
            return *found, candidate.framework
    return None


def _settings(log: Log, table: Table | None) -> dict[str, Setting]:
    """Translate a log's settings; a name that no table knows keeps its own."""
    found: dict[str, Setting] = {}
    for key, value in log.settings.items():
        own = lookup.setting(table, key) if table else None
        found[own or lookup.setting(frameworks.GENERIC, key) or key] = value
    return found


def _notes(logs: Sequence[Log], resumed: Sequence[int], shuffled: int) -> tuple[str, ...]:
    said = [f"{g.where}: {note}" if g.where else note for g in logs for note in g.notes]
    said += [f"resumed at step {step:,}: the later attempt is judged" for step in resumed]
    said += [
        f"{g.where}: stopped by hand" for g in logs if g.ending and _by_hand(g.ending.traceback)
    ]
    if shuffled:
        said.append(f"steps go back in {shuffled} places: judged in the order of steps")
    return tuple(said)


def _merging(
    logs: Sequence[Log],
    ticking: Sequence[Clock],
    columns: Sequence[Sequence[_Column]],
    best: Mapping[str, _Column],
) -> tuple[str, ...]:
    """Say how several logs became one run."""
    return *_clock_notes(logs, ticking), *_twice(logs, columns, best)


def _clock_notes(logs: Sequence[Log], ticking: Sequence[Clock]) -> Iterable[str]:
    """Say which logs count other steps, and what was done about it."""
    by = {"values": "the values they share", "times": "their wall times"}
    for log, clock in zip(logs, ticking, strict=True):
        name, other = _place(log), _place(logs[clock.to])
        if clock.how in by:
            yield f"{name} counts other steps than {other}: translated by {by[clock.how]}"
        elif clock.how == "unknown":
            yield (
                f"{name} seems to count other steps than {other}, and nothing tells how they go "
                "together: its metrics are judged by its own"
            )


def _twice(
    logs: Sequence[Log], columns: Sequence[Sequence[_Column]], best: Mapping[str, _Column]
) -> Iterable[str]:
    """Say which file's metrics are read from another, and which stand under two keys of one."""
    for log, own in zip(logs, columns, strict=True):
        where = _place(log)
        count = Counter(column.name for column in own)
        lost = [column for column in own if best[column.name].order != column.order]
        if lost:
            yield f"{where}: {_lost(lost, len(count), best, logs)}"
        if twice := sum(number > 1 for number in count.values()):
            yield f"{where}: {twice} metric{'s stand' if twice > 1 else ' stands'} under two keys"


def _lost(
    columns: Sequence[_Column], own: int, best: Mapping[str, _Column], logs: Sequence[Log]
) -> str:
    """Say of how many metrics of a file another was chosen, and why."""
    names = {column.name for column in columns}
    others = dict.fromkeys(_place(logs[best[column.name].order]) for column in columns)
    share = f"{len(names)} of its {own} metrics {'are' if len(names) > 1 else 'is'} read from"
    spans = all(column.rank[0] for column in columns)
    fuller = any(best[column.name].rank[1] > column.rank[1] for column in columns)
    why = ", which spans the run" if not spans else ", which holds more points" if fuller else ""
    return f"{share} {_listed(list(others))}{why if len(others) == 1 else ''}"


def _place(log: Log) -> str:
    return log.where or log.source


def _listed(names: Sequence[str]) -> str:
    """Name one or two things; of more, the first and how many."""
    few = 2
    return " and ".join(names) if len(names) <= few else f"{names[0]} and {len(names) - 1} others"


def _budget(total: Setting | None) -> Budget | None:
    if isinstance(total, int | float) and not isinstance(total, bool) and 0 < total < np.inf:
        return Budget(int(total), "the run's total_steps")
    return None
