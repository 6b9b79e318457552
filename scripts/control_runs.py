"""The runs that `record_control_runs.py` trains: agents, settings, faults.

To add a run, add one entry to `RUNS`; `Run` says what its fields mean, and what an entry does not
say is PPO on CartPole with the library's defaults.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from control_faults import (
    Advantages,
    ConstantObservation,
    FlipObservationLater,
    FlipReward,
    HugeReward,
    NanWeight,
    NeverTerminal,
    NoisyObservation,
    NoisyReward,
    OneOutlierReward,
    OutlierReward,
    RandomAction,
    SleepInSecondHalf,
    ZeroReward,
)
from stable_baselines3.common.noise import NormalActionNoise

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import gymnasium as gym
    from stable_baselines3.common.callbacks import BaseCallback


@dataclass(frozen=True, slots=True)
class Run:
    """One training run. `options` go to the algorithm's constructor as they are."""

    name: str
    fault: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    algorithm: str = "PPO"
    env_id: str = "CartPole-v1"
    steps: int = 61_440
    n_envs: int = 4
    seed: int = 0
    log_interval: int = 1
    world: Callable[[gym.Env], gym.Env] | None = None
    during: type[BaseCallback] | None = None
    grad_norm: bool = False
    normalise: bool = False  # running normalisation of observations and rewards
    monitors: int = 0  # how many of the environments write a monitor file
    formats: tuple[str, ...] = ("csv",)


def seeds(run: Run, *numbers: int) -> Iterable[Run]:
    return (replace(run, name=f"{run.name}-s{n}", seed=n) for n in numbers)


def linear(start: float) -> Callable[[float], float]:
    return lambda remaining: start * remaining


def spike(remaining: float) -> float:
    """Learning rate 3e-4, but 0.1 between 50 % and 55 % of the run."""
    return 0.1 if 0.45 < remaining <= 0.5 else 3e-4


SMALL_NET = {"policy_kwargs": {"net_arch": [64, 64]}}
# fmt: off
CARTPOLE_ZOO = {  # RL Baselines3 Zoo
    "n_steps": 32, "batch_size": 256, "n_epochs": 20, "gamma": 0.98, "gae_lambda": 0.8,
    "learning_rate": linear(1e-3), "clip_range": linear(0.2),
}
DQN_ZOO = {
    "learning_rate": 2.3e-3, "batch_size": 64, "buffer_size": 100_000, "learning_starts": 1000,
    "target_update_interval": 10, "train_freq": 256, "gradient_steps": 128,
    "exploration_fraction": 0.16, "exploration_final_eps": 0.04,
    "policy_kwargs": {"net_arch": [256, 256]},
}
SAC_SMALL = {**SMALL_NET, "learning_rate": 1e-3, "batch_size": 128, "learning_starts": 400}
TD3_SMALL = {**SMALL_NET, "learning_rate": 1e-3, "batch_size": 128, "learning_starts": 1000,
             "gamma": 0.98, "action_noise": NormalActionNoise(np.zeros(1), 0.1 * np.ones(1))}

PPO = Run("ppo-cartpole", options={"n_steps": 256})
A2C = Run("a2c-cartpole", algorithm="A2C", log_interval=40)
DQN = Run("dqn-cartpole", algorithm="DQN", n_envs=1, steps=50_000, log_interval=10, options=DQN_ZOO)
SAC = Run(
    "sac-pendulum", algorithm="SAC", env_id="Pendulum-v1", n_envs=1, steps=12_000, options=SAC_SMALL
)
ACROBOT = Run("ppo-acrobot", env_id="Acrobot-v1", options={"n_steps": 256}, steps=81_920)
PENDULUM = Run("ppo-pendulum", env_id="Pendulum-v1", steps=102_400,
               options={"n_steps": 256, "gamma": 0.9, "learning_rate": 1e-3})
LANDER = Run("ppo-lunarlander", env_id="LunarLander-v3", n_envs=8, steps=163_840,
             options={"n_steps": 256, "batch_size": 128, "n_epochs": 4, "gamma": 0.999,
                      "gae_lambda": 0.98, "ent_coef": 0.01, "learning_rate": 1e-3})
HILL_CAR = Run("ppo-mountaincarcontinuous", env_id="MountainCarContinuous-v0", n_envs=1,
               steps=20_000, log_interval=25, normalise=True,
               options={"n_steps": 8, "batch_size": 256, "n_epochs": 10, "gamma": 0.9999,
                        "use_sde": True, "learning_rate": 7.77e-5, "ent_coef": 0.00429,
                        "clip_range": 0.1, "vf_coef": 0.19, "gae_lambda": 0.9,
                        "max_grad_norm": 5.0,
                        "policy_kwargs": {"log_std_init": -3.29, "ortho_init": False}})
TD3 = Run(
    "td3-pendulum", algorithm="TD3", env_id="Pendulum-v1", n_envs=1, steps=12_000, options=TD3_SMALL
)
# fmt: on


