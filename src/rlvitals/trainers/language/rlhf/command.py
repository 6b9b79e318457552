"""Flags of `rlvitals train rlhf`, and the settings they give."""

from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rlvitals.trainers import full_disk, schema
from rlvitals.trainers.language import command
from rlvitals.trainers.language.rlhf.config import Config
from rlvitals.trainers.train_command import TrainCommand

if TYPE_CHECKING:  # it loads torch
    from rlvitals.trainers.language.language_harness import TrainingResult

TRAIN_COMMAND = TrainCommand(
    about="RLHF by PPO: a causal language model against a reward model or reward functions.",
    quick_test_help=(
        "train a tiny model on sums for less than a minute, then say in the last line whether more"
        " unseen questions are answered right"
    ),
    quick_test_values={"rlhf.total_episodes": 6400},
    flag_aliases={
        "model.vlm_name": ("--model-name",),
        "checkpointing.keep": ("--save-total-limit",),
        "rlhf.lr": ("--learning-rate",),
        "rlhf.kl_coef": ("--init-kl-coef",),
    },
)
TINY_LM = "tiny-lm"
# Between the flags and the defaults, which are those of a large model: a small one that trains all
# of its weights wants a higher learning rate.
TINY_LM_PRESET = MappingProxyType({
    "model.vlm_name": TINY_LM, "model.lora": False, "data.dataset_name": "sums",
    "rlhf.total_episodes": 19_200, "rlhf.lr": 1.5e-4, "rlhf.response_length": 6,
    "rlhf.temperature": 1.0,
})  # fmt: skip


def preset(model: str) -> Mapping[str, Any]:
    """Return what a model's training starts from, by dotted names; nothing for most."""
    return TINY_LM_PRESET if model == TINY_LM else {}


def add_flags(parser: ArgumentParser, algorithm: str, options: Sequence[str]) -> None:
    """Give a parser the flags; their defaults are those of the model that `options` name."""
    del algorithm
    model = command.read_model_name(options, TINY_LM)
    parser.set_defaults(preset_of=model)
    defaults = (
        schema.quick_test_defaults(options, TRAIN_COMMAND.quick_test_values),
        ({"model.vlm_name": TINY_LM}, ""),
        (preset(model), f"preset of {model}"),
    )
    schema.add_flags(parser, Config, aliases=TRAIN_COMMAND.flag_aliases, defaults=defaults)
    command.add_plan_flags(parser)


def plan(config: Config, args: Mapping[str, Any]) -> Any:
    """Return the estimate of a training. Raises VitalsError."""
    return command.plan(config, args)


def configure(algorithm: str, args: Mapping[str, Any]) -> Config:
    """Return what the flags come to. Raises UsageError."""
    del algorithm
    overrides = schema.flag_values(args, Config)
    if args["quick_test"]:
        overrides = {**TRAIN_COMMAND.quick_test_values, **overrides}
    file: Path | None = args["config"]
    return schema.load(Config, file, overrides, below=preset(args["preset_of"]))


def train(config: Config, args: Mapping[str, Any]) -> "TrainingResult | None":
    """Train; returns how it ended, None on other processes than the first."""
    from rlvitals.trainers.language.rlhf import factory
    from rlvitals.trainers.language.rlhf.program import Training

    with full_disk.translate_errors(factory.folder(config)):
        training = Training(config)
        training.set_resume_flags(args)
        return training.result(training.run(), config.monitoring.plots_dir)
