"""Train a policy, recorded, judged as it goes, and safe to resume: the same command goes on.

`rlvitals train ppo` takes every setting as a flag, or a JSON file of them by --config.

exit code: 0 trained to its end, or stopped as asked; 2 wrong settings; 130 interrupted.

examples:
  rlvitals train ppo --env CartPole-v1 --total-steps 100000 --output-dir runs/cartpole
  rlvitals train ppo --help
"""

from argparse import REMAINDER, ArgumentParser, Namespace, RawDescriptionHelpFormatter
from pathlib import Path

from rlvitals.cli.command import Command

ALGORITHMS = ("ppo",)


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the algorithm; its own flags are read by its own parser."""
    parser.add_argument("algorithm", choices=ALGORITHMS, help="what is trained with")
    parser.add_argument("options", nargs=REMAINDER, help="its flags: rlvitals train ppo --help")


def run(args: Namespace) -> int:
    """Train with what the flags say."""
    from rlvitals.trainers import schema
    from rlvitals.trainers.ppo.config import Config

    parser = ArgumentParser(
        f"rlvitals {COMMAND.name} {args.algorithm}",
        description="Proximal policy optimisation on any Gymnasium environment.",
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="a JSON file of settings")
    parser.add_argument("--verbose", action="store_true", help="show each rollout's lines too")
    schema.add_flags(parser, Config)
    chosen = vars(parser.parse_args(args.options))
    config = schema.load(Config, chosen["config"], schema.said(chosen, Config))
    from rlvitals.trainers.ppo.program import Training

    Training(config, verbose=chosen["verbose"]).run()
    return 0


COMMAND = Command("train", __doc__, add_arguments, run)
