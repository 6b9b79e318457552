"""A sentence that two groups of runs hold or break: what a pipeline may ask of a change.

    METRIC no worse than NUMBER [UNIT] [at WHERE]
    METRIC better than NUMBER [UNIT] [at WHERE]

UNIT: `% of the random-to-baseline range`, `% of baseline`, or none, for the metric's own. WHERE:
`last`, `best` or `mean of last N %`. `no worse than baseline` is `no worse than 0`.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rlvitals.comparison import result, scores, statistics
from rlvitals.comparison.compare import LATEST, Asked, groups
from rlvitals.comparison.grouping import Gathered, Member
from rlvitals.comparison.result import Comparison
from rlvitals.comparison.scores import At, Axis
from rlvitals.comparison.statistics import Array, Interval
from rlvitals.errors import UsageError, nearest
from rlvitals.rules import standing

Relation = Literal["no worse than", "better than"]
Unit = Literal["range", "baseline", "absolute"]

EXAMPLE = "return no worse than 5 % of the random-to-baseline range"
UNITS: dict[str, Unit] = {
    "% of the random-to-baseline range": "range",
    "% of random-to-baseline range": "range",
    "% of the baseline": "baseline",
    "% of baseline": "baseline",
    "absolute": "absolute",
    "": "absolute",
}
RELATIONS: tuple[Relation, ...] = ("no worse than", "better than")
WORDS = {
    word for text in (*UNITS, *RELATIONS, scores.EXAMPLE.replace(",", "")) for word in text.split()
}
NUMBER = re.compile(r"(\d+(?:\.\d*)?(?:e[-+]?\d+)?|\.\d+)\s*(.*)")


@dataclass(frozen=True, slots=True)
class Gate:
    """What is asked of a candidate."""

    text: str
    metric: str  # as the person named it
    relation: Relation
    number: float  # per cent where the unit is a share
    unit: Unit
    at: At


@dataclass(frozen=True, slots=True)
class Gated:
    """Whether a gate holds, and the evidence. All numbers in the gate's unit, up = better."""

    gate: Gate
    holds: bool | None  # None: nobody can tell
    sentence: str
    difference: Interval  # of the candidate to the baseline
    bound: float
    more_seeds: int | None
    comparison: Comparison


def parse(text: str) -> Gate:
    """Read a gate. Raises UsageError that names the word that is not understood."""
    said = " ".join(text.replace("%", " % ").split())
    for relation in RELATIONS:
        metric, found, rest = said.partition(f" {relation} ")
        if found and " " not in metric:
            return _parsed(text, metric, relation, rest)
    raise _wrong(text, said.split()[1:], "METRIC no worse than ..., or METRIC better than ...")


def _parsed(text: str, metric: str, relation: Relation, rest: str) -> Gate:
    amount, _, where = rest.partition(" at ")
    at = scores.at(where) if where else LATEST
    if amount in {"baseline", "the baseline"}:
        return Gate(text, metric, relation, 0.0, "absolute", at)
    found = NUMBER.fullmatch(amount)
    if found is None or found[2] not in UNITS:
        words = (found[2] if found else amount).split()
        raise _wrong(
            text, words, "a number, and % of the random-to-baseline range or % of baseline"
        )
    return Gate(text, metric, relation, float(found[1]), UNITS[found[2]], at)


def _wrong(text: str, words: Sequence[str], wanted: str) -> UsageError:
    """Name the first word that no gate has, and what is nearest to it."""
    strange = next((word for word in words if word not in WORDS), "")
    known = WORDS if "number" in wanted else {word for text in RELATIONS for word in text.split()}
    near = nearest(strange, known) if strange else ""
    problem = f"no gate: {strange!r} is not understood" if strange else f"no gate: want {wanted}"
    hint = f"{near} " if near else ""
    return UsageError(problem, where=repr(text), hint=f"{hint}{EXAMPLE!r}")


def check(
    gate: Gate,
    baseline: Sequence[Member],
    candidate: Sequence[Member],
    *,
    axis: Axis = "steps",
    short_fails: bool = False,
) -> Gated:
    """Ask a gate of two groups of runs. Raises UsageError for a metric that nobody logs."""
    gathered = [
        Gathered("baseline", {}, tuple(baseline)),
        Gathered("candidate", {}, tuple(candidate)),
    ]
    told = groups(
        gathered, Asked(metric=gate.metric, at=gate.at, axis=axis, short_fails=short_fails)
    )
    if len(told.groups) < len(gathered):
        raise UsageError(f"only one of the two logs {told.metric}", hint="--gate 'METRIC ...'")
    bound = gate.number / 100 if gate.unit != "absolute" else gate.number
    bound = -bound if gate.relation == "no worse than" else bound
    names = [one.name for one in told.tasks]
    if gate.unit == "absolute" and gate.number and len(names) > 1:
        hint = "say it in % of the random-to-baseline range"
        raise UsageError(
            f"{len(names)} tasks have no common unit", where=repr(gate.text), hint=hint
        )
    lacks = _lacks(told, names)
    scales, why = ([], lacks) if lacks else _scales(gate, told, names)
    if why:
        nothing = Interval(math.nan, math.nan, math.nan, statistics.CONFIDENCE, "not asked", True)
        return Gated(gate, None, f"nobody can tell: {why}", nothing, bound, None, told)
    return _judged(gate, told, names, scales, bound)