RAW = replace(
    PPO,
    name="ppo-cartpole-raw-advantages",
    during=Advantages,
    options={**PPO.options, "normalize_advantage": False},
)


def broken(healthy: Run, fault: str, **changes: Any) -> Run:
    """`healthy` with one fault: `options` are added to its own, the other fields replaced."""
    options = {**healthy.options, **changes.pop("options", {})}
    name = f"{healthy.name}-{fault}"
    return replace(healthy, name=name, fault=fault, options=options, **changes)


# fmt: off
RUNS: tuple[Run, ...] = (
    # What the project ships: `record_control_runs.py examples healthy failing`.
    replace(PPO, name="healthy", grad_norm=True, monitors=4),
    replace(PPO, name="failing", fault="lr-spike", seed=1, grad_norm=True, monitors=4,
            options={**PPO.options, "learning_rate": spike}),
    # healthy, PPO
    *seeds(replace(PPO, grad_norm=True, monitors=1), 0, 1),
    *seeds(PPO, 2, 3),
    *seeds(replace(PPO, formats=("csv", "json", "tensorboard"), monitors=1), 4),
    # PPO, the faults that much else is built on
    *seeds(broken(PPO, "lr-x300", options={"learning_rate": 0.09}), 0, 1),
    *seeds(broken(PPO, "lr-1e-7", options={"learning_rate": 1e-7}), 0, 1),
    *seeds(broken(PPO, "vf-coef-0", options={"vf_coef": 0.0}), 0, 1),
    *seeds(broken(PPO, "reward-zero", world=ZeroReward, monitors=1), 0, 1),
    # advantages as they are
    *seeds(RAW, 0, 1),
    *seeds(broken(RAW, "lr-1e-7", options={"learning_rate": 1e-7}), 0),
    # healthy, other tasks and algorithms
    *seeds(replace(PPO, name="ppo-cartpole-converged", options=CARTPOLE_ZOO, n_envs=8,
                   steps=102_400, log_interval=4), 0, 1),
    *seeds(PPO, 5, 6, 7, 8, 9),
    *seeds(ACROBOT, 0, 1, 2),
    *seeds(replace(PENDULUM, grad_norm=True), 0),
    *seeds(PENDULUM, 1, 2),
    *seeds(LANDER, 0, 1),
    *seeds(HILL_CAR, 0, 1),
    *seeds(replace(A2C, grad_norm=True), 4),
    *seeds(A2C, 1, 2, 3),
    *seeds(DQN, 0, 1, 2),
    *seeds(SAC, 0, 1),
    *seeds(TD3, 0, 1),
    Run("ppo-exam-s0", env_id="Exam", options={"n_steps": 128}, steps=40_960, grad_norm=True),
    Run("ppo-exam-s1", env_id="Exam", options={"n_steps": 128}, steps=40_960, seed=1),
    Run("ppo-corridor-s0", env_id="Corridor", options={"n_steps": 256, "ent_coef": 0.01}),
    *seeds(replace(PPO, name="ppo-cartpole-short-window",
                   options={"n_steps": 256, "stats_window_size": 10}), 0, 1),
    *seeds(replace(DQN, name="dqn-cartpole-short-window",
                   options={**DQN_ZOO, "stats_window_size": 10}), 3),
    # nobody broke these: the first forgets what it had learnt, the second never gets going
    replace(A2C, name="a2c-cartpole-s0", fault="own-instability", grad_norm=True),
    Run("a2c-pendulum-s0", "never-learnt", algorithm="A2C", env_id="Pendulum-v1", n_envs=8,
        steps=160_000, log_interval=50, normalise=True,
        options={"n_steps": 8, "gamma": 0.9, "gae_lambda": 0.9, "vf_coef": 0.4,
                 "learning_rate": linear(7e-4), "use_sde": True, "use_rms_prop": False}),
    # PPO, faults in the settings
    *seeds(broken(PPO, "lr-x100", options={"learning_rate": 0.03}), 0),
    *seeds(broken(PPO, "lr-spike", options={"learning_rate": spike}, grad_norm=True), 0, 1),
    *seeds(broken(PPO, "gamma-0", options={"gamma": 0.0}), 0),
    *seeds(broken(PPO, "ent-coef-2", options={"ent_coef": 2.0}), 0, 1),
    *seeds(broken(PPO, "ent-coef-negative", options={"ent_coef": -0.5}), 0, 1),
    *seeds(broken(PPO, "ent-coef-minus-3", options={"ent_coef": -3.0}), 0, 1),
    *seeds(broken(PPO, "clip-1e-4", options={"clip_range": 1e-4}), 0),
    *seeds(broken(PPO, "epochs-100", steps=51_200,
                  options={"n_epochs": 100, "clip_range": 0.6}), 0),
    *seeds(broken(PPO, "over-target-kl", options={"target_kl": 0.02, "learning_rate": 0.01}), 0, 1),
    *seeds(broken(PPO, "unclipped-gradient", grad_norm=True,
                  options={"max_grad_norm": 1e9, "learning_rate": 0.02}), 0, 1),
    # PPO, faults in the world
    *seeds(broken(PPO, "reward-flipped", world=FlipReward), 0),
    *seeds(broken(PPO, "reward-noise", world=NoisyReward), 0, 1),
    *seeds(broken(PPO, "reward-x1000", world=HugeReward, grad_norm=True), 0, 1),
    *seeds(broken(PPO, "reward-outliers", world=OutlierReward, grad_norm=True,
                  options={"max_grad_norm": 1e9}), 0, 1),
    *seeds(broken(PPO, "one-outlier", world=OneOutlierReward, grad_norm=True), 0),
    *seeds(broken(PPO, "constant-observation", world=ConstantObservation), 0, 1),
    *seeds(broken(PPO, "noisy-observation", world=NoisyObservation), 0),
    *seeds(broken(PPO, "sensors-flip", world=FlipObservationLater), 0, 1),
    *seeds(broken(PPO, "random-action", world=RandomAction), 0, 1),
    *seeds(broken(PPO, "missing-terminal", world=NeverTerminal), 0),
    Run("ppo-mountaincar-s0", "sparse-reward", {"n_steps": 256}, env_id="MountainCar-v0"),
    Run("ppo-exam-paid-by-length-s0", "reward-hacked", {"n_steps": 128}, env_id="ExamPaidByLength",
        steps=40_960),
    Run("ppo-corridor-coin-grows-back-s0", "reward-hacked", {"n_steps": 256, "ent_coef": 0.01},
        env_id="CorridorCoinGrowsBack"),
    *seeds(broken(PENDULUM, "ent-coef-0.5", steps=61_440, options={"ent_coef": 0.5}), 0),
    # PPO, faults of the machine
    *seeds(broken(PPO, "slow-second-half", during=SleepInSecondHalf, monitors=1,
                  formats=("csv", "tensorboard")), 0),
    *seeds(broken(PPO, "nan-weight", during=NanWeight), 0),
    # A2C
    *seeds(broken(A2C, "lr-x100", options={"learning_rate": 0.07}), 0, 1),
    *seeds(broken(A2C, "ent-coef-2", options={"ent_coef": 2.0}), 0),
    # other tasks
    *seeds(broken(ACROBOT, "lr-x300", options={"learning_rate": 0.09}), 0),
    *seeds(broken(ACROBOT, "lr-1e-7", options={"learning_rate": 1e-7}), 0),
    *seeds(broken(ACROBOT, "random-action", world=RandomAction), 0),
    *seeds(broken(PENDULUM, "lr-x300", options={"learning_rate": 0.3}), 0),
    *seeds(broken(PENDULUM, "lr-1e-7", options={"learning_rate": 1e-7}), 0),
    *seeds(broken(PENDULUM, "reward-zero", world=ZeroReward), 0),
    *seeds(broken(LANDER, "lr-x100", options={"learning_rate": 0.1}), 0),
    *seeds(broken(LANDER, "constant-observation", world=ConstantObservation), 0),
    *seeds(broken(HILL_CAR, "not-normalised", normalise=False), 0),
    # DQN
    *seeds(broken(DQN, "eps-0", options={"exploration_initial_eps": 0.0,
                                         "exploration_final_eps": 0.0}), 0),
    *seeds(broken(DQN, "eps-1", log_interval=25, options={"exploration_initial_eps": 1.0,
                                         "exploration_final_eps": 1.0}), 0),
    *seeds(broken(DQN, "lr-x100", log_interval=25, options={"learning_rate": 0.23}), 0),
    *seeds(broken(DQN, "gamma-1-no-terminal", world=NeverTerminal, log_interval=1, steps=40_000,
                  options={"gamma": 1.0, "target_update_interval": 1}), 0),
    *seeds(broken(DQN, "late-start", options={"learning_starts": 45_000}, log_interval=25), 0),
    *seeds(broken(DQN, "buffer-100", options={"buffer_size": 100}), 0),
    *seeds(broken(DQN, "nan-weight", during=NanWeight), 0),
    # SAC, TD3
    *seeds(broken(SAC, "alpha-0", options={"ent_coef": 0.0}), 0),
    *seeds(broken(SAC, "alpha-5", options={"ent_coef": 5.0}), 0),
    *seeds(broken(SAC, "lr-x100", options={"learning_rate": 0.1}), 0),
    *seeds(broken(SAC, "tau-0", options={"tau": 0.0}), 0),
    *seeds(broken(TD3, "lr-x100", options={"learning_rate": 0.1}), 0),
    *seeds(broken(TD3, "nan-weight", during=NanWeight), 0),
)
# fmt: on
