"""Run a training, unchanged, and record what it logs to other trackers.

The calls that the command's Python processes make to wandb, trackio, swanlab, mlflow and to the
SummaryWriter of torch and tensorboardX are recorded into a run folder, and so are the rows of
Stable-Baselines3's logger with the algorithm's hyperparameters. With --beside, the default, the
libraries work as usual; with --instead, wandb, trackio, swanlab and the writers are replaced by
substitutes that need no account, no network and no installation. Of a training that calls none of
them, what it prints is recorded.

The folder is printed on stderr at the start, and the verdict at the end. A second run of the same
program is recorded into FOLDER-2, and so on; ranks of one launch share a folder. With --mirror the
folder is uploaded to a bucket while it is recorded, FOLDER-2 to URL-2.

exit code: that of the command
           2  wrong usage, or the command cannot be started

Processes started with Python's -I, -E or -S are not recorded.

examples:
  rlvitals run -- python ppo.py --seed 1
  rlvitals run -o runs/seed-1 -- torchrun --nproc-per-node 2 train.py
  rlvitals run --instead -- python -m verl.trainer.main_ppo trainer.logger=wandb
  rlvitals run --mirror s3://bucket/runs/seed-1 -- python ppo.py --seed 1
"""

import os
import secrets
import shlex
import signal
import sys
import time
from argparse import REMAINDER, ArgumentParser, Namespace
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from rlvitals.cli import flags
from rlvitals.cli.command import Command, diagnose_command
from rlvitals.errors import UsageError, VitalsError, harmless


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the mode, the folder and the command."""
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument(
        "--beside",
        dest="mode",
        action="store_const",
        const="beside",
        default="beside",
        help="keep the real libraries working, too (default)",
    )
    mode.add_argument(
        "--instead",
        dest="mode",
        action="store_const",
        const="instead",
        help="replace the libraries, which need not be installed",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=flags.local_folder,
        metavar="FOLDER",
        help="the run folder (default: runs/ and the script's name with the time)",
    )
    flags.add_option(parser, "recording", "mirror")
    parser.add_argument(
        "command_words",
        nargs=REMAINDER,
        metavar="-- COMMAND ...",
        help="the command to run, with its arguments",
    )


def run(args: Namespace) -> int:
    """Run the command, print its run folders and verdicts, return its exit code."""
    from rlvitals.capture import command, printed, run_folders

    arguments = args.command_words[1:] if args.command_words[:1] == ["--"] else args.command_words
    if not arguments:
        raise UsageError("which command?", hint="rlvitals run -- python train.py")
    command.check(arguments)
    variables = os.environ | flags.upload_variables(args.mirror)
    folder = args.output or Path("runs", _default_name(arguments))
    parent_is_new = not folder.parent.exists()
    path = harmless(shlex.quote(os.path.relpath(folder)))
    sys.stderr.write(f"rlvitals: recording into {path}; to watch: rlvitals follow {path}\n")
    sys.stderr.flush()
    # A process that the command leaves behind may still claim a folder as this one is removed.
    with TemporaryDirectory(prefix="rlvitals-run-", ignore_cleanup_errors=True) as claims:
        environ = command.environment(args.mode, folder, Path(claims), variables)
        code = command.run(arguments, environ)
        folders = run_folders.read_claims(Path(claims))
    if folders:  # a process that began later may have printed
        printed.remove(folder)
    elif _has_numbers(printed.file_in(folder)):
        folders = [folder]
        # A person's own stop is no failure.
        if code not in {-signal.SIGINT, -signal.SIGTERM, 130, 143}:
            with suppress(OSError), printed.file_in(folder).open("a", encoding="utf-8") as lines:
                lines.write(f"rlvitals: the command ended with exit code {code}\n")
        end = ", and is not uploaded" if args.mirror else ""
        sys.stderr.write(f"rlvitals: no tracker was called: {path} holds what was printed{end}\n")
    else:
        if parent_is_new:
            with suppress(OSError):  # something else is in it
                folder.parent.rmdir()
        sys.stderr.write(_no_record_text(code))
    for recorded in folders:
        sys.stderr.write(f"rlvitals: {_verdict(recorded)}\n")
    return command.end_like(code)


def _no_record_text(code: int) -> str:
    """Return why nothing was recorded, and what to try."""
    if code:
        return (
            f"rlvitals: nothing was recorded: the command ended with exit code {code} before it "
            "called a tracker\n  try: its own message, above; rlvitals diagnose FOLDER, if it "
            "wrote logs; --instead, where a tracker wants an account\n"
        )
    return (
        "rlvitals: nothing was recorded: no run of wandb, trackio, swanlab or mlflow began, "
        "no SummaryWriter wrote and Stable-Baselines3 trained nothing, in a Python process of "
        "the command, and no line that it printed is known\n  try: rlvitals diagnose FOLDER "
        "reads the CSV, JSON and log files that the command wrote; to record a run, "
        'report_to="tensorboard" in transformers and TRL; --instead, where a tracker wants an '
        "account\n"
    )


def _default_name(arguments: Sequence[str]) -> str:
    """Return the name of the script or module with the time."""
    module = next((name for flag, name in pairwise(arguments) if flag == "-m"), "")
    script = next((argument for argument in arguments if argument.endswith(".py")), arguments[0])
    name = module.rpartition(".")[2] or Path(script).stem
    return f"{name}-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"


def _has_numbers(printed_file: Path) -> bool:
    """Return whether numbers of a training were printed; remove the file where none were."""
    if not printed_file.exists():
        return False
    from rlvitals.readers.discovery import sources

    try:
        if any(log.series for run in sources.find(printed_file) for log in sources.read(run)):
            return True
    except VitalsError:
        pass
    printed_file.unlink()
    with suppress(OSError):  # another file is in it
        printed_file.parent.rmdir()
    return False


def _verdict(folder: Path) -> str:
    """Return a line with the folder and what `diagnose` says of it."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as in `diagnose`: no work for threads
    from rlvitals import api
    from rlvitals.views import brief

    path = os.path.relpath(folder)
    try:
        text = brief.text(brief.document(path, api.diagnose(folder))).partition("\n")[0]
        text = f"{text}; more: {diagnose_command(path)}"
    except VitalsError as error:
        text = f"{path}: {error.problem}"
    return harmless(text)


COMMAND = Command("run", __doc__, add_arguments, run)
