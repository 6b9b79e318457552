"""Proximal policy optimisation (Schulman et al. 2017), on one page.

    collect_rollout      act for `rollout_length` steps in all environments
    estimate_advantages  generalised advantage estimates of those steps
    update               `epochs` passes over them in minibatches, stopped early by the KL
    iterate              the three in turn; returns the metrics of one update

Schedules, controllers, normalisers and networks are in other files of this package.
"""

import copy
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import rlvitals
from rlvitals.trainers.ppo import sample_actions
from rlvitals.trainers.ppo.config import PPOConfig, ReferenceConfig, ScheduleConfig
from rlvitals.trainers.ppo.environments import Environments, Step
from rlvitals.trainers.ppo.flat_params import FlatAdam
from rlvitals.trainers.ppo.grad_spike_response import SpikeReaction
from rlvitals.trainers.ppo.networks import Policy
from rlvitals.trainers.ppo.normalizer import ObservationNormaliser, RewardNormaliser
from rlvitals.trainers.ppo.rollout import (
    Batch,
    Rollout,
    estimate_advantages,
    explained_variance,
    k3,
    means,
    ratio_stats,
    standardise,
)
from rlvitals.trainers.ppo.schedules import Counters, coefficients
from rlvitals.trainers.ppo.temperature import Fixed, Temperature

KL_BAND = 1.5  # outside target / 1.5 .. target * 1.5 the coefficient moves (Schulman et al. 2017)


