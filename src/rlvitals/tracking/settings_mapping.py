"""A mapping that is read and written as items or attributes and reports every change."""

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any

OnChange = Callable[[Mapping[str, Any]], None]


class Config(MutableMapping[str, Any]):
    """A run's settings: read and written as items or attributes; every change is recorded."""

    def __init__(self, on_change: OnChange) -> None:
        """Begin empty; `on_change` is called with every change."""
        object.__setattr__(self, "_values", {})
        object.__setattr__(self, "_on_change", on_change)

    def update(self, *sources: Any, allow_val_change: bool | None = None, **more: Any) -> None:
        """Take the settings of a mapping, of pairs, or of parsed arguments."""
        del allow_val_change  # a change is an event here, never an error
        settings: dict[str, Any] = {}
        for source in sources:
            settings |= as_mapping(source)
        settings |= more
        self._values.update(settings)
        self._on_change(settings)

    def refresh(self, values: Mapping[str, Any]) -> None:
        """Take values that are recorded already."""
        self._values.update(values)

    def setdefaults(self, defaults: Mapping[str, Any]) -> None:
        """Take those settings that have no value yet."""
        self.update({key: value for key, value in defaults.items() if key not in self._values})

    def as_dict(self) -> dict[str, Any]:
        """Return a copy as a plain dictionary."""
        return dict(self._values)

    def __getitem__(self, key: str) -> Any:
        """Return a setting; KeyError where there is none."""
        return self._values[key]

    def __setitem__(self, key: str, value: Any) -> None:
        """Set a setting, and record it."""
        self.update({key: value})

    def __delitem__(self, key: str) -> None:
        """Forget a setting here; the record keeps it."""
        del self._values[key]

    def __iter__(self) -> Iterator[str]:
        """Go through the names."""
        return iter(dict(self._values))

    def __len__(self) -> int:
        """Count the settings."""
        return len(self._values)

    def __getattr__(self, name: str) -> Any:
        """Return a setting as an attribute."""
        if name.startswith("_") or name not in self._values:
            raise AttributeError(f"there is no {name!r} here; known: {', '.join(self._values)}")
        return self._values[name]

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a setting as an attribute."""
        self[name] = value

    def __repr__(self) -> str:
        """Show it as the dictionary it is."""
        return repr(self._values)


def as_mapping(source: Any) -> Mapping[str, Any]:
    """Read a mapping, pairs, or an object's attributes (parsed arguments); None is empty."""
    if source is None:
        return {}
    if isinstance(source, Mapping):
        return source
    return vars(source) if hasattr(source, "__dict__") else dict(source)
