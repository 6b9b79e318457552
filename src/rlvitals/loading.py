"""Path in, traces out: the one place where settings, files and the clock meet the pipeline."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from rlvitals import metrics, rules, sources
from rlvitals.errors import UsageError, nearest
from rlvitals.metrics import assemble
from rlvitals.metrics.assemble import Given
from rlvitals.metrics.metric import Metric
from rlvitals.metrics.names import TABLES, lookup
from rlvitals.records import Log, Profile, Setting, Trace
from rlvitals.rules.rule import Rule
from rlvitals.settings import Settings
from rlvitals.sources import Run

SAID = "--set, RLVITALS_SETTINGS or [settings] in rlvitals.toml"
POSITIVE = ("total_steps", "total_episodes", "total_epochs", "n_actions", "target_kl", "kl_target")


def runs(path: Path) -> tuple[Run, ...]:
    """Find the runs at a path. Raises UnreadableLog where there is none."""
    return sources.find(path)


def load(run: Run, given: Given, now: float | None = None) -> Trace:
    """Read a run's files and name what they hold; its age is counted up to `now`, in epoch s."""
    logs = sources.read(run)
    trace = assemble.trace(logs, given, name=run.name)
    age = _age(logs, (file for file, _ in run.files), time.time() if now is None else now)
    notes = (*trace.notes, *_unused(logs, given.mapping))
    return replace(trace, lifecycle=replace(trace.lifecycle, age=age), notes=notes)


def given(chosen: Settings) -> Given:
    """Check what a person says about a run. Raises UsageError for a name nobody knows."""
    return Given(
        mapping={key: _metric(name) for key, name in chosen.metrics.items()},
        settings={**_priced(chosen), **canonical(chosen.settings)},
        profile=Profile(chosen.diagnose.profile) if chosen.diagnose.profile else None,
    )


def _priced(chosen: Settings) -> dict[str, Setting]:
    return {"price_per_hour": chosen.diagnose.price} if chosen.diagnose.price else {}


def canonical(said: Mapping[str, Setting]) -> dict[str, Setting]:
    """Give settings their canonical names; a framework's own name for one is understood."""
    known = {metric.name for metric in metrics.CATALOGUE if metric.kind == "setting"}
    found: dict[str, Setting] = {}
    for key, value in said.items():
        foreign = (lookup.setting(table, key) for table in TABLES)
        name = key if key in known else next(filter(None, foreign), None)
        if name is None:
            own = {key for table in TABLES for key in table.settings}
            hint = nearest(key, known | own) or "rlvitals metrics"
            raise UsageError(f"no setting is called {key!r}", where=SAID, hint=hint)
        found[name] = value
    for key, value in found.items():
        _check_number(key, value)
    return found


def _check_number(name: str, value: Setting) -> None:
    """Refuse a text for what is measured in a unit, and less than one of what is counted."""
    metric = metrics.find(name)
    unit = metric.unit if metric else ""
    if unit and isinstance(value, str | bool):
        raise UsageError(f"{name} cannot be {value!r}", where=SAID, hint="a number")
    if name in POSITIVE and not isinstance(value, str) and value <= 0:
        raise UsageError(f"{name} cannot be {value}", where=SAID, hint="a number above 0")


def chosen_rules(only: Sequence[str] = (), ignore: Sequence[str] = ()) -> tuple[Rule, ...]:
    """Pick rules by name. Raises UsageError for a name no rule has."""
    known = {rule.name for rule in rules.CATALOGUE}
    for flag, names in (("--only", only), ("--ignore", ignore)):
        for name in names:
            if name not in known:
                hint = nearest(name, known) or "rlvitals rules"
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


def _unused(logs: Sequence[Log], mapping: Mapping[str, Metric]) -> Iterable[str]:
    logged = {key for log in logs for key in log.series}
    for key in mapping:
        if key not in logged:
            guess = nearest(key, logged)
            yield f"{key} is mapped but not in the log" + (f": {guess}" if guess else "")


def _age(logs: Sequence[Log], files: Iterable[Path], now: float) -> float | None:
    """Seconds since the newest wall time that was logged, else since a file was written."""
    newest = [
        float(times.max())
        for log in logs
        for series in log.series.values()
        if len(times := series.times[np.isfinite(series.times)])
    ]
    last = max(newest, default=None)
    if last is None:
        last = max((f.stat().st_mtime for f in files if f.exists()), default=None)
    return None if last is None else max(0.0, now - last)
