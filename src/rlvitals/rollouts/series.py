"""Summarise a run's rollouts as one series per measure, `rollout/*`, a point for each step.

Rollouts of the training alone are counted; of an evaluation there may be a few at any step.
"""

import numpy as np
from numpy.typing import NDArray

from rlvitals.rollouts.rollout_columns import NO_STEP, Rollouts
from rlvitals.types import Log, Series

SOURCE = "rollouts"
MIN_GROUP_ROLLOUTS = 2  # rollouts whose rewards can be compared
MAX_SERIES_TEXTS = 20  # stop reasons or tasks that get a series each: the most frequent ones


def to_log(rollouts: Rollouts) -> Log:
    """Return the series of a run's rollouts, under keys that begin with `rollout/`."""
    indices = rollouts.indices(rollouts.training & (rollouts.rows["step"] != NO_STEP))
    rows = rollouts.rows[indices]
    if not len(rows):
        return Log(SOURCE, {}, notes=rollouts.notes)
    steps, step_of_row = np.unique(rows["step"], return_inverse=True)
    means = _Means(steps, step_of_row)
    columns: dict[str, Series] = {
        "rollout/reward_mean": means.of(rows["reward"]),
        "rollout/characters_mean": means.of(rows["characters"]),
        "rollout/seconds_mean": means.of(rows["seconds"]),
        "rollout/tokens_mean": means.of(
            np.where(rows["token_count"] < 0, np.nan, rows["token_count"])
        ),
    }
    if rows["characters"].any():
        columns["rollout/looping_share"] = means.of(rows["looping"])
    columns |= _failures(rows, means) | _conversations(rows, means)
    for name, part in rollouts.parts.items():
        columns[f"rollout/part/{name}"] = means.of(part[indices])
    columns |= _shares(rollouts, rows, means, "stop_reason")
    columns |= _groups(rollouts, rows, means)
    series = {key: column for key, column in columns.items() if len(column)}
    return Log(SOURCE, series, notes=rollouts.notes, framework=SOURCE)


def _failures(rows: NDArray[np.void], means: "_Means") -> dict[str, Series]:
    """Return the shares of rollouts that failed, or have no reward, where any has."""
    wrong, unscored = rows["error"] != 0, np.isnan(rows["reward"])
    columns = {}
    if wrong.any():
        columns["rollout/error_share"] = means.of(wrong)
        columns["rollout/failed_as_zero_share"] = means.of(wrong & (rows["reward"] == 0))
    if unscored.any():
        columns["rollout/unscored_share"] = means.of(unscored)
    return columns


def _conversations(rows: NDArray[np.void], means: "_Means") -> dict[str, Series]:
    """Return turns and calls of tools, where a rollout has several turns or a call."""
    has_calls = rows["tool_calls"] > 0
    columns = {}
    if rows["turns"].max() > 1:
        columns["rollout/turns_mean"] = means.of(rows["turns"])
        columns["rollout/turns_min"] = means.extreme(rows["turns"], np.minimum)
        columns["rollout/turns_max"] = means.extreme(rows["turns"], np.maximum)
    if has_calls.any():
        failures = rows["failed_calls"] / np.maximum(rows["tool_calls"], 1)
        columns["rollout/tool_calls_mean"] = means.of(rows["tool_calls"])
        columns["rollout/tool_failure_share"] = means.of(np.where(has_calls, failures, np.nan))
    return columns


class _Means:
    """Means over the rows of each step."""

    def __init__(self, steps: NDArray[np.int64], step_of_row: NDArray[np.int64]) -> None:
        self.steps, self.step_of_row = steps, step_of_row

    def of(self, values: NDArray[np.generic]) -> Series:
        """Return the mean at each step that has a number; NaN is left out."""
        numbers = values.astype(np.float64)
        finite = np.isfinite(numbers)
        count = np.bincount(self.step_of_row, finite, len(self.steps))
        total = np.bincount(self.step_of_row, np.where(finite, numbers, 0.0), len(self.steps))
        some = count > 0
        return _without_times(self.steps[some], total[some] / count[some])

    def extreme(self, values: NDArray[np.generic], pick: np.ufunc) -> Series:
        """Return the lowest or highest value at each step."""
        numbers = values.astype(np.float64)
        result = np.full(len(self.steps), np.inf if pick is np.minimum else -np.inf)
        pick.at(result, self.step_of_row, numbers)
        return _without_times(self.steps, result)


def _without_times(steps: NDArray[np.int64], values: NDArray[np.float64]) -> Series:
    return Series(steps, np.full(len(steps), np.nan), values)


def _shares(
    rollouts: Rollouts, rows: NDArray[np.void], means: _Means, name: str
) -> dict[str, Series]:
    """Return the share of each text of a column, for the most frequent ones."""
    numbers, counts = np.unique(rows[name], return_counts=True)
    frequent = numbers[np.argsort(-counts, kind="stable")][:MAX_SERIES_TEXTS]
    return {
        f"rollout/{name}/{rollouts.texts[number]}": means.of(rows[name] == number)
        for number in frequent.tolist()
        if rollouts.texts[number]
    }


def _groups(rollouts: Rollouts, rows: NDArray[np.void], means: _Means) -> dict[str, Series]:
    """Return the share of groups whose rewards are all equal: of all groups, and by task."""
    scored = np.isfinite(rows["reward"])
    keys = np.rec.fromarrays([means.step_of_row[scored], rows["group"][scored]])
    if not len(keys):
        return {}
    groups, start, group_of_row = np.unique(keys, return_index=True, return_inverse=True)
    rewards = rows["reward"][scored]
    low, high = np.full(len(groups), np.inf), np.full(len(groups), -np.inf)
    np.minimum.at(low, group_of_row, rewards)
    np.maximum.at(high, group_of_row, rewards)
    several = np.bincount(group_of_row, minlength=len(groups)) >= MIN_GROUP_ROLLOUTS
    if not several.any():
        return {}
    group_means = _Means(means.steps, groups["f0"].astype(np.int64)[several])
    dead = (low == high)[several]
    columns = {"rollout/dead_group_share": group_means.of(dead)}
    tasks = rows["task"][scored][start][several]
    numbers, counts = np.unique(tasks, return_counts=True)
    if len(numbers) > 1:
        frequent = numbers[np.argsort(-counts, kind="stable")][:MAX_SERIES_TEXTS]
        for number in frequent.tolist():
            values = np.where(tasks == number, dead.astype(np.float64), np.nan)
            columns[f"rollout/dead_groups/{rollouts.texts[number]}"] = group_means.of(values)
    return columns
