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
    url = os.fspath(target)
    for scheme in LOCAL:
        if url.startswith(scheme):
            return Folder(Path(url.removeprefix(scheme)).expanduser())
    if SCHEME not in url:
        return Folder(Path(url).expanduser())
    from rlvitals.checkpoints.transfer.fsspec_remote import remote  # noqa: PLC0415 - fsspec is optional

    return remote(url, options or {}, stall)
