"""Train with rewards: recorded, diagnosed, and resumed by the same command.

`rlvitals train ppo` trains a request scheduler for a cluster, or a policy for another Gymnasium
environment. grpo, psr, nsr and w-reinforce train a language or vision-language model with reward
functions; rlhf does so by PPO with a KL penalty to the initial model. Every setting is a flag and
a key of a JSON file, which --config reads and --write-config writes. --plan prints the memory and
time of an update of a language model, and trains nothing. The defaults of ppo are
configs/ppo_warmstart.json; other environments have presets (shown by --env ID --help).

exit code: 0 completed, or stopped on request; 1 failed; 2 wrong settings; 130 Ctrl-C, 143 SIGTERM,
129 closed terminal: each saves a checkpoint first, a second signal ends at once.

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

import os
from argparse import REMAINDER, ArgumentParser, Namespace, RawDescriptionHelpFormatter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlvitals.cli import flags
from rlvitals.cli.command import EXIT_PROBLEM, Command
from rlvitals.cli.program import Parser, print_error

if TYPE_CHECKING:  # it loads torch
    from rlvitals.trainers.language.language_harness import TrainingResult

LANGUAGE_ALGORITHMS = ("grpo", "psr", "nsr", "w-reinforce")


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the algorithm; its own flags are read by its own parser."""
    parser.add_argument(
        "algorithm", choices=("ppo", *LANGUAGE_ALGORITHMS, "rlhf"), help="the algorithm"
    )
    parser.add_argument(
        "options", nargs=REMAINDER, help="flags of the algorithm: rlvitals train ppo --help"
    )


def run(args: Namespace) -> int:
    """Train with the settings from the flags."""
    trainer, options = read(args.algorithm, args.options)
    upload = flags.upload_variables(options["mirror"])
    flags.local_folder(next(options[key] for key in options if key.endswith(".output_dir")) or "")
    config = trainer.configure(args.algorithm, options)
    if options["write_config"]:
        from rlvitals.trainers import schema

        file = options["write_config"]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(schema.text(config), encoding="utf-8")
        print(file)
        return 0
    if options.get("plan"):
        from rlvitals.cli import training_plan

        training_plan.show(trainer.plan(config, options), as_json=options["json"])
        return 0
    from rlvitals.errors import UsageError, VitalsError
    from rlvitals.trainers.signal_handlers import Terminated

    os.environ.update(upload)  # of its processes, too
    try:
        result = trainer.train(config, options)
    except Terminated as signal:
        return 128 + signal.number  # as in shells
    except UsageError:
        raise
    except VitalsError as error:
        print_error(error)
        return EXIT_PROBLEM
    if result is None:
        return 0
    code = _draw_plots(result.folder, result.plots_dir) if result.plots_dir else 0
    return _quick_test(result) or code if options["quick_test"] else code


def read(algorithm: str, options: list[str]) -> tuple[Any, dict[str, Any]]:
    """Return the trainer's command module and the values of its flags."""
    trainer = _trainer(algorithm)
    return trainer, vars(_parser(trainer, algorithm, options).parse_args(options))


def _trainer(algorithm: str) -> Any:  # noqa: ANN401 - a module
    """Return the trainer's command module: its flags, settings and training program."""
    if algorithm in LANGUAGE_ALGORITHMS:
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
        description=trainer.TRAIN_COMMAND.about,
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--config", "--config-file", type=Path, metavar="FILE", help="a JSON file of settings"
    )
    parser.add_argument(
        "--write-config", type=Path, metavar="FILE", help="write the settings there, train nothing"
    )
    parser.add_argument(
        schema.QUICK_TEST_FLAG, action="store_true", help=trainer.TRAIN_COMMAND.quick_test_help
    )
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
    flags.add_option(parser, "recording", "mirror")
    trainer.add_flags(parser, algorithm, options)
    return parser


def _draw_plots(run: Path, folder: str) -> int:
    """Draw a run's pictures, as `rlvitals plot` does."""
    from rlvitals.cli import plot

    parser = ArgumentParser()
    plot.COMMAND.add_arguments(parser)
    return plot.COMMAND.run(parser.parse_args([str(run), "--output-dir", folder]))


def _quick_test(result: "TrainingResult") -> int:
    """Print the result of a quick test; return EXIT_PROBLEM unless all of its parts ran."""
    from rlvitals.errors import harmless
    from rlvitals.trainers.language import quick_test

    line, all_ran = quick_test.last_line(result)
    print(f"\n{harmless(line)}")
    return 0 if all_ran else EXIT_PROBLEM


COMMAND = Command("train", __doc__, add_arguments, run)