def _lacks(told: Comparison, names: Sequence[str]) -> str:
    for group in told.groups:
        held = {run.task for run in group.runs}
        if missing := [name or "unnamed" for name in names if name not in held]:
            return f"the {group.label} has no run of {', '.join(missing)}"
    return ""


def _gains(told: Comparison, which: int, names: Sequence[str]) -> list[Array]:
    """Return the scores of a group by task, up = better, in the metric's own unit."""
    sign = scores.sign(told.metric)
    runs = told.groups[which].runs
    return [np.array([sign * run.score for run in runs if run.task == name]) for name in names]


def _scales(gate: Gate, told: Comparison, names: Sequence[str]) -> tuple[list[float], str]:
    """Return what the differences of each task are divided by, or why that is no number."""
    if gate.unit == "absolute":
        # Several tasks are asked only for the sign: each counts by its own scale.
        return ([1.0] if len(names) == 1 else [one.span for one in told.tasks]), ""
    sign, found = scores.sign(told.metric), []
    for about, gains in zip(told.tasks, _gains(told, 0, names), strict=True):
        zero = sign * about.low if gate.unit == "range" else 0.0
        far = statistics.welch([gains - zero], None, statistics.CONFIDENCE)
        where = f" on {about.name}" if about.name and len(names) > 1 else ""
        if gate.unit == "range" and not (far.value > 0 and not far.low <= 0):
            chance = "what random actions earn" if about.is_known else "where the runs began"
            return [], f"the baseline{where} is not shown to be above {chance}: it has no range"
        if gate.unit == "baseline" and (far.value == 0 or far.low <= 0 <= far.high):
            return [], f"a share of a baseline that may be 0{where} is no number: {EXAMPLE!r}"
        found.append(abs(far.value))
    return found, ""


def _judged(
    gate: Gate, told: Comparison, names: Sequence[str], scales: Sequence[float], bound: float
) -> Gated:
    mine, theirs = (
        [gains / scale for gains, scale in zip(_gains(told, i, names), scales, strict=True)]
        for i in (1, 0)
    )
    apart = statistics.difference(mine, theirs)
    seeds = statistics.fewest(mine, theirs)
    holds: bool | None = None
    if seeds >= statistics.LEAST:
        above = apart.low >= bound if gate.relation == "no worse than" else apart.low > bound
        below = apart.high < bound if gate.relation == "no worse than" else apart.high <= bound
        holds = True if above else False if below else None
    matters = abs(bound) or told.against[0].matters / (scales[0] if len(names) == 1 else 1.0)
    wanted = statistics.seeds_for(mine, theirs, matters)
    more = None if wanted is None or holds is not None else max(wanted, statistics.LEAST) - seeds
    more = more if more is not None and more > 0 else None
    said = _sentence(gate, told, apart, bound, holds)
    if seeds < statistics.LEAST:
        said += f"; from {seeds} {'seed' if seeds == 1 else 'seeds'} no spread is known"
    if more is not None:
        said += f"; {result.seeds_wanted(more, _amount(gate, matters).lstrip('+'))}"
    return Gated(gate, holds, said, apart, bound, more, told)


def _sentence(
    gate: Gate,
    told: Comparison,
    apart: Interval,
    bound: float,
    holds: bool | None,  # noqa: FBT001
) -> str:
    word = {True: "holds", False: "broken", None: "nobody can tell"}[holds]
    name = standing.label(told.metric)
    span = ""
    if math.isfinite(apart.low):
        span = f" ({_amount(gate, apart.low)} to {_amount(gate, apart.high)})"
    asked = "allowed is" if gate.relation == "no worse than" else "wanted is more than"
    of = {"range": " of the random-to-baseline range", "baseline": " of the baseline"}
    return (
        f"{word}: {name} differs by {_amount(gate, apart.value)}{span}{of.get(gate.unit, '')};"
        f" {asked} {_amount(gate, bound)}"
    )


def _amount(gate: Gate, value: float) -> str:
    if value == 0:
        return "0"
    return f"{value:+.4g}" if gate.unit == "absolute" else f"{100 * value:+.3g} %"
