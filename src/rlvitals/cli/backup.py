"""Mirror a run's sealed checkpoints and its logs to a folder or a URL, each file verified there.

What is there already is not copied again, and a checkpoint is there whole or not at all. The
target holds what the run keeps: checkpoints that the run deleted go there too, once a newer one
is there (--keep-all: they stay). Files of others are never touched.

With --every it goes on until the run is over, and does a last round then, or after Ctrl-C or
SIGTERM; a second one ends it at once. A URL needs fsspec: pip install "rlvitals[remote]", and its
back-end: s3fs for s3://, gcsfs for gs://, paramiko for sftp://.

exit code: 0  the backup is complete
           1  it is not: a broken link, a damaged file; the same command goes on where it stopped
           2  wrong usage
           3  nothing to back up

examples:
  rlvitals backup runs/my_run /mnt/backup/my_run
  rlvitals backup runs/my_run /mnt/backup/my_run --every 1h
  rlvitals backup runs/my_run s3://bucket/my_run --every 30m
"""

import re
import signal
import sys
import threading
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from rlvitals.cli.command import Command

if TYPE_CHECKING:
    from rlvitals.checkpoints.transfer.filesystems import RemoteFiles

COMPLETE, NOT_COMPLETE, TERMINATED = 0, 1, 143
UNITS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the run, where to, and how often."""
    parser.add_argument("run", type=Path, metavar="RUN", help="a run's folder")
    parser.add_argument("target", metavar="TARGET", help="a folder of its own, or a URL")
    parser.add_argument(
        "--every", type=_seconds, metavar="TIME", help="go on, a round each time: 30m, 1h"
    )
    parser.add_argument(
        "--stall",
        type=_seconds,
        default="5m",
        metavar="TIME",
        help="silence after which a URL's link hangs, and its round ends (default: 5m)",
    )
    parser.add_argument(
        "--keep-all", action="store_true", help="keep checkpoints that the run deleted"
    )


def run(args: Namespace) -> int:
    """Do one round, or one each time."""
    from rlvitals.checkpoints.transfer import backup
    from rlvitals.checkpoints.transfer.backup_target import open_target

    place, codes = open_target(args.target, stall=args.stall), [COMPLETE]
    ending = threading.Event()
    with _obeyed(ending, rounds=args.every is not None):
        if args.every is None:
            return _round(args, place)
        backup.repeat_until(
            lambda: codes.append(_round(args, place)),
            every=args.every,
            ending=ending,
            is_over=lambda: _is_over(args.run),
        )
    return codes[-1]


def _round(args: Namespace, place: "RemoteFiles") -> int:
    from rlvitals.checkpoints.transfer.backup import BackupIncomplete, sync_once

    try:
        done = sync_once(
            args.run, place, keep_all=args.keep_all, tell=lambda text: print(f"  {text}")
        )
    except BackupIncomplete as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        return NOT_COMPLETE
    for name in done.removed:
        print(f"  {name}: deleted at the target, as in the run")
    for text in done.left:
        print(f"  {text}")
    for text in done.failed:
        print(f"  {text}", file=sys.stderr)
    print(done.sentence, flush=True)
    return NOT_COMPLETE if done.failed else COMPLETE


def _tell(text: str) -> None:
    print(f"  {text}", flush=True)


def _is_over(folder: Path) -> bool:
    from rlvitals.errors import VitalsError
    from rlvitals.storage.run_folder import RunFolder
    from rlvitals.tracking import requests

    try:
        return bool(requests.ended(RunFolder.open(folder)))
    except (VitalsError, OSError):  # checkpoints alone: nothing says when they end
        return False


@contextmanager
def _obeyed(ending: threading.Event, *, rounds: bool) -> Iterator[None]:
    """Let the first signal ask for the end, and the second be the end."""

    def asked(number: int, _: FrameType | None) -> None:
        if rounds and not ending.is_set():
            ending.set()
            print("  a last round; once more ends it at once", flush=True)
        elif number == signal.SIGINT:
            raise KeyboardInterrupt
        else:
            raise SystemExit(TERMINATED)

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        for number in before:
            signal.signal(number, asked)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _seconds(said: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", said.strip().lower())
    if found is None or found[2] not in UNITS or not float(found[1]):
        raise ArgumentTypeError(f"{said!r} is no time: 90s, 30m, 1h, 1d")
    return float(found[1]) * UNITS[found[2]]


COMMAND = Command("backup", __doc__, add_arguments, run)
