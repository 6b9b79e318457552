"""Pack the many small blocks of recorded runs into few big ones: the same numbers, read faster.

What is packed is read back and compared bit by bit before the old file is removed.
A run that is still written to is left. A crash at any moment loses nothing: run it again.

exit code: 0  everything that could be packed is
           1  a file was left because it is damaged, or its packed copy differs from it
           2  wrong usage
           3  nothing readable

examples:
  rlvitals compact runs/my_run
  rlvitals compact runs
"""

import sys
from argparse import Namespace

from rlvitals.cli import flags
from rlvitals.cli.command import Command

DONE, LEFT = 0, 1
BAD = ("damaged", "lost", "differs")  # what is left for another reason needs no attention


def run(args: Namespace) -> int:
    """Pack every run; say what was left, and why."""
    from rlvitals.storage.compact import compact
    from rlvitals.storage.find_run_folders import run_folders

    code = DONE
    for folder in run_folders(args.path):
        try:
            done = compact(folder)
        except OSError as error:
            print(f"{folder}: not packed: {error.strerror or error}", file=sys.stderr)
            code = LEFT
            continue
        packed = [one for one in done if not one.why]
        before, after = sum(one.before for one in packed), sum(one.after for one in packed)
        said = f"{len(packed)} files packed: {before:,} bytes are {after:,}"
        print(f"{folder}: {said if packed else 'nothing to pack'}")
        for one in done:
            if one.why:
                print(f"  {one.name} left: {one.why}")
        code = LEFT if any(word in one.why for one in done for word in BAD) else code
    return code


COMMAND = Command("compact", __doc__, flags.run_folders, run)
