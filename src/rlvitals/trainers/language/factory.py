"""Build TRL's arguments, the run's folder, the sinks and the recorded settings."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from trl import GRPOConfig

from rlvitals import UsageError
from rlvitals.trainers import schema
from rlvitals.trainers.language import run_metadata, sample_weights
from rlvitals.trainers.language.config import GRPO_MODE, Config, MonitoringConfig

MODE_FIELD = "{-mode}"
LANGUAGE_CONFIG_FILE = "training_config.json"


def fill_name(template: str, config: Config) -> str:
    """Fill in a folder's or a run's name. Raises UsageError for a field that there is not."""
    mode = config.training.mode
    fields = run_metadata.fields(config.model, config.data, config.training.seed)
    fields |= {"mode": mode, "-mode": "" if mode == GRPO_MODE else f"-{mode}"}
    return run_metadata.fill(template, fields)


def folder(config: Config) -> Path:
    """Return the run's folder; for GRPO, one with "-grpo" in its name if it exists."""
    template = config.training.output_dir
    plain = Path(fill_name(template, config))
    if config.training.mode == GRPO_MODE and MODE_FIELD in template and not plain.exists():
        grpo_folder = Path(fill_name(template.replace(MODE_FIELD, f"-{GRPO_MODE}"), config))
        if grpo_folder.exists():
            return grpo_folder
    return plain


# TRL's names for keys of the section `training` that are called otherwise here.
TRL_KEYS = {
    "num_train_epochs": "num_epochs",
    "per_device_train_batch_size": "batch_size",
    "epsilon": "cliprange",
    "activation_checkpointing": "gradient_checkpointing",
}


# Below these nothing is trained; advantages need two answers to compare.
MIN_VALUES = {
    "training.batch_size": 1, "training.gradient_accumulation_steps": 1,
    "training.num_iterations": 1, "training.max_completion_length": 1, "model.lora_r": 1,
    "signal.num_generations": 2, "monitoring.logging_steps": 1,
}  # fmt: skip


def arguments(config: Config, output: Path) -> GRPOConfig:
    """Return TRL's arguments. Raises UsageError for those that do not go together."""
    _check(config)
    training, saving = config.training, config.checkpointing
    names = (
        "seed", "gradient_accumulation_steps", "learning_rate", "lr_scheduler_type", "warmup_steps",
        "max_grad_norm", "beta", "num_iterations", "loss_type", "scale_rewards", "temperature",
        "max_completion_length", "mask_truncated_completions",
    )  # fmt: skip
    options: dict[str, Any] = {name: getattr(training, name) for name in names}
    options |= {name: getattr(training, key) for name, key in TRL_KEYS.items()}
    options |= {
        "output_dir": str(output),
        "run_name": fill_name(config.monitoring.run_name, config),
        "max_steps": training.max_steps or -1,
        "steps_per_generation": training.steps_per_generation or None,
        "use_cpu": not torch.cuda.is_available(),
        **_precision(training.bf16),
        "num_generations": config.signal.num_generations,
        "logging_steps": config.monitoring.logging_steps,
        "logging_first_step": True,
        "save_strategy": "steps" if saving.save_steps else "no",
        "save_steps": saving.save_steps or 1,
        "save_total_limit": saving.keep or None,
        "report_to": "none",  # our sinks do it
        "disable_tqdm": True,  # and our own line of progress
    }
    try:
        return GRPOConfig(**options)
    except ValueError as error:
        size = config.training.batch_size
        forwards = (
            config.training.steps_per_generation or config.training.gradient_accumulation_steps
        )
        hint = (
            f"--batch-size {size} times {forwards} forward passes a generation has to be a "
            f"multiple of --num-generations {config.signal.num_generations}"
        )
        raise UsageError(str(error), where="the settings", hint=hint) from None


def _precision(bf16: bool) -> dict[str, bool]:  # noqa: FBT001 - by its name
    """Return the requested precision, else the one that accelerate was launched with.

    Under DeepSpeed the two have to be one.
    """
    launched = os.environ.get("ACCELERATE_MIXED_PRECISION")
    return {"bf16": bf16 or launched == "bf16", "fp16": not bf16 and launched == "fp16"}


def _check(config: Config) -> None:
    """Raise UsageError for numbers that train nothing."""
    for name, minimum in MIN_VALUES.items():
        section, key = name.split(".")
        if (value := getattr(getattr(config, section), key)) < minimum:
            raise UsageError(f"it cannot be {value}", where=name, hint=f"{minimum} or more")
    training = config.training
    if not training.temperature:
        raise UsageError(
            "without a temperature nothing is sampled", where="training.temperature",
            hint="above 0; 1 is usual",
        )  # fmt: skip
    if not (training.max_steps or training.num_epochs):
        raise UsageError("no steps and no epochs train nothing", where="training.max_steps")


def check_weights(changed: list[str], checkpoint: str) -> None:
    """Raise UsageError where a checkpoint is of other weights than those that are trained now."""
    # The settings that determine which weights are trained.
    keys = ("model.lora ", "model.lora_r ", "model.lora_targets ")
    weight_changes = [change for change in changed if change.startswith(keys)]
    if weight_changes:
        raise UsageError(
            f"its checkpoint holds other weights: {'; '.join(weight_changes)}",
            where=checkpoint,
            hint="the settings it was saved with, or another --output-dir",
        )


def check_samples(args: GRPOConfig, samples: int) -> None:
    """Raise UsageError where all samples do not make one generation: nothing would be trained."""
    prompts_needed = args.generation_batch_size // args.num_generations
    if samples < prompts_needed:
        raise UsageError(
            f"{samples} samples do not make a generation, which asks {prompts_needed} questions "
            f"{args.num_generations} times each",
            where="the data",
            hint=f"--batch-size {samples * args.num_generations}, or more samples",
        )


def sinks(config: MonitoringConfig, name: str, mode: str) -> dict[str, Mapping[str, Any]]:
    """Return the additional sinks and their options. Raises UsageError."""
    metrics = (
        "avg_reward", "mean_reward", "positive_samples", "positive_ratio", "negative_samples",
        "negative_ratio", "pos_neg_ratio",
    )  # fmt: skip
    names = {
        f"{p}/{key}": f"{p}/{key}"
        for p in sample_weights.METRIC_PREFIXES.values()
        for key in metrics
    }
    return run_metadata.sinks(config, name, mode, names=names, prefix="train/")


def flat(config: Config) -> dict[str, object]:
    """Return the settings that a run records besides TRL's own arguments."""
    settings: dict[str, object] = {"mode": config.training.mode}
    for section in (config.model, config.data, config.signal, config.rewards):
        settings |= schema.to_dict(section)
    return settings
