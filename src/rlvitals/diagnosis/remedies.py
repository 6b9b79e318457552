"""The settings that remedies name, in the words of the framework that the run was made with.

A remedy writes `{learning_rate}`, or `{n_epochs:fewer epochs per batch}` for its own words: the
name is a canonical setting's. `{kl_coef|beta}` is the first of the two that the framework or the
run has. What a person reads is "lower the learning rate (lr, now 0.09)"; of one that is scheduled
"(lr, 0.0005, scheduled, now 1e-06)", for what is turned is where the schedule begins.
"""

import re
from collections import Counter
from collections.abc import Iterable

import numpy as np

from rlvitals import metrics
from rlvitals.metrics.frameworks import TABLES
from rlvitals.metrics.frameworks.key import Table
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Setting, Trace

SETTING_PLACEHOLDER = re.compile(r"\{(\w+(?:\|\w+)*)(?::([^{}]+))?\}")
# Settings that trainers log beside their metrics, because schedules may change them.
SETTING_METRICS = {
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
    key: str = ""  # the framework's name of the setting
    value: Setting | None = None  # the run's own, where it is known: as set, where it changes
    now: float | None = None  # of one that changes in the run
    highest: bool = False  # `value` is the highest logged: what it was set to is not known


def neutral(remedy: str) -> str:
    """Write a remedy in everybody's words."""
    return SETTING_PLACEHOLDER.sub(_setting_words, remedy)


def setting_names(remedy: str) -> tuple[str, ...]:
    """Return the canonical settings that a remedy names."""
    return tuple(
        name for match in SETTING_PLACEHOLDER.finditer(remedy) for name in match[1].split("|")
    )


def fill_in(remedies: Iterable[str], trace: Trace) -> tuple[tuple[str, ...], tuple[Knob, ...]]:
    """Write remedies for a run, and return the knobs they name; each is shown where first named."""
    knobs: dict[str, Knob] = {}

    def write(match: re.Match[str]) -> str:
        text = _setting_words(match)
        if match[1] in knobs:
            return text
        choice = [knob(name, trace) for name in match[1].split("|")]
        available = (
            candidate for candidate in choice if candidate.key or candidate.value is not None
        )
        knobs[match[1]] = next(available, choice[0])
        description = _describe_knob(knobs[match[1]], text)
        return f"{text} ({description})" if description else text

    return tuple(SETTING_PLACEHOLDER.sub(write, remedy) for remedy in remedies), tuple(
        knobs.values()
    )


def knob(setting: str, trace: Trace) -> Knob:
    """Look a setting up in the run's framework and in the run."""
    table = framework(trace)
    key = next((k for k, name in table.settings.items() if name == setting), "") if table else ""
    return Knob(
        setting,
        table.title if table and key else "",
        key.replace("/", "."),  # nested settings are joined by a slash as they are read
        *_value(setting, trace),
    )


def framework(trace: Trace) -> Table | None:
    """Return the table that most of a trace's metrics were named by."""
    counts = Counter(measured.framework for measured in trace.measured.values())
    by_name = {table.framework: table for table in TABLES}
    return next((by_name[name] for name, _ in counts.most_common() if name in by_name), None)


def _value(setting: str, trace: Trace) -> tuple[Setting | None, float | None, bool]:
    """Return a setting's value; if it changes in the run also where it is now.

    One that changes is the number it was set to; where that is not known, its highest: schedules
    warm up to it and decay from it.
    """
    setting_value = trace.settings.get(setting)
    series = trace.numbers(SETTING_METRICS.get(setting, ""))
    if series is None:
        return setting_value, None, False
    last, highest = float(series.values[-1]), float(series.values.max())
    # A relative change of 1e-6 is float32 rounding, not a schedule.
    if highest - float(series.values.min()) <= 1e-6 * float(np.abs(series.values).max()):
        return last, None, False
    if isinstance(setting_value, int | float) and not isinstance(setting_value, bool):
        return setting_value, last, False
    return (highest, last, True) if highest > last else (last, None, False)


def _setting_words(match: re.Match[str]) -> str:
    if match[2]:
        return match[2]
    name = match[1].split("|")[0]
    metric = metrics.find(name)
    title = metric.title if metric else name
    return f"the {title if title[:2].isupper() else title[0].lower() + title[1:]}"


def _describe_knob(knob: Knob, text: str) -> str:
    texts = [knob.key] if knob.key and knob.key != text else []
    if knob.value is not None:
        value = f"{knob.value:.4g}" if isinstance(knob.value, float) else f"{knob.value}"
        if knob.now is not None:
            value += " at its highest" if knob.highest else ", scheduled"
        texts.append(f"now {value}" if knob.now is None else f"{value}, now {knob.now:.4g}")
    return ", ".join(texts)
