"""The nouns of a picture: plain data, which any canvas can draw. Nothing here loads one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.metrics.metric import Metric
from rlvitals.rules.rule import Severity
from rlvitals.types import Series, Trace


@dataclass(frozen=True, slots=True)
class Subject:
    """A run that is drawn, under the label that it has in legends."""

    label: str
    found: Diagnosis

    @property
    def trace(self) -> Trace:
        """Its numbers."""
        return self.found.trace


class Kind(StrEnum):
    """How a panel is drawn."""

    LINES = "lines"
    SHARES = "shares"  # areas one on the other, that sum to 1
    BANDS = "bands"  # of quantiles: between the first line and the last, and so on inwards
    ACROSS = "across"  # curves over an axis of the panel's own
    WORDS = "words"


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """One curve: its points as logged, all of them."""

    label: str  # what it is, beside the other curves of its panel
    metric: str  # canonical name
    series: Series
    run: int = 0  # which of the picture's runs
    part: int = 0  # which of the panel's curves of a run
    smooth: bool = True  # where it is noisy, an average is laid over it


@dataclass(frozen=True, slots=True, eq=False)
class Across:
    """One curve over another axis than steps: its points, and the band that they lie in."""

    label: str
    x: NDArray[np.float64]  # [n], ascending
    values: NDArray[np.float64]  # [n]
    low: NDArray[np.float64] | None = None  # [n]; None without a band
    high: NDArray[np.float64] | None = None
    run: int = 0
    shape: Literal["line", "steps", "bars"] = "line"


@dataclass(frozen=True, slots=True)
class Limit:
    """A level that a curve is held against."""

    value: float
    label: str


@dataclass(frozen=True, slots=True)
class Mark:
    """The stretch that a finding speaks of, in steps."""

    began: int
    ended: int
    label: str
    severity: Severity
    run: int = 0


@dataclass(frozen=True, slots=True)
class Stretch:
    """Steps during which something was on: a temperature pulse."""

    began: int
    ended: int
    run: int = 0


@dataclass(frozen=True, slots=True)
class Words:
    """A paragraph of a panel that holds words."""

    text: str
    style: str = ""  # a colour's name of the theme, "bold", or both


@dataclass(frozen=True, slots=True)
class Panel:
    """One chart, with what stands on it; of `lines` none where nothing is logged."""

    title: str
    unit: str = ""
    lines: tuple[Line, ...] = ()
    limits: tuple[Limit, ...] = ()
    marks: tuple[Mark, ...] = ()
    stretches: tuple[Stretch, ...] = ()
    stretch_label: str = ""
    kind: Kind = Kind.LINES
    low: float | None = None  # fixed ends of the y-axis
    high: float | None = None
    linear: bool = False  # whatever its spikes: what is near zero is zero
    absent: str = ""  # what is said in the place of curves
    words: tuple[Words, ...] = ()
    across: tuple[Across, ...] = ()  # in the place of lines, where the x-axis is its own
    x_label: str = ""  # of that axis
    said: Words | None = None  # over the curves; with a style it stands before the findings' names


@dataclass(frozen=True, slots=True)
class Picture:
    """Everything that one file shows."""

    name: str
    title: str
    about: str  # the line under the title: the run, or how many
    runs: tuple[str, ...]  # labels, in the order of their colours
    x_label: str
    first: int  # steps that the x-axis spans
    last: int
    panels: tuple[Panel, ...]
    columns: int
    seams: tuple[int, ...] = ()  # steps at which a resumed run goes on


@dataclass(frozen=True, slots=True)
class Figure:
    """A kind of picture: `name` is its file's, `panels` makes its data."""

    name: str
    title: str
    needs: tuple[Metric, ...]  # one of them at least must be logged
    panels: Callable[[Sequence[Subject]], Sequence[Panel]]
    columns: int = 1
    logged: Callable[[Trace], bool] | None = None  # where it is no series that it needs
