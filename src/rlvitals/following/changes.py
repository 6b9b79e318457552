"""Changes of followed runs, as frozen dataclasses: each the difference from the previous look.

`run` is the run's name, `time` when the difference was found, in seconds since the epoch.
"""

from collections.abc import Mapping

from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.rules.rule import Finding, Rule, Severity
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Series


@dataclass(frozen=True, slots=True)
class Found:
    """A run was discovered; `new` if it did not exist when following began."""

    run: str
    time: float
    sources: tuple[str, ...]  # the names of the readers of its files
    metrics: int  # keys that hold points
    points: int
    step: int | None  # the highest so far, None without a point
    new: bool


@dataclass(frozen=True, slots=True)
class Renamed:
    """A run has a new display name, because its old one is ambiguous."""

    run: str
    time: float
    before: str


@dataclass(frozen=True, slots=True)
class Points:
    """New points of one file of a run, under the keys that the file has."""

    run: str
    time: float
    where: str  # the file, from the run's folder
    series: Mapping[str, Series]
    # They replace all earlier points of this file: its content is another.
    anew: bool = False
    first: bool = False  # what was there when the file was found


@dataclass(frozen=True, slots=True)
class Judged:
    """A run was judged again; `turned` if its verdict is another word than before."""

    run: str
    time: float
    diagnosis: Diagnosis
    turned: bool
    first: bool  # the first judgement


@dataclass(frozen=True, slots=True)
class Fired:
    """A rule has a finding that it did not have before."""

    run: str
    time: float
    rule: Rule
    finding: Finding
    step: int
    cause: str = ""  # the rule whose finding explains this one, where there is one


@dataclass(frozen=True, slots=True)
class Regraded:
    """A finding remains with another severity."""

    run: str
    time: float
    rule: Rule
    finding: Finding
    before: Severity
    step: int


@dataclass(frozen=True, slots=True)
class Cleared:
    """A finding no longer applies, and why."""

    run: str
    time: float
    rule: Rule
    finding: Finding  # as it stood last
    why: str
    step: int


@dataclass(frozen=True, slots=True)
class Resumed:
    """A run grows again after it ended, was quiet, or went back to an earlier step."""

    run: str
    time: float
    step: int
    why: str


@dataclass(frozen=True, slots=True)
class Restarted:
    """A file has other rows than before: a run was started again under the same name."""

    run: str
    time: float
    where: str  # the file, from the run's folder


@dataclass(frozen=True, slots=True)
class Ended:
    """A run is over: "finished", "failed", "stopped" or "budget spent"."""

    run: str
    time: float
    step: int
    how: str
    why: str = ""
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class Quiet:
    """A run has not grown for much longer than its usual interval between rows."""

    run: str
    time: float
    step: int
    seconds: float  # since it grew


@dataclass(frozen=True, slots=True)
class Copy:
    """A run is the same training as another, logged by another tracker: it is listed no more."""

    run: str
    time: float
    original: str  # the other run's name


@dataclass(frozen=True, slots=True)
class Vanished:
    """The files of a run were deleted, or belong to another run now."""

    run: str
    time: float
    why: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file cannot be read; what was read of it before is kept."""

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
    | Copy
    | Vanished
    | Unreadable
    | Readable
)
