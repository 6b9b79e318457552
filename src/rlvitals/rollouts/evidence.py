"""Find the rollouts that show a finding: those that its metric counts."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rlvitals.errors import UsageError
from rlvitals.rollouts.rollout_columns import Rollouts

Mask = NDArray[np.bool_]
Score = Callable[[Rollouts], NDArray[np.float64]]  # [n]: the highest show it best, NaN not at all


def _mask_score(condition: Callable[[NDArray[np.void]], Mask]) -> Score:
    return lambda rollouts: np.where(condition(rollouts.rows), 1.0, np.nan)


def _column(name: str, sign: float = 1.0) -> Score:
    return lambda rollouts: sign * rollouts.rows[name].astype(np.float64)


# By the beginning of a metric's name.
SAMPLE_SCORES: dict[str, Score] = {
    "rollout/looping_share": _mask_score(lambda rows: rows["looping"] == 1),
    "rollout/failed_as_zero_share": _mask_score(
        lambda rows: (rows["error"] != 0) & (rows["reward"] == 0)
    ),
    "rollout/unscored_share": _mask_score(lambda rows: np.isnan(rows["reward"])),
    "language/error_share": _mask_score(lambda rows: rows["error"] != 0),
    "language/tool_failures": _mask_score(lambda rows: rows["failed_calls"] > 0),
    "language/tool_calls": _column("tool_calls", -1.0),
    "language/turns": _column("turns", -1.0),
    "language/length": _column("characters"),
    "language/truncated": _column("characters"),
    "language/repetition_share": _mask_score(lambda rows: rows["looping"] == 1),
    "reward/": _column("reward"),
    "outcome/": _column("reward"),
}
PART_PREFIXES = ("rollout/part/", "reward/component/")


def find(rollouts: Rollouts, metric: str, began: int, ended: int) -> NDArray[np.int64]:
    """Return the indices of the rollouts that show a metric from one step to another, best first.

    Raises UsageError where the rollouts do not record what the metric counts.
    """
    score = _score(rollouts, metric)
    if score is None:
        raise UsageError(
            f"rollouts do not show {metric}",
            where="--finding",
            hint="rlvitals samples RUN --step 400",
        )
    steps = rollouts.rows["step"]
    inside = (steps >= began) & (steps <= ended) & np.isfinite(score)
    indices = rollouts.indices(inside)
    return indices[np.argsort(-score[indices], kind="stable")]


def _score(rollouts: Rollouts, metric: str) -> NDArray[np.float64] | None:
    for prefix in PART_PREFIXES:
        if metric.startswith(prefix):
            return rollouts.parts.get(metric.removeprefix(prefix))
    for name in ("stop_reason",):
        if metric.startswith(f"rollout/{name}/"):
            text = metric.removeprefix(f"rollout/{name}/")
            return np.where(rollouts.text_is(name, text), 1.0, np.nan)
    if metric.startswith("rollout/dead_groups/"):
        task = rollouts.text_is("task", metric.removeprefix("rollout/dead_groups/"))
        return np.where(task, -np.abs(rollouts.rows["advantage"]), np.nan)
    return next(
        (f(rollouts) for prefix, f in SAMPLE_SCORES.items() if metric.startswith(prefix)), None
    )
