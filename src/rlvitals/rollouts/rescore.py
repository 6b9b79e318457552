"""Score saved rollouts again under changed reward functions: a backtest of a reward.

Reward functions are TRL's: `def brief(prompts, completions, answer, task, **columns)` returns a
number or None for each completion. The module's `WEIGHTS`, a dict, weighs them; 1 by default.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from inspect import isfunction, signature
from math import isfinite
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rlvitals.errors import UsageError
from rlvitals.rollouts.group_series import MIN_GROUP_ROLLOUTS
from rlvitals.rollouts.rollout_columns import NO_STEP, Rollouts
from rlvitals.startup.fast_dataclass import dataclass

BATCH_ROLLOUTS = 256  # rollouts that a function gets at once, of the same step
RewardFunction = Callable[..., Sequence[float | None]]


@dataclass(frozen=True, slots=True)
class Rewards:
    """Reward functions by name, with their weights."""

    functions: Mapping[str, RewardFunction]
    weights: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What the rollouts of a task were paid and would be paid; means, NaN without a number."""

    task: str
    count: int
    paid: float
    would_pay: float


@dataclass(frozen=True, slots=True, eq=False)
class Backtest:
    """The result: `paid` and `would_pay` are float64 [n], in the order of `indices`."""

    indices: NDArray[np.int64]
    paid: NDArray[np.float64]
    would_pay: NDArray[np.float64]
    parts: Mapping[str, NDArray[np.float64]]
    tasks: tuple[TaskResult, ...]
    groups: int  # with several scored rollouts
    with_signal: int  # groups whose paid rewards differ
    would_have_signal: int
    gained: int  # groups that get a signal they did not have
    lost: int

    @property
    def changes(self) -> NDArray[np.int64]:
        """Indices of the rollouts that would be paid differently, the largest change first."""
        change = np.abs(self.would_pay - self.paid)
        order = np.argsort(-np.nan_to_num(change), kind="stable")
        return self.indices[order[np.nan_to_num(change)[order] > 0]]


def load(path: Path) -> Rewards:
    """Execute a file of reward functions. Raises UsageError; what its code raises becomes one."""
    spec = spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise UsageError("no Python file of reward functions is here", where=str(path))
    module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise UsageError(
            f"the file fails: {type(error).__name__}: {error}", where=str(path)
        ) from error
    functions = {
        name: function
        for name, function in vars(module).items()
        if isfunction(function)
        and function.__module__ == module.__name__
        and not name.startswith("_")
        and "completions" in signature(function).parameters
    }
    if not functions:
        raise UsageError(
            "no function takes completions",
            where=str(path),
            hint="def brief(completions, **columns): return [-len(text) for text in completions]",
        )
    weights = getattr(module, "WEIGHTS", {})
    unknown = sorted(set(weights) - set(functions))
    if unknown:
        raise UsageError(f"WEIGHTS names no function: {', '.join(unknown)}", where=str(path))
    return Rewards(functions, {name: float(weights.get(name, 1.0)) for name in functions})


def run(rollouts: Rollouts, rewards: Rewards) -> Backtest:
    """Score the rollouts of the training again. Raises UsageError where a function fails."""
    indices = rollouts.indices(rollouts.training)
    if not len(indices):
        indices = rollouts.indices(np.ones(len(rollouts), np.bool_))
    parts = {name: np.full(len(indices), np.nan) for name in rewards.functions}
    for start in range(0, len(indices), BATCH_ROLLOUTS):
        samples = [
            rollouts.read_sample(int(index)) for index in indices[start : start + BATCH_ROLLOUTS]
        ]
        columns: dict[str, list[object]] = {
            "prompts": [sample.prompt for sample in samples],
            "completions": [sample.text for sample in samples],
            "turns": [sample.turns for sample in samples],
            "answer": [sample.answer for sample in samples],
            "task": [sample.task for sample in samples],
            "stop_reason": [sample.stop_reason for sample in samples],
            "error": [sample.error for sample in samples],
        }
        for name, function in rewards.functions.items():
            parts[name][start : start + BATCH_ROLLOUTS] = _score(name, function, columns)
    weighted = np.array([rewards.weights[name] * column for name, column in parts.items()])
    scored = np.isfinite(weighted).any(axis=0)
    total = np.where(scored, np.nansum(weighted, axis=0), np.nan)
    paid = rollouts.rows["reward"][indices]
    had, gets = _signals(rollouts, indices, paid), _signals(rollouts, indices, total)
    return Backtest(
        indices=indices,
        paid=paid,
        would_pay=total,
        parts=parts,
        tasks=_by_task(rollouts, indices, paid, total),
        groups=len(gets),
        with_signal=sum(had.values()),
        would_have_signal=sum(gets.values()),
        gained=sum(signal and not had.get(group, False) for group, signal in gets.items()),
        lost=sum(had.get(group, False) and not signal for group, signal in gets.items()),
    )


def _score(
    name: str, function: RewardFunction, columns: Mapping[str, list[object]]
) -> NDArray[np.float64]:
    """Return what a function gives, NaN for None. Raises UsageError."""
    parameters = signature(function).parameters
    takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    arguments = {
        key: list(cells) for key, cells in columns.items() if takes_all or key in parameters
    }
    try:
        scores = list(function(**arguments))
        values = [np.nan if score is None else float(score) for score in scores]
    except (Exception, SystemExit) as error:
        raise UsageError(f"{name} fails: {type(error).__name__}: {error}", where=name) from error
    if len(values) != len(columns["completions"]):
        raise UsageError(
            f"{name} gives {len(values)} rewards for {len(columns['completions'])} completions",
            where=name,
            hint="one number or None for each completion",
        )
    return np.array([value if isfinite(value) else np.nan for value in values])


def _signals(
    rollouts: Rollouts, indices: NDArray[np.int64], rewards: NDArray[np.float64]
) -> dict[tuple[int, int], bool]:
    """Return for each group of several scored rollouts whether its rewards differ."""
    groups: dict[tuple[int, int], list[float]] = {}
    rows = rollouts.rows[indices]
    keys = zip(rows["step"].tolist(), rows["group"].tolist(), strict=True)
    for key, reward in zip(keys, rewards.tolist(), strict=True):
        if isfinite(reward) and key[0] != NO_STEP:
            groups.setdefault(key, []).append(reward)
    return {
        key: min(values) < max(values)
        for key, values in groups.items()
        if len(values) >= MIN_GROUP_ROLLOUTS
    }


def _by_task(
    rollouts: Rollouts,
    indices: NDArray[np.int64],
    paid: NDArray[np.float64],
    total: NDArray[np.float64],
) -> tuple[TaskResult, ...]:
    numbers = rollouts.rows["task"][indices]
    results = []
    for number in np.unique(numbers).tolist():
        mask = numbers == number
        scored = (values[mask & np.isfinite(values)] for values in (paid, total))
        means = [float(values.mean()) if len(values) else np.nan for values in scored]
        results.append(TaskResult(rollouts.texts[number], int(mask.sum()), *means))
    return tuple(sorted(results, key=lambda result: -result.count))