class PPO:
    """A policy that learns in its environments; `iterate` is one rollout and its update.

    `total_steps` is the number of environment steps that schedules count on.
    """

    def __init__(  # noqa: PLR0913 - what takes part, each by its name
        self,
        envs: Environments,
        policy: Policy,
        config: PPOConfig,
        *,
        total_steps: int,
        seed: int = 0,
        schedule: ScheduleConfig | None = None,
        reference: ReferenceConfig | None = None,
        temperature: Temperature | None = None,
        spikes: SpikeReaction | None = None,
        replica_shape: tuple[int, int] | None = None,
    ) -> None:
        """Bring the parts together, and begin the first episodes.

        `replica_shape`: replicas and features that share a normaliser, see `Moments`.
        """
        self.envs, self.policy, self.config = envs, policy, config
        self.total_steps = total_steps
        self.schedule = schedule or ScheduleConfig()
        self.reference = reference or ReferenceConfig()
        self.temperature = temperature or Fixed()
        self.spikes = spikes
        self.rng = np.random.default_rng(seed)
        self.normalise_obs = ObservationNormaliser(
            envs.features, enabled=config.normalise_observations, replica_shape=replica_shape
        )
        self.normalise_reward = RewardNormaliser(
            envs.count, config.gamma, enabled=config.normalise_rewards
        )
        self.optimizer = FlatAdam(policy, config.learning_rate)
        self.frozen: Policy | None = None
        self.on_step: Callable[[int, Step], None] | None = None  # called with each of a rollout
        self.counters = Counters(kl_coef=config.kl_coef)
        envs.reset(seed)

    def hold_to_reference(self) -> None:
        """Freeze a copy of the policy as the reference of the KL penalty."""
        self.frozen = copy.deepcopy(self.policy).requires_grad_(requires_grad=False)

    def state(self) -> rlvitals.State:
        """Return the state for a bit-identical resume."""
        extra = {} if self.frozen is None else {"frozen": self.frozen}
        return rlvitals.State(
            policy=self.policy, optimizer=self.optimizer.adam, envs=self.envs,
            observe=self.normalise_obs, scale=self.normalise_reward, rng=self.rng,
            temperature=self.temperature, spikes=self.spikes,
            at=self.counters, **extra,
        )  # fmt: skip

    @property
    def global_step(self) -> int:
        """Environment steps of all environments so far."""
        return self.counters.steps

    @property
    def progress(self) -> float:
        """The share of the run that lies behind, 0 to 1."""
        return min(self.counters.steps / self.total_steps, 1.0)

    # -- collect ---------------------------------------------------------------------------------

    def collect_rollout(self, length: int | None = None) -> Rollout:
        """Act in all environments for `length` steps, by default `rollout_length`."""
        length, count = length or self.config.rollout_length, self.envs.count
        obs = np.empty((length + 1, count, self.envs.features), np.float32)
        log_probs = np.empty((length, count), np.float32)
        temperatures = np.empty(length, np.float32)
        actions, steps, episodes, masks = [], [], [], []
        for t in range(length):
            obs[t] = self.normalise_obs(self.envs.observations, learn=True)
            temperatures[t] = self.temperature.value
            mask = self.masks()
            action, log_probs[t] = sample_actions.draw(
                self.policy, obs[t], temperatures[t], self.rng, mask
            )
            step, finished = self.envs.step(action)
            self.temperature.after(step.info)
            if self.on_step is not None:
                self.on_step(t + 1, step)
            actions.append(action)
            masks += [] if mask is None else [mask]
            steps.append(step)
            episodes += finished
        obs[length] = self.normalise_obs(self.envs.observations, learn=False)
        self.counters.steps += int(sum(step.valid.sum() for step in steps))
        rollout = self._rollout(obs, np.stack(actions), log_probs, temperatures, steps, episodes)
        return replace(rollout, masks=np.stack(masks)) if masks else rollout

    def masks(self) -> NDArray[np.bool_] | None:
        """Return which actions may be drawn, [n, actions]; None: all of them."""
        return self.envs.action_masks() if self.config.mask_actions else None

    def _rollout(  # noqa: PLR0913, PLR0917 - the columns of a rollout
        self,
        obs: NDArray[np.float32],
        actions: NDArray[Any],
        log_probs: NDArray[np.float32],
        temperatures: NDArray[np.float32],
        steps: list[Step],
        episodes: list[tuple[float, int]],
    ) -> Rollout:
        dones = np.stack([step.terminated | step.truncated for step in steps])
        raw = np.stack([step.rewards for step in steps])
        rewards = np.stack([self.normalise_reward(r, d) for r, d in zip(raw, dones, strict=True)])
        values = self._values(obs.reshape(-1, obs.shape[-1])).reshape(len(obs), -1)
        valid = np.stack([step.valid for step in steps])
        facts = means(steps) | {
            "reward": float(raw[valid].mean()), "reward_mean": float(rewards[valid].mean()),
            "reward_std": float(rewards[valid].std()), "reward_min": float(rewards[valid].min()),
            "reward_max": float(rewards[valid].max()),
        }  # fmt: skip
        # The values of where each action led, which a reset hides behind a new episode.
        next_values = values[1:].copy()
        step_index, env_index = np.nonzero(np.stack([step.truncated for step in steps]))
        if len(step_index):
            rows = np.stack([steps[t].final[i] for t, i in zip(step_index, env_index, strict=True)])
            next_values[step_index, env_index] = self._values(self.normalise_obs(rows, learn=False))
        return Rollout(
            observations=obs[:-1], actions=actions, log_probs=log_probs,
            temperatures=temperatures, rewards=rewards.astype(np.float32),
            terminated=np.stack([step.terminated for step in steps]), dones=dones, valid=valid,
            values=values[:-1], next_values=next_values, facts=facts,
            episodes=tuple(episodes),
        )  # fmt: skip

    def _values(self, observations: NDArray[np.float32]) -> NDArray[np.float32]:
        with torch.inference_mode():
            values: NDArray[np.float32] = self.policy.value(torch.from_numpy(observations)).numpy()
        return values

    # -- learn -----------------------------------------------------------------------------------

    def update(self, rollout: Rollout) -> dict[str, float]:
        """Update the policy on a rollout; return the means over its minibatches."""
        batch = self._batch(rollout)
        size = min(self.minibatch_size, len(batch))
        coefficients = self.coefficients()
        reference = self._reference_distribution(batch)
        minibatch_stats: list[dict[str, Tensor]] = []
        norms: list[float] = []
        skipped, stopped = 0, False
        for index, rows in self._minibatches(batch, size):
            loss, stats = self._loss(rows, coefficients, reference(index))
            stopped = self._kl_exceeded(stats)
            if stopped and minibatch_stats:
                break
            minibatch_stats.append(stats)
            norms.append(self.optimizer.backward(loss))
            skipped += not self.optimizer.step(coefficients["lr"], self.config.max_grad_norm)
            self.counters.minibatches += 1
        return self._summarise(batch, minibatch_stats, coefficients, size) | {
            "pg_grad_norm": float(np.mean(norms)),
            "skipped_minibatches": float(skipped),
            "stopped_early": float(stopped),
        }

    def _batch(self, rollout: Rollout) -> Batch:
        advantages = estimate_advantages(rollout, self.config.gamma, self.config.gae_lambda)
        valid = rollout.valid
        temperatures = np.broadcast_to(rollout.temperatures[:, None], valid.shape)[valid]
        columns = (
            rollout.observations[valid], rollout.actions[valid], rollout.log_probs[valid],
            temperatures[:, None], rollout.values[valid], advantages[valid],
            (advantages + rollout.values)[valid],
        )  # fmt: skip
        batch = Batch(*(torch.from_numpy(np.ascontiguousarray(column)) for column in columns))
        if rollout.masks is not None:
            batch = replace(batch, masks=torch.from_numpy(rollout.masks[valid]))
        if self.config.normalise_advantages == "rollout":
            return replace(batch, advantages=standardise(batch.advantages))
        return batch

    def _minibatches(self, batch: Batch, size: int) -> Iterator[tuple[Tensor, Batch]]:
        """Go through all rows in a new order each epoch; a last small rest joins the one before."""
        cuts = [0, *range(size, len(batch) - size // 2, size), len(batch)]
        for _ in range(self.config.epochs):
            order = torch.from_numpy(self.rng.permutation(len(batch)))
            shuffled = batch.rows(order)
            for span in map(slice, cuts, cuts[1:]):
                yield order[span], shuffled.rows(span)

    def _loss(
        self,
        rows: Batch,
        coefficients: Mapping[str, float],
        reference: Any,  # noqa: ANN401
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the loss of a minibatch and what it is made of."""
        clip, weight = self.config.clip_ratio, coefficients
        distribution = self.policy.distribution(rows.observations, rows.temperatures, rows.masks)
        log_ratio = distribution.log_prob(rows.actions) - rows.log_probs
        ratio = log_ratio.exp()
        advantages = rows.advantages
        if self.config.normalise_advantages == "minibatch":
            advantages = standardise(advantages)
        surrogate = torch.min(
            ratio * advantages, ratio.clamp(1 - clip, 1 + clip) * advantages
        ).mean()
        value_loss = self._value_loss(rows)
        loss = self.config.value_coef * value_loss - surrogate
        with torch.set_grad_enabled(weight["entropy_coef"] > 0 or weight["entropy_min"] > 0):
            entropy = distribution.entropy().mean()
        if weight["entropy_coef"]:
            loss = loss - weight["entropy_coef"] * entropy
        if weight["entropy_min"]:  # what lacks has a gradient that raises the entropy
            shortfall = torch.relu(weight["entropy_min"] - entropy)
            loss = loss + self.config.entropy_floor_coef * shortfall
        if weight["kl_coef"]:
            loss = loss + weight["kl_coef"] * k3(log_ratio)
        stats = {
            "pi_loss": -surrogate.detach(), "vf_loss": value_loss.detach(),
            "entropy": entropy.detach(), "log_ratio": log_ratio.detach(),
        }  # fmt: skip
        if reference is not None:
            kl_ref = distribution.kl(reference).mean()
            loss = loss + weight["kl_ref_coef"] * kl_ref
            stats["kl_ref"] = kl_ref.detach()
        return loss, stats | {"loss": loss.detach()}

    def _value_loss(self, rows: Batch) -> Tensor:
        """Return half the mean squared error, pessimistic where the value moved beyond its clip."""
        values, clip = self.policy.value(rows.observations), self.config.value_clip_ratio
        if not clip:
            return 0.5 * nn.functional.mse_loss(values, rows.returns)
        clipped = rows.values + (values - rows.values).clamp(-clip, clip)
        return 0.5 * torch.max((values - rows.returns) ** 2, (clipped - rows.returns) ** 2).mean()

    def _reference_distribution(self, batch: Batch) -> Any:  # noqa: ANN401 - a function of rows
        if self.frozen is None:
            return lambda _: None
        with torch.no_grad():
            reference = self.frozen.distribution(
                batch.observations, batch.temperatures, batch.masks
            )
        return reference.rows

    def _kl_exceeded(self, stats: Mapping[str, Tensor]) -> bool:
        limit = self.config.target_kl
        # Stop at 1.5 times the target, as Spinning Up does.
        return limit > 0 and float(k3(stats["log_ratio"])) > 1.5 * limit

    # -- coefficients and reports ----------------------------------------------------------------

    @property
    def minibatch_size(self) -> int:
        """The rows of a minibatch, as the reaction to spikes has it now."""
        return self.config.minibatch_size if self.spikes is None else self.spikes.minibatch_size

    def coefficients(self) -> dict[str, float]:
        """Return what the schedules and controllers say for the next update."""
        values = coefficients(
            self.config, self.schedule, self.reference, self.counters, self.progress
        )
        values["lr"] *= 1.0 if self.spikes is None else self.spikes.lr_factor
        return values

    def _summarise(
        self,
        batch: Batch,
        minibatch_stats: list[dict[str, Tensor]],
        coefficients: Mapping[str, float],
        size: int,
    ) -> dict[str, float]:
        names = [
            name for name in minibatch_stats[0] if name != "log_ratio"
        ]  # one number of each minibatch
        stats = {
            name: float(torch.stack([row[name] for row in minibatch_stats]).mean())
            for name in names
        }
        clip = self.config.clip_ratio
        first = ratio_stats(minibatch_stats[0]["log_ratio"], clip)
        if not (isinstance(self.temperature, Fixed) and self.temperature.value == 1.0):
            # The entropy of the policy itself, at temperature 1, after the update.
            with torch.inference_mode():
                ones = torch.ones(len(batch), 1)
                plain = self.policy.distribution(batch.observations, ones, batch.masks)
                stats["entropy_policy"] = float(plain.entropy().mean())
        values, returns = batch.values.numpy(), batch.returns.numpy()
        log_ratio = torch.cat([row["log_ratio"] for row in minibatch_stats])
        return stats | ratio_stats(log_ratio, clip) | {
            f"first_{name}": first[name] for name in ("ratio_max", "clipfrac")
        } | dict(coefficients) | {
            "first_kl": first["approx_kl"],
            "explained_var": explained_variance(values, returns),
            "advantage_std": float(batch.advantages.std()),
            "raw_advantage_mean": float(batch.advantages.mean()),
            "raw_advantage_min": float(batch.advantages.min()),
            "raw_advantage_max": float(batch.advantages.max()),
            "value_mean": float(values.mean()), "value_var": float(values.var()),
            "return_mean": float(returns.mean()),
            "return_std": float(returns.std()), "minibatch_size": float(size),
            "minibatches": float(len(minibatch_stats)),
        }  # fmt: skip

    def iterate(self, length: int | None = None) -> tuple[Rollout, dict[str, float]]:
        """Collect a rollout and update the policy; return the rollout and the metrics."""
        start = time.perf_counter()
        rollout = self.collect_rollout(length)
        collected = time.perf_counter()
        stats = self.update(rollout)
        self.counters.updates += 1
        self._adapt(stats)
        end = time.perf_counter()
        valid = int(rollout.valid.sum())
        speed = {
            "collect_seconds": collected - start, "learn_seconds": end - collected,
            "sps": valid / (end - start),
        }  # fmt: skip
        return rollout, stats | speed

    def _adapt(self, stats: dict[str, float]) -> None:
        """Let the controllers answer to what the update did."""
        target = self.config.kl_coef_target
        if self.config.kl_adaptive and target > 0:
            if stats["approx_kl"] > KL_BAND * target:
                self.counters.kl_coef *= 2.0
            elif stats["approx_kl"] < target / KL_BAND:
                self.counters.kl_coef /= 2.0
            # Within these, an adaptive coefficient can always come back.
            self.counters.kl_coef = min(max(self.counters.kl_coef, 1e-4), 1e4)
        if self.spikes is not None:
            stats |= self.spikes.after(stats["pg_grad_norm"])
