"""Build an RLHF training from its settings: policy, prompts, rewards, sinks."""

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator

from rlvitals import UsageError
from rlvitals.trainers import schema
from rlvitals.trainers.language import chat_template, data, models, rewards, run_metadata
from rlvitals.trainers.language.config import MonitoringConfig
from rlvitals.trainers.language.rlhf.config import Config, RLHFConfig
from rlvitals.trainers.language.rlhf.controllers import Adaptive, Controller, Fixed
from rlvitals.trainers.language.rlhf.policy import Policy
from rlvitals.trainers.language.rlhf.ppo import PPO
from rlvitals.trainers.language.rlhf.scoring import RewardModel, Scorer

RLHF_MODE = "rlhf"  # among the modes

Failed = Callable[[rewards.Failure], None]


def fill_name(template: str, config: Config) -> str:
    """Fill in a folder's or a run's name. Raises UsageError for a field that there is not."""
    fields = run_metadata.fields(config.model, config.data, config.rlhf.seed)
    return run_metadata.fill(template, {**fields, "mode": RLHF_MODE})


def build(
    config: Config,
    folder: Path,
    accelerator: Accelerator,
    *,
    failed: Failed,
    tell: Callable[[str], None],
) -> PPO:
    """Build what trains, in a run's folder.

    `failed` gets rewards that could not be computed, `tell` notes about the
    model and the data, as rows that are left out. Raises UsageError for settings that do not fit
    the model or the data.
    """
    settings, base = config.rlhf, folder / models.BASE_FOLDER
    dataset = data.find(config.data, tell)  # before a model is loaded for nothing
    with accelerator.main_process_first():  # a tiny model is made once
        models.prepare(config.model, seed=settings.seed, base=base, tell=tell)
    loaded = models.load(config.model, seed=settings.seed, base=base, tell=tell)
    if loaded.vision:
        raise UsageError(
            f"{config.model.vlm_name} sees, and RLHF trains what only reads",
            where="model.vlm_name",
            hint="rlvitals train grpo",
        )
    if threads := settings.threads or (1 if loaded.tiny else 0):
        torch.set_num_threads(threads)
    random.seed(settings.seed)  # what a reward function may draw from
    np.random.seed(settings.seed)  # noqa: NPY002 - the same
    torch.manual_seed(settings.seed)  # of the adapters
    task = data.load(config.data, vision=False, seed=settings.seed, dataset=dataset)
    for note in (*task.notes, *chat_template.check(config.data, loaded, task)):
        tell(f"{task.name}: {note}")
    policy = Policy(loaded.model, loaded.lora)
    return PPO(
        policy, models.tokenizer_of(loaded.processor), task.train,
        scorer(config, task.rewards, accelerator.device, failed), settings,
        controller=controller(settings), accelerator=accelerator,
    )  # fmt: skip


def scorer(
    config: Config, default: tuple[str, ...], device: torch.device, failed: Failed
) -> Scorer:
    """Return what scores: the reward model, the functions that are named, else those of the task.

    A reward model has weight 1; functions are added only if some are named.
    """
    name, at_once = config.rlhf.reward_model, config.rlhf.forward_batch_size
    if name and not config.rewards.functions:
        return Scorer([RewardModel(name, device, at_once=at_once)], [1.0])
    functions = rewards.functions(config.rewards, default, failed=failed)
    weights = rewards.weights(config.rewards, functions)
    if not name:
        return Scorer(functions, weights)
    return Scorer([RewardModel(name, device, at_once=at_once), *functions], [1.0, *weights])


def controller(config: RLHFConfig) -> Controller:
    """Return the controller of the KL coefficient."""
    if config.kl_controller == "fixed":
        return Fixed(config.kl_coef)
    return Adaptive(config.kl_coef, config.kl_target, config.kl_horizon)


def check(config: RLHFConfig, processes: int) -> None:
    """Raise UsageError for numbers that do not go together."""
    divisor = processes * max(config.num_mini_batches, 1)
    at_least_one = (
        "batch_size", "num_ppo_epochs", "num_mini_batches", "response_length", "total_episodes",
        "kl_horizon",
    )  # fmt: skip
    for name in at_least_one:
        if getattr(config, name) < 1:
            raise UsageError(f"{name} cannot be {getattr(config, name)}", hint="1 at least")
    for name in ("temperature", "kl_target"):
        if getattr(config, name) <= 0:
            raise UsageError(f"{name} cannot be 0", where=f"rlhf.{name}", hint="above 0")
    if config.batch_size % divisor:
        raise UsageError(
            f"{config.batch_size} responses cannot be shared out over {processes} processes with "
            f"{config.num_mini_batches} minibatches each",
            where="rlhf.batch_size",
            hint=f"a multiple of {divisor}",
        )


def flat(config: Config) -> dict[str, object]:
    """Return the settings that a run records; None for what is off."""
    settings: dict[str, object] = {}
    for section in (config.model, config.data, config.rewards, config.rlhf):
        settings |= schema.to_dict(section)
    del settings["output_dir"]  # a run may be moved
    if config.rlhf.kl_controller == "fixed":
        settings |= {"kl_target": None, "kl_horizon": None}  # nothing aims at it
    return {
        key: None
        if key in {"target_kl", "max_grad_norm", "ratio_threshold"} and not value
        else value
        for key, value in settings.items()
    }


def folder(config: Config) -> Path:
    """Return the run's folder."""
    return Path(fill_name(config.rlhf.output_dir, config))


def sinks(config: MonitoringConfig, name: str) -> dict[str, Mapping[str, Any]]:
    """Return the additional sinks and their options, with unchanged keys."""
    return run_metadata.sinks(config, name, RLHF_MODE)
