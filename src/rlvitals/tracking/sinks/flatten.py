"""Flatten nested settings for services and files that have no levels."""

from collections.abc import Mapping


def flatten(settings: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """Join nested names with "/"; lists become texts."""
    items: dict[str, object] = {}
    for key, value in settings.items():
        name = f"{prefix}/{key}" if prefix else str(key)
        if isinstance(value, Mapping):
            items |= flatten(value, name)
        elif value is None or isinstance(value, bool | int | float | str):
            items[name] = value
        else:
            items[name] = str(value)
    return items
