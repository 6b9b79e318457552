"""The cluster as a Gymnasium environment: one step routes one request."""

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from rlvitals.trainers.ppo.cluster.config import ClusterConfig, build_config
from rlvitals.trainers.ppo.cluster.observation import CLUSTER_FEATURES, bounds, of_replica
from rlvitals.trainers.ppo.cluster.simulator import Cluster

Observation = NDArray[np.float32]


class ClusterEnv(gym.Env[Observation, np.int64]):
    """One cluster. The observation is N times `replica_features`, then `global_features`.

    Numbers in `info` are floats, and arrays of one number for each replica.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - Gymnasium's
    global_features = CLUSTER_FEATURES

    def __init__(
        self, config: ClusterConfig | Mapping[str, Any] | None = None, **settings: object
    ) -> None:
        """Make the cluster of a config, or of its settings by name. Raises VitalsError."""
        self.config = build_config(config, settings)
        self.replica_features = tuple(feature.name for feature in of_replica(self.config))
        self.observation_space, self.action_space = spaces_of(self.config)
        self.cluster = Cluster(self.config, 1)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode with an idle cluster."""
        super().reset(seed=seed, options=options)
        self.cluster.reset(self.np_random)
        return self.cluster.observe()[0], {}

    def action_masks(self) -> NDArray[np.bool_]:
        """Return which replicas are up, [N]."""
        return np.array(self.cluster.up[0])

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Route the request to a replica. Raises UsageError for an unknown replica."""
        outcome = self.cluster.step(np.array([action], np.int64), self.np_random)
        firsts = {name: value[0] for name, value in outcome.info.items()}  # a number or a row
        info = {
            name: value if isinstance(value, np.ndarray) else float(value)
            for name, value in firsts.items()
        }
        done_flags = bool(outcome.terminated[0]), bool(outcome.truncated[0])
        return self.cluster.observe()[0], float(outcome.reward[0]), *done_flags, info


def spaces_of(config: ClusterConfig) -> tuple[gym.Space[Observation], gym.Space[np.int64]]:
    """Return the spaces of observations and of actions of one cluster."""
    low, high = bounds(config)
    box: gym.Space[Any] = gym.spaces.Box(low, high, dtype=np.float32)
    return box, gym.spaces.Discrete(config.replicas)
