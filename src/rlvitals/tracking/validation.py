"""Parse and check the arguments of a run's calls."""

import time as clock
from collections.abc import Mapping, Sequence
from functools import lru_cache

from rlvitals.errors import UsageError, nearest
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage import redact
from rlvitals.tracking import media, tensors
from rlvitals.tracking.sinks.sink import AXIS_PREFIX
from rlvitals.tracking.warnings_log import Notes

STEP_FIRST = ("step", "metrics", "episode", "tokens", "time")
METRICS_FIRST = ("metrics", "step", *STEP_FIRST[2:])
MAX_EVENTS_OF_KIND = 10_000  # of a kind, each of which is recorded
MAX_EVENT_KINDS = 1_000  # of events, that are counted each for itself


@dataclass(slots=True)
class Call:
    """The arguments of a call of `Run.log`; None stands for those that were not given."""

    arguments: Mapping[str, object]
    is_counted: bool  # no step was given: the row follows the last
    wrong: Sequence[str]  # in words; the rest of the call holds

    def metrics(self) -> Mapping[object, object]:
        """Return the numbers by their names. Raises UsageError."""
        metrics = self.arguments.get("metrics")
        if not isinstance(metrics, Mapping):
            hint = 'run.log(step, {"loss": 0.5})'
            raise UsageError(f"metrics must be a dict, not {tensors.kind(metrics)}", hint=hint)
        return metrics

    def axes(self) -> dict[str, float]:
        """Return the row's positions on the other axes. Raises UsageError."""
        axes = {}
        for axis in ("episode", "tokens"):
            if (value := self.arguments.get(axis)) is not None:
                axes[f"{AXIS_PREFIX}{axis}"] = number(axis, value)
        return axes

    def moment(self) -> float:
        """Return the row's time, in seconds since the epoch. Raises UsageError."""
        value = self.arguments.get("time")
        return clock.time() if value is None else number("time", value)


def parse_call(
    first: object, second: object, more: Sequence[object], keywords: Mapping[str, object]
) -> Call:
    """Name the arguments of a call: a dict in front is the metrics, else the step."""
    metrics_first = isinstance(first, Mapping)
    parameters = METRICS_FIRST if metrics_first else STEP_FIRST
    arguments = {parameters[0]: first, parameters[1]: second}
    if more:
        arguments |= zip(parameters[2:], more, strict=False)
    # A step that is None is none where metrics follow it: somebody's variable was not set.
    may_count = metrics_first or second is None
    wrong = []
    if 2 + len(more) > len(parameters):
        wrong.append(f"log() takes {len(parameters)} arguments: the others are left out")
    for key, value in keywords.items():
        if key not in parameters:
            wrong.append(_unknown_argument(key))
        elif arguments.get(key) is None:
            arguments[key] = value
        else:
            wrong.append(f"log() got {key} twice: the first holds")
    return Call(arguments, may_count and arguments.get("step") is None, wrong)


@lru_cache(maxsize=64)
def _unknown_argument(key: str) -> str:
    suggestion = nearest(key, STEP_FIRST)
    return f"log() has no argument {key}: left out{suggestion and f' ({suggestion})'}"


def step(value: object) -> int:
    """Return a step as an int64. Raises UsageError."""
    number = tensors.to_int64(value)
    if number is None:
        raise UsageError(f"a step must be a whole number, not {tensors.kind(value)}")
    return number


def name(value: object) -> str:
    """Return a name. Raises UsageError."""
    if not isinstance(value, str):
        raise UsageError(f"a name must be a string, not {tensors.kind(value)}")
    return value


def number(axis: str, value: object) -> float:
    """Return a row's position on another axis. Raises UsageError."""
    number = tensors.number(value)
    if number is None:
        raise UsageError(f"{axis} must be a number, not {tensors.kind(value)}")
    return number


def ending(status: object, exit_code: object) -> tuple[str, int | None]:
    """Return a run's status and exit code; only a status can have a separate code."""
    code = None if exit_code is None else tensors.to_int64(exit_code)
    if type(status) is str:
        return status, code
    if exit_code is None:
        code = 0 if status is None else tensors.to_int64(status)
        if code is None:
            return media.text(status), None
    return "failed" if code else "finished", code or None


class Thinning:
    """Lets through the first `MAX_EVENTS_OF_KIND` events of a kind, then every 10th, 100th, ....

    So neither memory nor the file of events grows with the length of a training that records an
    event at each step.
    """

    def __init__(self, notes: Notes) -> None:
        """Begin with none; `notes` counts what is left out."""
        self._counts: dict[str, int] = {}
        self._notes = notes

    def lets_through(self, kind: str) -> bool:
        """Count an event of a kind; return whether it is recorded."""
        if kind not in self._counts and len(self._counts) >= MAX_EVENT_KINDS:
            kind = ""  # all further kinds together
        self._counts.setdefault(kind, 0)
        self._counts[kind] += 1
        every, number = 1, self._counts[kind]
        while number > MAX_EVENTS_OF_KIND * every:
            every *= 10
        if number % every:
            self._notes.add(
                f"events left out: of one kind beyond {MAX_EVENTS_OF_KIND:,}, all but every 10th"
            )
        return number % every == 0


def changes(old: Mapping[str, object], new: Mapping[str, object]) -> dict[str, object]:
    """Return {name: {"from": value, "to": value}} of the settings that differ from before."""
    return {
        key: {"from": old.get(key), "to": value}
        for key, value in new.items()
        if key not in old or old[key] != value
    }


def end(status: str, trace: object, exit_code: int | None) -> dict[str, object]:
    """Return what is recorded of a run's end."""
    facts: dict[str, object] = {"status": status, "time": clock.time()}
    if trace is not None and (lines := media.text(trace)):
        facts["traceback"] = redact.clean_text(lines)
    if exit_code is not None:
        facts["exit_code"] = exit_code
    return facts
