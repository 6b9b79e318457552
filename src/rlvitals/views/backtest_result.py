"""Render a backtest: means, tasks, groups with a signal, and the rollouts that change most."""

from math import isfinite

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from rlvitals.errors import quantity
from rlvitals.rollouts.rescore import Backtest
from rlvitals.rollouts.rollout_columns import Rollouts
from rlvitals.views import lists
from rlvitals.views.phrases import number
from rlvitals.views.rollout_list import REPLY_CHARACTERS


def report(rollouts: Rollouts, result: Backtest, limit: int) -> RenderableType:
    """Render the result."""
    scored = int(np.isfinite(result.would_pay).sum())
    lines = [
        Text(f"{scored} of {len(result.indices)} rollouts scored", "bold"),
        Text(f"mean reward: {_mean(result.paid)} paid, {_mean(result.would_pay)} under the file"),
        Text(
            f"groups with a signal: {result.with_signal} -> {result.would_have_signal} of"
            f" {result.groups} ({result.gained} gained, {result.lost} lost)"
        ),
        *(Text(f"  {name}: mean {_mean(column)}") for name, column in result.parts.items()),
    ]
    tables: list[RenderableType] = [Text()]
    if any(task.task for task in result.tasks):
        tasks = [
            (t.task or "-", str(t.count), _number(t.paid), _number(t.would_pay))
            for t in result.tasks
        ]
        tables += [lists.columns(("task", "rollouts", "paid", "would pay"), tasks, 4), Text()]
    changed = [int(index) for index in result.changes[:limit]]
    if changed:
        position = {int(index): n for n, index in enumerate(result.indices)}
        rows = []
        for index in changed:
            number = position[index]
            sample = rollouts.read_sample(index)
            reply = " ".join(sample.text.split())
            row = (
                str(index),
                "-" if sample.step is None else str(sample.step),
                _number(result.paid[number]),
                _number(result.would_pay[number]),
                reply if len(reply) <= REPLY_CHARACTERS else f"{reply[: REPLY_CHARACTERS - 1]}…",
            )
            rows.append(row)
        tables.append(lists.columns(("sample", "step", "paid", "would pay", "reply"), rows, 4))
    tables.append(Text(f"{quantity(len(result.changes), 'rollout')} would be paid differently"))
    return Group(*lines, *tables)


def _mean(values: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> str:
    finite = values[np.isfinite(values)]
    return number(float(finite.mean())) if len(finite) else "-"


def _number(value: float) -> str:
    return number(float(value)) if isfinite(value) else "-"


def to_json(rollouts: Rollouts, result: Backtest, limit: int) -> dict[str, object]:
    """Return the result as JSON's types; a number that is missing is null."""
    position = {int(index): n for n, index in enumerate(result.indices)}
    changed = [int(index) for index in result.changes[:limit]]
    return {
        "rollouts": len(result.indices),
        "groups": result.groups,
        "groups_with_signal": {"paid": result.with_signal, "would_pay": result.would_have_signal},
        "groups_gained": result.gained,
        "groups_lost": result.lost,
        "tasks": [
            {
                "task": task.task,
                "rollouts": task.count,
                "paid": _finite(task.paid),
                "would_pay": _finite(task.would_pay),
            }
            for task in result.tasks
        ],
        "changed": len(result.changes),
        "samples": [
            {
                "sample": index,
                "paid": _finite(result.paid[position[index]]),
                "would_pay": _finite(result.would_pay[position[index]]),
                "parts": {name: _finite(c[position[index]]) for name, c in result.parts.items()},
                **rollouts.read_sample(index).to_json(),
            }
            for index in changed
        ],
    }


def _finite(value: float) -> float | None:
    return float(value) if isfinite(value) else None
