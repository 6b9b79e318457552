"""Summarise a rollout, and find its first non-finite value."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.buffers import ReplayBuffer, RolloutBuffer

from rlvitals.integrations.environment_statistics import BOUND_MARGIN, MAX_ACTION_SERIES
from rlvitals.startup.fast_dataclass import dataclass

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Collected:
    """Transitions in the order of their steps, each array [n, n_envs, ...].

    `observations` holds one array for each key of a dictionary, else one under "".
    """

    observations: Mapping[str, Array]
    actions: Array
    rewards: Array
    more: Mapping[str, Array]  # values, log_probs, advantages, returns of an on-policy rollout
    space: spaces.Space[Any]  # of the actions, as they are kept: off-policy ones are scaled

    def __len__(self) -> int:
        """Count the steps."""
        return len(self.rewards)


def of_rollout(buffer: RolloutBuffer) -> Collected:
    """Return an on-policy rollout without a copy: the buffer allocates new arrays for each."""
    names = ("values", "log_probs", "advantages", "returns")
    return Collected(
        _by_key(buffer.observations),
        buffer.actions,
        buffer.rewards,
        {name: getattr(buffer, name) for name in names},
        buffer.action_space,
    )


def concatenate(rollouts: Sequence[Collected]) -> Collected:
    """Concatenate consecutive rollouts."""
    if len(rollouts) == 1:
        return rollouts[0]
    first, join = rollouts[0], np.concatenate
    return Collected(
        {
            key: join([rollout.observations[key] for rollout in rollouts])
            for key in first.observations
        },
        join([rollout.actions for rollout in rollouts]),
        join([rollout.rewards for rollout in rollouts]),
        {key: join([rollout.more[key] for rollout in rollouts]) for key in first.more},
        first.space,
    )


def is_finite(rollout: Collected) -> bool:
    """Return whether all values of a rollout are finite, in a few microseconds.

    Non-finite rewards or values are visible in the advantages computed from them.
    """
    if not math.isfinite(np.add.reduce(rollout.more["advantages"], axis=None)):
        return False
    values = [x for x in rollout.observations.values() if x.dtype.kind == "f"]
    return all(math.isfinite(np.add.reduce(x, axis=None)) for x in values)


def of_replay(buffer: ReplayBuffer, start: int) -> Collected:
    """Take what a replay buffer got since its position was `since`."""
    rows = np.arange(start, buffer.pos + (buffer.buffer_size if buffer.pos < start else 0))
    rows %= buffer.buffer_size
    space = buffer.action_space
    if isinstance(space, spaces.Box):
        space = spaces.Box(-1.0, 1.0, space.shape)
    observations = {key: values[rows] for key, values in _by_key(buffer.observations).items()}
    return Collected(observations, buffer.actions[rows], buffer.rewards[rows], {}, space)


def _by_key(observations: Any) -> Mapping[str, Array]:
    if isinstance(observations, Mapping):
        return dict(observations)
    return {"": observations}


def variable(key: str) -> str:
    """Return the display name of an array of observations."""
    return f"observations[{key!r}]" if key else "observations"


def numbers(rollout: Collected) -> dict[str, float]:
    """Return the summary of a rollout."""
    values = {
        "rollout/reward_mean": rollout.rewards.mean(),
        "rollout/reward_std": rollout.rewards.std(),
        "rollout/reward_min": rollout.rewards.min(),
        "rollout/reward_max": rollout.rewards.max(),
        **_observations(rollout.observations),
        **_actions(rollout.actions, rollout.space),
    }
    if rollout.more:
        values |= {
            "rollout/value_mean": rollout.more["values"].mean(),
            "rollout/return_target_mean": rollout.more["returns"].mean(),
            "rollout/return_target_var": rollout.more["returns"].var(),
            "rollout/advantage_mean": rollout.more["advantages"].mean(),
            "rollout/advantage_std": rollout.more["advantages"].std(),
        }
    return {key: float(value) for key, value in values.items()}


def _observations(values: Mapping[str, Array]) -> dict[str, float]:
    flat = [x.reshape(-1, int(np.prod(x.shape[2:]))) for x in values.values()]
    flat = [x for x in flat if x.dtype.kind == "f"]  # pixels cannot be NaN, and are many
    if not flat:
        return {}
    low, high = ([end(x, axis=0) for x in flat] for end in (np.min, np.max))
    largest = max(float(np.max(np.abs(ends))) for ends in (*low, *high))
    numbers = {"rollout/observation_largest": largest}
    if min(map(len, flat)) > 1:  # one observation alone cannot vary
        varies = np.concatenate([a < b for a, b in zip(low, high, strict=True)])
        numbers["rollout/observation_varying_share"] = float(varies.mean())
    return numbers


def _actions(actions: Array, space: spaces.Space[Any]) -> dict[str, float]:
    if isinstance(space, spaces.Discrete) and space.n <= MAX_ACTION_SERIES:
        indices = actions.ravel().astype(np.int64)
        counts = np.bincount(indices[indices >= 0], minlength=int(space.n))
        return {f"rollout/action_count/{i}": float(count) for i, count in enumerate(counts)}
    if isinstance(space, spaces.Box) and space.is_bounded():
        edge = BOUND_MARGIN * (space.high - space.low)
        flat = actions.reshape(-1, *space.shape)
        at_bound = (flat <= space.low + edge) | (flat >= space.high - edge)
        return {"rollout/action_at_bound_share": float(at_bound.mean())}
    return {}


def find_nonfinite(rollout: Collected) -> Iterator[tuple[str, tuple[int, ...], float]]:
    """Yield each array with a non-finite value: name, first index, value; causes first."""
    observations = {variable(key): values for key, values in rollout.observations.items()}
    arrays = {**observations, "actions": rollout.actions, "rewards": rollout.rewards}
    for name, values in {**arrays, **rollout.more}.items():
        # One pass without a mask: NaN and inf survive a sum.
        if values.dtype.kind != "f" or np.isfinite(values.sum(dtype=np.float64)):
            continue
        wrong = np.argwhere(~np.isfinite(values))
        if len(wrong):
            index = tuple(int(i) for i in wrong[0])
            yield name, index, float(values[index])
