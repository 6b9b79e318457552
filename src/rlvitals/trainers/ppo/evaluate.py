"""Evaluate a trained policy on held-out arrivals or over episodes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import rlvitals
from rlvitals.trainers import schema
from rlvitals.trainers.ppo import cluster, factory, sample_actions
from rlvitals.trainers.ppo.config import Config
from rlvitals.trainers.ppo.ppo import PPO


@dataclass(frozen=True, slots=True)
class Trained:
    """A run's policy as a checkpoint holds it."""

    ppo: PPO
    config: Config
    step: int

    def act(
        self, observations: NDArray[np.float32], masks: NDArray[np.bool_] | None = None
    ) -> NDArray[np.generic]:
        """Return the likeliest action [n] for observations [n, features] of the environment.

        None is chosen that is False in `masks`, [n, actions].
        """
        return sample_actions.best(
            self.ppo.policy, self.ppo.normalise_obs(observations, learn=False), masks
        )

    def schedule(
        self, observations: NDArray[np.float32], serving: cluster.Cluster
    ) -> NDArray[np.int64]:
        """Return the replica [n] for each cluster's request, as schedulers do."""
        masked = self.config.ppo_config.mask_actions and serving.failures is not None
        return self.act(observations, serving.up if masked else None).astype(np.int64)


def load(folder: Path, *, step: int | None = None, best: bool = False) -> Trained:
    """Build a run's policy and load its newest complete checkpoint, or that of `step`.

    `best`: the best by `checkpointing.keep_best`. Raises UsageError for a folder without settings
    or without a checkpoint, BadCheckpoint for a step without a complete one.
    """
    file = folder / factory.CONFIG_FILE
    if not file.is_file():
        raise rlvitals.UsageError(
            f"there is no {factory.CONFIG_FILE}",
            where=str(folder),
            hint="a run of rlvitals train ppo",
        )
    config = schema.load(Config, file, {})
    torch.set_num_threads(config.training.threads)
    checkpoints = rlvitals.Checkpoints(folder, tell=lambda _: None)
    checkpoint = (
        checkpoints.best()
        if best
        else checkpoints.latest()
        if step is None
        else checkpoints.at(step)
    )
    if checkpoint is None:
        kind = "checkpoint that was measured by keep_best" if best else "checkpoint"
        raise rlvitals.UsageError(f"there is no whole {kind}", where=str(folder))
    ppo = factory.build(config)
    ppo.state().load(checkpoint.folder)
    return Trained(ppo, config, checkpoint.step)


def on_other_cluster(trained: Trained, changes: Mapping[str, Any]) -> Trained:
    """Return the same policy for another cluster: `changes` are settings of `cluster` by name.

    The network and the normaliser that replicas share serve any number of them. Raises UsageError
    for a policy without these.
    """
    original = trained.config.cluster
    replicas = changes.get("replicas", original.replicas)
    speeds = changes.get("speeds", original.speeds[:replicas])
    serving = replace(original, **{**changes, "speeds": tuple(speeds)})
    moments = trained.ppo.normalise_obs.moments.for_replicas(replicas)
    if moments is None:
        raise rlvitals.UsageError(
            f"the policy is for its own {original.replicas} replicas alone",
            where="cluster.replicas",
            hint="train with network.shared_scorer and network.shared_normaliser, the defaults",
        )
    config = replace(trained.config, cluster=serving)
    ppo = factory.build(config)
    ppo.policy.actor.load_state_dict(trained.ppo.policy.actor.state_dict())
    ppo.normalise_obs.moments = moments
    return Trained(ppo, config, trained.step)


def on_cluster(
    trained: Trained, *, seeds: Sequence[int], envs: int, steps: int, baselines: bool
) -> dict[str, tuple[cluster.Evaluation, ...]]:
    """Let the policy schedule held-out arrivals, and with `baselines` the others too."""
    policies: dict[str, cluster.Policy] = cluster.baselines() if baselines else {}
    policies["ppo"] = trained.schedule
    config = trained.config.environment
    return cluster.evaluate_all(policies, config, seeds=seeds, envs=envs, steps=steps)


@dataclass(frozen=True, slots=True)
class Episodes:
    """Returns and lengths of episodes of the likeliest actions."""

    returns: tuple[float, ...]
    lengths: tuple[int, ...]


def on_episodes(trained: Trained, *, seed: int, episodes: int) -> Episodes:
    """Run `episodes` complete episodes of the run's environment, the first that begin."""
    training = trained.config.training
    count = min(episodes, 16)
    plain = replace(
        trained.config, training=replace(training, num_envs=count, seed=seed, processes=False)
    )
    envs = factory.environment(plain)
    envs.reset(seed)
    remaining = np.full(envs.count, episodes // envs.count)
    remaining[: episodes % envs.count] += 1  # each environment its share: short ones do not push in
    returns: list[float] = []
    lengths: list[int] = []
    while remaining.any():
        totals, steps = envs.episode_return.copy(), envs.episode_length.copy()
        step, _ = envs.step(trained.act(envs.observations))
        finished = (step.terminated | step.truncated) & (remaining > 0)
        returns += (totals + np.where(step.valid, step.rewards, 0.0))[finished].tolist()
        lengths += (steps + step.valid)[finished].tolist()
        remaining[finished] -= 1
    envs.close()
    return Episodes(tuple(returns), tuple(lengths))
