"""Convert logs to a Trace: canonical names, signs and scales, one step count, one source each."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from rlvitals.errors import quantity
from rlvitals.metrics import (
    agent_means,
    ending,
    frameworks,
    key_grammar,
    outcome_words,
    profile,
    rank_values,
    win_rates,
)
from rlvitals.metrics.catalogue import outcome
from rlvitals.metrics.frameworks import lookup
from rlvitals.metrics.frameworks.key import Name, Table
from rlvitals.metrics.metric import Metric
from rlvitals.metrics.steps import align, axis, change, resume
from rlvitals.metrics.steps.align import UNKNOWN_UNIT, Clock, Source
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import (
    STOPPED_BY_HAND,
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

# The same metrics from another process; and other step counts of the rows.
OTHER_AXIS_KEY = re.compile(r"rank/\d+/|axis/")


@dataclass(frozen=True, slots=True)
class Given:
    """Overrides by a person, which take precedence over the log."""

    mapping: Mapping[str, Metric] = field(default_factory=dict)  # key in the log -> metric
    settings: Mapping[str, Setting] = field(default_factory=dict)  # canonical names
    profile: Profile | None = None
    thresholds: Mapping[str, float] = field(default_factory=dict)  # "rule.word" -> number
    live: bool | None = None  # True while the run continues; None: decided by the evidence
    now: float | None = None  # seconds since the epoch; None: the clock's


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of one log that maps to a canonical metric."""

    name: str
    series: Series
    measured: Measured
    off: bool = False  # an unused feature logged as zeros, or a duplicate of another key
    order: int = 0  # index of the log
    rank: tuple[bool, int, int] = (False, 0, 0)  # spans the run, finite values, earlier log


@dataclass(slots=True)
class _Gathered:
    """Columns, settings and notes of all logs."""

    columns: list[list[_Column]] = field(default_factory=list)  # per log
    settings: dict[str, Setting] = field(default_factory=dict)
    unmapped: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    logs: list[Log] = field(default_factory=list)  # each on its main steps


def trace(
    logs: Sequence[Log],
    overrides: Given | None = None,
    *,
    name: str = "",
    lifecycle: Lifecycle | None = None,
) -> Trace:
    """Convert a run's logs to a Trace with canonical metrics; list unknown columns in `unmapped`.

    A metric that several logs or keys contain is read from the column with most finite values
    among those that span the run. Logs that count other steps are translated to one count.
    """
    overrides = overrides or Given()
    gathered = _gather(logs, overrides)
    clocks = align.align(sources := _sources(gathered))
    logs = [_in_step(log, clock) for log, clock in zip(gathered.logs, clocks, strict=True)]
    best = _fullest(columns := _rank_columns(gathered.logs, gathered.columns, clocks))
    straight = {key: resume.straighten(column.series) for key, column in best.items()}
    measured = {key: column.measured for key, column in best.items()}
    settings = gathered.settings | dict(overrides.settings)
    notes = (*_notes(logs, [*straight.values()]), *gathered.notes, *_clock_notes(logs, clocks))
    provenance = tuple(_duplicate_notes(logs, columns, best))
    return Trace(
        series={key: s.series for key, s in straight.items() if len(s.series)},
        measured=measured,
        settings=settings,
        profile=overrides.profile or profile.infer(best.keys(), measured, settings),
        budget=budget(settings.get("total_steps")),
        lifecycle=lifecycle
        or ending.lifecycle(logs, max((s.seams for s in straight.values()), key=len, default=())),
        notes=(*notes, *provenance),
        provenance=provenance,
        unmapped=tuple(dict.fromkeys(gathered.unmapped)),  # two logs may contain the same
        step_unit=align.unit(sources),
        name=name,
        histograms={key: value for log in logs for key, value in log.histograms.items()},
        texts={key: value for log in logs for key, value in log.texts.items()},
        tables={key: value for log in logs for key, value in log.tables.items()},
        ranks=rank_values.gather(logs, measured),
    )


