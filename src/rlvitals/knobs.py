"""The settings that remedies name, in the words of the framework that the run was made with.

A remedy writes `{learning_rate}`, or `{n_epochs:fewer epochs per batch}` for its own words: the
name is a canonical setting's. `{kl_coef|beta}` is the first of the two that the framework or the
run has. What a person reads is "lower the learning rate (lr, now 0.09)".
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from rlvitals import metrics
from rlvitals.metrics.names import TABLES
from rlvitals.metrics.names.name import Table
from rlvitals.records import Setting, Trace

PLACE = re.compile(r"\{(\w+(?:\|\w+)*)(?::([^{}]+))?\}")
# Settings that trainers log beside their metrics, because schedules may change them.
LOGGED = {
    "learning_rate": "optimiser/learning_rate",
    "clip_range": "policy/clip_range",
    "entropy_coef": "exploration/entropy_coef",
    "kl_coef": "policy/kl_coef",
    "temperature": "exploration/temperature",
}


@dataclass(frozen=True, slots=True)
class Knob:
    """A setting as the run's framework has it."""

    setting: str  # canonical
    framework: str = ""  # its title; empty where the framework or its name for this is not known
    key: str = ""
    value: Setting | None = None  # the run's own, where it is known


def neutral(remedy: str) -> str:
    """Write a remedy in everybody's words."""
    return PLACE.sub(_words, remedy)


def named(remedy: str) -> tuple[str, ...]:
    """Return the canonical settings that a remedy names."""
    return tuple(name for found in PLACE.finditer(remedy) for name in found[1].split("|"))


def fill_in(remedies: Iterable[str], trace: Trace) -> tuple[tuple[str, ...], tuple[Knob, ...]]:
    """Write remedies for a run, and return the knobs they name; each is shown where first named."""
    knobs: dict[str, Knob] = {}

    def write(found: re.Match[str]) -> str:
        words = _words(found)
        if found[1] in knobs:
            return words
        choice = [knob(name, trace) for name in found[1].split("|")]
        known = (one for one in choice if one.key or one.value is not None)
        knobs[found[1]] = next(known, choice[0])
        shown = _shown(knobs[found[1]], words)
        return f"{words} ({shown})" if shown else words

    return tuple(PLACE.sub(write, remedy) for remedy in remedies), tuple(knobs.values())


def knob(setting: str, trace: Trace) -> Knob:
    """Look a setting up in the run's framework and in the run."""
    table = framework(trace)
    key = next((k for k, name in table.settings.items() if name == setting), "") if table else ""
    return Knob(
        setting,
        table.title if table and key else "",
        key.replace("/", "."),  # nested settings are joined by a slash as they are read
        _value(setting, trace),
    )


def framework(trace: Trace) -> Table | None:
    """Return the table that most of a trace's metrics were named by."""
    seen = Counter(measured.framework for measured in trace.measured.values())
    by_name = {table.framework: table for table in TABLES}
    return next((by_name[name] for name, _ in seen.most_common() if name in by_name), None)


def _value(setting: str, trace: Trace) -> Setting | None:
    series = trace.get(LOGGED.get(setting, ""))
    if series is not None and len(found := series.finite()):
        return float(found.values[-1])
    return trace.settings.get(setting)


def _words(found: re.Match[str]) -> str:
    if found[2]:
        return found[2]
    name = found[1].split("|")[0]
    metric = metrics.find(name)
    title = metric.title if metric else name
    return f"the {title if title[:2].isupper() else title[0].lower() + title[1:]}"


def _shown(knob: Knob, words: str) -> str:
    parts = [knob.key] if knob.key and knob.key != words else []
    if knob.value is not None:
        number = isinstance(knob.value, float)
        parts.append(f"now {knob.value:.4g}" if number else f"now {knob.value}")
    return ", ".join(parts)
