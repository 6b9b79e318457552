"""Declare, load and check the settings; flags and the documentation's table come from here.

Command line > environment (`RLVITALS_*`) > the nearest `rlvitals.toml` > the user's own file in
the configuration folder > default. The nearest file is the first one found from the run's folder
upward, else the one in the working folder; `config_files` says what it may not set.
"""

from collections.abc import Iterator, Mapping
from dataclasses import field, fields
from datetime import date, datetime
from math import isfinite
from pathlib import Path
from typing import Any, TypeGuard

from rlvitals.errors import UsageError, nearest
from rlvitals.options import Monitoring, Mute, Plot, Recording
from rlvitals.options import option as _option
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage import toml_files
from rlvitals.storage.toml_files import SettingsFile

ENV_PREFIX = "RLVITALS_"
# `records.Profile` without its numpy: `--help` shows them. A test holds the two together.
PROFILE_CHOICES = (
    "control-ppo", "scheduler-ppo", "rlhf-ppo", "grpo", "psr", "nsr", "w-reinforce", "on-policy",
    "off-policy", "supervised", "unknown",
)  # fmt: skip

Scalar = bool | int | float | str


@dataclass(frozen=True, slots=True)
class Diagnose:
    """The options of the diagnose command."""

    fail_on: str = _option(
        "warning",
        "lowest severity of a finding that makes the exit code 1",
        choices=("note", "warning", "error", "never"),
    )
    only: tuple[str, ...] = _option((), "use only these rules", item="RULE")
    ignore: tuple[str, ...] = _option((), "do not use these rules", item="RULE")
    profile: str = _option(
        "", "kind of training, if it is detected wrongly", choices=PROFILE_CHOICES
    )
    baseline: str = _option(
        "", "file of `--write-baseline`: findings listed in it do not fail", item="FILE"
    )
    rates: str = _option(
        "", "false-alarm rates of `rlvitals calibrate ROOT --write FILE`", item="FILE"
    )
    price: float = _option(0.0, "price of a machine hour, to show wasted time as cost", item="N")
    jobs: int = _option(0, "processes for judging many runs (0: one per core)", item="N")
    live: bool = _option(default=False, doc="treat runs without a recorded end as running")
    finished: bool = _option(default=False, doc="treat runs without a recorded end as finished")
    now: str = _option(
        "", "judge as of this time: seconds since the epoch, or a date", item="EPOCH|ISO"
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """All sections with their values."""

    diagnose: Diagnose = Diagnose()
    metrics: Mapping[str, str] = field(default_factory=dict)  # key in the log -> metric
    settings: Mapping[str, Scalar] = field(default_factory=dict)  # of the run: target_kl = 0.02
    thresholds: Mapping[str, float] = field(default_factory=dict)  # "rule.word" -> number
    muted: tuple[Mute, ...] = ()
    recording: Recording = field(default_factory=Recording)
    monitoring: Monitoring | None = None  # where nothing speaks of it
    plot: Plot = field(default_factory=Plot)


# Sections with free keys: the meaning of a value, and the equivalent flag.
FREE_SECTIONS = {
    "metrics": ('meaning of your own keys: `"my/score" = "outcome/return"`', "--map"),
    "settings": ("settings of the run that the log lacks: `target_kl = 0.02`", "--set"),
    "thresholds": ("thresholds of rules: `kl-spike.factor = 12`", "--threshold"),
}
PAIR_EXAMPLES = {
    "--map": "my/score=outcome/return",
    "--set": "target_kl=0.02",
    "--threshold": "kl-spike.factor=12",
}
SECTIONS: Mapping[str, type[Diagnose | Recording | Monitoring | Plot]] = {
    "diagnose": Diagnose,
    "recording": Recording,
    "monitoring": Monitoring,
    "plot": Plot,
}
FLAG_SECTIONS = ("diagnose", "plot")  # sections whose options are flags as well
MUTED_SECTION = "muted"  # [[muted]]: a section for each


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a section, as flags and tables show it."""

    section: str
    key: str
    default: str | float | tuple[str, ...]
    doc: str
    choices: tuple[str, ...]
    item: str

    @property
    def flag(self) -> str:
        """Its name on the command line."""
        return f"--{self.key.replace('_', '-')}"

    def set_to(self, value: str) -> str:
        """Return how to set it: by its flag on the command line, else in a file."""
        return f"{self.flag} {value}" if self.section in FLAG_SECTIONS else f"{self.key} = {value}"

    @property
    def variable(self) -> str:
        """Its name in the environment."""
        return f"{ENV_PREFIX}{self.section}_{self.key}".upper()


def options(section: str) -> tuple[Option, ...]:
    """List a section's options in the order they are declared."""
    return tuple(
        Option(section, f.name, f.default, **f.metadata)  # type: ignore[arg-type]
        for f in fields(SECTIONS[section])
    )


def load(
    near: Path,
    flags: Mapping[str, Mapping[str, Any]] | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    records: bool = False,
) -> Settings:
    """Merge the layers for a run at `near`. `flags` has sections as the file does.

    `records`: the run is recorded, not looked at. Raises UsageError for an unknown name, a wrong
    type, or a file that is not TOML.
    """
    files = toml_files.find(near, environ, records=records)
    layers = [*map(_from_file, files), _from_environment(environ or {}), flags or {}]
    merged: dict[str, dict[str, Any]] = {name: {} for name in (*SECTIONS, *FREE_SECTIONS)}
    for layer in layers:
        for section, values in layer.items():
            merged[section] |= values
    muted = tuple(mute for file in files for mute in _read_muted(file))
    has_monitoring = any("monitoring" in layer for layer in layers)
    monitoring = Monitoring(**merged.pop("monitoring"))
    diagnose, recording = Diagnose(**merged.pop("diagnose")), Recording(**merged.pop("recording"))
    plot = Plot(**merged.pop("plot"))
    return Settings(
        diagnose,
        **merged,
        muted=muted,
        recording=recording,
        monitoring=monitoring if has_monitoring else None,
        plot=plot,
    )


def scalar(text: str) -> Scalar:
    """Read a setting as one types it: true, 5, 1e-4, or else the text itself."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def pair(text: str, flag: str) -> tuple[str, str]:
    """Split `key=value` as `--map` and `--set` take it."""
    key, equals, value = text.rpartition("=") if flag == "--map" else text.partition("=")
    if not (equals and key.strip() and value.strip()):
        raise UsageError(
            f"{text!r} is not key=value", where=flag, hint=f"{flag} {PAIR_EXAMPLES[flag]}"
        )
    return key.strip(), value.strip()


def check(section: str, values: Mapping[str, Any], origin: str) -> dict[str, Any]:
    """Check the keys and types of one section; lists become tuples."""
    if section == "thresholds":  # a rule and its number may be written as a table in a table
        return {key: _check_number(key, value, origin) for key, value in _flat(values)}
    if section in FREE_SECTIONS:
        return {key: _check_free(section, key, value, origin) for key, value in values.items()}
    options_by_key = {option.key: option for option in options(section)}
    for key in values:
        if key not in options_by_key:
            raise UsageError(
                f"{section} has no option {key!r}",
                where=origin,
                hint=nearest(key, options_by_key) or f"one of {', '.join(options_by_key)}",
            )
    return {key: _check_value(options_by_key[key], value, origin) for key, value in values.items()}


def _check_value(option: Option, value: object, origin: str) -> str | float | tuple[str, ...]:
    location = f"{origin}, {option.section}.{option.key}"
    if isinstance(option.default, bool):
        return _check_bool(value, location)
    if isinstance(option.default, float):
        amount = scalar(value) if isinstance(value, str) else value
        if _is_number(amount) and isfinite(amount) and amount >= 0:
            return float(amount)
        raise UsageError(f"{value!r} is not an amount", where=location, hint=option.set_to("2.5"))
    if isinstance(option.default, int):
        count = scalar(value) if isinstance(value, str) else value
        if isinstance(count, int) and not isinstance(count, bool) and count >= 0:
            return count
        raise UsageError(f"{value!r} is not a count", where=location, hint=option.set_to("4"))
    if isinstance(option.default, tuple):
        if isinstance(value, list | tuple) and all(isinstance(v, str) for v in value):
            return tuple(value)
        raise UsageError(f"{value!r} is not a list of names", where=location, hint='["one", "two"]')
    if not isinstance(value, str):
        raise UsageError(f"{value!r} is not a text", where=location)
    if option.choices and value not in option.choices:
        hint = nearest(value, option.choices) or f"one of {', '.join(option.choices)}"
        raise UsageError(f"{option.key} cannot be {value!r}", where=location, hint=hint)
    return value


def _check_bool(value: object, location: str) -> bool:
    truth = scalar(value) if isinstance(value, str) else value
    if isinstance(truth, bool):
        return truth
    raise UsageError(f"{value!r} is not true or false", where=location)


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check_free(section: str, key: str, value: object, origin: str) -> Scalar:
    location = f"{origin}, {section}.{key}"
    if isinstance(value, dict):
        raise UsageError(
            f"{key} is a table", where=location, hint=f'quote a name with dots: "{key}.x"'
        )
    if section == "metrics" and not isinstance(value, str):
        raise UsageError(
            f"{value!r} is not the name of a metric", where=location, hint="rlvitals metrics"
        )
    if not isinstance(value, bool | int | float | str):
        raise UsageError(f"{value!r} is not a number, a text or true/false", where=location)
    if isinstance(value, float) and not isfinite(value):
        raise UsageError(f"{key} cannot be {value}", where=location, hint="a finite number")
    return value


def _flat(values: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """Write `kl-spike = {factor = 12}` as `kl-spike.factor = 12`, as TOML itself reads either."""
    for key, value in values.items():
        if isinstance(value, dict):
            yield from ((f"{key}.{subkey}", number) for subkey, number in value.items())
        else:
            yield key, value


def _check_number(key: str, value: object, origin: str) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value):
        return float(value)
    location = f"{origin}, thresholds.{key}"
    raise UsageError(f"{key} cannot be {value!r}", where=location, hint="a finite number")


def _content(file: SettingsFile) -> dict[str, Any]:
    import tomllib  # noqa: PLC0415 - most runs have no settings file

    try:
        return tomllib.loads(toml_files.read(file).decode())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(f"settings cannot be read: {error}", where=str(file.path)) from error


def _from_file(source: SettingsFile) -> dict[str, dict[str, Any]]:
    file, content = source.path, _content(source)
    content.pop(MUTED_SECTION, None)
    section_names = (*SECTIONS, *FREE_SECTIONS)
    all_names = (*section_names, MUTED_SECTION)
    for section, values in content.items():
        if section not in section_names or not isinstance(values, dict):
            raise UsageError(
                f"no section [{section}] is known",
                where=str(file),
                hint=nearest(section, all_names) or f"one of {', '.join(all_names)}",
            )
    sections = {section: check(section, values, str(file)) for section, values in content.items()}
    sections = toml_files.drop_restricted(source, sections)
    # Paths in a settings file are relative to its folder.
    for option in (
        o for section in SECTIONS for o in options(section) if o.item in ("FILE", "FOLDER")
    ):
        if path := sections.get(option.section, {}).get(option.key):
            sections[option.section][option.key] = str(file.parent / path)
    return sections


def _read_muted(source: SettingsFile) -> tuple[Mute, ...]:
    """Read the sections [[muted]] of a file."""
    file, entries = source.path, _content(source).get(MUTED_SECTION, [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise UsageError("muted is not a list of sections", where=str(file), hint="[[muted]]")
    return tuple(_mute(entry, f"{file}, muted {i}") for i, entry in enumerate(entries, 1))


def _mute(values: Mapping[str, Any], location: str) -> Mute:
    kinds = {f.name: f.metadata["item"] for f in fields(Mute) if f.metadata}
    for key, value in values.items():
        if key not in kinds:
            hint = nearest(key, kinds) or f"one of {', '.join(kinds)}"
            raise UsageError(f"muted has no option {key!r}", where=location, hint=hint)
        if not _is_a(kinds[key], value):
            example = {"DATE": "2030-12-31, without quotes", "N": "50000"}.get(kinds[key], "")
            raise UsageError(f"{key} cannot be {value!r}", where=location, hint=example or "a text")
    for key in ("rule", "reason"):
        if not values.get(key, "").strip():
            raise UsageError(
                f"a muted finding needs a {key}", where=location, hint=f'{key} = "..."'
            )
    return Mute(**values, where=location)


def _is_a(kind: str, value: object) -> bool:
    if kind == "DATE":
        return isinstance(value, date) and not isinstance(value, datetime)
    if kind == "N":
        return isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return isinstance(value, str)


def _from_environment(environ: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Read RLVITALS_<SECTION>_<KEY>; lists and free sections as `one,two` and `key=value,...`."""
    layer: dict[str, dict[str, Any]] = {}
    options_by_variable = {option.variable: option for name in SECTIONS for option in options(name)}
    free_variables = [f"{ENV_PREFIX}{name}".upper() for name in FREE_SECTIONS]
    for variable, text in environ.items():
        if not variable.startswith(ENV_PREFIX) or variable == toml_files.CONFIG_VARIABLE:
            continue
        free = variable.removeprefix(ENV_PREFIX).lower()
        if variable == "RLVITALS_MODE":  # short for `recording.mode`
            mode = options_by_variable[f"{ENV_PREFIX}RECORDING_MODE"]
            layer.setdefault("recording", {})["mode"] = _check_value(mode, text.lower(), variable)
        elif free in FREE_SECTIONS:
            layer[free] = from_pairs(free, split(text), variable)
        elif option := options_by_variable.get(variable):
            value = split(text) if isinstance(option.default, tuple) else text
            layer.setdefault(option.section, {})[option.key] = _check_value(option, value, variable)
        elif hint := _suggest(variable, {*options_by_variable, *free_variables}):
            # Others with our prefix are no settings and no typo: they are left alone.
            raise UsageError(f"{variable} is not a setting", where="the environment", hint=hint)
    return layer


def _suggest(variable: str, variables: set[str]) -> str:
    """Compare what follows the prefix: all variables begin alike."""
    names = {name.removeprefix(ENV_PREFIX) for name in variables}
    bare = nearest(variable.removeprefix(ENV_PREFIX), names)
    return f"{bare} (each after {ENV_PREFIX})" if bare else ""


def from_pairs(section: str, texts: tuple[str, ...], origin: str) -> dict[str, Any]:
    """Read `key=value` texts of a free section."""
    pairs = dict(pair(text, FREE_SECTIONS[section][1]) for text in texts)
    values: Mapping[str, object] = pairs
    if section != "metrics":
        values = {key: scalar(v) for key, v in pairs.items()}
    return check(section, values, origin)


def split(text: str) -> tuple[str, ...]:
    """Split `one,two`, ignoring blanks."""
    return tuple(item.strip() for item in text.split(",") if item.strip())
