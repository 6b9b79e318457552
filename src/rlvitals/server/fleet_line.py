"""The line of a run in the fleet: its fields, and what is known before the run is judged.

Nothing here imports what judges: the first page of the fleet is served before that is loaded.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, field, replace

from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage.run_query import Indexed
from rlvitals.storage.search_terms import FieldTerm, SettingTerm, TagTerm, Term, TextTerm

ROOT_KEY = "."  # of a run that is the served folder itself; its page is at /run/
# Unknown is not green; what is not judged yet is neither.
LAMPS = ("bad", "watch", "unknown", "pending", "good")  # the worst first
# Settings that differ between runs of one experiment, or count rather than choose.
BOOKKEEPING = re.compile(
    r"seed|total_(steps|epochs|timesteps|flos)|save_|log|num_input_tokens|output_dir|(run_)?name|"
    r"device",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Summary:
    """One line of the fleet. Times are in seconds since the epoch."""

    key: str
    name: str
    lamp: str = "pending"  # one of LAMPS
    verdict: str = "pending"
    is_provisional: bool = False  # the run goes on, and has only begun
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


def to_json(line: Summary, traits: Iterable[str]) -> str:
    """Return a line as a text to store; `traits` are those of `duplicates` of its run."""
    return json.dumps({"line": asdict(line), "traits": [*traits]})


def from_json(text: str) -> tuple[Summary, frozenset[str]]:
    """Return a stored line and its traits. Raises KeyError, TypeError, ValueError of others."""
    stored = json.loads(text)
    record = stored["line"]
    tuples = {name: tuple(value) for name, value in record.items() if isinstance(value, list)}
    return Summary(**{**record, **tuples}), frozenset(stored["traits"])


def from_error(summary: Summary, problem: str) -> Summary:
    """Return the line of a run that cannot be read: whether it runs is not known."""
    return replace(
        summary, lamp="bad", verdict="unreadable", reason=problem, spark=(), state="unknown"
    )


def badness(row: Summary) -> tuple[int, bool, float, str]:
    """Return the sort key of a line among the worst first."""
    return (LAMPS.index(row.lamp), row.state != "running", -(row.time or 0.0), row.key)


def fits(row: Summary, terms: Iterable[Term]) -> bool:
    """Return whether a line itself fits every term: the index knows run folders alone."""
    return all(_fits(row, term) for term in terms)


def _fits(row: Summary, term: Term) -> bool:
    match term:
        case TextTerm(text):
            texts = (row.key, row.verdict, row.state, row.rule)
            return any(text.lower() in each.lower() for each in texts)
        case TagTerm(tag):
            return tag in row.tags
        case FieldTerm(field_name, text):
            texts_by_field = {"verdict": row.verdict, "status": row.state, "name": row.name}
            return text.lower() in texts_by_field.get(field_name, "").lower()
        case SettingTerm(key, sign, operand):
            ending = f"/{key}".lower()
            names = (name for name in row.settings if name == key or name.lower().endswith(ending))
            return any(_compares(row.settings[name], sign, operand) for name in names)


def _compares(value: str, sign: str, operand: float | str) -> bool:
    if isinstance(operand, str):
        return (value == operand) == (sign == "=")  # the parser takes no other sign of a text
    try:
        number = float(value)
    except ValueError:
        return False
    if sign in {"=", "!="}:
        return (number == operand) == (sign == "=")
    is_beyond = number < operand if sign[0] == "<" else number > operand
    return is_beyond or (sign[1:] == "=" and number == operand)


def is_bookkeeping(setting: str) -> bool:
    """Return whether a setting does not distinguish experiments."""
    return BOOKKEEPING.match(setting.rpartition("/")[2]) is not None
