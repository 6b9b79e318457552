"""Settings without levels, as services and files without levels take them."""

from collections.abc import Mapping


def flat(settings: Mapping[str, object], under: str = "") -> dict[str, object]:
    """Join nested names with "/"; lists become texts."""
    found: dict[str, object] = {}
    for key, value in settings.items():
        name = f"{under}/{key}" if under else str(key)
        if isinstance(value, Mapping):
            found |= flat(value, name)
        elif value is None or isinstance(value, bool | int | float | str):
            found[name] = value
        else:
            found[name] = str(value)
    return found
