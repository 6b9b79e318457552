"""The tasks of the benchmark: an algorithm, an environment, working settings and variants.

The settings are near those of RL Baselines3 Zoo. Runs are long enough that, after a fault in
mid-run, the library's mean over 100 episodes holds nothing of before.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rlvitals.faults.fault import Algorithm

Options = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Task:
    """A task of the benchmark; healthy runs are compared within it."""

    algorithm: Algorithm
    env_id: str
    steps: int
    n_envs: int
    options: Options
    log_interval: int = 1  # rollouts of on-policy algorithms, episodes of the others
    normalised: bool = False  # running normalisation of observations and rewards
    variants: Mapping[str, Options] = field(default_factory=dict)  # other settings that work
    both_onsets: bool = False  # faults from the start also occur in mid-run
    first_seed: int = 0

    @property
    def name(self) -> str:
        """The name of its folder."""
        return f"{self.algorithm.lower()}-{self.env_id}"

    def variant(self, name: str) -> "Task":
        """Return the task with a variant's settings; fields of the task are replaced."""
        options = dict(self.variants[name]) if name else {}
        fields = {
            key: options.pop(key) for key in ("steps", "n_envs", "normalised") if key in options
        }
        return replace(self, options={**self.options, **options}, **fields)


FIRST_UNSEEN_SEED = 100  # test seeds of every task
SMALL_NET = {"policy_kwargs": {"net_arch": [64, 64]}}
# Options of the benchmark: `anneal` decreases the learning rate linearly to 0, `resumed` trains for
# so many steps before the run that is logged.
FAULT_TASKS: tuple[Task, ...] = (
    Task(
        Algorithm.PPO, "CartPole-v1", 81_920, 8,
        {"n_steps": 32, "batch_size": 256, "n_epochs": 20, "gamma": 0.98, "gae_lambda": 0.8,
         "learning_rate": 1e-3},
        both_onsets=True, first_seed=FIRST_UNSEEN_SEED,
        variants={
            "annealed": {"anneal": True},
            "slow": {"learning_rate": 1.5e-4},
            "high-kl": {"learning_rate": 4e-3},
            "library-defaults": {"n_steps": 256, "batch_size": 64, "n_epochs": 10, "gamma": 0.99,
                                 "gae_lambda": 0.95, "learning_rate": 3e-4, "steps": 61_440},
            "target-kl": {"target_kl": 0.03},
            "normalised": {"normalised": True},
            "resumed-at-the-top": {"resumed": 65_536, "anneal": True, "learning_rate": 5e-4},
        },
    ),
    Task(
        Algorithm.PPO, "Acrobot-v1", 98_304, 8,
        {"n_steps": 64, "batch_size": 128, "n_epochs": 4, "gamma": 0.99, "gae_lambda": 0.94,
         "learning_rate": 1e-3},
        both_onsets=True, first_seed=FIRST_UNSEEN_SEED,
        variants={
            "annealed": {"anneal": True},
            "slow": {"learning_rate": 2e-4},
            "entropy-bonus": {"ent_coef": 0.01},
            "high-kl": {"learning_rate": 3e-3},
            "resumed-at-the-top": {"resumed": 49_152},
        },
    ),
    Task(
        Algorithm.PPO, "Pendulum-v1", 131_072, 8,
        {"n_steps": 128, "batch_size": 128, "n_epochs": 10, "gamma": 0.9, "learning_rate": 1e-3,
         "use_sde": True, "sde_sample_freq": 4},
        first_seed=FIRST_UNSEEN_SEED,
        variants={
            "no-sde": {"use_sde": False},
            "annealed": {"anneal": True},
            "normalised": {"normalised": True, "use_sde": False},
        },
    ),
    Task(
        Algorithm.PPO, "MountainCar-v0", 131_072, 16,
        {"n_steps": 16, "batch_size": 256, "n_epochs": 4, "gamma": 0.99, "gae_lambda": 0.98,
         "learning_rate": 1e-3},
        log_interval=4, normalised=True,
        variants={"annealed": {"anneal": True}, "late-take-off": {"learning_rate": 3e-4}},
    ),
    Task(
        Algorithm.A2C, "CartPole-v1", 120_000, 16, {"learning_rate": 1e-3, "anneal": True},
        log_interval=16, normalised=True,
        both_onsets=True,
        variants={"constant-rate": {"anneal": False}, "slow": {"learning_rate": 4e-4}},
    ),
    Task(
        Algorithm.A2C, "Acrobot-v1", 96_000, 16, {"learning_rate": 7e-4},
        log_interval=12, normalised=True,
        variants={"annealed": {"anneal": True}},
    ),
    Task(
        Algorithm.DQN, "CartPole-v1", 48_000, 4,
        {"learning_rate": 5e-4, "batch_size": 128, "learning_starts": 1000, "gamma": 0.98,
         "target_update_interval": 500, "train_freq": 4, "gradient_steps": 4,
         "exploration_fraction": 0.3, "exploration_final_eps": 0.04, **SMALL_NET},
        log_interval=10, normalised=True,
        both_onsets=True,
        variants={"slow": {"learning_rate": 2e-4}},
    ),
    Task(
        Algorithm.DQN, "Acrobot-v1", 120_000, 1,
        {"learning_rate": 1e-3, "batch_size": 128, "learning_starts": 1000,
         "target_update_interval": 500, "train_freq": 16, "gradient_steps": 2,
         "exploration_fraction": 0.2, "exploration_final_eps": 0.04, **SMALL_NET},
        log_interval=5, first_seed=FIRST_UNSEEN_SEED,
        variants={"long-exploration": {"exploration_fraction": 0.5}},
    ),
    Task(
        Algorithm.SAC, "Pendulum-v1", 48_000, 1,
        {"learning_rate": 2e-3, "batch_size": 64, "learning_starts": 800, "train_freq": 4,
         **SMALL_NET},
        log_interval=2, first_seed=FIRST_UNSEEN_SEED,
        variants={"slow": {"learning_rate": 7e-4}},
    ),
)  # fmt: skip
