"""List a run's checkpoints with their state, and the one that a resume would use.

A resume uses only sealed checkpoints, whose manifest lists every file with its size and hash. A
checkpoint without a manifest is `unsealed`: missing files are listed, and `--seal` seals the
complete ones. Sealing cannot detect earlier damage.

exit code: 0  a checkpoint can be resumed, and none is damaged
           1  a checkpoint is damaged or unreadable, or none can be resumed
           2  wrong usage
           3  the folder does not exist

examples:
  rlvitals checkpoints runs/my_run
  rlvitals checkpoints runs/my_run --verify
  rlvitals checkpoints runs/my_run --seal
  rlvitals checkpoints runs/my_run --json
"""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from rlvitals.cli.command import EXIT_OK, EXIT_PROBLEM, Command
from rlvitals.errors import UnreadableLog
from rlvitals.storage.missing_path import missing_path

if TYPE_CHECKING:
    from rlvitals.checkpoints.inspect_run import Inspection


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the run and the actions besides listing."""
    parser.add_argument("run", type=Path, metavar="RUN", help="the run's folder")
    parser.add_argument("--verify", action="store_true", help="read every byte of every checkpoint")
    parser.add_argument("--seal", action="store_true", help="seal complete unsealed checkpoints")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: Namespace) -> int:
    """List the checkpoints; exit with 0 if a resume is safe."""
    from rlvitals.checkpoints import inspect_run
    from rlvitals.views import checkpoints as view
    from rlvitals.views import json_view
    from rlvitals.views.console import emit

    folder = _folder(args.run)
    if args.seal:
        _seal(folder)
    try:
        inspection = inspect_run.inspect(folder, verify=args.verify)
    except OSError as error:
        hint = f"rlvitals doctor {folder}"
        raise UnreadableLog(f"cannot look: {error}", where=str(folder), hint=hint) from None
    differs = (
        ()
        if inspection.taken is None
        else inspect_run.differences(inspection.taken, inspection.about)
    )
    if args.json:
        print(json_view.document({"run": folder.resolve().name, **view.facts(inspection, differs)}))
    else:
        emit(view.table(inspection, differs))
    return _code(inspection)


def _folder(path: Path) -> Path:
    """Return the run's folder for a path to it or to one of its checkpoints.

    Raises UnreadableLog where there is no folder.
    """
    from rlvitals.checkpoints import naming

    if not path.exists():
        raise missing_path(path)
    if not path.is_dir():
        problem = "a file, not a run's folder"
        raise UnreadableLog(problem, where=str(path), hint=f"rlvitals doctor {path}")
    return naming.run_of(path)


def _seal(folder: Path) -> None:
    from rlvitals.checkpoints.huggingface_folder import adopt
    from rlvitals.checkpoints.manifest import read_errors

    with read_errors(folder):
        adopt(folder)


def _code(inspection: "Inspection") -> int:
    from rlvitals.checkpoints.inspect_run import CheckpointState

    is_damaged = inspection.some(CheckpointState.DAMAGED) or inspection.some(
        CheckpointState.UNREADABLE
    )
    return EXIT_PROBLEM if inspection.taken is None or is_damaged else EXIT_OK


COMMAND = Command("checkpoints", __doc__, add_arguments, run)