def unmapped_columns(logs: Sequence[Log], overrides: Given) -> dict[str, Series]:
    """Return the columns that no table knows, at the run's steps: shown, never judged."""
    gathered = _gather(logs, overrides)
    clocks = align.align(_sources(gathered))
    unknown = {*gathered.unmapped}
    return {
        key: resume.straighten(_translate_series(series, clock)).series
        for log, clock in zip(gathered.logs, clocks, strict=True)
        for key, series in log.series.items()
        if key in unknown and len(series)
    }


def _gather(logs: Sequence[Log], overrides: Given) -> _Gathered:
    """Map the columns and settings of every log to canonical names."""
    tables = []
    for log in logs:  # the keys that a recorder adds do not identify the framework of the others
        keys = [k for k in log.series if not (OTHER_AXIS_KEY.match(k) or k.startswith("machine/"))]
        tables.append(lookup.choose_table(log, keys, frameworks.TABLES))
    own_tables = [*zip(logs, tables, strict=True)]
    logs = [_on_one_axis(log, table, overrides) for log, table in own_tables]
    gathered = _Gathered(logs=list(logs))
    main = next((table for table in tables if table is not None), None)
    for order, (log, log_table) in enumerate(zip(logs, tables, strict=True)):
        table = log_table or main  # a settings file uses the names of the run's logs
        settings: dict[str, Setting] = {}  # unknown ones keep their keys
        for key, value in log.settings.items():
            setting = lookup.setting(table, key) if table else None
            settings[setting or lookup.setting(frameworks.GENERIC, key) or key] = value
        gathered.settings = {**settings, **gathered.settings}
        by_key = {key: _column(log, table, key, s, overrides) for key, s in log.series.items()}
        names = {k: (c.name, c.measured.how) if c else None for k, c in by_key.items()}
        for key, metric in key_grammar.name_keys(table, names):
            measured = Measured("language-words", key, "by the words of its key", where=log.where)
            by_key[key] = _Column(metric, log.series[key], measured)
        if by_key.keys() & {"wins", "won"}:  # then these are games
            by_key.update(dict.fromkeys(by_key.keys() & {"losses", "lost"}))
        usable = [column for column in by_key.values() if column is not None and not column.off]
        gathered.columns.append([replace(column, order=order) for column in usable])
        unknown = [k for k, c in by_key.items() if c is None and not OTHER_AXIS_KEY.match(k)]
        gathered.unmapped += unknown
    _take_outcomes(gathered)
    return gathered


def _take_outcomes(gathered: _Gathered) -> None:
    """Map outcomes by the words of their keys, where no table knows one of training.

    Beside a known outcome of training (no accuracy, which a fit has too), right answers are taken.
    """
    known = {
        column.name
        for columns in gathered.columns
        for column in columns
        if column.name in outcome_words.JUDGED_OUTCOMES
    }
    means: list[str] = []
    if any("eval" not in name for name in known - {outcome.ACCURACY.name}):
        known.update(outcome_words.SCORED_OUTCOMES)
    elif not known:
        gathered.logs, means = agent_means.add_means(gathered.logs, gathered.unmapped)
        gathered.logs, rates = win_rates.add_win_rates(gathered.logs, gathered.unmapped)
        means += rates
    for name, (key, other_keys) in outcome_words.choose([*gathered.unmapped, *means]).items():
        if name in known or (known and "eval" in name):
            continue
        for order, log in enumerate(gathered.logs):
            if (series := log.series.get(key)) is None:
                continue
            if name in outcome_words.SHARE_METRICS and _is_count(key, series):
                continue
            is_percent = (
                name in outcome_words.SHARE_METRICS and np.nanmax(series.values, initial=0.0) > 1.0
            )
            scale = 0.01 if is_percent else 1.0
            measured = Measured("unknown", key, "taken by its name", where=log.where, scale=scale)
            column = change.scale(series, scale)
            gathered.columns[order].append(_Column(name, column, measured, order=order))
        notes = [f"beside it: `{other_key}`" for other_key in other_keys[:5]]
        gathered.notes.append("; ".join((f"`{key}` is taken for {name} by its name", *notes)))
        gathered.unmapped = [k for k in gathered.unmapped if k != key]


