"""Train a policy, recorded, judged as it goes, and safe to resume: the same command goes on.

`rlvitals train ppo` learns to schedule requests over a cluster, or any other environment of
Gymnasium. It takes every setting as a flag, or a JSON file of them by --config; the defaults are
configs/ppo_warmstart.json, for another environment than the cluster its preset over them (shown by
--env ID --help), and --write-config writes what a command line comes to.

exit code: 0 trained to its end, or stopped as asked; 1 it failed; 2 wrong settings; 130 Ctrl-C,
143 SIGTERM: both save first, a second one does not.

examples:
  rlvitals train ppo --quick-test --output-dir /tmp/quick
  rlvitals train ppo --env CartPole-v1 --output-dir runs/cartpole
  rlvitals train ppo --chunk-mode --chunk-size 50000 --total-requests 400000
  rlvitals train ppo --help
"""

import sys
from argparse import (
    REMAINDER,
    ArgumentError,
    ArgumentParser,
    Namespace,
    RawDescriptionHelpFormatter,
)
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rlvitals.cli.command import Command
from rlvitals.cli.program import Parser

if TYPE_CHECKING:
    from rlvitals.trainers.ppo.config import Config

ALGORITHMS = ("ppo",)
FAILED, TERMINATED = 1, 143
ALIASES = MappingProxyType({
    "training.total_steps": ("--total-requests", "--ppo-requests"),
    "cluster.replicas": ("--num-replicas",),
    "warm_start.external_pretrain": ("--pretrained-actor-path",),
    "warm_start.skip_warmstart": ("--skip-bc-training",),
})  # fmt: skip
# About ten seconds from end to end.
QUICK = MappingProxyType({
    "training.total_steps": 20_000, "training.num_envs": 16, "training.chunk_size": 5000,
    "warm_start.demo_steps": 100, "warm_start.bc_epochs": 20, "checkpointing.interval": 10_000,
    "ppo_config.minibatch_size": 256,
})  # fmt: skip


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the algorithm; its own flags are read by its own parser."""
    parser.add_argument("algorithm", choices=ALGORITHMS, help="what is trained with")
    parser.add_argument("options", nargs=REMAINDER, help="its flags: rlvitals train ppo --help")


def run(args: Namespace) -> int:
    """Train with what the flags say."""
    env = _env(args.options)
    chosen = vars(_parser(args.algorithm, env).parse_args(args.options))
    config = _config(chosen, env)
    if chosen["write_config"]:
        return _written(config, chosen["write_config"])
    from rlvitals.errors import UsageError, VitalsError
    from rlvitals.trainers.ppo.program import Training
    from rlvitals.trainers.stopping import Terminated

    source = chosen["config"] or ""
    training = Training(config, verbose=chosen["verbose"], source=str(source))
    try:
        training.run()
    except Terminated:
        return TERMINATED
    except UsageError:
        raise
    except VitalsError as error:
        print(f"error: {error}", file=sys.stderr)
        return FAILED
    return 0


def _env(options: list[str]) -> str:
    """Return the environment that flags or their file ask for: its preset makes the defaults."""
    from rlvitals.trainers import schema
    from rlvitals.trainers.ppo import building
    from rlvitals.trainers.ppo.config import Config

    parser = ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--env")
    parser.add_argument("--config", "--config-file", type=Path)
    try:
        said = parser.parse_known_args(options)[0]
    except ArgumentError:
        return Config().training.env  # the whole parser says what is wrong
    at = schema.content(building.found(said.config)).get("training") if said.config else None
    held = at.get("env") if isinstance(at, dict) else None
    return str(said.env or held or Config().training.env)


def _parser(algorithm: str, env: str) -> ArgumentParser:
    from rlvitals.trainers import schema
    from rlvitals.trainers.ppo import presets
    from rlvitals.trainers.ppo.config import Config

    parser = Parser(
        f"rlvitals {COMMAND.name} {algorithm}",
        description="Proximal policy optimisation on any Gymnasium environment.",
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--config", "--config-file", type=Path, metavar="FILE", help="a JSON file of settings"
    )
    parser.add_argument(
        "--write-config", type=Path, metavar="FILE", help="write the settings there, train nothing"
    )
    parser.add_argument("--quick-test", action="store_true", help="see in 10 s that all of it runs")
    parser.add_argument(
        "--verbose", action="store_true", help="show each update and each rollout's lines too"
    )
    schema.add_flags(
        parser, Config, aliases=ALIASES, below=presets.preset(env), source=presets.source(env)
    )
    return parser


def _config(chosen: Mapping[str, Any], env: str) -> "Config":
    from rlvitals.trainers import schema
    from rlvitals.trainers.ppo import building, presets
    from rlvitals.trainers.ppo.config import Config

    said = building.fitted(schema.said(chosen, Config))
    if chosen["quick_test"]:
        said = {**QUICK, **said}
    file = chosen["config"]
    place = file and building.found(file)
    return schema.load(Config, place, said, below=presets.preset(env))


def _written(config: "Config", file: Path) -> int:
    from rlvitals.trainers import schema

    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(schema.text(config), encoding="utf-8")
    print(file)
    return 0


COMMAND = Command("train", __doc__, add_arguments, run)
