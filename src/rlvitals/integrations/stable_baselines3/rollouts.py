"""What was collected: numbers of a rollout, and the first value in it that is no number."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.buffers import ReplayBuffer, RolloutBuffer

MOST_ACTIONS = 64  # beyond it, one series for each action says nothing
EDGE = 0.01  # of an action's range: a squashed action never quite reaches the bound

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
    """Take a full on-policy rollout as it is: the buffer begins each rollout with new arrays."""
    names = ("values", "log_probs", "advantages", "returns")
    return Collected(
        _by_key(buffer.observations),
        buffer.actions,
        buffer.rewards,
        {name: getattr(buffer, name) for name in names},
        buffer.action_space,
    )


def joined(parts: Sequence[Collected]) -> Collected:
    """Put rollouts that follow each other into one."""
    if len(parts) == 1:
        return parts[0]
    first, join = parts[0], np.concatenate
    return Collected(
        {key: join([one.observations[key] for one in parts]) for key in first.observations},
        join([one.actions for one in parts]),
        join([one.rewards for one in parts]),
        {key: join([one.more[key] for one in parts]) for key in first.more},
        first.space,
    )


def sound(found: Collected) -> bool:
    """Tell in a few microseconds whether a rollout holds numbers only.

    What is wrong with rewards or values shows in the advantages that are made of them.
    """
    if not math.isfinite(np.add.reduce(found.more["advantages"], axis=None)):
        return False
    seen = [x for x in found.observations.values() if x.dtype.kind == "f"]
    return all(math.isfinite(np.add.reduce(x, axis=None)) for x in seen)


def of_replay(buffer: ReplayBuffer, since: int) -> Collected:
    """Take what a replay buffer got since its position was `since`."""
    rows = np.arange(since, buffer.pos + (buffer.buffer_size if buffer.pos < since else 0))
    rows %= buffer.buffer_size
    space = buffer.action_space
    if isinstance(space, spaces.Box):
        space = spaces.Box(-1.0, 1.0, space.shape)
    seen = {key: values[rows] for key, values in _by_key(buffer.observations).items()}
    return Collected(seen, buffer.actions[rows], buffer.rewards[rows], {}, space)


def _by_key(observations: Any) -> Mapping[str, Array]:
    if isinstance(observations, Mapping):
        return dict(observations)
    return {"": observations}


def variable(key: str) -> str:
    """Name an array of observations as a person would."""
    return f"observations[{key!r}]" if key else "observations"


def numbers(found: Collected) -> dict[str, float]:
    """Sum a rollout up under keys of our own."""
    values = {
        "rollout/reward_mean": found.rewards.mean(),
        "rollout/reward_std": found.rewards.std(),
        "rollout/reward_min": found.rewards.min(),
        "rollout/reward_max": found.rewards.max(),
        **_observations(found.observations),
        **_actions(found.actions, found.space),
    }
    if found.more:
        values |= {
            "rollout/value_mean": found.more["values"].mean(),
            "rollout/return_target_mean": found.more["returns"].mean(),
            "rollout/return_target_var": found.more["returns"].var(),
            "rollout/advantage_mean": found.more["advantages"].mean(),
            "rollout/advantage_std": found.more["advantages"].std(),
        }
    return {key: float(value) for key, value in values.items()}


def _observations(seen: Mapping[str, Array]) -> dict[str, float]:
    flat = [x.reshape(-1, int(np.prod(x.shape[2:]))) for x in seen.values()]
    flat = [x for x in flat if x.dtype.kind == "f"]  # pixels cannot be NaN, and are many
    if not flat:
        return {}
    low, high = ([end(x, axis=0) for x in flat] for end in (np.min, np.max))
    largest = max(float(np.max(np.abs(ends))) for ends in (*low, *high))
    found = {"rollout/observation_largest": largest}
    if min(map(len, flat)) > 1:  # one observation alone cannot vary
        varies = np.concatenate([a < b for a, b in zip(low, high, strict=True)])
        found["rollout/observation_varying_share"] = float(varies.mean())
    return found


def _actions(actions: Array, space: spaces.Space[Any]) -> dict[str, float]:
    if isinstance(space, spaces.Discrete) and space.n <= MOST_ACTIONS:
        chosen = actions.ravel().astype(np.int64)
        counts = np.bincount(chosen[chosen >= 0], minlength=int(space.n))
        return {f"rollout/action_count/{i}": float(count) for i, count in enumerate(counts)}
    if isinstance(space, spaces.Box) and space.is_bounded():
        edge = EDGE * (space.high - space.low)
        flat = actions.reshape(-1, *space.shape)
        at = (flat <= space.low + edge) | (flat >= space.high - edge)
        return {"rollout/action_at_bound_share": float(at.mean())}
    return {}


def broken(found: Collected) -> Iterator[tuple[str, tuple[int, ...], float]]:
    """Name what holds a value that is not finite: the first place in each, causes first."""
    seen = {variable(key): values for key, values in found.observations.items()}
    arrays = {**seen, "actions": found.actions, "rewards": found.rewards}
    for name, values in {**arrays, **found.more}.items():
        # One pass without a mask: NaN and inf survive a sum.
        if values.dtype.kind != "f" or np.isfinite(values.sum(dtype=np.float64)):
            continue
        wrong = np.argwhere(~np.isfinite(values))
        if len(wrong):
            at = tuple(int(i) for i in wrong[0])
            yield name, at, float(values[at])
