"""Verify every byte of recorded runs, and name what is damaged.

Readers skip damaged blocks and read the rest. The incomplete end of a file after a kill is not
damage: it was not flushed.

exit code: 0  every block is valid
           1  a block is damaged
           2  wrong usage
           3  nothing readable

examples:
  rlvitals verify runs/my_run
  rlvitals verify runs
"""

from argparse import Namespace

from rlvitals.cli import flags
from rlvitals.cli.command import EXIT_OK, EXIT_PROBLEM, Command
from rlvitals.errors import quantity


def run(args: Namespace) -> int:
    """Check every run and print the damaged files."""
    from rlvitals.storage.find_run_folders import run_folders
    from rlvitals.storage.verify import verify

    code = EXIT_OK
    for folder in run_folders(args.path):
        reports = verify(folder)
        blocks, rows = (
            sum(report.blocks for report in reports),
            sum(report.rows for report in reports),
        )
        damaged = [report for report in reports if not report.is_intact]
        size = sum(report.size for report in reports)
        summary = f"{len(damaged)} of {len(reports)} files damaged" if damaged else "whole"
        counts = f"{quantity(blocks, 'block')}, {quantity(rows, 'row')}, {quantity(size, 'byte')}"
        print(f"{folder}: {summary}: {counts}")
        for report in reports:
            if report.problem:
                print(f"  {report.name}: cannot be read: {report.problem}")
            for damage in report.damage:
                print(f"  {report.name}: {damage}")
            if report.torn:
                reason = "being written" if report.growing else "not flushed when its process ended"
                print(
                    f"  {report.name}: the last {report.torn:,} bytes are no whole block: {reason}"
                )
        code = EXIT_PROBLEM if damaged else code
    return code


COMMAND = Command("verify", __doc__, flags.add_run_path, run)
