"""Parse and check the gates of a comparison: conditions that a candidate must satisfy.

    METRIC no worse than NUMBER [UNIT] [at WHERE]
    METRIC better than NUMBER [UNIT] [at WHERE]

UNIT: `% of the random-to-baseline range`, `% of baseline`, or none, for the metric's own. WHERE:
`last`, `best` or `mean of last N %`. `no worse than baseline` is `no worse than 0`.
"""

import math
import re
from collections.abc import Sequence
from typing import Literal

import numpy as np

from rlvitals.comparison import result, scores, statistics
from rlvitals.comparison.compare import DEFAULT_SCORE_AT, CompareOptions, groups
from rlvitals.comparison.grouping import Member, RunGroup
from rlvitals.comparison.result import Comparison
from rlvitals.comparison.scores import At, Axis
from rlvitals.comparison.statistics import Array, Interval
from rlvitals.errors import UsageError, nearest
from rlvitals.rules import standing
from rlvitals.startup.fast_dataclass import dataclass

Relation = Literal["no worse than", "better than"]
Unit = Literal["range", "baseline", "absolute"]

GATE_EXAMPLE = "return no worse than 5 % of the random-to-baseline range"
GATE_UNITS: dict[str, Unit] = {
    "% of the random-to-baseline range": "range",
    "% of random-to-baseline range": "range",
    "% of the baseline": "baseline",
    "% of baseline": "baseline",
    "absolute": "absolute",
    "": "absolute",
}
GATE_RELATIONS: tuple[Relation, ...] = ("no worse than", "better than")
GATE_WORDS = {
    token
    for text in (*GATE_UNITS, *GATE_RELATIONS, scores.SCORE_EXAMPLES.replace(",", ""))
    for token in text.split()
}


@dataclass(frozen=True, slots=True)
class Gate:
    """A condition on the candidate's metric, relative to the baseline."""

    text: str
    metric: str  # as the user named it
    relation: Relation
    number: float  # per cent where the unit is a share
    unit: Unit
    at: At


@dataclass(frozen=True, slots=True)
class GateResult:
    """The result of a gate and its evidence. All numbers in the gate's unit, up = better."""

    gate: Gate
    holds: bool | None  # None: undecided
    sentence: str
    difference: Interval  # of the candidate to the baseline
    bound: float
    more_seeds: int | None
    comparison: Comparison


def parse(text: str) -> Gate:
    """Parse a gate. Raises UsageError that names the first unknown word."""
    words = " ".join(text.replace("%", " % ").split())
    for relation in GATE_RELATIONS:
        metric, relation_text, remainder = words.partition(f" {relation} ")
        if relation_text and " " not in metric:
            return _parse_terms(text, metric, relation, remainder)
    raise _parse_error(
        text, words.split()[1:], "METRIC no worse than ..., or METRIC better than ..."
    )


def _parse_terms(text: str, metric: str, relation: Relation, remainder: str) -> Gate:
    amount, _, score_text = remainder.partition(" at ")
    score_at = scores.parse_score_at(score_text) if score_text else DEFAULT_SCORE_AT
    if amount in {"baseline", "the baseline"}:
        return Gate(text, metric, relation, 0.0, "absolute", score_at)
    match = re.fullmatch(r"(\d+(?:\.\d*)?(?:e[-+]?\d+)?|\.\d+)\s*(.*)", amount)
    if match is None or match[2] not in GATE_UNITS:
        tokens = (match[2] if match else amount).split()
        raise _parse_error(
            text, tokens, "a number, and % of the random-to-baseline range or % of baseline"
        )
    return Gate(text, metric, relation, float(match[1]), GATE_UNITS[match[2]], score_at)


def _parse_error(text: str, tokens: Sequence[str], expected: str) -> UsageError:
    """Return the error for the first unknown word, with the nearest known one."""
    unknown = next((token for token in tokens if token not in GATE_WORDS), "")
    allowed = (
        GATE_WORDS
        if "number" in expected
        else {token for text in GATE_RELATIONS for token in text.split()}
    )
    suggestion = nearest(unknown, allowed) if unknown else ""
    problem = f"no gate: {unknown!r} is not understood" if unknown else f"no gate: want {expected}"
    hint = f"{suggestion} " if suggestion else ""
    return UsageError(problem, where=repr(text), hint=f"{hint}{GATE_EXAMPLE!r}")


def check(
    gate: Gate,
    baseline: Sequence[Member],
    candidate: Sequence[Member],
    *,
    axis: Axis = "steps",
    short_fails: bool = False,
) -> GateResult:
    """Check a gate on two groups of runs. Raises UsageError for a metric that no run logs."""
    run_groups = [
        RunGroup("baseline", {}, tuple(baseline)),
        RunGroup("candidate", {}, tuple(candidate)),
    ]
    comparison = groups(
        run_groups,
        CompareOptions(metric=gate.metric, at=gate.at, axis=axis, short_fails=short_fails),
    )
    if len(comparison.groups) < len(run_groups):
        raise UsageError(
            f"only one of the two logs {comparison.metric}", hint="--gate 'METRIC ...'"
        )
    bound = gate.number / 100 if gate.unit != "absolute" else gate.number
    bound = -bound if gate.relation == "no worse than" else bound
    names = [task.name for task in comparison.tasks]
    if gate.unit == "absolute" and gate.number and len(names) > 1:
        hint = "say it in % of the random-to-baseline range"
        raise UsageError(
            f"{len(names)} tasks have no common unit", where=repr(gate.text), hint=hint
        )
    missing = _find_missing_tasks(comparison, names)
    scales, problem = ([], missing) if missing else _scales(gate, comparison, names)
    if problem:
        nan = math.nan
        unknown = Interval(nan, nan, nan, statistics.CONFIDENCE_LEVEL, "not asked", True)
        sentence = f"nobody can tell: {problem}"
        return GateResult(gate, None, sentence, unknown, bound, None, comparison)
    return _judge(gate, comparison, names, scales, bound)


