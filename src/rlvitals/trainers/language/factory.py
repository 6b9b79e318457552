"""From settings to what is trained: the folder, TRL's arguments, the sinks, the trainer."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from trl import GRPOConfig

from rlvitals import UsageError
from rlvitals.trainers import schema
from rlvitals.trainers.language import run_metadata, sample_weights
from rlvitals.trainers.language.config import Config, MonitoringConfig

FIELD = "{-mode}"
GRPO = "grpo"
OF_MODES = ("avg_reward", "mean_reward", "positive_samples", "positive_ratio",
            "negative_samples", "negative_ratio", "pos_neg_ratio")  # fmt: skip
SAVED_AS = "training_config.json"


def named(template: str, config: Config) -> str:
    """Fill in a folder's or a run's name. Raises UsageError for a field that there is not."""
    mode = config.training.mode
    fields = run_metadata.fields(config.model, config.data, config.training.seed)
    fields |= {"mode": mode, "-mode": "" if mode == GRPO else f"-{mode}"}
    return run_metadata.filled(template, fields)


def folder(config: Config) -> Path:
    """Return the run's folder: for GRPO one that has "-grpo" in its name, where that is there."""
    template = config.training.output_dir
    plain = Path(named(template, config))
    if config.training.mode == GRPO and FIELD in template and not plain.exists():
        grpo_folder = Path(named(template.replace(FIELD, f"-{GRPO}"), config))
        if grpo_folder.exists():
            return grpo_folder
    return plain


# TRL's names for keys of the section `training` that are called otherwise here.
RENAMED = {
    "num_train_epochs": "num_epochs",
    "per_device_train_batch_size": "batch_size",
    "epsilon": "cliprange",
    "activation_checkpointing": "gradient_checkpointing",
}
SAME = (
    "seed", "gradient_accumulation_steps", "learning_rate", "lr_scheduler_type", "warmup_steps",
    "max_grad_norm", "beta", "num_iterations", "loss_type", "scale_rewards", "temperature",
    "max_completion_length", "mask_truncated_completions",
)  # fmt: skip


# Below these nothing is trained; advantages need two answers to compare.
AT_LEAST = {
    "training.batch_size": 1, "training.gradient_accumulation_steps": 1,
    "training.num_iterations": 1, "training.max_completion_length": 1, "model.lora_r": 1,
    "signal.num_generations": 2, "monitoring.logging_steps": 1,
}  # fmt: skip


def arguments(config: Config, output: Path) -> GRPOConfig:
    """Return TRL's arguments. Raises UsageError for those that do not go together."""
    _check(config)
    training, saving = config.training, config.checkpointing
    options: dict[str, Any] = {name: getattr(training, name) for name in SAME}
    options |= {name: getattr(training, key) for name, key in RENAMED.items()}
    options |= {
        "output_dir": str(output),
        "run_name": named(config.monitoring.run_name, config),
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
        raise UsageError(str(error), where="the settings", hint=_together(config)) from None


def _precision(bf16: bool) -> dict[str, bool]:  # noqa: FBT001 - by its name
    """Return the precision that is asked for, or the one that accelerate was launched with.

    Under DeepSpeed the two have to be one.
    """
    launched = os.environ.get("ACCELERATE_MIXED_PRECISION")
    return {"bf16": bf16 or launched == "bf16", "fp16": not bf16 and launched == "fp16"}


def _check(config: Config) -> None:
    """Raise UsageError for numbers that train nothing."""
    for name, minimum in AT_LEAST.items():
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


def fits(changed: list[str], checkpoint: str) -> None:
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


def enough(args: GRPOConfig, samples: int) -> None:
    """Raise UsageError where all samples do not make one generation: nothing would be trained."""
    prompts_needed = args.generation_batch_size // args.num_generations
    if samples < prompts_needed:
        raise UsageError(
            f"{samples} samples do not make a generation, which asks {prompts_needed} questions "
            f"{args.num_generations} times each",
            where="the data",
            hint=f"--batch-size {samples * args.num_generations}, or more samples",
        )


def _together(config: Config) -> str:
    size = config.training.batch_size
    forwards = config.training.steps_per_generation or config.training.gradient_accumulation_steps
    return (
        f"--batch-size {size} times {forwards} forward passes a generation has to be a multiple "
        f"of --num-generations {config.signal.num_generations}"
    )


def sinks(config: MonitoringConfig, name: str, mode: str) -> dict[str, Mapping[str, Any]]:
    """Return what is written beside the run's own files, with its options. Raises UsageError."""
    names = {f"{p}/{key}": f"{p}/{key}" for p in sample_weights.PREFIX.values() for key in OF_MODES}
    return run_metadata.sinks(config, name, mode, names=names, prefix="train/")


def flat(config: Config) -> dict[str, object]:
    """Return the settings a run is recorded with beside TRL's own arguments."""
    settings: dict[str, object] = {"mode": config.training.mode}
    for section in (config.model, config.data, config.signal, config.rewards):
        settings |= schema.written(section)
    return settings
