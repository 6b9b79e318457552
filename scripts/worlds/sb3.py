"""Stable-Baselines3, which writes its own CSV, TensorBoard or console log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import stable_baselines3
import torch
from stable_baselines3.common.callbacks import BaseCallback, EvalCallback
from stable_baselines3.common.logger import configure
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnvWrapper

from rlvitals.faults import faulty_models

if TYPE_CHECKING:
    from worlds.run import Run

# What a setting of the table is for the recorder, and not for the library.
OURS = {
    "algorithm", "env_id", "n_envs", "total_timesteps", "anneal", "log_interval", "evaluates",
    "form",
}  # fmt: skip
CHANGES = {
    "actor-not-trained": faulty_models.frozen_policy,
    "advantage-sign": faulty_models.flipped_advantages,
    "weight-nan": faulty_models.nan_weight,
    "weights-reset-midway": faulty_models.reset_weights,
}


class Mixed(VecEnvWrapper):
    """Hand the actions of each environment to its neighbour."""

    def reset(self) -> Any:
        return self.venv.reset()

    def step_async(self, actions: Any) -> None:
        self.venv.step_async(np.roll(actions, 1, axis=0))

    def step_wait(self) -> Any:
        return self.venv.step_wait()


class Follow(BaseCallback):
    """Evaluate, and change the model where the fault sets in."""

    def __init__(self, run: Run) -> None:
        super().__init__()
        self.run, self.changed = run, False

    def _act(self, seen: Any) -> Any:
        stochastic = self.run.settings["algorithm"] in {"PPO", "A2C"}
        return self.model.predict(seen, deterministic=not stochastic)[0]

    def _on_step(self) -> bool:
        self.run.follow(self._act)
        change = CHANGES.get(self.run.fault)
        if change and not self.changed and self.run.has(self.run.fault):
            change(self.model)
            self.changed = True
        return True


def train(run: Run) -> None:
    s = run.settings
    env: Any = DummyVecEnv([lambda: Monitor(run.env()) for _ in range(run.n_envs)])
    if run.has("actions-swapped-between-envs"):
        env = Mixed(env)
    options = {key: value for key, value in s.items() if key not in OURS}
    cls = getattr(stable_baselines3, s["algorithm"])
    scheduled = run.settings.get("anneal") or run.fault == "schedule-ends-early"
    rate = (lambda _: run.rate()) if scheduled else s["learning_rate"]
    model = cls("MlpPolicy", env, seed=run.seed, device="cpu", **{**options, "learning_rate": rate})
    _break(run, model)
    form = {"PPO": "csv", "A2C": "log", "DQN": "csv", "SAC": "tensorboard"}[s["algorithm"]]
    model.set_logger(configure(str(run.folder), [s.get("form", form)]))
    follow = Follow(run)
    callbacks: list[BaseCallback] = [follow]
    if s.get("evaluates"):
        judge = run.env() if not run.has("evaluated-elsewhere") else _other(run)
        callbacks.append(Quiet(run, judge, eval_freq=run.steps // 20 // run.n_envs))
    model.learn(run.steps, callbacks, log_interval=s.get("log_interval", 1))
    run.follow(follow._act)


class Quiet(EvalCallback):
    """EvalCallback whose steps are no steps of the training."""

    def __init__(self, run: Run, env: Any, eval_freq: int) -> None:
        super().__init__(Monitor(env), n_eval_episodes=3, eval_freq=eval_freq, verbose=0)
        self.run = run

    def _on_step(self) -> bool:
        count, paid = self.run.steps_done, len(self.run.paid)
        going = super()._on_step()
        self.run.steps_done = count
        del self.run.paid[paid:]
        return going


def _other(run: Run) -> Any:
    """Build an evaluation environment whose features have another order."""
    import gymnasium as gym

    class Turned(gym.ObservationWrapper):
        def observation(self, observation: Any) -> Any:
            return np.roll(observation, 1)

    return Turned(run.env())


def _break(run: Run, model: Any) -> None:  # noqa: C901 - a case for each fault
    """Put in the faults that need the library's objects."""
    buffer = getattr(model, "rollout_buffer", None)
    if run.has("rollout-stale"):
        buffer.add = _first_rollout_only(buffer)
    if run.has("advantages-of-other-envs"):
        compute = buffer.compute_returns_and_advantage

        def rolled(*args: Any, **kwargs: Any) -> None:
            compute(*args, **kwargs)
            buffer.advantages = np.roll(buffer.advantages, 1, axis=1)

        buffer.compute_returns_and_advantage = rolled
    if run.has("done-mask-lost") and buffer is not None:
        add = buffer.add

        def without_ends(*args: Any) -> None:
            add(*args[:3], np.zeros_like(args[3]), *args[4:])

        buffer.add = without_ends
    elif run.has("done-mask-lost"):
        store = model.replay_buffer.add

        def endless(*args: Any) -> None:
            store(*args[:4], np.zeros_like(args[4]), args[5])

        model.replay_buffer.add = endless
    if run.has("replay-rows-mixed"):
        sample = model.replay_buffer.sample

        def mixed(*args: Any, **kwargs: Any) -> Any:
            batch = sample(*args, **kwargs)
            turned = batch.next_observations[torch.randperm(len(batch.next_observations))]
            return batch._replace(next_observations=turned)

        model.replay_buffer.sample = mixed
    if run.has("critic-not-trained"):
        model.critic.optimizer.step = lambda *_: None
    if run.has("actor-optimiser-never-steps"):
        model.actor.optimizer.step = lambda *_: None


def _first_rollout_only(buffer: Any) -> Any:
    add, kept = buffer.add, []

    def stale(*args: Any) -> None:
        if len(kept) < buffer.buffer_size:
            kept.append([part.clone() if hasattr(part, "clone") else part.copy() for part in args])
            add(*args)
        else:
            add(*kept[buffer.pos])

    return stale
