"""Summarise groups of rollouts, whose rewards are compared, as series of each step."""

import numpy as np
from numpy.typing import NDArray

from rlvitals.rollouts.rollout_columns import Rollouts
from rlvitals.rollouts.step_means import StepMeans, to_series
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Series

MIN_GROUP_ROLLOUTS = 2  # rollouts whose rewards can be compared


@dataclass(frozen=True, slots=True, eq=False)
class RolloutGroups:
    """Groups of several scored rollouts: fields of length g, of groups, or n, of their rows."""

    rows: NDArray[np.void]  # [n]
    indices: NDArray[np.int64]  # [n] of the rows in the run's rollouts
    group_of_row: NDArray[np.int64]  # [n]
    means: StepMeans  # over groups
    row_means: StepMeans  # over rows
    is_dead: NDArray[np.bool_]  # [g] all rewards are equal
    task: NDArray[np.int64]  # [g] number of the task's text


def group_series(
    rollouts: Rollouts, indices: NDArray[np.int64], means: StepMeans
) -> dict[str, Series]:
    """Return the series of groups among rows of the run, and of tasks where there are several."""
    rows = rollouts.rows[indices]
    tasks = rows["task"].astype(np.int64)
    rewards = _by_task(rollouts, tasks, rows["reward"], means)
    columns = {f"rollout/task_reward/{name}": series for name, series in rewards.items()}
    groups = find_groups(rollouts, indices, means)
    if groups is None:
        return columns
    columns["rollout/dead_group_share"] = groups.means.of(groups.is_dead)
    columns["rollout/length_reward_correlation"] = _length_correlation(groups)
    for name, dead in _by_task(rollouts, groups.task, groups.is_dead, groups.means).items():
        columns[f"rollout/dead_groups/{name}"] = dead
    if len(rollouts.parts) > 1:
        for name, part in rollouts.parts.items():
            columns[f"rollout/equal_groups/{name}"] = groups.means.of(equal_groups(groups, part))
    return columns


def find_groups(
    rollouts: Rollouts, indices: NDArray[np.int64], means: StepMeans
) -> RolloutGroups | None:
    """Group the scored rows among `indices` by step and group; None without several in a group."""
    rows = rollouts.rows[indices]
    is_scored = np.isfinite(rows["reward"])
    keys = np.rec.fromarrays([means.step_of_row[is_scored], rows["group"][is_scored]])
    if not len(keys):
        return None
    _, start, group_of_row, count = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True
    )
    several = count >= MIN_GROUP_ROLLOUTS
    if not several.any():
        return None
    in_groups = several[group_of_row]
    number = np.cumsum(several) - 1  # of the groups that are in_groups
    group_number, steps = number[group_of_row[in_groups]], means.step_of_row[is_scored]
    scored = rows[is_scored]
    low, high = _extremes(scored["reward"][in_groups], group_number)
    first = start[several]
    return RolloutGroups(
        rows=scored[in_groups],
        indices=indices[is_scored][in_groups],
        group_of_row=group_number,
        means=StepMeans(means.steps, steps[first]),
        row_means=StepMeans(means.steps, steps[in_groups]),
        is_dead=low == high,
        task=scored["task"][first].astype(np.int64),
    )


def _extremes(
    values: NDArray[np.float64], group_of_row: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the lowest and the highest value of each group, float64 [g]; NaN where one is NaN."""
    count = int(group_of_row.max()) + 1
    low, high = np.full(count, np.inf), np.full(count, -np.inf)
    with np.errstate(invalid="ignore"):  # NaN is meant to spread
        np.minimum.at(low, group_of_row, values)
        np.maximum.at(high, group_of_row, values)
    return low, high


def _length_correlation(groups: RolloutGroups) -> Series:
    """Correlate reward and length within groups: what prompts share is out of it."""
    count = np.bincount(groups.group_of_row)

    columns = (groups.rows[name].astype(np.float64) for name in ("reward", "characters"))
    reward, length = (
        column - (np.bincount(groups.group_of_row, column) / count)[groups.group_of_row]
        for column in columns
    )
    sums = groups.row_means.sums
    product, power = sums(reward * length), sums(reward**2) * sums(length**2)
    rollouts = sums(~groups.is_dead[groups.group_of_row])
    enough = (rollouts >= 16) & (power > 0)  # fewer have no correlation
    correlation = product[enough] / np.sqrt(power[enough])
    return to_series(groups.means.steps[enough], np.clip(correlation, -1, 1))


def equal_groups(groups: RolloutGroups, part: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return whether a part is at its lowest for all of a group: 1 or 0, [g].

    NaN for groups whose rewards are equal. The lowest is that of the run: 0 for a part that pays
    for right answers.
    """
    values = part[groups.indices]
    finite = values[np.isfinite(values)]
    _, high = _extremes(values, groups.group_of_row)
    lowest = float(finite.min()) if len(finite) else np.nan
    return np.where(groups.is_dead | np.isnan(high), np.nan, high == lowest)


def _by_task(
    rollouts: Rollouts, tasks: NDArray[np.int64], values: NDArray[np.generic], means: StepMeans
) -> dict[str, Series]:
    """Return the means of each task, of the most frequent ones; nothing for a single task."""
    numbers, counts = np.unique(tasks, return_counts=True)
    if len(numbers) < 2:  # one task is the run
        return {}
    # The most frequent tasks get a series each.
    frequent = numbers[np.argsort(-counts, kind="stable")][:20]
    column = values.astype(np.float64)
    return {
        rollouts.texts[number]: means.of(np.where(tasks == number, column, np.nan))
        for number in frequent.tolist()
        if rollouts.texts[number]
    }
