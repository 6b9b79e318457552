"""Check that the disk has room and the folder is writable."""

import os
from collections.abc import Iterable, Iterator

from rlvitals.checkpoints.disk import FREE_SPACE_FACTOR
from rlvitals.doctor.check import Check, Problem
from rlvitals.doctor.context import Context
from rlvitals.readers.discovery.sources import is_folder
from rlvitals.rules.rule import Severity


def check_disk(context: Context) -> Iterable[Problem]:
    """Yield a problem if the next checkpoint would fill the disk."""
    # The nearest existing folder of the path.
    folder = next(
        folder for folder in (context.path, *context.path.resolve().parents) if is_folder(folder)
    )
    try:
        usage = os.statvfs(folder)
    except (OSError, AttributeError):  # Windows has none
        return
    free_bytes, total_bytes = usage.f_bavail * usage.f_frsize, usage.f_blocks * usage.f_frsize
    checkpoints = context.checkpoints
    sizes = (
        [entry.size for entry in checkpoints.seen if entry.usable or entry.complete]
        if checkpoints
        else []
    )
    needed_bytes = FREE_SPACE_FACTOR * sizes[-1] if sizes else 0.0
    tries = (f"rlvitals checkpoints {context.path}", f"df -h {folder}")
    if free_bytes < needed_bytes:
        room = f"{_format_gb(free_bytes)} free, {_format_gb(needed_bytes)} needed"
        sentence = f"the next checkpoint does not fit: {room}"
        yield Problem(Severity.ERROR, sentence, (f"{folder}",), tries)
    elif total_bytes and free_bytes < 1e9 and free_bytes < 0.02 * total_bytes:
        # Less than 1 GB and than 2 % of the disk: logs alone may fill it.
        yield Problem(
            Severity.WARNING, f"the disk is nearly full: {_format_gb(free_bytes)} free", (), tries
        )
    if usage.f_files and not usage.f_favail:
        yield Problem(Severity.ERROR, "the disk takes no more files", (f"df -i {folder}",), tries)


def check_rights(context: Context) -> Iterable[Problem]:
    """Yield a problem if files cannot be read or written."""
    if context.folder is None:
        return
    problems = list(_find_rights_problems(context))
    if problems:
        yield Problem(
            Severity.ERROR,
            "the folder cannot be read and written as a training needs it",
            tuple(problems),
            (f"ls -la {context.path}",),
        )


def _find_rights_problems(context: Context) -> Iterator[str]:
    folder = context.path
    if not os.access(folder, os.W_OK | os.X_OK):
        yield f"{folder} may not be written by this user"
    readonly = getattr(os, "ST_RDONLY", 0)
    if readonly and os.statvfs(folder).f_flag & readonly:
        yield f"the file system of {folder} is read-only"
    if context.walk is not None:
        yield from (note for note in context.walk.notes if note.startswith("cannot look into"))
    for file in context.files():
        if not os.access(file, os.R_OK):
            yield f"{context.inside(file)} may not be read"
            return


def _format_gb(size: float) -> str:
    return f"{size / 1e9:.2f} GB" if size >= 1e7 else f"{size / 1e6:.2f} MB"


DISK_CHECK = Check("disk", "Is there room on the disk?", check_disk)
RIGHTS_CHECK = Check("rights", "May it be read and written?", check_rights)
