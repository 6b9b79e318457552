"""Settings that no report may show: passwords, keys, addresses that hold one."""

from collections.abc import Mapping

from rlvitals import redact
from rlvitals.records import Setting


def without(settings: Mapping[str, Setting]) -> dict[str, Setting]:
    """Return the settings that are no secret by their name or by what they hold."""
    return {key: value for key, value in settings.items() if not redact.is_secret(key, value)}
