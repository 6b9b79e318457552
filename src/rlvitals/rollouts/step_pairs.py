"""Pair the rollouts of two steps that answer the same prompt, by what moved most."""

import numpy as np
from numpy.typing import NDArray

from rlvitals.errors import UsageError
from rlvitals.rollouts.rollout_columns import Rollouts
from rlvitals.rollouts.row_filter import check_step
from rlvitals.startup.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Side:
    """The rollouts of a prompt at one step, and the index of their representative."""

    step: int
    count: int
    reward: float  # mean; NaN where none is recorded
    characters: float  # mean
    tool_calls: float  # mean
    parts: dict[str, float]  # means
    index: int  # of the rollout with the reward nearest to the mean


@dataclass(frozen=True, slots=True)
class Pair:
    """One prompt at two steps."""

    before: Side
    after: Side

    @property
    def change(self) -> float:
        """The change of the mean reward; 0 where a side has none."""
        change = self.after.reward - self.before.reward
        return change if np.isfinite(change) else 0.0

    @property
    def order(self) -> tuple[float, float]:
        """What pairs are sorted by: the change of reward, then of length, largest first."""
        return -abs(self.change), -abs(self.after.characters - self.before.characters)


def pair(rollouts: Rollouts, step: int, against: int) -> tuple[Pair, ...]:
    """Return the prompts that both steps have, what moved most first. Raises UsageError."""
    by_prompt = []
    for number, flag in ((step, "--step"), (against, "--against")):
        indices = rollouts.indices(rollouts.rows["step"] == check_step(rollouts, number, flag))
        prompts = rollouts.rows["prompt"][indices]
        by_prompt.append({int(p): indices[prompts == p] for p in np.unique(prompts)})
    first, second = by_prompt
    pairs = [
        Pair(_side(rollouts, step, first[p]), _side(rollouts, against, second[p]))
        for p in first.keys() & second.keys()
    ]
    if not pairs:
        raise UsageError(
            f"steps {step} and {against} share no prompt",
            where="--against",
            hint="an evaluation repeats its prompts; so does the training after an epoch",
        )
    return tuple(sorted(pairs, key=lambda p: (p.order, p.before.index)))


def _side(rollouts: Rollouts, step: int, indices: NDArray[np.int64]) -> Side:
    rows = rollouts.rows[indices]
    rewards = rows["reward"]
    mean = _mean(rewards)
    distance = np.nan_to_num(np.abs(rewards - mean), nan=np.inf)
    return Side(
        step=step,
        count=len(indices),
        reward=mean,
        characters=float(rows["characters"].mean()),
        tool_calls=float(rows["tool_calls"].mean()),
        parts={name: _mean(column[indices]) for name, column in rollouts.parts.items()},
        index=int(indices[np.argmin(distance)]),
    )


def _mean(values: NDArray[np.float64]) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else float("nan")
