"""Train with rewards, recorded, judged as it goes, and safe to resume: the same command goes on.

`rlvitals train ppo` learns to schedule requests over a cluster, or any other environment of
Gymnasium. grpo, psr, nsr and w-reinforce train a language model, or one that sees, on what its own
answers are paid; rlhf does so by PPO, and holds it to what it was. Each takes every setting as a
flag, or a JSON file of them by --config, and --write-config writes what a command line comes to.
--plan prints what memory and time an update of a language model takes, and trains nothing.
The defaults of ppo are configs/ppo_warmstart.json, for another environment than the cluster its
preset over them (shown by --env ID --help).

exit code: 0 trained to its end, or stopped as asked; 1 it failed; 2 wrong settings; 130 Ctrl-C,
143 SIGTERM, 129 the terminal is gone: each saves first, a second one does not.

examples:
  rlvitals train ppo --quick-test --output-dir /tmp/quick
  rlvitals train ppo --env CartPole-v1 --output-dir runs/cartpole
  rlvitals train ppo --chunk-mode --chunk-size 50000 --total-requests 400000
  rlvitals train nsr --quick-test
  rlvitals train grpo --vlm-name tiny-lm --dataset-name sums
  rlvitals train rlhf --quick-test
  rlvitals train grpo --vlm-name qwen2-5-3b --bf16 --device-flops 312e12 --plan
  rlvitals train ppo --help
"""

from argparse import REMAINDER, ArgumentParser, Namespace, RawDescriptionHelpFormatter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlvitals.cli.command import Command
from rlvitals.cli.program import Parser, tell

if TYPE_CHECKING:  # it loads torch
    from rlvitals.trainers.language.language_harness import TrainingResult

LANGUAGE = ("grpo", "psr", "nsr", "w-reinforce")
ALGORITHMS = ("ppo", *LANGUAGE, "rlhf")
FAILED = 1
BY_SIGNAL = 128  # and the signal's number, as shells count


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the algorithm; its own flags are read by its own parser."""
    parser.add_argument("algorithm", choices=ALGORITHMS, help="what is trained with")
    parser.add_argument("options", nargs=REMAINDER, help="its flags: rlvitals train ppo --help")


def run(args: Namespace) -> int:
    """Train with what the flags say."""
    trainer, chosen = read(args.algorithm, args.options)
    config = trainer.configure(args.algorithm, chosen)
    if chosen["write_config"]:
        return _written(config, chosen["write_config"])
    if chosen.get("plan"):
        from rlvitals.cli import training_plan

        training_plan.show(trainer.plan(config, chosen), as_json=chosen["json"])
        return 0
    from rlvitals.errors import UsageError, VitalsError
    from rlvitals.trainers.signal_handlers import Terminated

    try:
        result = trainer.train(config, chosen)
    except Terminated as asked:
        return BY_SIGNAL + asked.number
    except UsageError:
        raise
    except VitalsError as error:
        tell(error)
        return FAILED
    if result is None:
        return 0
    code = _drawn(result.folder, result.plots_dir) if result.plots_dir else 0
    return _quick_test(result) or code if chosen["quick_test"] else code


def read(algorithm: str, options: list[str]) -> tuple[Any, dict[str, Any]]:
    """Return what trains, and what its flags were given."""
    trainer = _trainer(algorithm)
    return trainer, vars(_parser(trainer, algorithm, options).parse_args(options))


def _trainer(algorithm: str) -> Any:  # noqa: ANN401 - a module
    """Return what trains: a module with its flags, its settings and its program."""
    if algorithm in LANGUAGE:
        from rlvitals.trainers.language import command as language

        return language
    if algorithm == "rlhf":
        from rlvitals.trainers.language.rlhf import command as rlhf

        return rlhf
    from rlvitals.trainers.ppo import command as ppo

    return ppo


def _parser(trainer: Any, algorithm: str, options: list[str]) -> ArgumentParser:  # noqa: ANN401
    from rlvitals.trainers import schema

    parser = Parser(
        f"rlvitals {COMMAND.name} {algorithm}",
        description=trainer.ABOUT,
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--config", "--config-file", type=Path, metavar="FILE", help="a JSON file of settings"
    )
    parser.add_argument(
        "--write-config", type=Path, metavar="FILE", help="write the settings there, train nothing"
    )
    parser.add_argument(schema.QUICK_TEST_FLAG, action="store_true", help=trainer.QUICK_TEST_HELP)
    parser.add_argument(
        "--fresh",
        action="store_true",
        help="start at step 0: the checkpoints in the folder are set aside, none is deleted",
    )
    parser.add_argument(
        "--require-resume",
        action="store_true",
        help="end with an error where there is no checkpoint to resume from",
    )
    trainer.add_flags(parser, algorithm, options)
    return parser


def _written(config: Any, file: Path) -> int:  # noqa: ANN401 - any trainer's settings
    from rlvitals.trainers import schema

    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(schema.text(config), encoding="utf-8")
    print(file)
    return 0


def _drawn(run: Path, folder: str) -> int:
    """Draw a run's pictures, as `rlvitals plot` does."""
    from rlvitals.cli import plot

    parser = ArgumentParser()
    plot.COMMAND.add_arguments(parser)
    return plot.COMMAND.run(parser.parse_args([str(run), "--output-dir", folder]))


def _quick_test(result: "TrainingResult") -> int:
    """Print what a quick test showed as its last line; FAILED unless all of its parts ran."""
    from rlvitals.errors import harmless
    from rlvitals.trainers.language import quick_test

    line, all_ran = quick_test.last_line(result)
    print(f"\n{harmless(line)}")
    return 0 if all_ran else FAILED


COMMAND = Command("train", __doc__, add_arguments, run)
