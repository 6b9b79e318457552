"""Load a rule's trace as a user's log would be loaded: reader, names, settings beside it."""

import tomllib
from dataclasses import replace
from functools import cache
from pathlib import Path

from rlvitals.metrics.canonicalize import Given, trace
from rlvitals.readers.select import reader_of
from rlvitals.rules import CATALOGUE
from rlvitals.rules.rate import FAMILIES, Rate
from rlvitals.types import Profile

# As if every rule had been measured: what a run is told must not change with the next measurement.
MEASURED = {rule.name: tuple(Rate(f, 20) for f in set(FAMILIES.values())) for rule in CATALOGUE}
TRACES = Path(__file__).parent / "traces"
RUNS = Path(__file__).parent / "runs"
TRAPS = Path(__file__).parent / "traps"


def read_log(path):
    """Read one log file from its start with the reader that claims it."""
    return reader_of(path).read(path, None)[0]


def load(rule_name, which):
    """Read `tests/traces/<rule>/<which>.*` with the settings that its trace.toml says."""
    return _load(TRACES / rule_name / "trace.toml", which, which)


def load_run(name):
    """Read `tests/runs/<name>/run.*` with the settings that its run.toml says."""
    return _load(RUNS / name / "run.toml", "run", name)


def load_trap(name):
    """Read `tests/traps/<name>/run.*`: a run by which rules were once misled."""
    return _load(TRAPS / name / "run.toml", "run", name)


def recipe(name):
    """What a run's run.toml says of it."""
    return tomllib.loads((RUNS / name / "run.toml").read_text())["run"]


def read_recorded(which, name):
    """The log of a run ("run") or of a rule's trace ("fires"), and what is known beside it."""
    folder = RUNS if which == "run" else TRACES
    return _recorded(folder / name / ("run.toml" if which == "run" else "trace.toml"), which)


def _recorded(file, which):
    found = sorted(file.parent.glob(f"{which}.*"))
    log = next(path for path in found if path.suffix not in {".txt", ".toml"})
    made = _stated(file)[which]
    profile = Profile(made["profile"]) if "profile" in made else None
    return _committed_log(log), Given(settings=dict(made.get("settings", {})), profile=profile)


@cache
def _committed_log(path):
    return read_log(path)


@cache
def _stated(file):
    return tomllib.loads(file.read_text())


def _load(file, which, name):
    log, given = _recorded(file, which)
    loaded = trace([log], given, name=name)
    stated = _stated(file)[which]
    lifecycle = replace(
        loaded.lifecycle,
        silence=stated.get("silence"),  # s, of a run that was watched
        live=stated.get("live", loaded.lifecycle.live),  # whether the run is said to go on
    )
    return replace(loaded, lifecycle=lifecycle)
