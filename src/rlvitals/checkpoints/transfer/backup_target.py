"""What a backup's target names: a folder of this machine, or a URL that fsspec reaches."""

import os
from pathlib import Path

from rlvitals.checkpoints.transfer.filesystems import LocalFolder, Place
from rlvitals.checkpoints.transfer.timeouts import STALL_SECONDS


def place_at(
    target: str | os.PathLike[str],
    options: dict[str, object] | None = None,
    stall: float = STALL_SECONDS,
) -> Place:
    """Return the place of a path or URL; of a URL, a call ends after `stall` seconds.

    Raises UsageError, VitalsError where fsspec lacks.
    """
    url = os.fspath(target)
    for scheme in ("file://", "local://"):
        if url.startswith(scheme):
            return LocalFolder(Path(url.removeprefix(scheme)).expanduser())
    if "://" not in url:
        return LocalFolder(Path(url).expanduser())
    from rlvitals.checkpoints.transfer.fsspec_remote import open_url  # noqa: PLC0415 - fsspec is optional

    return open_url(url, options or {}, stall)
