"""Remove passwords, keys and addresses with credentials from a log."""

from collections.abc import Mapping
from dataclasses import replace

from rlvitals.storage import redact
from rlvitals.types import Log, Setting


def without(settings: Mapping[str, Setting]) -> dict[str, Setting]:
    """Return the settings that are no secret by their name or by what they hold."""
    return {key: value for key, value in settings.items() if not redact.is_secret(key, value)}


def clean(log: Log) -> Log:
    """Return a log without secrets in its settings, its notes and what it says of its end."""
    ending = log.ending
    if ending is not None:
        traceback, reason = redact.text(ending.traceback), redact.text(ending.reason)
        ending = replace(ending, traceback=traceback, reason=reason)
    notes = tuple(map(redact.text, log.notes))
    return replace(log, settings=without(log.settings), notes=notes, ending=ending)
