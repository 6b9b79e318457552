"""What is told of growing runs: each a difference from what was told before, as a frozen noun.

`run` is the run's name, `time` when the difference was seen, in seconds since the epoch.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.rules.rule import Finding, Rule, Severity
from rlvitals.types import Series


@dataclass(frozen=True, slots=True)
class Found:
    """A run was found; `new` where it was not there when following began."""

    run: str
    time: float
    sources: tuple[str, ...]  # the names of the readers of its files
    metrics: int  # keys that hold points
    points: int
    step: int | None  # the highest so far, None without a point
    new: bool


@dataclass(frozen=True, slots=True)
class Renamed:
    """A run is called otherwise now: beside others its old name no longer tells it."""

    run: str
    time: float
    before: str


@dataclass(frozen=True, slots=True)
class Points:
    """Points that one file of a run has more than before, under the keys that the file has."""

    run: str
    time: float
    where: str  # the file, from the run's folder
    series: Mapping[str, Series]
    # They stand in place of all that was told of this file: the file is another one now.
    anew: bool = False
    first: bool = False  # what was there when the file was found


@dataclass(frozen=True, slots=True)
class Judged:
    """A run was judged once more; `turned` where its verdict is another word than before."""

    run: str
    time: float
    diagnosis: Diagnosis
    turned: bool
    first: bool  # nothing was said of it before


@dataclass(frozen=True, slots=True)
class Fired:
    """A rule found something that it did not find before."""

    run: str
    time: float
    rule: Rule
    finding: Finding
    step: int
    cause: str = ""  # the rule whose finding explains this one, where there is one


@dataclass(frozen=True, slots=True)
class Regraded:
    """A finding stands and is graver or milder than before."""

    run: str
    time: float
    rule: Rule
    finding: Finding
    before: Severity
    step: int


@dataclass(frozen=True, slots=True)
class Cleared:
    """A finding no longer stands, and why."""

    run: str
    time: float
    rule: Rule
    finding: Finding  # as it stood last
    why: str
    step: int


@dataclass(frozen=True, slots=True)
class Resumed:
    """A run goes on that had ended, was quiet, or went back to an earlier step."""

    run: str
    time: float
    step: int
    why: str


@dataclass(frozen=True, slots=True)
class Restarted:
    """A file holds other rows than before: a run was started anew under the same name."""

    run: str
    time: float
    where: str  # the file, from the run's folder


@dataclass(frozen=True, slots=True)
class Ended:
    """A run is over, and how: "finished", "failed", "stopped" or "budget spent"."""

    run: str
    time: float
    step: int
    how: str
    why: str = ""
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class Quiet:
    """A run has not grown for far longer than it takes from one row to the next."""

    run: str
    time: float
    step: int
    seconds: float  # since it grew


@dataclass(frozen=True, slots=True)
class Vanished:
    """The files of a run are gone, or belong to another run now."""

    run: str
    time: float
    why: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file cannot be read; what was read of it before stands."""

    run: str
    time: float
    where: str  # the file, from the run's folder
    problem: str


@dataclass(frozen=True, slots=True)
class Readable:
    """A file can be read again."""

    run: str
    time: float
    where: str  # the file, from the run's folder


Change = (
    Found
    | Renamed
    | Points
    | Judged
    | Fired
    | Regraded
    | Cleared
    | Resumed
    | Restarted
    | Ended
    | Quiet
    | Vanished
    | Unreadable
    | Readable
)
