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
        """Take the settings of a mapping, of pairs, or of parsed arguments.

        Nothing is taken where a source has no names: it is reported as an invalid change.
        """
        del allow_val_change  # a change is an event here, never an error
        settings: dict[str, Any] = {}
        for source in map(named_values, sources):
            if not isinstance(source, Mapping):
                self._on_change(source)
                return
            settings |= source
        settings |= more
        self._values.update(settings)
        self._on_change(settings)

    def refresh(self, values: Mapping[str, Any]) -> None:
        """Take values that are recorded already."""
        self._values.update(values)

    def setdefaults(self, defaults: Mapping[str, Any]) -> None:
        """Take those settings that have no value yet."""
        self.update({key: value for key, value in defaults.items() if key not in self})

    def as_dict(self) -> dict[str, Any]:
        """Return a copy as a plain dictionary."""
        return dict(self._current())

    def __getitem__(self, key: str) -> Any:
        """Return a setting; KeyError where there is none."""
        return self._current()[key]

    def __setitem__(self, key: str, value: Any) -> None:
        """Set a setting, and record it."""
        self.update({key: value})

    def __delitem__(self, key: str) -> None:
        """Forget a setting here; the record keeps it."""
        del self._values[key]

    def __iter__(self) -> Iterator[str]:
        """Go through the names."""
        return iter(self.as_dict())

    def __len__(self) -> int:
        """Count the settings."""
        return len(self._current())

    def __getattr__(self, name: str) -> Any:
        """Return a setting as an attribute."""
        values = {} if name.startswith("_") else self._current()
        if name not in values:
            raise AttributeError(f"there is no {name!r} here; known: {', '.join(self)}")
        return values[name]

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a setting as an attribute."""
        self[name] = value

    def __repr__(self) -> str:
        """Show it as the dictionary it is."""
        return repr(self._current())

    def _current(self) -> Mapping[str, Any]:
        """Return the values that are read."""
        values: Mapping[str, Any] = self._values
        return values


class Summary(Config):
    """A run's outcome: the last value of each logged metric, unless another one is set here."""

    def __init__(self, on_change: OnChange, last_values: Callable[[], Mapping[str, Any]]) -> None:
        """Begin with nothing set; `last_values` is called at each reading."""
        super().__init__(on_change)
        object.__setattr__(self, "_last_values", last_values)

    def _current(self) -> Mapping[str, Any]:
        return {**self._last_values(), **self._values}


def as_mapping(source: Any) -> Mapping[str, Any]:
    """Read a mapping, pairs, or an object's attributes (parsed arguments); None is empty."""
    if source is None:
        return {}
    if isinstance(source, Mapping):
        return source
    return vars(source) if hasattr(source, "__dict__") else dict(source)


def named_values(source: Any) -> Any:
    """Return what a source names; one without names unchanged, for its receiver to refuse."""
    try:
        return as_mapping(source)
    except Exception:  # noqa: BLE001 - a caller's object may raise anything
        return source
