"""Define the questions that every index of runs answers: SQLite's and ClickHouse's alike.

    query.search("tag:sweep lr<1e-3", sort="newest", limit=100)
    query.last("a/run"), query.points("a/run", "train/loss", 800), query.findings("a/run")

Runs are named by their path below the root of the index.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import NamedTuple

from rlvitals.errors import UsageError
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage.downsample import Points

RUN_SORTS = ("newest", "name", "step")  # last row first, by path, most steps first


class Point(NamedTuple):
    """A logged number with its step and time."""

    step: int
    time: float  # seconds since the epoch
    value: float


@dataclass(frozen=True, slots=True)
class Indexed:
    """The index entry of a run."""

    path: str  # within the root
    id: str
    name: str
    project: str
    group: str
    seed: int | None
    created: float  # seconds since the epoch
    attempts: int
    status: str  # "running", the status of its last event, or "stopped" without one
    step: int | None  # the last that was logged
    time: float | None  # when it was logged, seconds since the epoch
    verdict: str
    problem: str  # why the folder cannot be read
    wrong: str  # fields of its run.json that were dropped, a line each
    tags: tuple[str, ...] = ()
    job: str = ""  # of a scheduler: its id, index, node and restarts


class IndexedFinding(NamedTuple):
    """A finding of the last judgement of a run, in one row."""

    rule: str
    severity: str  # "error", "warning" or "note"
    metric: str
    onset: int  # step at which the fault began
    last_step: int  # that shows it
    observed: float | None  # None: no number
    summary: str


class SettingCell(NamedTuple):
    """A setting of a run; `number` is None where the value is none, or NaN."""

    key: str
    text: str
    number: float | None


@dataclass(frozen=True, slots=True)
class IndexRecord:
    """All that the index of a root holds of a run, to be copied to another index."""

    entry: Indexed
    notes: str
    mark: str  # state of the run's files
    judge: str
    summary: str
    settings: tuple[SettingCell, ...]
    findings: tuple[IndexedFinding, ...]


class RunQuery(ABC):
    """An index of runs that can be asked."""

    @abstractmethod
    def __len__(self) -> int:
        """Count the runs."""

    @abstractmethod
    def search(
        self, terms: str = "", sort: str = "newest", limit: int | None = None
    ) -> tuple[Indexed, ...]:
        """Return the runs that fit every word, sorted by one of RUN_SORTS.

        A word is looked for in names, tags and notes; `tag:x`, `project:x`, `group:x`, `status:x`
        and `verdict:x` ask for one; `lr=1e-3`, `lr<1e-3` for a setting. Raises UsageError.
        """

    @abstractmethod
    def last(self, path: str) -> dict[str, Point]:
        """Return the newest point of every metric of a run; none of an unknown run."""

    @abstractmethod
    def points(
        self, path: str, key: str, width: int, first: int | None = None, last: int | None = None
    ) -> Points:
        """Return what `width` columns of pixels show of a metric (M4). Raises KeyError."""

    @abstractmethod
    def findings(self, path: str) -> tuple[IndexedFinding, ...]:
        """Return the findings of a run's last judgement, the worst first."""

    @abstractmethod
    def summaries(self, judge: str = "") -> dict[str, str]:
        """Return the texts that a judge stored with its verdicts, by path."""


def job_text(job: object) -> str:
    """Name a scheduler's job as `run.json` has it: id, index, node, restarts; "" for none."""
    if not isinstance(job, Mapping):
        return ""
    index = f"_{job['array_index']}" if "array_index" in job else ""
    node = f" on {job['node']}" if "node" in job else ""
    restarts = f", restart {job['restarts']}" if job.get("restarts", "0") != "0" else ""
    ray_job = f", Ray job {job['ray_job']}" if "ray_job" in job else ""
    return f"{job.get('scheduler', '')} job {job.get('id', '')}{index}{node}{restarts}{ray_job}"


def check_sort(sort: str) -> str:
    """Return the name of an order. Raises UsageError for an unknown one."""
    if sort not in RUN_SORTS:
        raise UsageError(f"no order is called {sort!r}", where="sort", hint=", ".join(RUN_SORTS))
    return sort
