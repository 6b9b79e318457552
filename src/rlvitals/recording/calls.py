"""What the arguments of a run's calls mean, and whether they are what they must be."""

import time as clock
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from rlvitals.errors import UsageError, nearest
from rlvitals.recording import tensors
from rlvitals.recording.sinks.sink import AXIS

STEP_FIRST = ("step", "metrics", "episode", "tokens", "time")
METRICS_FIRST = ("metrics", "step", *STEP_FIRST[2:])


@dataclass(slots=True)
class Call:
    """A call of `Run.log`, by the names of its arguments; None stands for what was not said."""

    said: Mapping[str, object]
    counted: bool  # whether no step was said: the row stands one behind the last
    wrong: Sequence[str]  # in words; the rest of the call holds

    def metrics(self) -> Mapping[object, object]:
        """Return the numbers by their names. Raises UsageError."""
        given = self.said.get("metrics")
        if not isinstance(given, Mapping):
            hint = 'run.log(step, {"loss": 0.5})'
            raise UsageError(f"metrics must be a dict, not {tensors.kind(given)}", hint=hint)
        return given

    def axes(self) -> dict[str, float]:
        """Return where the row stands on other axes. Raises UsageError."""
        found = {}
        for axis in ("episode", "tokens"):
            if (at := self.said.get(axis)) is not None:
                found[f"{AXIS}{axis}"] = number(axis, at)
        return found

    def moment(self) -> float:
        """Return the row's time, in seconds since the epoch. Raises UsageError."""
        given = self.said.get("time")
        return clock.time() if given is None else number("time", given)


def understood(
    one: object, other: object, more: Sequence[object], named: Mapping[str, object]
) -> Call:
    """Name a call's arguments: where a dict comes first it is the metrics, else the step is."""
    metrics_first = isinstance(one, Mapping)
    places = METRICS_FIRST if metrics_first else STEP_FIRST
    said = {places[0]: one, places[1]: other}
    if more:
        said |= zip(places[2:], more, strict=False)
    # A step that is None is none where metrics follow it: somebody's variable was not set.
    may_count = metrics_first or other is None
    wrong = []
    if 2 + len(more) > len(places):
        wrong.append(f"log() takes {len(places)} arguments: the others are left out")
    for key, value in named.items():
        if key not in places:
            wrong.append(_unknown(key))
        elif said.get(key) is None:
            said[key] = value
        else:
            wrong.append(f"log() got {key} twice: the first holds")
    return Call(said, may_count and said.get("step") is None, wrong)


@lru_cache(maxsize=64)
def _unknown(key: str) -> str:
    meant = nearest(key, STEP_FIRST)
    return f"log() has no argument {key}: left out{meant and f' ({meant})'}"


def step(given: object) -> int:
    """Return a step as an int64. Raises UsageError."""
    number = tensors.whole(given)
    if number is None:
        raise UsageError(f"a step must be a whole number, not {tensors.kind(given)}")
    return number


def name(given: object) -> str:
    """Return a name. Raises UsageError."""
    if not isinstance(given, str):
        raise UsageError(f"a name must be a string, not {tensors.kind(given)}")
    return given


def number(axis: str, given: object) -> float:
    """Return where a row stands on another axis. Raises UsageError."""
    found = tensors.number(given)
    if found is None:
        raise UsageError(f"{axis} must be a number, not {tensors.kind(given)}")
    return found


def ending(status: object, exit_code: int | None) -> tuple[str, int | None]:
    """Return a run's last word and exit code; for a word the code alone may be given."""
    if isinstance(status, str):
        return status, exit_code
    code = tensors.whole(status) if exit_code is None else exit_code
    return "failed" if code else "finished", code or None
