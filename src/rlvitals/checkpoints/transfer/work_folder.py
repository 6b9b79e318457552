"""The temporary folder in which a run is unpacked or restored, next to its target.

    .<name>.<what>-<random>/      created by `mkdtemp`: its name cannot be predicted
    .../rlvitals                  its target; identifies the folder to a later process
    .../run/                      the files, with the permissions of any new folder

Another user who may write next to the target can create a link or a folder of such a name, but not
one that this user owns, that nobody else may enter, and that contains the mark: only that one is
continued, or deleted.
"""

import errno
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rlvitals.errors import UsageError
from rlvitals.storage import safe_files

MARK_FILE = "rlvitals"


@contextmanager
def open_work_folder(target: Path, purpose: str, *, go_on: bool) -> Iterator[Path]:
    """Yield a folder for one process; it is deleted at the end unless `go_on`.

    `go_on`: reuse what an earlier process restored for this target, and keep the folder if this
    process is interrupted; else it is deleted. Raises UsageError if another process works on this
    target, OSError.
    """
    target = Path(os.path.realpath(target))  # the user's own path may be a link
    target.parent.mkdir(parents=True, exist_ok=True)
    prefix = f".{target.name}.{purpose}-"
    with _lock_parent(target.parent):
        folder, handle = _find_earlier(target, prefix, keep=go_on) or _make_folder(target, prefix)
    try:
        yield folder / "run"
    finally:
        if not go_on:
            shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):  # not empty: the next process continues with it
            (folder / "run").rmdir()
        if not os.path.lexists(folder / "run"):
            shutil.rmtree(folder, ignore_errors=True)
        os.close(handle)


def put_in_place(work_folder: Path, target: Path) -> Path | None:
    """Rename the folder to its target; set an existing one aside, and return its path.

    A target that is a link to a folder stays a link: the folder that it points to is replaced.
    """
    target, aside = Path(os.path.realpath(target)), None
    if target.is_dir() and not any(target.iterdir()):
        target.rmdir()
    if target.exists():
        aside = safe_files.free_name(target, "before")
        target.rename(aside)
    work_folder.rename(target)
    safe_files.sync(target.parent)
    return aside


def _make_folder(target: Path, prefix: str) -> tuple[Path, int]:
    path = Path(tempfile.mkdtemp(prefix=prefix, dir=target.parent))
    handle = safe_files.open_new(path / MARK_FILE)
    _try_lock(handle)
    os.write(handle, target.name.encode(errors="surrogateescape"))
    (path / "run").mkdir()
    return path, handle


def _find_earlier(target: Path, prefix: str, *, keep: bool) -> tuple[Path, int] | None:
    """Return the folder of an earlier process for a target; delete unusable ones.

    Raises UsageError if another process uses one.
    """
    leftover: tuple[Path, int] | None = None
    paths = [path for path in target.parent.iterdir() if path.name.startswith(prefix)]
    for path in sorted(paths):
        handle = _open_mark(path, target)
        if handle is None:
            with suppress(OSError):  # of one that was killed before it could write its mark
                path.rmdir()
            continue
        if not _try_lock(handle):
            os.close(handle)
            problem = "another process is at this already"
            raise UsageError(problem, where=str(path), hint="wait for it")
        if keep and leftover is None and (path / "run").is_dir():
            leftover = path, handle
        else:
            shutil.rmtree(path, ignore_errors=True)
            os.close(handle)
    return leftover


def _open_mark(path: Path, target: Path) -> int | None:
    """Open the mark of a folder that this user created for a target; None if it is not one."""
    with suppress(OSError):
        status = path.lstat()
        is_owner = hasattr(os, "geteuid") and status.st_uid == os.geteuid()
        if not (
            # Nobody but the owner has permissions.
            is_owner and stat.S_ISDIR(status.st_mode) and not status.st_mode & 0o077
        ):
            return None
        name = target.name.encode(errors="surrogateescape")
        if safe_files.read_regular(path / MARK_FILE) == name:
            return safe_files.open_append(path / MARK_FILE)
    return None


def _try_lock(handle: int) -> bool:
    """Lock a file or folder for this process; True if the system has no locks."""
    try:
        import fcntl  # noqa: PLC0415 - not on Windows
    except ImportError:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in {errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOLCK}:
            raise
    return True


@contextmanager
def _lock_parent(parent: Path) -> Iterator[None]:
    """Let one process at a time find an earlier folder and create its own."""
    if os.name != "posix":
        yield
        return
    handle = os.open(parent, os.O_RDONLY)
    try:
        end = time.monotonic() + 2.0  # a longer lock is of another program
        while not _try_lock(handle) and time.monotonic() < end:
            time.sleep(0.01)
        yield
    finally:
        os.close(handle)
