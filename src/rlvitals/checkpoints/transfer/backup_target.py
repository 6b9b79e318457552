"""What a backup's target names: a folder of this machine, or a URL that fsspec reaches."""

import os
from pathlib import Path

from rlvitals.checkpoints.transfer.filesystems import SCHEME, Folder, Place
from rlvitals.checkpoints.transfer.timeouts import STALL

LOCAL = ("file://", "local://")


def place_at(
    target: str | os.PathLike[str],
    options: dict[str, object] | None = None,
    stall: float = STALL,
) -> Place:
    """Return the place of a path or URL; of a URL, a call ends after `stall` seconds.

    Raises UsageError, VitalsError where fsspec lacks.
    """
    said = os.fspath(target)
    for scheme in LOCAL:
        if said.startswith(scheme):
            return Folder(Path(said.removeprefix(scheme)).expanduser())
    if SCHEME not in said:
        return Folder(Path(said).expanduser())
    from rlvitals.checkpoints.transfer.fsspec_remote import remote  # noqa: PLC0415 - fsspec is optional

    return remote(said, options or {}, stall)
