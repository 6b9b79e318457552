"""The line of a run in the fleet: its fields, and what is known before the run is judged.

Nothing here imports what judges: the first page of the fleet is served before that is loaded.
"""

import json
import re
from dataclasses import dataclass, field, replace

from rlvitals.storage.run_query import Indexed

# Unknown is not green; what is not judged yet is neither.
LAMPS = ("bad", "watch", "unknown", "pending", "good")  # the worst first
# Settings that differ between runs of one experiment, or count rather than choose.
BOOKKEEPING = re.compile(
    r"seed|total_(steps|epochs|timesteps|flos)|save_|log|num_input_tokens|output_dir|(run_)?name|"
    r"device"
)


@dataclass(frozen=True, slots=True)
class Summary:
    """One line of the fleet. Times are in seconds since the epoch."""

    key: str
    name: str
    lamp: str = "pending"  # one of LAMPS
    verdict: str = "pending"
    reason: str = ""
    rule: str = ""  # of the worst finding
    onset: int | None = None  # step at which the worst finding set in
    counts: str = ""  # of the findings
    state: str = ""  # "running", "finished", "failed", ...
    step: int | None = None
    total: int | None = None
    eta: float | None = None  # seconds
    trained: float | None = None  # seconds
    outcome: str = ""  # the metric's label
    value: str = ""  # its last number
    spark: tuple[int | None, ...] = ()  # heights from 0 to SPARK_LEVELS; None is a gap
    spark_values: tuple[float, float] = (0.0, 0.0)  # at height 0 and at SPARK_LEVELS
    spark_steps: tuple[int, int] = (0, 0)  # of the first and the last height
    time: float | None = None  # of the last row
    settings: dict[str, str] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    job: str = ""  # of a scheduler: its id, index, node and restarts
    experiment: str = ""  # of Ray Tune: the folder that holds its trials


def from_index(entry: Indexed) -> Summary:
    """Return what the index knows of a run that is not judged yet."""
    return Summary(
        key=entry.path,
        name=entry.name,
        reason=entry.problem,
        state=entry.status,
        step=entry.step,
        time=entry.time or entry.created or None,
        tags=entry.tags,
        job=entry.job,
    )


def from_json(text: str) -> Summary:
    """Return a line that was stored. Raises TypeError, ValueError for another version's."""
    record = json.loads(text)
    tuples = {name: tuple(value) for name, value in record.items() if isinstance(value, list)}
    return Summary(**{**record, **tuples})


def from_error(summary: Summary, problem: str) -> Summary:
    """Return the line of a run that cannot be read: whether it runs is not known."""
    return replace(
        summary, lamp="bad", verdict="unreadable", reason=problem, spark=(), state="unknown"
    )


def is_bookkeeping(setting: str) -> bool:
    """Return whether a setting does not distinguish experiments."""
    return BOOKKEEPING.match(setting.rpartition("/")[2]) is not None
