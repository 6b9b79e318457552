"""The interface of a sink."""

from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Histogram, Table, Text

AXIS_PREFIX = "axis/"  # prefix of keys that are x-axes of their rows


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows of one layout in the order logged: `keys` [k], int64 `steps` [n], epoch `times` [n].

    `values` is float64 [n, k]; its transpose is C-contiguous. NaN and infinity
    are data. A key "axis/episode" or "axis/tokens" is another x-axis of the same rows.
    """

    keys: tuple[str, ...]
    steps: NDArray[np.int64]
    times: NDArray[np.float64]
    values: NDArray[np.float64]

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.steps)


class OpenSink(Protocol):
    """The open sink of a run: called from one thread at a time, never from the loop's `log()`.

    Any call may raise: the run counts it, warns once, and continues with the other sinks.
    """

    def scalars(self, rows: Rows) -> None:
        """Take rows; they may wait in memory until `flush`."""

    def histogram(self, key: str, histogram: Histogram) -> None:
        """Take one distribution."""

    def text(self, key: str, text: Text) -> None:
        """Take one text."""

    def table(self, key: str, table: Table) -> None:
        """Take rows of a table: completions and their rewards, for instance."""

    def settings(self, step: int, changed: Mapping[str, object]) -> None:
        """Take settings that changed at a step: flat names, JSON values."""

    def event(self, kind: str, step: int | None, facts: Mapping[str, object]) -> None:
        """Take an event: a note, a checkpoint, an alert. JSON values."""

    def flush(self) -> None:
        """Hand what waits to the operating system."""

    def close(self, status: str) -> None:
        """Flush and let go; `status` is "finished", "failed" or the caller's own word."""


@dataclass(frozen=True, slots=True)
class Opening:
    """The arguments that a sink is opened with."""

    folder: Path
    run_id: str
    name: str
    project: str
    group: str
    settings: Mapping[str, object]
    attempt: int  # process starts on this folder so far, this one included: from 1
    rank: int
    resumed: bool
    options: Mapping[str, object] = field(default_factory=dict)  # the sink's own


@dataclass(frozen=True, slots=True)
class Sink:
    """A kind of sink; `open` makes its heavy imports itself."""

    name: str
    title: str
    needs: str  # the package to install, "" where it is our own
    open: Callable[[Opening], OpenSink]
