"""Define the data of a picture, independent of the drawing library."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.metrics.metric import Metric
from rlvitals.rules.rule import Severity
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Series, Trace


@dataclass(frozen=True, slots=True)
class Subject:
    """A run to draw, with its label in legends."""

    label: str
    found: Diagnosis

    @property
    def trace(self) -> Trace:
        """The diagnosed trace."""
        return self.found.trace


class Kind(StrEnum):
    """The form of a panel."""

    LINES = "lines"
    SHARES = "shares"  # stacked areas that sum to 1
    BANDS = "bands"  # bands between the first and the last quantile, and so on inwards; and lines
    ACROSS = "across"  # curves over the panel's own x-axis
    WORDS = "words"


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """A curve with all logged points."""

    label: str  # within its panel
    metric: str  # canonical name
    series: Series
    run: int = 0  # index of the picture's run
    part: int = 0  # index of the run's curve in the panel
    smooth: bool = True  # draw an average over a noisy curve
    quantile: bool = False  # an edge of the bands of a panel of the kind BANDS, or their median


@dataclass(frozen=True, slots=True, eq=False)
class Across:
    """A curve over an axis other than steps, with an optional band."""

    label: str
    x: NDArray[np.float64]  # [n], ascending
    values: NDArray[np.float64]  # [n]
    low: NDArray[np.float64] | None = None  # [n]; None without a band
    high: NDArray[np.float64] | None = None
    run: int = 0
    shape: Literal["line", "steps", "bars"] = "line"


@dataclass(frozen=True, slots=True)
class Limit:
    """A horizontal line that a curve is compared with."""

    value: float
    label: str


@dataclass(frozen=True, slots=True)
class Mark:
    """The steps of a finding."""

    began: int
    ended: int
    label: str
    severity: Severity
    run: int = 0


@dataclass(frozen=True, slots=True)
class Stretch:
    """Steps during which a switch was on, such as a temperature pulse."""

    began: int
    ended: int
    run: int = 0


@dataclass(frozen=True, slots=True)
class Words:
    """A paragraph of a text panel."""

    text: str
    style: str = ""  # a theme's colour name, "bold", or both


@dataclass(frozen=True, slots=True)
class Panel:
    """A chart with its limits and marks; `lines` is empty if nothing is logged."""

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
    linear: bool = False  # even with spikes: values near zero are zero
    absent: str = ""  # message in place of curves
    words: tuple[Words, ...] = ()
    across: tuple[Across, ...] = ()  # replaces `lines` on the panel's own x-axis
    x_label: str = ""  # of that axis
    said: Words | None = None  # above the curves; before the findings if it has a style


@dataclass(frozen=True, slots=True)
class Picture:
    """The contents of one file."""

    name: str
    title: str
    about: str  # subtitle: the run, or the number of runs
    runs: tuple[str, ...]  # labels in the order of the colours
    x_label: str
    first: int  # step range of the x-axis
    last: int
    panels: tuple[Panel, ...]
    columns: int
    seams: tuple[int, ...] = ()  # first steps of resumed attempts


@dataclass(frozen=True, slots=True)
class Figure:
    """A kind of picture: `name` is the file's stem, `panels` builds its data."""

    name: str
    title: str
    needs: tuple[Metric, ...]  # at least one must be logged
    panels: Callable[[Sequence[Subject]], Sequence[Panel]]
    columns: int = 1
    logged: Callable[[Trace], bool] | None = None  # replaces `needs` if no series is needed
