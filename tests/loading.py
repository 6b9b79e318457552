"""Load a rule's trace as a user's log would be loaded: reader, names, settings beside it."""

import tomllib
from pathlib import Path

from rlvitals import readers
from rlvitals.metrics.assemble import Given, trace
from rlvitals.records import Profile

TRACES = Path(__file__).parent / "traces"


def load(rule_name, which):
    """Read `tests/traces/<rule>/<which>.*` with the settings that its trace.toml says."""
    folder = TRACES / rule_name
    log = next(path for path in sorted(folder.glob(f"{which}.*")) if path.suffix != ".txt")
    made = tomllib.loads((folder / "trace.toml").read_text())[which]
    profile = Profile(made["profile"]) if "profile" in made else None
    given = Given(settings=made.get("settings", {}), profile=profile)
    return trace([readers.read(log)], given, name=which)
