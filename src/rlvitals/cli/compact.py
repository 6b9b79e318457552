"""Merge the small blocks of recorded runs into large ones: the same numbers, read faster.

The merged blocks are read back and compared bit by bit before the old file is removed. Runs that
are still written to are skipped. A crash loses no data: run the command again.

exit code: 0  done
           1  a file was skipped because it is damaged, or its merged copy differs from it
           2  wrong usage
           3  nothing readable

examples:
  rlvitals compact runs/my_run
  rlvitals compact runs
"""

import sys
from argparse import Namespace

from rlvitals.cli import flags
from rlvitals.cli.command import EXIT_OK, EXIT_PROBLEM, Command


def run(args: Namespace) -> int:
    """Pack every run; print the files that were skipped and the reasons."""
    from rlvitals.storage.compact import compact
    from rlvitals.storage.find_run_folders import run_folders

    code = EXIT_OK
    for folder in run_folders(args.path):
        try:
            results = compact(folder)
        except OSError as error:
            print(f"{folder}: not packed: {error.strerror or error}", file=sys.stderr)
            code = EXIT_PROBLEM
            continue
        packed = [result for result in results if not result.why]
        old_bytes, new_bytes = (
            sum(result.before for result in packed),
            sum(result.after for result in packed),
        )
        summary = f"{len(packed)} files packed: {old_bytes:,} bytes are {new_bytes:,}"
        print(f"{folder}: {summary if packed else 'nothing to pack'}")
        for result in results:
            if result.why:
                print(f"  {result.name} left: {result.why}")
        # Other reasons to skip a file need no attention.
        code = (
            EXIT_PROBLEM
            if any(
                problem in result.why
                for result in results
                for problem in ("damaged", "lost", "differs")
            )
            else code
        )
    return code


COMMAND = Command("compact", __doc__, flags.add_run_path, run)
