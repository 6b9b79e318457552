"""The sample that a reward function scores, and the description of such a function."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Alike = Callable[[str, str], float]  # how much two texts say the same, in [0, 1]


@dataclass(frozen=True, slots=True)
class Sample:
    """A completion with the columns of its question; read-only."""

    completion: str
    columns: Mapping[str, Any] = field(default_factory=dict)
    alike: Alike | None = None  # where the settings name a model for it

    def text(self, column: str) -> str:
        """Return a column as text; empty where there is none."""
        value = self.columns.get(column)
        return "" if value is None else str(value)


@dataclass(frozen=True, slots=True)
class Measure:
    """A reward function by its name: a pure function of a sample.

    `score` gives a number between `low` and `high`, or None for a sample that it cannot judge.
    `needs`: columns, each with those that may stand for it. `title`: its line on the console.
    """

    name: str
    meaning: str
    low: float
    high: float
    title: str
    score: Callable[[Sample], float | None]
    needs: tuple[tuple[str, ...], ...] = ()
    needs_model: bool = False  # `Sample.alike`
