"""Warm up the normalisers: act without learning until their moments are stable."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlvitals import UsageError
from rlvitals.trainers.ppo import sample_actions
from rlvitals.trainers.ppo.config import StabilisationConfig
from rlvitals.trainers.ppo.ppo import PPO
from rlvitals.trainers.ppo.rollout import means


@dataclass(frozen=True, slots=True)
class WarmupProgress:
    """Progress of the warm-up phase."""

    step: int
    steps: int
    baseline: dict[str, float]  # means so far, of rewards and of the environments' `info`

    @property
    def is_last(self) -> bool:
        """True for the last report."""
        return self.step >= self.steps


def warm_up(ppo: PPO, config: StabilisationConfig) -> Iterator[WarmupProgress]:
    """Run the rest of the phase in a trainer's environments, with a report every 20 steps.

    The trainer's counters hold its progress, so that a resumed run continues it. Raises
    UsageError for weights that do not fit the actions.
    """
    total = config.statistics_stabilization_steps
    act = _actor(ppo, config)
    sums: dict[str, float] = {}
    count = 0
    ppo.normalise_obs.frozen = ppo.normalise_reward.frozen = (
        config.freeze_normalizers_during_stabilization
    )
    while ppo.counters.stabilised < total:
        obs = ppo.normalise_obs(ppo.envs.observations, learn=True)
        step, _ = ppo.envs.step(act(obs))
        ppo.normalise_reward(step.rewards, step.terminated | step.truncated)
        ppo.counters.stabilised += 1
        count += 1
        numbers = means([step]) | {"reward": float(step.rewards.mean())}
        for name, value in numbers.items():
            sums[name] = sums.get(name, 0.0) + value
        if ppo.counters.stabilised % 20 == 0 or ppo.counters.stabilised == total:
            baseline = {name: value / count for name, value in sums.items()}
            yield WarmupProgress(ppo.counters.stabilised, total, baseline)
    ppo.normalise_obs.frozen = ppo.normalise_reward.frozen = (
        config.freeze_normalizers_after_stabilization
    )


def _actor(
    ppo: PPO, config: StabilisationConfig
) -> Callable[[NDArray[np.float32]], NDArray[np.generic]]:
    if config.stabilization_policy == "policy":
        return lambda obs: sample_actions.draw(
            ppo.policy, obs, ppo.temperature.value, ppo.rng, ppo.masks()
        )[0]
    envs = ppo.envs
    if envs.continuous:
        return lambda _: ppo.rng.uniform(-1.0, 1.0, (envs.count, envs.actions)).astype(np.float32)
    weights = np.asarray(config.stabilization_action_distribution or [1.0] * envs.actions)
    if len(weights) != envs.actions or weights.min() < 0 or not weights.sum() > 0:
        raise UsageError(
            f"{len(weights)} weights for {envs.actions} actions",
            where="statistics_stabilization.stabilization_action_distribution",
            hint="one number of at least 0 for each action, or none for even shares",
        )
    return lambda _: ppo.rng.choice(envs.actions, envs.count, p=weights / weights.sum())
