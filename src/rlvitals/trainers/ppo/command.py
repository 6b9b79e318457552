"""Flags of `rlvitals train ppo`, and the settings they give."""

from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from rlvitals import VitalsError
from rlvitals.trainers import full_disk, schema
from rlvitals.trainers.console_io import say
from rlvitals.trainers.ppo import factory, presets
from rlvitals.trainers.ppo.config import Config
from rlvitals.trainers.train_command import TrainCommand

TRAIN_COMMAND = TrainCommand(
    about="Proximal policy optimisation on any Gymnasium environment.",
    quick_test_help=(
        "see within about a minute that all of it runs, and whether the held-out return rises"
    ),
    # About 20 s of a CPU from end to end: a minute where others use it too.
    quick_test_values={
        "training.total_steps": 120_000,
        "training.chunk_size": 30_000,
        "warm_start.demo_steps": 300,
        "evaluation.interval": 20_000,
        "evaluation.held_out_episodes": 16,
    },
    flag_aliases={
        "training.total_steps": ("--total-requests", "--ppo-requests"),
        "cluster.replicas": ("--num-replicas",),
        "warm_start.external_pretrain": ("--pretrained-actor-path",),
        "warm_start.skip_warmstart": ("--skip-bc-training",),
    },
)


def add_flags(parser: ArgumentParser, algorithm: str, options: Sequence[str]) -> None:
    """Give a parser the flags; their defaults are those of the environment that `options` name."""
    del algorithm
    parser.add_argument(
        "--verbose", action="store_true", help="show each update and each rollout's lines too"
    )
    # The preset of the environment that flags or their file ask for makes the defaults.
    default = Config().training.env
    env = schema.read_choice(
        options, ("--env",), "training.env", default, find=factory.settings_file
    )
    parser.set_defaults(env_of_preset=env)
    defaults = (
        schema.quick_test_defaults(options, TRAIN_COMMAND.quick_test_values),
        (presets.preset(env), presets.source(env)),
    )
    schema.add_flags(parser, Config, aliases=TRAIN_COMMAND.flag_aliases, defaults=defaults)


def configure(algorithm: str, args: Mapping[str, Any]) -> Config:
    """Return what the flags come to. Raises UsageError."""
    del algorithm
    overrides = factory.fit_speeds(schema.flag_values(args, Config))
    if args["quick_test"]:
        overrides = {**TRAIN_COMMAND.quick_test_values, **overrides}
    file = args["config"]
    path = file and factory.settings_file(file)
    return schema.load(
        Config, path, overrides, below=presets.preset(args["env_of_preset"]),
        # Sections that configurations of the scheduler which this trainer follows have, and what
        # does their part here.
        unread={
            "monitoring.visualization": (
                "rlvitals plot RUN draws policy, reward and action pictures"
            ),
        },
        tell=lambda note: say(f"[PPO:init] {note}\n"),
    )  # fmt: skip


def expectation(config: Config) -> str:
    """Return a line that says how much a quick test can show."""
    usual = presets.preset(config.training.env).get(
        "training.total_steps", Config().training.total_steps
    )
    return (
        f"[PPO:init] quick test: {config.training.total_steps:,} of the usual {usual:,} steps show "
        "that every part runs; the last line says whether the held-out return rose"
    )


def conclusion(returns: Sequence[float]) -> str:
    """Return a line with the result of a quick test, from the held-out returns in order.

    Raises VitalsError for one that is not finite.
    """
    if not all(map(isfinite, returns)):
        raise VitalsError(
            "quick test: a held-out return is not finite", hint="rlvitals diagnose names the cause"
        )
    if len(returns) < 2:  # before and after
        return "[PPO:end] quick test: all parts ran; nothing was evaluated before and after"
    change = f"from {returns[0]:.1f} to {returns[-1]:.1f}"
    if returns[-1] > returns[0]:
        return f"[PPO:end] quick test: all parts ran, and the held-out return rose {change}"
    return (
        "[PPO:end] quick test: all parts ran; one minute is too short to learn: the held-out "
        f"return went {change}"
    )


def train(config: Config, args: Mapping[str, Any]) -> None:
    """Train."""
    from rlvitals.trainers.ppo.program import Training  # noqa: PLC0415 - loads torch

    source = args["config"] or ""
    if args["quick_test"]:
        say(f"{expectation(config)}\n")
    with full_disk.translate_errors(Path(config.training.output_dir)):
        training = Training(config, verbose=args["verbose"], source=str(source))
        training.set_resume_flags(args)
        training.run()
    if args["quick_test"]:
        say(f"{conclusion(training.held_out.returns)}\n")
