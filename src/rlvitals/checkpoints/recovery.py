"""Clean up after killed processes, and delete checkpoints."""

import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from rlvitals.checkpoints import disk, naming
from rlvitals.checkpoints import manifest as manifests
from rlvitals.checkpoints.manifest import BadCheckpoint, UnreadableCheckpoint
from rlvitals.checkpoints.naming import MANIFEST_FILE, Unfinished
from rlvitals.storage import holds, temp_files

ABANDONED_SECONDS = 86_400.0  # after the last write to an unfinished folder
writing: set[Path] = set()  # folders that this process is writing


def recover(folder: Path) -> Iterator[str]:
    """Remove folders whose writer has ended, or rename complete ones; yield a message each."""
    for leftover in naming.find_unfinished(folder):
        if _may_be_active(leftover):
            continue
        target = naming.checkpoint_path(folder, leftover.step)
        try:
            manifests.verify(leftover.path)
            is_complete = not (target / MANIFEST_FILE).exists()
        except UnreadableCheckpoint as error:
            yield f"{leftover.path.name} is left as it is: it {error.problem}"
            continue
        except BadCheckpoint:
            is_complete = False
        # Killed between the seal and the rename, or before it replaced another checkpoint.
        if is_complete:
            move_unsealed_aside(folder, leftover.step)
            leftover.path.rename(target)
            disk.sync_folder(folder)
            yield f"{target.name} was whole but for its name: it has it now"
        else:
            delete_folder(leftover.path)
            yield f"a checkpoint at step {leftover.step:,} that was being written is cleared away"


def move_unsealed_aside(folder: Path, step: int) -> None:
    """Set aside a folder that has a checkpoint's name and no manifest. Raises OSError."""
    target = naming.checkpoint_path(folder, step)
    if os.path.lexists(target) and not (target / MANIFEST_FILE).exists():
        target.rename(naming.set_aside_path(folder, step))


def delete_checkpoint(folder: Path, checkpoint: Path) -> None:
    """Delete a checkpoint: rename it first, so that half of one is never visible."""
    delete_folder(hide_checkpoint(folder, checkpoint))


def hide_checkpoint(folder: Path, checkpoint: Path) -> Path:
    """Rename a checkpoint that is to be deleted; return its path. Raises OSError on hold."""
    if holds.applies(checkpoint):
        raise PermissionError(errno.EPERM, "on hold", str(checkpoint))
    hidden = naming.unfinished_path(folder, naming.step_of(checkpoint))
    checkpoint.rename(hidden)
    return hidden


def delete_folder(path: Path) -> None:
    """Delete a folder, its manifest first; what cannot be deleted stays, unsealed.

    Of a link to a folder, only the link is deleted.
    """
    if path.is_symlink():
        path.unlink()
        return
    (path / MANIFEST_FILE).unlink(missing_ok=True)
    shutil.rmtree(path, ignore_errors=True)


def _may_be_active(leftover: Unfinished) -> bool:
    """Return whether a process may still write to a folder.

    Process numbers are reused, in containers at each start: a number alone proves nothing for long.
    """
    is_local = leftover.host == naming.host_id()
    if is_local and leftover.pid == os.getpid():
        return leftover.path in writing
    if is_local and not _is_running(leftover.pid):
        return False
    try:
        newest = max(
            path.lstat().st_mtime for path in (leftover.path, *disk.walk_files(leftover.path))
        )
        return newest > _file_system_time(leftover.path) - ABANDONED_SECONDS
    except OSError:
        return True


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _file_system_time(folder: Path) -> float:
    """Return the file system's own time in seconds: clocks of machines differ."""
    probe = temp_files.temp_path(folder.with_name("clock"))
    try:
        probe.touch(exist_ok=False)
        return probe.stat().st_mtime
    finally:
        probe.unlink(missing_ok=True)
