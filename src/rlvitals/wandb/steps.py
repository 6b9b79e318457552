"""Assign steps to rows as W&B does.

One step for each call of `log()`; `commit=False` adds to a row, and so does a call with the same
`step`. Where `define_metric` names a step metric for a key, that metric's value is the key's step;
for all others it is a column such as `global_step`, where the first rows have one.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import Any

from rlvitals.readers.wandb.steps import STEP_COLUMN_UNITS, StepChoice
from rlvitals.startup.fast_dataclass import dataclass

Row = dict[str, Any]


@dataclass(slots=True)
class Steps:
    """Collects rows, and emits each when it is complete."""

    emit: Callable[[int, Row], None]  # gets the row's own step, and its values
    step: int = 0
    row: Row = field(default_factory=dict)

    def add(self, data: Mapping[str, Any], step: int | None, *, commit: bool | None) -> None:
        """Take the values of one call of `log()`."""
        if step is not None and step != self.step:
            self.flush()
            self.step = step
        self.row |= data
        if commit or (commit is None and step is None):
            self.flush()
            self.step += 1

    def flush(self) -> None:
        """Hand on the row that is being collected."""
        if self.row:
            row, self.row = self.row, {}
            self.emit(self.step, row)


class Axes:
    """Assigns each key of a row its step."""

    def __init__(self) -> None:
        """Begin with W&B's own count of steps."""
        self.choice = StepChoice()
        self.main = ""
        self.rows = 0
        self.last: dict[str, int] = {}

    def define(self, keys: str, metric: str) -> None:
        """Follow `define_metric(keys, step_metric=metric)`."""
        self.choice = self.choice.define(keys, metric)

    def follow(self, column: str, step: int) -> None:
        """Place all keys without a step metric at this step, of a column logged elsewhere."""
        self.main = column
        self.last[column] = step

    def split(self, step: int, row: Row) -> Iterator[tuple[int, Row]]:
        """Split a row by the steps of its keys."""
        self.rows += 1
        if not self.main and self.rows <= 2:  # the first row may be logged before training begins
            self.main = next((name for name in STEP_COLUMN_UNITS if name in row), "")
        columns = {self.main, *self.choice.defined.values()}
        for name in columns & row.keys():
            if (key_step := _to_integer(row[name])) is not None:
                self.last[name] = key_step
        rows: dict[int, Row] = {}
        for key, value in row.items():
            key_step = self.last.get(self.choice.metric_of(key) or self.main, step)
            rows.setdefault(key_step, {})[key] = value
        yield from rows.items()


def _to_integer(value: object) -> int | None:
    """Return a number without fraction as an integer; None for anything else."""
    try:
        number = float(value)  # type: ignore[arg-type] # whatever was logged
        return int(number) if number == int(number) else None
    except (TypeError, ValueError, OverflowError):
        return None
