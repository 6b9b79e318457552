"""The temperature that actions are drawn at: fixed, or led by load and stagnation."""

from collections.abc import Mapping
from typing import Any, Protocol


class Temperature(Protocol):
    """What gives each step of a rollout its temperature."""

    @property
    def value(self) -> float:
        """The temperature of the next step, above 0."""

    def after(self, info: Mapping[str, Any]) -> None:
        """Take in what the environments told after a step."""


class Fixed:
    """The same temperature throughout."""

    def __init__(self, value: float = 1.0) -> None:
        """Draw at `value`."""
        self.value = value

    def after(self, info: Mapping[str, Any]) -> None:
        """Stay as it is."""