def _find_missing_tasks(comparison: Comparison, names: Sequence[str]) -> str:
    for group in comparison.groups:
        tasks = {run.task for run in group.runs}
        if missing := [name or "unnamed" for name in names if name not in tasks]:
            return f"the {group.label} has no run of {', '.join(missing)}"
    return ""


def _gains(comparison: Comparison, group_index: int, names: Sequence[str]) -> list[Array]:
    """Return the scores of a group by task, up = better, in the metric's unit."""
    sign = scores.sign(comparison.metric)
    runs = comparison.groups[group_index].runs
    return [np.array([sign * run.score for run in runs if run.task == name]) for name in names]


def _scales(gate: Gate, comparison: Comparison, names: Sequence[str]) -> tuple[list[float], str]:
    """Return the divisor of each task's differences, or why it is undefined."""
    if gate.unit == "absolute":
        # Over several tasks only the sign is checked: each is divided by its own scale.
        return ([1.0] if len(names) == 1 else [task.span for task in comparison.tasks]), ""
    sign, scales = scores.sign(comparison.metric), []
    for task, gains in zip(comparison.tasks, _gains(comparison, 0, names), strict=True):
        origin = sign * task.low if gate.unit == "range" else 0.0
        gap = statistics.welch([gains - origin], None, statistics.CONFIDENCE_LEVEL)
        task_text = f" on {task.name}" if task.name and len(names) > 1 else ""
        if gate.unit == "range" and not (gap.value > 0 and not gap.low <= 0):
            chance = "what random actions earn" if task.is_known else "where the runs began"
            return [], f"the baseline{task_text} is not shown to be above {chance}: it has no range"
        if gate.unit == "baseline" and (gap.value == 0 or gap.low <= 0 <= gap.high):
            problem = f"a share of a baseline that may be 0{task_text} is no number"
            return [], f"{problem}: {GATE_EXAMPLE!r}"
        scales.append(abs(gap.value))
    return scales, ""


def _judge(
    gate: Gate, comparison: Comparison, names: Sequence[str], scales: Sequence[float], bound: float
) -> GateResult:
    candidate, baseline = (
        [gains / scale for gains, scale in zip(_gains(comparison, i, names), scales, strict=True)]
        for i in (1, 0)
    )
    difference = statistics.difference(candidate, baseline)
    seeds = statistics.min_seeds(candidate, baseline)
    holds: bool | None = None
    if seeds >= statistics.MIN_SEEDS:
        low, high, allows_equal = difference.low, difference.high, gate.relation == "no worse than"
        above = low >= bound if allows_equal else low > bound
        below = high < bound if allows_equal else high <= bound
        holds = True if above else False if below else None
    matters = abs(bound) or comparison.against[0].matters / (scales[0] if len(names) == 1 else 1.0)
    seeds_needed = statistics.seeds_for(candidate, baseline, matters)
    more = None
    if seeds_needed is not None and holds is None:
        more = max(seeds_needed, statistics.MIN_SEEDS) - seeds
    more = more if more is not None and more > 0 else None
    sentence = _format_sentence(gate, comparison, difference, bound, holds)
    if seeds < statistics.MIN_SEEDS:
        sentence += f"; from {seeds} {'seed' if seeds == 1 else 'seeds'} no spread is known"
    if more is not None:
        amount = _format_amount(gate, matters).lstrip("+")
        sentence += f"; {result.format_seeds_needed(more, amount)}"
    return GateResult(gate, holds, sentence, difference, bound, more, comparison)


def _format_sentence(
    gate: Gate,
    comparison: Comparison,
    difference: Interval,
    bound: float,
    holds: bool | None,  # noqa: FBT001
) -> str:
    outcome = {True: "holds", False: "broken", None: "nobody can tell"}[holds]
    name = standing.label(comparison.metric)
    interval_text = ""
    if math.isfinite(difference.low):
        low, high = _format_amount(gate, difference.low), _format_amount(gate, difference.high)
        interval_text = f" ({low} to {high})"
    limit_text = "allowed is" if gate.relation == "no worse than" else "wanted is more than"
    units = {"range": " of the random-to-baseline range", "baseline": " of the baseline"}
    value, unit_text = _format_amount(gate, difference.value), units.get(gate.unit, "")
    return (
        f"{outcome}: {name} differs by {value}{interval_text}{unit_text};"
        f" {limit_text} {_format_amount(gate, bound)}"
    )


def _format_amount(gate: Gate, value: float) -> str:
    if value == 0:
        return "0"
    return f"{value:+.4g}" if gate.unit == "absolute" else f"{100 * value:+.3g} %"
