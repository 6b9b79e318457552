"""Build a training from its settings, and save the settings with the run."""

import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rlvitals.trainers import schema
from rlvitals.trainers.ppo import cluster, environments, networks, telemetry
from rlvitals.trainers.ppo.cluster.observation import CLUSTER_FEATURES, of_replica
from rlvitals.trainers.ppo.config import Config, MonitoringConfig
from rlvitals.trainers.ppo.grad_spike_response import SpikeReaction
from rlvitals.trainers.ppo.ppo import PPO
from rlvitals.trainers.ppo.temperature import Controller, Fixed

CONFIG_FILE = "ppo_config.json"
SHIPPED_CONFIGS = Path(__file__).parent / "configs"


def build(config: Config) -> PPO:
    """Build the environments, the policy and the trainer of a configuration."""
    training, ppo_config = config.training, config.ppo_config
    random.seed(training.seed)
    np.random.seed(training.seed)  # noqa: NPY002 - what an environment may draw from
    torch.manual_seed(training.seed)
    is_cluster = training.env == cluster.ID
    envs = environment(config)
    layout = None
    if is_cluster and config.network.shared_scorer:
        features = len(of_replica(config.environment))
        layout = networks.Layout(config.cluster.replicas, features, len(CLUSTER_FEATURES))
    policy = networks.build(
        envs.features, envs.actions, continuous=envs.continuous,
        hidden=config.network.hidden_sizes, activation=config.network.activation, layout=layout,
    )  # fmt: skip
    replica_shape = None
    if layout is not None and config.network.shared_normaliser:
        replica_shape = layout.replicas, layout.features
    control, spikes = config.temperature_control, config.advanced_optimization.adaptive_batch_size
    ppo = PPO(
        envs, policy, ppo_config, total_steps=training.total_steps, seed=training.seed,
        schedule=config.advanced_optimization.learning_rate_schedule,
        reference=config.kl_regularization,
        temperature=Controller(control) if control.enabled else Fixed(control.base_temperature),
        spikes=SpikeReaction(spikes, ppo_config.minibatch_size) if spikes.enable else None,
        replica_shape=replica_shape,
    )  # fmt: skip
    warm_start = config.warm_start
    if (
        warm_start.hold_to_reference
        and not warm_start.skip_warmstart
        and (is_cluster or warm_start.external_pretrain)
    ):
        ppo.hold_to_reference()  # so that a checkpoint has a place for it; the warm start sets it
    return ppo


def environment(config: Config) -> environments.Environments:
    """Make the environments of a configuration."""
    training = config.training
    options = {"config": config.environment} if training.env == cluster.ID else {}
    return environments.make(
        training.env, training.num_envs, processes=training.processes, **options
    )


def qps(config: Config) -> float:
    """Return the requests per second that come to a cluster at its full load."""
    return float(cluster.Cluster(config.environment, 1).arrivals.full_rate)


def write(config: Config, folder: Path) -> None:
    """Write the settings into a run's folder, as a file that `--config` reads."""
    moved = replace(config, training=replace(config.training, output_dir=""))
    schema.write(folder / CONFIG_FILE, moved)


def fit_speeds(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return the overrides, with fewer default speeds for fewer replicas."""
    count = overrides.get("cluster.replicas")
    speeds = Config().cluster.speeds
    if count is None or "cluster.speeds" in overrides or not 1 <= count < len(speeds):
        return dict(overrides)
    return {**overrides, "cluster.speeds": speeds[:count]}


def settings_file(file: Path) -> Path:
    """Return a settings file, or the one of its name that is shipped where there is none."""
    shipped = SHIPPED_CONFIGS / f"{file.stem}.json"
    return shipped if not file.exists() and shipped.exists() else file


def sinks(config: MonitoringConfig, actions: int = 0) -> dict[str, Mapping[str, Any]]:
    """Return the additional sinks and their options.

    `actions`: how many discrete ones there are.
    """
    options: dict[str, Mapping[str, Any]] = {}
    if config.tensorboard_enabled:
        names = telemetry.TENSORBOARD_TAGS | telemetry.action_tags(actions)
        options["tensorboard"] = {"port": config.tensorboard_port, "names": names}
    if config.metrics_export_enabled:
        options[config.metrics_export_format] = {
            "interval": config.metrics_export_interval,
            "subsamples": config.metrics_subsamples,
        }
    if config.wandb:
        options["wandb"] = {"project": config.wandb_project}
    return options


def flat(config: Config) -> dict[str, object]:
    """Return the settings that a run is recorded with: each key by itself, sections by name.

    What is off is None: a limit of 0 would be another thing.
    """
    settings: dict[str, object] = {}
    for key in schema.keys(Config):
        if key.path[-1] == "output_dir":
            continue  # a run may be moved
        value: Any = config
        for name in key.path:
            value = getattr(value, name)
        plain = ".".join(key.path[1:]) if key.path[0] in ("training", "ppo_config") else key.name
        off = (
            key.path[-1] in {"target_kl", "max_grad_norm", "entropy_min", "kl_coef"} and value == 0
        )
        settings[plain] = None if off else list(value) if isinstance(value, tuple) else value
    return settings
