"""Flags of `rlvitals train grpo`, `psr`, `nsr` and `w-reinforce`, and the settings they give."""

from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlvitals import UsageError
from rlvitals.trainers import full_disk, schema
from rlvitals.trainers.language import presets
from rlvitals.trainers.language.config import Config
from rlvitals.trainers.train_command import TrainCommand

if TYPE_CHECKING:  # it loads torch
    from rlvitals.trainers.language.language_harness import TrainingResult

TRAIN_COMMAND = TrainCommand(
    about="Post-training of a language model, or of one that sees, with rewards.",
    quick_test_help=(
        "train a tiny model on 100 questions for less than a minute, draw its pictures, then say in"
        " the last line whether more unseen questions are answered right"
    ),
    quick_test_values={
        "data.subset_size": 100,
        "training.num_epochs": 1.0,
        "signal.num_generations": 4,
        "monitoring.plots_dir": "training_plots",
    },
    flag_aliases={
        "training.mode": ("--mode",),
        "training.beta": ("--beta",),
        "model.vlm_name": ("--model-name",),
        "checkpointing.keep": ("--save-total-limit",),
    },
)


def add_flags(parser: ArgumentParser, algorithm: str, options: Sequence[str]) -> None:
    """Give a parser the flags; their defaults are those of the model that `options` name."""
    model = read_model_name(options, Config().model.vlm_name)
    parser.set_defaults(preset_of=model)
    defaults = (
        ({"training.mode": algorithm}, ""),
        schema.quick_test_defaults(options, TRAIN_COMMAND.quick_test_values),
        (presets.preset(model), presets.source(model)),
    )
    schema.add_flags(parser, Config, aliases=TRAIN_COMMAND.flag_aliases, defaults=defaults)
    add_plan_flags(parser)


def add_plan_flags(parser: ArgumentParser) -> None:
    """Give a parser the flags of an estimate."""
    group = parser.add_argument_group("plan")
    group.add_argument(
        "--plan", action="store_true",
        help="print the memory and time of an update and train nothing; of a model that is not "
        "here, config.json alone is downloaded",
    )  # fmt: skip
    group.add_argument("--json", action="store_true", help="print the plan as one object")
    group.add_argument(
        "--device-flops", type=float, default=0.0, metavar="FLOPS",
        help="peak of the device in FLOP/s, as 312e12 (default: measured on this machine)",
    )  # fmt: skip
    group.add_argument(
        "--device-bandwidth", type=float, default=0.0, metavar="BYTES",
        help="peak of its memory in bytes/s, as 2e12 (default: a byte for 200 FLOP)",
    )  # fmt: skip
    group.add_argument(
        "--prompt-tokens", type=int, default=0, metavar="N",
        help="tokens of a prompt (default: of the data, where they and the tokenizer are here)",
    )  # fmt: skip


def plan(config: Any, args: Mapping[str, Any]) -> Any:
    """Return the estimate of a training. Raises VitalsError."""
    from rlvitals.trainers.language.planning import estimate

    stated = (args["device_flops"], args["device_bandwidth"], args["prompt_tokens"])
    if min(stated) < 0:
        raise UsageError("a rate or a length cannot be below 0", where="--plan")
    return estimate.plan(config, estimate.Overrides(*stated))


def read_model_name(options: Sequence[str], default: str) -> str:
    """Return the model that flags or their file ask for: its preset makes the defaults."""
    return schema.read_choice(options, ("--vlm-name", "--model-name"), "model.vlm_name", default)


def configure(algorithm: str, args: Mapping[str, Any]) -> Config:
    """Return what the flags come to. Raises UsageError."""
    overrides = schema.flag_values(args, Config)
    mode = overrides.setdefault("training.mode", algorithm)
    if mode != algorithm:
        raise UsageError(f"train {algorithm}, or --mode {mode}?", where="--mode")
    if args["quick_test"]:
        overrides = {**TRAIN_COMMAND.quick_test_values, **overrides}
    file: Path | None = args["config"]
    return schema.load(Config, file, overrides, below=presets.preset(args["preset_of"]))


def train(config: Config, args: Mapping[str, Any]) -> "TrainingResult | None":
    """Train; returns how it ended, None on other processes than the first."""
    from rlvitals.trainers.language import factory
    from rlvitals.trainers.language.program import Training

    with full_disk.translate_errors(factory.folder(config)):
        training = Training(config)
        training.set_resume_flags(args)
        return training.result(training.run(), config.monitoring.plots_dir)