def _is_count(key: str, series: Series) -> bool:
    """Return True for a total of wins: above 1, never falling, and its key names no share."""
    values = series.finite().values
    is_share = re.search(r"rate|pct|perc|ratio|%", key, re.IGNORECASE) is not None
    return not is_share and values.max(initial=0.0) > 1.0 and bool((np.diff(values) >= 0).all())


def _on_one_axis(log: Log, table: Table | None, overrides: Given) -> Log:
    """Move a log's series to its main steps; set the unit and the histograms' names by its table.

    Of two keys with one meaning the one that a person has mapped is used, else the first; unknown
    ones are kept.
    """
    log = axis.to_main_steps(log, table)
    by_name: dict[str, Sequence[Histogram]] = {}
    mapped_first = sorted(log.histograms.items(), key=lambda pair: pair[0] not in overrides.mapping)
    for key, histograms in mapped_first:
        meaning = _meaning(table, key, overrides)
        name = key if meaning is None or meaning[0] in by_name else meaning[0]
        by_name[name] = histograms
    says_unit = table is not None and table.step_unit and log.step_unit == UNKNOWN_UNIT
    return replace(
        log,
        series=resume.without_repeats(log.series),
        histograms=by_name,
        step_unit=table.step_unit if table is not None and says_unit else log.step_unit,
    )


def _sources(gathered: _Gathered) -> list[Source]:
    return [
        Source(log.step_unit, {column.name: column.series for column in columns})
        for log, columns in zip(gathered.logs, gathered.columns, strict=True)
    ]


def _translate_series(series: Series, clock: Clock) -> Series:
    return series if clock.mine is None else change.move(series, clock.translate)


def _translate_step(step: int, clock: Clock) -> int:
    return int(clock.translate(np.array([step], dtype=np.int64))[0])


def _in_step(log: Log, clock: Clock) -> Log:
    """Translate the steps of a log's histograms, texts and tables."""
    if clock.mine is None:
        return log
    return replace(
        log,
        histograms={
            key: [replace(item, step=_translate_step(item.step, clock)) for item in items]
            for key, items in log.histograms.items()
        },
        texts={
            key: [replace(item, step=_translate_step(item.step, clock)) for item in items]
            for key, items in log.texts.items()
        },
        tables={
            key: replace(table, steps=clock.translate(table.steps))
            for key, table in log.tables.items()
        },
    )


def _rank_columns(
    logs: Sequence[Log], columns: Sequence[Sequence[_Column]], clocks: Sequence[Clock]
) -> list[list[_Column]]:
    """Translate the columns to one count of steps, and rank them."""
    last_steps = (  # a clock is monotonic: the highest step stays the highest
        _translate_step(max(int(s.steps.max()) for s in log.series.values() if len(s)), clock)
        for log, clock in zip(logs, clocks, strict=True)
        if any(map(len, log.series.values()))
    )
    last = max(last_steps, default=0)

    def rank(column: _Column) -> _Column:
        series = _translate_series(column.series, clocks[column.order])
        # The log of one of four environments counts a quarter of the run's steps.
        # A column that ends before half of the run counts other steps.
        spans = len(series) > 0 and bool(series.steps.max() >= 0.5 * last)
        numbers = series.count - series.bad_count
        return replace(column, series=series, rank=(spans, numbers, -column.order))

    return [[rank(column) for column in log_columns] for log_columns in columns]


def _fullest(columns: Iterable[Sequence[_Column]]) -> dict[str, _Column]:
    """Choose one column for each metric, over all logs of a run."""
    best: dict[str, _Column] = {}
    for column in (column for log_columns in columns for column in log_columns):
        if column.rank > best.setdefault(column.name, column).rank:
            best[column.name] = column
    return best


