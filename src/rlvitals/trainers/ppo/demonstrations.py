"""Collect, save and load demonstrations of the baseline schedulers."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rlvitals import UsageError
from rlvitals.trainers.ppo.cluster import Cluster, ClusterConfig, baselines


@dataclass(frozen=True, slots=True)
class Demos:
    """Decisions of one or more schedulers, in the order they were made."""

    observations: NDArray[np.float32]  # [n, features], not normalised
    actions: NDArray[np.int64]  # [n]: what the scheduler chose, also where another was tried
    policies: NDArray[np.int64]  # [n]: whose decision, by its place in `names`
    names: tuple[str, ...]

    def __len__(self) -> int:
        """Return the number of decisions."""
        return len(self.actions)

    def facts(self) -> Mapping[str, object]:
        """Return counts by scheduler and by action, and the size of a state."""
        shares = np.bincount(self.actions) / max(len(self), 1)
        counts = np.bincount(self.policies, minlength=len(self.names))
        return {
            "format": 1,
            "total_samples": len(self),
            "policy_type": dict(zip(self.names, counts.tolist(), strict=True)),
            "action_distribution": [round(float(share), 4) for share in shares],
            "state_dim": int(self.observations.shape[1]),
        }


def collect(  # noqa: PLR0913 - what is collected, each by its name
    config: ClusterConfig,
    *,
    policies: Sequence[str],
    steps: int,
    loads: Sequence[float] = (1.0,),
    envs: int = 16,
    seed: int = 0,
) -> Demos:
    """Let each scheduler decide for `steps` steps of `envs` clusters, at each load factor.

    Raises UsageError for a scheduler that is not known.
    """
    rng = np.random.default_rng(seed)
    batches = [
        _collect_policy(
            replace(config, qps=config.qps * load)
            if config.qps
            else replace(config, load=config.load * load),
            name,
            steps,
            envs,
            rng,
        )
        for name in policies
        for load in loads
    ]
    labels = [i for i in range(len(policies)) for _ in loads]
    return Demos(
        np.concatenate([obs for obs, _ in batches]),
        np.concatenate([actions for _, actions in batches]),
        np.repeat(labels, [len(actions) for _, actions in batches]),
        tuple(policies),
    )


def _collect_policy(
    config: ClusterConfig, name: str, steps: int, envs: int, rng: np.random.Generator
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    policies = baselines(int(rng.integers(2**31)))
    if name not in policies:
        raise UsageError(f"no scheduler is called {name!r}", hint=f"one of {', '.join(policies)}")
    cluster = Cluster(config, envs)
    cluster.reset(rng)
    obs, actions = [], []
    for _ in range(steps):
        observation = cluster.observe()
        action = policies[name](observation, cluster)
        obs.append(observation.copy())
        actions.append(action.astype(np.int64))
        # Random actions lead to states that the scheduler itself would not reach.
        is_random = rng.random(envs) < 0.2
        executed = np.where(is_random, rng.integers(0, config.replicas, envs), action)
        outcome = cluster.step(executed, rng)
        dones = outcome.terminated | outcome.truncated
        if dones.any():
            cluster.reset(rng, dones)
    return np.concatenate(obs), np.concatenate(actions)


def save(demos: Demos, file: Path) -> None:
    """Write demonstrations, without pickle."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("wb") as out:
        np.savez_compressed(
            out, observations=demos.observations, actions=demos.actions,
            policies=demos.policies, names=np.array(demos.names),
            facts=np.array(json.dumps(demos.facts())),
        )  # fmt: skip


def load(file: Path) -> Demos:
    """Read demonstrations. Raises UsageError for a file that holds none."""
    try:
        with np.load(file, allow_pickle=False) as arrays:
            return Demos(
                arrays["observations"], arrays["actions"], arrays["policies"],
                tuple(str(name) for name in arrays["names"]),
            )  # fmt: skip
    except OSError as error:
        raise UsageError(f"the file cannot be read: {error.strerror}", where=str(file)) from None
    except (ValueError, KeyError) as error:
        raise UsageError(
            f"it holds no demonstrations: {error}",
            where=str(file),
            hint="rlvitals demos -o demos.npz",
        ) from None
