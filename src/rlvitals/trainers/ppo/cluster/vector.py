"""Gymnasium vector environment of many clusters, stepped by one call."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from rlvitals.trainers.ppo.cluster.config import ClusterConfig, build_config
from rlvitals.trainers.ppo.cluster.environment import Observation, spaces_of
from rlvitals.trainers.ppo.cluster.observation import CLUSTER_FEATURES, of_replica
from rlvitals.trainers.ppo.cluster.replicas import Bools, Ints
from rlvitals.trainers.ppo.cluster.simulator import Cluster

Step = tuple[Observation, NDArray[np.float64], Bools, Bools, dict[str, Any]]


class ClusterVectorEnv(VectorEnv[Observation, Ints, NDArray[Any]]):
    """B clusters, all with one stream of random numbers.

    Each value of `info` is an array over the clusters, with a mask under `_` and its name. With
    `stagger`, first episodes are cut short evenly, so that clusters never end all at once.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - Gymnasium's
        "render_modes": [],
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }
    global_features = CLUSTER_FEATURES

    def __init__(
        self,
        num_envs: int = 1,
        config: ClusterConfig | Mapping[str, Any] | None = None,
        *,
        stagger: bool = True,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        **settings: object,
    ) -> None:
        """Make the clusters of a config, or of its settings by name. Raises VitalsError."""
        self.num_envs, self.stagger = num_envs, stagger
        self.mode = AutoresetMode(autoreset_mode)
        self.metadata = {**type(self).metadata, "autoreset_mode": self.mode}
        self.config = build_config(config, settings)
        self.replica_features = tuple(feature.name for feature in of_replica(self.config))
        self.single_observation_space, self.single_action_space = spaces_of(self.config)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.cluster = Cluster(self.config, num_envs)
        self.over = np.zeros(num_envs, np.bool_)  # episodes that ended in the last step

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin episodes in all clusters, or in those of `options["reset_mask"]`."""
        if isinstance(seed, Sequence):
            self._np_random = np.random.default_rng([each or 0 for each in seed])
        else:
            super().reset(seed=seed, options=options)
        mask = (options or {}).get("reset_mask")
        clusters = np.ones(self.num_envs, np.bool_) if mask is None else np.asarray(mask, np.bool_)
        self.cluster.reset(self.np_random, clusters)
        if self.stagger and mask is None:
            horizon = self.config.horizon
            self.cluster.age[:] = np.arange(self.num_envs) * horizon // self.num_envs
        self.over[clusters] = False
        return self.cluster.observe(), {}

    def action_masks(self) -> Bools | None:
        """Return which replicas are up, [B, N]; None where no replica fails."""
        return None if self.cluster.failures is None else self.cluster.failures.up

    def step(self, actions: Ints) -> Step:
        """Route each cluster's request to a replica. Raises UsageError for an unknown replica."""
        active = ~self.over if self.mode is AutoresetMode.NEXT_STEP else np.ones_like(self.over)
        outcome = self.cluster.step(actions, self.np_random, active)
        dones = outcome.terminated | outcome.truncated
        info = _add_masks(outcome.info, active)
        if self.mode is AutoresetMode.NEXT_STEP and self.over.any():
            self.cluster.reset(self.np_random, self.over)
        observation = self.cluster.observe()
        if self.mode is AutoresetMode.SAME_STEP and dones.any():
            # Gymnasium's final observations and infos of episodes reset in the same step.
            last = np.full(len(dones), None, object)
            for i in np.flatnonzero(dones):
                last[i] = observation[i]
            info |= {"final_obs": last, "final_info": _add_masks(outcome.info, dones)}
            info |= {"_final_obs": dones, "_final_info": dones}
            self.cluster.reset(self.np_random, dones)
            observation = np.where(dones[:, None], self.cluster.observe(), observation)
        self.over = dones
        return observation, outcome.reward, outcome.terminated, outcome.truncated, info


def _add_masks(info: dict[str, NDArray[Any]], mask: Bools) -> dict[str, Any]:
    return {**info, **{f"_{name}": mask for name in info}}
