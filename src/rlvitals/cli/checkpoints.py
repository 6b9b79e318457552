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

from rlvitals.cli.command import EXIT_OK, EXIT_PROBLEM, Command
from rlvitals.errors import UnreadableLog
from rlvitals.storage.missing_path import missing_path


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the run and the actions besides listing."""
    parser.add_argument("run", type=Path, metavar="RUN", help="the run's folder")
    parser.add_argument("--verify", action="store_true", help="read every byte of every checkpoint")
    parser.add_argument("--seal", action="store_true", help="seal complete unsealed checkpoints")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: Namespace) -> int:
    """List the checkpoints; exit with 0 if a resume is safe."""
    from rlvitals.checkpoints import inspect_run, naming
    from rlvitals.views import checkpoints as view
    from rlvitals.views import json_view
    from rlvitals.views.console import emit

    if not args.run.exists():
        raise missing_path(args.run)
    if not args.run.is_dir():
        problem = "a file, not a run's folder"
        raise UnreadableLog(problem, where=str(args.run), hint=f"rlvitals doctor {args.run}")
    folder = naming.run_of(args.run)  # the path may be that of one of its checkpoints
    if args.seal:
        from rlvitals.checkpoints.huggingface_folder import adopt
        from rlvitals.checkpoints.manifest import read_errors

        with read_errors(folder):
            adopt(folder)
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
    is_damaged = inspection.some(inspect_run.CheckpointState.DAMAGED) or inspection.some(
        inspect_run.CheckpointState.UNREADABLE
    )
    return EXIT_PROBLEM if inspection.taken is None or is_damaged else EXIT_OK


COMMAND = Command("checkpoints", __doc__, add_arguments, run)
