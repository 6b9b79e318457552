"""Parse a backup's target: a local folder, or a URL that fsspec supports."""

import os
from pathlib import Path

from rlvitals.checkpoints.transfer.filesystems import LocalFolder, RemoteFiles
from rlvitals.checkpoints.transfer.timeouts import STALL_SECONDS


def open_target(
    target: str | os.PathLike[str],
    options: dict[str, object] | None = None,
    stall: float = STALL_SECONDS,
) -> RemoteFiles:
    """Return the file store of a path or URL; calls to a URL end after `stall` seconds.

    Raises UsageError, VitalsError if fsspec is not installed.
    """
    url = os.fspath(target)
    for scheme in ("file://", "local://"):
        if url.startswith(scheme):
            return LocalFolder(Path(url.removeprefix(scheme)).expanduser())
    if "://" not in url:
        return LocalFolder(Path(url).expanduser())
    from rlvitals.checkpoints.transfer.fsspec_remote import open_url  # noqa: PLC0415 - fsspec is optional

    return open_url(url, options or {}, stall)
