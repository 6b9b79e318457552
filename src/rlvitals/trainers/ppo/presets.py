"""Presets of known environments; the defaults are the cluster's.

The values are those that tuned PPO runs of these environments share (RL Baselines3 Zoo's, where
they carry over), with more environments at once: measured in docs/benchmarks.md.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from rlvitals.trainers.ppo.cluster import ID as CLUSTER
from rlvitals.trainers.ppo.config import Config

Values = Mapping[str, Any]
ENV_PRESETS: Mapping[str, Values] = MappingProxyType({
    "CartPole-v1": {
        "training.total_steps": 120_000, "ppo_config.learning_rate": 1e-3,
        "ppo_config.rollout_length": 128, "ppo_config.gae_lambda": 0.98, "ppo_config.epochs": 8,
    },
    "Acrobot-v1": {
        "training.total_steps": 500_000, "ppo_config.learning_rate": 1e-3,
        "ppo_config.gae_lambda": 0.94, "ppo_config.epochs": 4,
    },
    "Pendulum-v1": {
        "training.total_steps": 300_000, "ppo_config.learning_rate": 1e-3,
        "ppo_config.gamma": 0.9, "ppo_config.rollout_length": 128,
    },
    "LunarLander-v3": {
        "ppo_config.learning_rate": 1e-3, "ppo_config.gamma": 0.999,
        "ppo_config.gae_lambda": 0.98, "ppo_config.entropy_coef": 0.01, "ppo_config.epochs": 6,
        "ppo_config.rollout_length": 512, "ppo_config.minibatch_size": 512,
    },
})  # fmt: skip


def preset(env: str) -> Values:
    """Return what an environment starts from, by dotted names; nothing for the cluster."""
    if env == CLUSTER:
        return {}
    values = {
        "training.total_steps": 1_000_000, "training.num_envs": 16,
        "ppo_config.learning_rate": 3e-4, "ppo_config.rollout_length": 256,
        "ppo_config.gamma": 0.99, "ppo_config.minibatch_size": 256, "ppo_config.epochs": 10,
        "ppo_config.entropy_coef": 0.0,
    }  # fmt: skip
    return {**values, **ENV_PRESETS.get(env, {})}


def source(env: str) -> str:
    """Return the source of the defaults of an environment; empty for the cluster."""
    if env == CLUSTER:
        return ""
    return f"preset of {env}" if env in ENV_PRESETS else "preset of any other environment"


def table() -> str:
    """Return the presets as a table in Markdown."""
    lines = ["| environment | starts from |", "| --- | --- |"]
    for env in (*ENV_PRESETS, "any other"):
        cells = ", ".join(f"`{name.split('.')[1]}` {value}" for name, value in preset(env).items())
        lines.append(f"| {env} | {cells} |")
    return "\n".join(lines) + "\n"


def line(config: Config) -> str:
    """Return a line with the preset values that a training uses; empty for the cluster."""
    env, unchanged = config.training.env, []
    for name, value in preset(env).items():
        section, key = name.split(".")
        if getattr(getattr(config, section), key) == value:
            unchanged.append(f"{key}={value}")
    return (
        f"[PPO:init] {source(env)}: {' '.join(unchanged)} (any flag overrides)" if unchanged else ""
    )