def _column(
    log: Log, table: Table | None, key: str, series: Series, overrides: Given
) -> _Column | None:
    match = _meaning(table, key, overrides)
    if match is None:
        return None
    metric, name, framework = match
    measured = Measured(
        framework, key, name.how, name.estimator, name.window, log.where, name.scale
    )
    off = name.again or (name.zero_if_off and not np.any(series.values))
    return _Column(metric, change.scale(series, name.scale), measured, off)


def _meaning(table: Table | None, key: str, overrides: Given) -> tuple[str, Name, str] | None:
    if metric := overrides.mapping.get(key):
        return metric.name, Name(metric, "as mapped by you"), "yours"
    for candidate in (table, frameworks.GENERIC):
        if candidate is not None and (match := lookup.find(candidate, key)):
            return *match, candidate.framework
    return None


def _notes(logs: Sequence[Log], straight: Sequence[resume.Straight]) -> tuple[str, ...]:
    shuffled = max((series.shuffled for series in straight), default=0)
    notes = [f"{g.where}: {note}" if g.where else note for g in logs for note in g.notes]
    notes += resume.notes(straight)
    notes += [
        f"{g.where}: {STOPPED_BY_HAND}"
        for g in logs
        if g.ending and ending.is_interrupt(g.ending.traceback)
    ]
    if shuffled:
        notes.append(f"steps go back in {shuffled} places: judged in the order of steps")
    return tuple(notes)


def _clock_notes(logs: Sequence[Log], clocks: Sequence[Clock]) -> Iterable[str]:
    """Describe which logs count other steps, and how they were translated."""
    by = {"values": "the values they share", "times": "their wall times"}
    for log, clock in zip(logs, clocks, strict=True):
        name, reference = _log_name(log), _log_name(logs[clock.to])
        if clock.how in by:
            yield f"{name} counts other steps than {reference}: translated by {by[clock.how]}"
        elif clock.how == "unknown":
            yield (
                f"{name} seems to count other steps than {reference}, and nothing tells how they "
                "go together: its metrics are judged by its own"
            )


def _duplicate_notes(
    logs: Sequence[Log], columns: Sequence[Sequence[_Column]], best: Mapping[str, _Column]
) -> Iterable[str]:
    """Describe metrics that were read from another file, or logged under two keys."""
    for log, log_columns in zip(logs, columns, strict=True):
        log_name = _log_name(log)
        count = Counter(column.name for column in log_columns)
        replaced = [column for column in log_columns if best[column.name].order != column.order]
        if replaced:
            yield f"{log_name}: {_describe_replaced(replaced, len(count), best, logs)}"
        if twice := sum(number > 1 for number in count.values()):
            yield f"{log_name}: {quantity(twice, 'metric')} under two keys"


def _describe_replaced(
    columns: Sequence[_Column], total: int, best: Mapping[str, _Column], logs: Sequence[Log]
) -> str:
    """Describe how many metrics of a file were read from another file, and why."""
    names = {column.name for column in columns}
    other_logs = [*dict.fromkeys(_log_name(logs[best[column.name].order]) for column in columns)]
    share = f"{len(names)} of its {total} metrics {'are' if len(names) > 1 else 'is'} read from"
    spans = all(column.rank[0] for column in columns)
    fuller = any(best[column.name].rank[1] > column.rank[1] for column in columns)
    reason = ", which spans the run" if not spans else ", which holds more points" if fuller else ""
    sources = " and ".join(other_logs)
    if len(other_logs) > 2:
        sources = f"{other_logs[0]} and {quantity(len(other_logs) - 1, 'other')}"
    return f"{share} {sources}{reason if len(other_logs) == 1 else ''}"


def _log_name(log: Log) -> str:
    return log.where or log.source


def budget(total: Setting | None) -> Budget | None:
    """Return the planned length of a run; None where the setting is no number of steps."""
    if isinstance(total, int | float) and not isinstance(total, bool) and 0 < total < np.inf:
        return Budget(int(total), "the run's total_steps")
    return None
