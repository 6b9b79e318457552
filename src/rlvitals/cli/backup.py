"""Mirror a run's sealed checkpoints and its logs to a folder or a URL, each file verified there.

Only new data is copied, and the target contains a checkpoint completely or not at all. Checkpoints
that the run deleted are deleted at the target once a newer one is complete there (--keep-all:
never). Files of other programs are not touched.

With --every it repeats until the run has ended, and then copies once more, also after Ctrl-C or
SIGTERM; a second signal ends it at once. A URL needs fsspec: pip install "rlvitals[remote]", and
its back-end: s3fs for s3://, gcsfs for gs://, paramiko for sftp://.

exit code: 0  the backup is complete
           1  it is incomplete (connection lost, damaged file); the same command continues it
           2  wrong usage
           3  nothing to back up

examples:
  rlvitals backup runs/my_run /mnt/backup/my_run
  rlvitals backup runs/my_run /mnt/backup/my_run --every 1h
  rlvitals backup runs/my_run s3://bucket/my_run --every 30m
"""

import signal
import sys
import threading
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from rlvitals.cli import flags
from rlvitals.cli.command import EXIT_OK, EXIT_PROBLEM, Command

if TYPE_CHECKING:
    from rlvitals.checkpoints.transfer.filesystems import RemoteFiles


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the run, the target and the interval."""
    parser.add_argument("run", type=Path, metavar="RUN", help="a run's folder")
    parser.add_argument("target", metavar="TARGET", help="a folder for this run only, or a URL")
    parser.add_argument(
        "--every", type=flags.seconds, metavar="TIME", help="repeat at this interval: 30m, 1h"
    )
    parser.add_argument(
        "--stall",
        type=flags.seconds,
        default="5m",
        metavar="TIME",
        help="timeout of a stalled transfer to a URL (default: 5m)",
    )
    parser.add_argument(
        "--keep-all",
        action="store_true",
        help="keep checkpoints at the target that the run deleted",
    )


def run(args: Namespace) -> int:
    """Back up once, or repeatedly with `--every`."""
    from rlvitals.checkpoints.transfer import backup
    from rlvitals.checkpoints.transfer.backup_target import open_target

    target, codes = open_target(args.target, stall=args.stall), [EXIT_OK]
    ending = threading.Event()
    with _handle_signals(ending, rounds=args.every is not None):
        if args.every is None:
            return _back_up(args, target)
        backup.repeat_until(
            lambda: codes.append(_back_up(args, target)),
            every=args.every,
            ending=ending,
            is_over=lambda: _is_over(args.run),
        )
    return codes[-1]


def _back_up(args: Namespace, target: "RemoteFiles") -> int:
    from rlvitals.checkpoints.transfer.backup import BackupIncomplete, sync_once

    try:
        result = sync_once(
            args.run, target, keep_all=args.keep_all, tell=lambda text: print(f"  {text}")
        )
    except BackupIncomplete as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        return EXIT_PROBLEM
    for name in result.removed:
        print(f"  {name}: deleted at the target, as in the run")
    for text in result.left:
        print(f"  {text}")
    for text in result.failed:
        print(f"  {text}", file=sys.stderr)
    print(result.sentence, flush=True)
    return EXIT_PROBLEM if result.failed else EXIT_OK


def _is_over(folder: Path) -> bool:
    from rlvitals.errors import VitalsError
    from rlvitals.storage.run_folder import RunFolder
    from rlvitals.tracking import requests

    try:
        return bool(requests.last_status(RunFolder.open(folder)))
    except (VitalsError, OSError):  # checkpoints alone: nothing says when they end
        return False


@contextmanager
def _handle_signals(ending: threading.Event, *, rounds: bool) -> Iterator[None]:
    """Finish the running round at the first signal, and exit at the second."""

    def on_signal(number: int, _: FrameType | None) -> None:
        if rounds and not ending.is_set():
            ending.set()
            print("  a last round; once more ends it at once", flush=True)
        elif number == signal.SIGINT:
            raise KeyboardInterrupt
        else:
            raise SystemExit(143)  # 128 + SIGTERM

    previous = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        for number in previous:
            signal.signal(number, on_signal)
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


COMMAND = Command("backup", __doc__, add_arguments, run)
