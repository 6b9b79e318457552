"""Find the rollouts that show a finding: those that its metric counts."""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from rlvitals.errors import UsageError
from rlvitals.rollouts.group_series import RolloutGroups, equal_groups, find_groups
from rlvitals.rollouts.rollout_columns import Rollouts
from rlvitals.rollouts.series import is_cut
from rlvitals.rollouts.step_means import training_rows

Values = NDArray[np.float64]  # [n] or [g]; NaN for rollouts that do not show the metric
Mask = NDArray[np.bool_]


def _mask(condition: Callable[[NDArray[np.void]], Mask]) -> Callable[[Rollouts], Values]:
    return lambda rollouts: np.where(condition(rollouts.rows), 1.0, np.nan)


def _column(name: str) -> Callable[[Rollouts], Values]:
    return lambda rollouts: rollouts.rows[name].astype(np.float64)


# By the beginning of a metric's name: what the rollouts that show it are sorted by.
SAMPLE_VALUES: Mapping[str, Callable[[Rollouts], Values]] = {
    "rollout/failed_as_zero_share": _mask(
        lambda rows: (rows["error"] != 0) & (rows["reward"] == 0)
    ),
    "rollout/prompt_retrieval": lambda rollouts: np.where(
        rollouts.rows["retrieved"] <= 0, 0.0, np.nan
    ),
    "rollout/copied_share": _column("copied"),
    "rollout/answer_stated_share": _mask(lambda rows: rows["answer_stated"] == 1),
    "rollout/other_script_share": _mask(lambda rows: rows["other_script"] == 1),
    "rollout/length_reward_correlation": _column("characters"),
    "language/repetition_share": _mask(lambda rows: rows["looping"] == 1),
    "language/error_share": _mask(lambda rows: rows["error"] != 0),
    "language/tool_failures": _mask(lambda rows: rows["failed_calls"] > 0),
    "language/tool_calls": _column("tool_calls"),
    "language/turns": _column("turns"),
    "language/length": _column("characters"),
    "language/truncated": lambda rollouts: np.where(is_cut(rollouts, rollouts.rows), 1.0, np.nan),
    "reward/group_zero_std": lambda rollouts: _in_groups(rollouts, lambda groups: groups.is_dead),
    "reward/": _column("reward"),
    "outcome/": _column("reward"),
}


def find(
    rollouts: Rollouts, metric: str, began: int, ended: int, *, is_above: bool
) -> NDArray[np.int64]:
    """Return the indices of the rollouts that show a metric from one step to another, best first.

    `is_above` says whether the finding is that the metric is too high: then the highest come
    first, else the lowest; of equal ones the newest. Every rollout has a length or a reward: of
    such a metric only the quarter at that end shows the finding. Raises UsageError where the
    rollouts do not record what it counts.
    """
    family = next((family for family in MEMBER_VALUES if metric.startswith(f"{family}/")), None)
    if family is None:
        measures = (m for prefix, m in SAMPLE_VALUES.items() if metric.startswith(prefix))
        measure = next(measures, None)
        values = None if measure is None else measure(rollouts)
    else:
        values = MEMBER_VALUES[family](rollouts, metric.removeprefix(f"{family}/"))
    if values is None:
        raise UsageError(
            f"rollouts do not show {metric}",
            where="--finding",
            hint="rlvitals samples RUN --step 400",
        )
    steps = rollouts.rows["step"]
    inside = (steps >= began) & (steps <= ended) & np.isfinite(values)
    indices = rollouts.indices(inside)
    if not len(indices):
        return indices
    order = -values[indices] if is_above else values[indices]
    at_the_end = order <= np.percentile(order, 25)
    indices, order = indices[at_the_end], order[at_the_end]
    return indices[np.lexsort((-steps[indices], order))]


def _in_equal_groups(rollouts: Rollouts, name: str) -> Values | None:
    column = rollouts.parts.get(name)
    if column is None:
        return None
    equal = _in_groups(rollouts, lambda groups: equal_groups(groups, column) == 1)
    return np.where(np.isfinite(equal), rollouts.rows["reward"], np.nan)


def _in_groups(rollouts: Rollouts, select: Callable[[RolloutGroups], Mask]) -> Values:
    """Return 1 for the rollouts of the groups that are selected, NaN for the others."""
    values = np.full(len(rollouts), np.nan)
    groups = find_groups(rollouts, *training_rows(rollouts))
    if groups is not None:
        values[groups.indices[select(groups)[groups.group_of_row]]] = 1.0
    return values


# By the family of a metric: the same for the member that it names.
MEMBER_VALUES: Mapping[str, Callable[[Rollouts, str], Values | None]] = {
    "reward/component": lambda rollouts, name: rollouts.parts.get(name),
    "language/stop_reason": lambda rollouts, reason: np.where(
        rollouts.text_is("stop_reason", reason), 1.0, np.nan
    ),
    "rollout/task_reward": lambda rollouts, task: np.where(
        rollouts.text_is("task", task), rollouts.rows["reward"], np.nan
    ),
    "rollout/dead_groups": lambda rollouts, task: np.where(
        rollouts.text_is("task", task), _in_groups(rollouts, lambda groups: groups.is_dead), np.nan
    ),
    "rollout/equal_groups": _in_equal_groups,
    "rollout/answer_unpaid": lambda rollouts, name: np.where(
        (rollouts.rows["answer_given"] == 1)
        & (rollouts.parts.get(name, rollouts.rows["reward"]) <= 0),
        1.0,
        np.nan,
    ),
}
