"""Path in, traces out: the one place where settings, files and the clock meet the pipeline."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rlvitals import metrics, rules
from rlvitals.diagnosis import duplicates
from rlvitals.errors import UnreadableLog, UsageError, nearest
from rlvitals.hosted import address as hosted
from rlvitals.metrics import canonicalize
from rlvitals.metrics.canonicalize import Given
from rlvitals.metrics.catalogue.outcome import RETURN, REWARD
from rlvitals.metrics.frameworks import TABLES, lookup
from rlvitals.metrics.metric import Metric
from rlvitals.options import Mute
from rlvitals.readers.discovery import sources
from rlvitals.readers.discovery.sources import Run
from rlvitals.rollouts import rollout_index
from rlvitals.rollouts.rollout_columns import Rollouts
from rlvitals.rollouts.series import to_log
from rlvitals.rules.going_on import MAX_LIVE_SILENCE_S, describe_end
from rlvitals.rules.rule import Rule, Threshold
from rlvitals.settings import Settings
from rlvitals.storage import events
from rlvitals.storage.events import Event
from rlvitals.storage.run_folder import EVENTS_FILE, RUN_FILE, read_about
from rlvitals.tracking import clock, liveness
from rlvitals.types import Lifecycle, Log, Profile, Series, Setting, Trace

if TYPE_CHECKING:
    from rlvitals.comparison.grouping import Member

SETTINGS_FROM = "--set, RLVITALS_SETTINGS or [settings] in rlvitals.toml"
THRESHOLDS_FROM = "--threshold, RLVITALS_THRESHOLDS or [thresholds] in rlvitals.toml"
GRPO_SUFFIX, RUN_SEED_SUFFIX = re.compile(r"-grpo(?=-\d+$)"), re.compile(r"-\d+$")
POSITIVE_SETTINGS = (
    "total_steps", "total_episodes", "total_epochs", "n_actions", "target_kl", "kl_target",
)  # fmt: skip


def runs(path: Path) -> tuple[Run, ...]:
    """Find the runs at a path or a hosted address, fetched first. Raises VitalsError.

    Rollouts without a log are a run without files.
    """
    address = hosted.parse(path)
    if address is None:
        path = _find_spelling(path)
        try:
            return sources.find(path)
        except UnreadableLog:
            with suppress(OSError):  # a name too long, a folder that may not be read
                if path.exists() and rollout_index.find(path):
                    return (Run(path.name, path, ()),)
            raise
    from rlvitals.hosted.fetch import fetch  # noqa: PLC0415 - a local run needs no client

    return sources.find(fetch(address))


def _find_spelling(path: Path) -> Path:
    """Return a folder that is not there under the other name that trainers give the plain mode.

    GRPO's results lie in `NAME-grpo-SEED` or in `NAME-SEED`, where the other modes have their name.
    """
    if os.path.lexists(path):
        return path
    without = GRPO_SUFFIX.sub("", path.name)
    alternative = path.with_name(without) if without != path.name else None
    if alternative is None and (seed := RUN_SEED_SUFFIX.search(path.name)) is not None:
        alternative = path.with_name(f"{path.name[: seed.start()]}-grpo{seed[0]}")
    return alternative if alternative is not None and os.path.lexists(alternative) else path


def load(run: Run, overrides: Given, now: float | None = None, *, thin: bool = False) -> Trace:
    """Read a run's files and name what they hold; `thin`: as `sources.read` does.

    `now`, in epoch s, is what heartbeats and the rows of a live run are held against (default:
    that of `overrides`, else the clock's).
    """
    return build_trace(run, _logs(run, thin=thin), overrides, now)


def _logs(run: Run, *, thin: bool) -> tuple[Log, ...]:
    """Read a run's log files, and what its saved rollouts count. Raises UnreadableLog."""
    if not run.files:
        return (to_log(rollout_index.read(run.root)),)
    saved = rollouts(run)
    logs = sources.read(run, thin=thin)
    return logs if saved is None else (*logs, to_log(saved))


def rollouts(run: Run) -> Rollouts | None:
    """Index a run's saved rollouts; None where there are none, or they may be another run's."""
    if run.shares_folder or (saved := rollout_index.of_run(run.root)) is None:
        return None
    is_named = run.shares_folder is None  # by its file: nobody has looked at its siblings
    return None if is_named and sources.has_rival(run.files[0][0]) else saved


def unmapped_series(run: Run, overrides: Given, trace: Trace) -> dict[str, Series]:
    """Read what a run logged under keys that no table knows; nothing is read where there are none.

    A page alone shows them: a trace that is judged does not carry them along.
    """
    return canonicalize.unmapped_columns(_logs(run, thin=True), overrides) if trace.unmapped else {}


def members(
    path: Path,
    overrides: Given,
    seen_runs: set[tuple[Path, str]],
    ray_address: str | None = None,
) -> "tuple[list[Member], list[UnreadableLog]]":
    """Read the runs at a path to be compared, and the errors of those that cannot be read.

    A run that was `seen_runs` at another path already is not read again; one that several trackers
    logged into folders of their own counts once. `ray_address` is that of a Ray cluster to read
    on, "" for one on this machine, None for none.
    """
    new_runs: list[Run] = []
    try:
        found_runs = runs(path)
    except UnreadableLog as error:
        return [], [error]
    for run in found_runs:
        if (key := (run.root.absolute(), run.name)) in seen_runs:
            continue
        seen_runs.add(key)
        new_runs.append(run)
    read = partial(_load_or_error, overrides)
    if ray_address is None:
        results = [read(run) for run in new_runs]
    else:
        from rlvitals.diagnosis.ray_map import ray_map  # noqa: PLC0415 - it is seldom asked for

        results = [*ray_map(read, new_runs, ray_address, path_of=lambda run: run.root)]
    traces = {i: trace for i, trace in enumerate(results) if isinstance(trace, Trace)}
    copies = duplicates.find(
        {i: duplicates.identify(new_runs[i].trackers, trace) for i, trace in traces.items()}
    )
    from rlvitals.comparison.grouping import Member  # noqa: PLC0415 - one run is compared to none

    loaded = [Member(trace, str(path)) for i, trace in traces.items() if i not in copies]
    return loaded, [error for error in results if isinstance(error, UnreadableLog)]


def _load_or_error(overrides: Given, run: Run) -> Trace | UnreadableLog:
    try:
        return load(run, overrides)
    except UnreadableLog as error:
        return error


def facts(run: Run) -> dict[str, object]:
    """Return what was recorded of a run's code, packages and machine; empty where nothing was."""
    file = _run_file(run)
    if file is None:
        return {}
    try:
        record = read_about(file)
    except UnreadableLog:
        return {}
    return {**record.more, "git": record.git, "host": record.host, "command": record.command}


def read_events(run: Run) -> tuple[Event, ...]:
    """Return what was recorded to have happened to a run; empty where nothing was."""
    file = _run_file(run)
    if file is None:
        return ()
    try:
        return events.read(file.with_name(EVENTS_FILE)).events
    except OSError:
        return ()


def _run_file(run: Run) -> Path | None:
    return next((file for file, _ in run.files if file.name == RUN_FILE), None)


def build_trace(
    run: Run,
    logs: Sequence[Log],
    overrides: Given,
    now: float | None = None,
    grew: float | None = None,
) -> Trace:
    """Name what a run's logs hold. `grew`: when they were last seen to grow, in epoch s."""
    trace = with_every_return(canonicalize.trace(logs, overrides, name=run.name))
    notes = (*trace.notes, *_unmatched_keys(logs, overrides.mapping))
    if now is None:
        now = clock.now() if overrides.now is None else overrides.now
    # The newest wall time that was logged, in epoch s; None where rows have none.
    newest = max(
        (
            float(np.max(series.times, where=np.isfinite(series.times), initial=-np.inf))
            for log in logs
            for series in log.series.values()
        ),
        default=-np.inf,
    )
    last_row = newest if isfinite(newest) else None
    lifecycle = replace(trace.lifecycle, last_row=last_row)
    lifecycle = _with_processes(lifecycle, logs, now, live=overrides.live is True)
    lifecycle = _with_liveness(lifecycle, overrides, now, grew)
    trace = replace(trace, lifecycle=lifecycle, thresholds=overrides.thresholds)
    ending = "" if lifecycle.failed else describe_end(trace)
    return replace(trace, notes=(*notes, *([f"ended: {ending}"] if ending else ())))


def with_every_return(trace: Trace) -> Trace:
    """Return a run whose returns are those of a denser log of the same, if it has one.

    A program prints the reward of every twentieth episode and writes that of each to a table: the
    printed returns are the same numbers, at some of the steps.
    """
    printed, table = trace.get(RETURN.name), trace.get(REWARD.name)
    # With less than twice the points, neither log is a part of the other.
    if printed is None or table is None or not len(printed) or len(table) < 2 * len(printed):
        return trace
    _, printed_rows, table_rows = np.intersect1d(printed.steps, table.steps, return_indices=True)
    # A table may hold four significant digits, a print two decimals.
    is_same = np.allclose(printed.values[printed_rows], table.values[table_rows], 1e-3, 0.005)
    if len(printed_rows) < len(printed) or not is_same:
        return trace
    other_series = {key: series for key, series in trace.series.items() if key != REWARD.name}
    measured = {key: source for key, source in trace.measured.items() if key != REWARD.name}
    measured[RETURN.name] = trace.measured[REWARD.name]
    return replace(trace, series={**other_series, RETURN.name: table}, measured=measured)


def _with_processes(cycle: Lifecycle, logs: Sequence[Log], now: float, *, live: bool) -> Lifecycle:
    """Add whether the processes that recorded no end are there; one that failed has said all."""
    processes = [process for log in logs for process in log.processes]
    if cycle.failed or not processes:
        return cycle
    status = liveness.check_processes(processes, now, cycle.last_row, live=live)
    return replace(
        cycle,
        lost=status.lost,
        alive=status.alive,
        beat_age=status.beat_age,
        end_step=status.step if status.lost else cycle.end_step,
    )


def _with_liveness(cycle: Lifecycle, overrides: Given, now: float, grew: float | None) -> Lifecycle:
    """Add whether the run goes on: a recorded end, what a person says, a process, growth."""
    watched, live = grew is not None and now - grew < MAX_LIVE_SILENCE_S, overrides.live
    if cycle.over:
        return cycle
    if live is not None:
        cycle = replace(cycle, live=live, live_by=f"--{'live' if live else 'finished'} says so")
    elif cycle.alive:
        cycle = replace(cycle, live=True, live_by="its process is there")
    elif watched:
        cycle = replace(cycle, live=True, live_by="it grew while it was watched")
    if cycle.live is False or (cycle.live is None and grew is None):
        return cycle
    # What is watched may be logged by a machine whose clock is behind.
    moments = [moment for moment in (cycle.last_row, grew) if moment is not None]
    return replace(cycle, silence=max(0.0, now - max(moments)) if moments else None)


def run_overrides(settings: Settings) -> Given:
    """Check what a person says about a run. Raises UsageError for a name nobody knows."""
    options = settings.diagnose
    if options.live and options.finished:
        raise UsageError(
            "a run cannot be both live and finished", where="--live, --finished", hint="one of them"
        )
    price = {"price_per_hour": settings.diagnose.price} if settings.diagnose.price else {}
    return Given(
        live=True if options.live else False if options.finished else None,
        now=clock.now(options.now) if options.now else None,
        mapping={key: _metric(name) for key, name in settings.metrics.items()},
        settings={**price, **canonical(settings.settings)},
        profile=Profile(settings.diagnose.profile) if settings.diagnose.profile else None,
        thresholds=thresholds(settings.thresholds),
    )


def thresholds(values: Mapping[str, float]) -> dict[str, float]:
    """Check the numbers that rules are to judge by. Raises UsageError for what no rule has."""
    by_name = {
        threshold.name: threshold for rule in rules.CATALOGUE for threshold in rule.thresholds
    }
    for name, value in values.items():
        if name not in by_name:
            raise UsageError(
                f"no rule judges by {name!r}", where=THRESHOLDS_FROM, hint=_judged_by(name, by_name)
            )
        if not by_name[name].allows(value):
            raise UsageError(
                f"{name} cannot be {value:g}",
                where=THRESHOLDS_FROM,
                hint=_describe_range(by_name[name]),
            )
    return dict(values)


def _judged_by(name: str, by_name: Mapping[str, Threshold]) -> str:
    """Name the nearest threshold; of a rule that is named rightly, all that it has."""
    rule, _, suffix = name.partition(".")
    own_names = [name_known for name_known in by_name if name_known.startswith(f"{rule}.")]
    if own_names:
        suffixes = [name_known.removeprefix(f"{rule}.") for name_known in own_names]
        return nearest(suffix, suffixes) or f"one of {', '.join(own_names)}"
    if not own_names and any(name_known.name == rule for name_known in rules.CATALOGUE):
        return f"{rule} has no number to set: rlvitals explain {rule}"
    return nearest(name, by_name) or "rlvitals explain RULE lists a rule's numbers"


def _describe_range(threshold: Threshold) -> str:
    ends = (
        f"from {threshold.low:g} to {threshold.high:g}"
        if isfinite(threshold.high)
        else f"{threshold.low:g} or more"
    )
    return f"{ends}: {threshold.doc} ({threshold.default:g} by default)"


def check_mutes(mutes: Sequence[Mute]) -> tuple[Mute, ...]:
    """Check the names of muted rules. Raises UsageError for one that no rule has."""
    rule_names = {rule.name for rule in rules.CATALOGUE}
    for mute in mutes:
        if mute.rule not in rule_names:
            hint = nearest(mute.rule, rule_names) or "rlvitals rules"
            raise UsageError(f"no rule is called {mute.rule!r}", where=mute.where, hint=hint)
    return tuple(mutes)


def canonical(settings: Mapping[str, Setting]) -> dict[str, Setting]:
    """Give settings their canonical names; a framework's own name for one is understood."""
    names = {metric.name for metric in metrics.CATALOGUE if metric.kind == "setting"}
    result: dict[str, Setting] = {}
    for key, value in settings.items():
        foreign = (lookup.setting(table, key) for table in TABLES)
        name = key if key in names else next(filter(None, foreign), None)
        if name is None:
            native_names = {key for table in TABLES for key in table.settings}
            hint = nearest(key, names | native_names) or "rlvitals metrics"
            raise UsageError(f"no setting is called {key!r}", where=SETTINGS_FROM, hint=hint)
        result[name] = value
    for key, value in result.items():
        # No text for what is measured in a unit, and not less than one of what is counted.
        catalogued = metrics.find(key)
        unit = catalogued.unit if catalogued else ""
        if unit and isinstance(value, str | bool):
            raise UsageError(f"{key} cannot be {value!r}", where=SETTINGS_FROM, hint="a number")
        if key in POSITIVE_SETTINGS and not isinstance(value, str) and value <= 0:
            raise UsageError(
                f"{key} cannot be {value}", where=SETTINGS_FROM, hint="a number above 0"
            )
    return result


def chosen_rules(only: Sequence[str] = (), ignore: Sequence[str] = ()) -> tuple[Rule, ...]:
    """Pick rules by name. Raises UsageError for a name no rule has."""
    rule_names = {rule.name for rule in rules.CATALOGUE}
    for flag, names in (("--only", only), ("--ignore", ignore)):
        for name in names:
            if name not in rule_names:
                hint = nearest(name, rule_names) or "rlvitals rules"
                raise UsageError(f"no rule is called {name!r}", where=flag, hint=hint)
    return tuple(
        rule
        for rule in rules.CATALOGUE
        if rule.name not in ignore and (not only or rule.name in only)
    )


def _metric(name: str) -> Metric:
    metric = metrics.find(name)
    if metric is None:
        hint = nearest(name, (m.name for m in metrics.CATALOGUE)) or "rlvitals metrics"
        raise UsageError(f"no metric is called {name!r}", where="--map", hint=hint)
    # A family's member keeps its own part of the name.
    return replace(metric, name=name, family=False) if metric.family else metric


def _unmatched_keys(logs: Sequence[Log], mapping: Mapping[str, Metric]) -> Iterable[str]:
    logged = {key for log in logs for key in log.series}
    for key in mapping:
        if key not in logged:
            guess = nearest(key, logged)
            yield f"{key} is mapped but not in the log" + (f": {guess}" if guess else "")
