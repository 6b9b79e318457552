"""skrl's PPO, which writes TensorBoard; the truth is the true return of its training episodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium as gym
import torch
from skrl.agents.torch.ppo import PPO, PPO_CFG
from skrl.envs.wrappers.torch import wrap_env
from skrl.memories.torch import RandomMemory
from skrl.models.torch import CategoricalMixin, DeterministicMixin, Model
from skrl.trainers.torch import SequentialTrainer

from worlds.run import network

if TYPE_CHECKING:
    from worlds.run import Run


class Policy(CategoricalMixin, Model):
    def __init__(self, observations: Any, actions: Any) -> None:
        Model.__init__(self, observation_space=observations, action_space=actions, device="cpu")
        CategoricalMixin.__init__(self, unnormalized_log_prob=True)
        self.net = network(self.num_observations, 64, 64, self.num_actions)

    def compute(self, inputs: Any, role: str) -> Any:  # noqa: ARG002 - skrl's signature
        return self.net(inputs["observations"]), {}


class Value(DeterministicMixin, Model):
    def __init__(self, observations: Any, actions: Any) -> None:
        Model.__init__(self, observation_space=observations, action_space=actions, device="cpu")
        DeterministicMixin.__init__(self)
        self.net = network(self.num_observations, 64, 64, 1)

    def compute(self, inputs: Any, role: str) -> Any:  # noqa: ARG002 - skrl's signature
        return self.net(inputs["observations"]), {}


def train(run: Run) -> None:
    s = run.settings
    torch.manual_seed(run.seed)
    env = wrap_env(gym.vector.SyncVectorEnv([run.env for _ in range(run.n_envs)]))
    spaces = (env.observation_space, env.action_space)
    config = PPO_CFG()
    config.rollouts, config.learning_epochs = s["n_steps"], s["n_epochs"]
    config.mini_batches = s["n_steps"] * run.n_envs // s["batch_size"]
    config.discount_factor, config.gae_lambda = s["gamma"], s["gae_lambda"]
    config.learning_rate, config.grad_norm_clip = s["learning_rate"], s["max_grad_norm"]
    config.ratio_clip, config.entropy_loss_scale = s["clip_range"], s["ent_coef"]
    config.value_loss_scale = s["vf_coef"]
    config.experiment.directory, config.experiment.experiment_name = str(run.folder), "skrl"
    config.experiment.write_interval, config.experiment.checkpoint_interval = s["n_steps"], 0
    agent = PPO(
        models={"policy": Policy(*spaces), "value": Value(*spaces)},
        memory=RandomMemory(memory_size=s["n_steps"], num_envs=run.n_envs, device="cpu"),
        observation_space=spaces[0], action_space=spaces[1], device="cpu", cfg=config,
    )  # fmt: skip
    options = {"timesteps": run.steps // run.n_envs, "headless": True, "disable_progressbar": True}
    SequentialTrainer(cfg=options, env=env, agents=agent).train()
