"""Read where alerts go: the user's own `alerts.toml`, or the flags of a command.

    [[alert]]
    channel = "slack"
    url = "$SLACK_WEBHOOK"          # a variable of the environment
    when = ["error", "failed", "silent", "outcome/return < 100 after 1M"]
    quiet_hours = "22:00-07:00"

The file lies in the configuration folder, next to the user's `rlvitals.toml`. No file near a run is
read: it may have come with the run, and an alert sends data and may start a command.
"""

import os
import stat
import tomllib
from collections.abc import Mapping, Sequence
from datetime import datetime, time
from pathlib import Path

from rlvitals.alerts.channels import CHANNELS, Fields
from rlvitals.alerts.conditions import Condition, parse
from rlvitals.alerts.tracker import WAIT_SECONDS
from rlvitals.errors import UsageError, nearest
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage import toml_files

ALERTS_FILE = "alerts.toml"
DIGEST_MINUTES = 5.0  # for which messages are collected after one was sent
COMMON_FIELDS = ("channel", "when", "quiet_hours", "digest_minutes", "wait_seconds")


@dataclass(frozen=True, slots=True)
class Route:
    """One channel with its conditions. `fields` may hold secrets: the repr leaves them out."""

    channel: str
    fields: Fields
    conditions: tuple[Condition, ...]
    quiet_hours: tuple[time, time] | None = None  # local time
    digest_seconds: float = 60 * DIGEST_MINUTES
    wait_seconds: float = WAIT_SECONDS

    def __repr__(self) -> str:
        """Name the channel and the conditions."""
        return f"<Route {self.channel}: {', '.join(c.text for c in self.conditions)}>"

    def is_quiet(self, moment: datetime) -> bool:
        """Return whether a local time lies in the quiet hours."""
        if self.quiet_hours is None:
            return False
        begin, end = self.quiet_hours
        clock = moment.time()
        return begin <= clock < end if begin <= end else clock >= begin or clock < end


def path(environ: Mapping[str, str]) -> Path | None:
    """Return the path of the user's own file; None without a home folder."""
    folder = toml_files.config_folder(environ)
    return None if folder is None else folder / ALERTS_FILE


def read(file: Path, environ: Mapping[str, str]) -> tuple[Route, ...]:
    """Read the routes of a file. Raises UsageError."""
    try:
        status = file.stat()  # a file that another user can write may start commands
        if hasattr(os, "geteuid"):
            is_foreign = status.st_uid not in {0, os.geteuid()}
            if is_foreign or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                raise UsageError(
                    "other users can write this file of alerts",
                    where=str(file),
                    hint=f"chmod 600 {file}",
                )
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        hint = 'a section [[alert]] with channel = "desktop"; or --alert desktop'
        raise UsageError("no alerts file", where=str(file), hint=hint) from None
    except (OSError, ValueError, RecursionError) as error:
        # The text of a TOML error quotes nothing of the file.
        raise UsageError(f"alerts cannot be read: {error}", where=str(file)) from None
    sections = content.pop("alert", [])
    if content or not isinstance(sections, list) or not all(isinstance(s, dict) for s in sections):
        raise UsageError("only sections [[alert]] are known", where=str(file), hint="[[alert]]")
    return tuple(
        make_route(section, f"{file}, alert {number}", environ)
        for number, section in enumerate(sections, 1)
    )


def from_flag(text: str, conditions: Sequence[str], environ: Mapping[str, str]) -> Route:
    """Read `CHANNEL` or `CHANNEL=ADDRESS`. Raises UsageError."""
    channel, equals, address = text.partition("=")
    section: dict[str, object] = {"channel": channel}
    if equals:
        field = CHANNELS[channel].address if channel in CHANNELS else ""
        if channel in CHANNELS and not field:
            raise UsageError(f"{channel} takes no address", where="--alert", hint=ALERTS_FILE)
        section[field] = address
    if conditions:
        section["when"] = list(conditions)
    return make_route(section, "--alert", environ)


def make_route(section: Mapping[str, object], location: str, environ: Mapping[str, str]) -> Route:
    """Check one section. Raises UsageError, whose text holds no value of a field."""
    name = str(section.get("channel", ""))
    channel = CHANNELS.get(name)
    if channel is None:
        hint = nearest(name, CHANNELS) or f"one of {', '.join(CHANNELS)}"
        # An address in the channel's place may hold a secret.
        problem = f"no channel is called {name!r}" if name.isidentifier() else "no channel is named"
        raise UsageError(problem, where=location, hint=hint)
    names = (*COMMON_FIELDS, *channel.required, *channel.optional)
    for key in section:
        if key not in names:
            hint = nearest(key, names) or f"one of {', '.join(names)}"
            raise UsageError(f"{name} has no field {key!r}", where=location, hint=hint)
    for key in channel.required:
        if not section.get(key):
            hint = f"{key} = ... in {ALERTS_FILE}" + (
                f", or {name}=ADDRESS" if channel.address else ""
            )
            raise UsageError(f"{name} needs {key}", where=location, hint=hint)
    fields = {
        key: _expand(value, environ, f"{location}, {key}")
        for key, value in section.items()
        if key not in COMMON_FIELDS
    }
    value = section.get("when", ["error", "failed", "silent"])
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not texts or not all(isinstance(t, str) for t in texts):
        raise UsageError(
            "when is not a list of conditions", where=location, hint='["error", "failed"]'
        )
    return Route(
        name,
        fields,
        tuple(map(parse, texts)),
        _read_quiet_hours(section.get("quiet_hours"), location),
        60 * _read_number(section, "digest_minutes", DIGEST_MINUTES, location),
        _read_number(section, "wait_seconds", WAIT_SECONDS, location),
    )


def _expand(value: object, environ: Mapping[str, str], location: str) -> object:
    """Return a field's value: of a variable where it is written as "$NAME"."""
    if not isinstance(value, str) or not value.startswith("$"):
        return value
    name = value[1:].strip("{}")
    if not name.isidentifier():  # it may be a secret itself
        problem = "a value that begins with $ names a variable"
        raise UsageError(problem, where=location, hint='"$NAME", and export NAME=...')
    if not environ.get(name):
        raise UsageError(
            f"the variable {name} is not set", where=location, hint=f"export {name}=..."
        )
    return environ[name]


def _read_quiet_hours(value: object, location: str) -> tuple[time, time] | None:
    if value is None:
        return None
    try:
        begin, end = (time.fromisoformat(text.strip()) for text in str(value).split("-"))
    except ValueError:
        hint = '"22:00-07:00"'
        raise UsageError("quiet_hours are no two times", where=location, hint=hint) from None
    return begin, end


def _read_number(section: Mapping[str, object], key: str, default: float, location: str) -> float:
    value = section.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise UsageError(f"{key} is not an amount", where=location, hint=f"{key} = {default:g}")
    return float(value)
