"""What a killed process left behind, and how a checkpoint goes."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from rlvitals.checkpoints import disk, naming
from rlvitals.checkpoints import manifest as manifests
from rlvitals.checkpoints.manifest import BadCheckpoint, UnreadableCheckpoint
from rlvitals.checkpoints.naming import MANIFEST, Unfinished
from rlvitals.storage import temp_files

DAY = 86_400.0  # seconds after which an unfinished folder that nobody writes to is nobody's
writing: set[Path] = set()  # folders that this process is writing


def clean(folder: Path) -> Iterator[str]:
    """Clear away folders whose writer is gone; one that was whole gets its name. Says each."""
    for one in naming.unfinished(folder):
        if _alive(one):
            continue
        target = naming.final(folder, one.step)
        try:
            manifests.verify(one.path)
            whole = not (target / MANIFEST).exists()
        except UnreadableCheckpoint as error:
            yield f"{one.path.name} is left as it is: it {error.problem}"
            continue
        except BadCheckpoint:
            whole = False
        if whole:  # killed between the seal and the rename, or while another was to replace it
            give_way(folder, one.step)
            one.path.rename(target)
            disk.sync_folder(folder)
            yield f"{target.name} was whole but for its name: it has it now"
        else:
            remove(one.path)
            yield f"a checkpoint at step {one.step:,} that was being written is cleared away"


def give_way(folder: Path, step: int) -> None:
    """Set aside what has a checkpoint's name and no seal. OSError."""
    target = naming.final(folder, step)
    if os.path.lexists(target) and not (target / MANIFEST).exists():
        target.rename(naming.aside(folder, step))


def retire(folder: Path, checkpoint: Path) -> None:
    """Delete a checkpoint: it is gone by its name first, so that half of one is never there."""
    hidden = naming.temporary(folder, naming.step(checkpoint))
    checkpoint.rename(hidden)
    remove(hidden)


def remove(path: Path) -> None:
    """Delete a folder, its seal first; what cannot be deleted stays, unsealed.

    Of a link to a folder the link alone goes.
    """
    if path.is_symlink():
        path.unlink()
        return
    (path / MANIFEST).unlink(missing_ok=True)
    shutil.rmtree(path, ignore_errors=True)


def _alive(one: Unfinished) -> bool:
    """Tell whether a folder may still be written to.

    Process numbers come back, in containers at each start: one alone proves nothing for long.
    """
    here = one.host == naming.host()
    if here and one.pid == os.getpid():
        return one.path in writing
    if here and not _runs(one.pid):
        return False
    try:
        newest = max(path.lstat().st_mtime for path in (one.path, *disk.files(one.path)))
        return newest > _now(one.path) - DAY
    except OSError:
        return True


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _now(folder: Path) -> float:
    """Return the file system's own time: clocks of machines differ."""
    probe = temp_files.temp_path(folder.with_name("clock"))
    try:
        probe.touch(exist_ok=False)
        return probe.stat().st_mtime
    finally:
        probe.unlink(missing_ok=True)
