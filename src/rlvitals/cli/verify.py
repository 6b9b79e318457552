"""Check every byte of recorded runs, and name what is damaged.

What is damaged is left out when the run is read, and the rest is read. The end of a file that a
killed process left torn is no damage: it is what was not flushed yet.

exit code: 0  every block is whole
           1  something is damaged
           2  wrong usage
           3  nothing readable

examples:
  rlvitals verify runs/my_run
  rlvitals verify runs
"""

from argparse import Namespace
from typing import TYPE_CHECKING

from rlvitals.cli import flags
from rlvitals.cli.command import Command

if TYPE_CHECKING:
    from rlvitals.storage.verify import Report

PASS, DAMAGED = 0, 1


def run(args: Namespace) -> int:
    """Check every run; tell of each file that is not whole."""
    from rlvitals.storage.find_run_folders import run_folders
    from rlvitals.storage.verify import verify

    code = PASS
    for folder in run_folders(args.path):
        reports = verify(folder)
        blocks, rows = sum(one.blocks for one in reports), sum(one.rows for one in reports)
        bad = [one for one in reports if not one.whole]
        size = sum(one.size for one in reports)
        said = f"{len(bad)} of {len(reports)} files damaged" if bad else "whole"
        print(f"{folder}: {said}: {blocks:,} blocks, {rows:,} rows, {size:,} bytes")
        for one in reports:
            _tell(one)
        code = DAMAGED if bad else code
    return code


def _tell(one: "Report") -> None:
    if one.problem:
        print(f"  {one.name}: cannot be read: {one.problem}")
    for damage in one.damage:
        print(f"  {one.name}: {damage}")
    if one.torn:
        why = "being written" if one.growing else "not flushed when its process ended"
        print(f"  {one.name}: the last {one.torn:,} bytes are no whole block: {why}")


COMMAND = Command("verify", __doc__, flags.run_folders, run)
