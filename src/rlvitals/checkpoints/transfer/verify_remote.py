"""Find the complete checkpoints of a backup: sealed, with every file of the sealed size."""

import re
from collections.abc import Iterator, Mapping
from functools import partial

from rlvitals.checkpoints import manifest as manifests
from rlvitals.checkpoints.manifest import BadCheckpoint, Manifest
from rlvitals.checkpoints.naming import MANIFEST_FILE
from rlvitals.checkpoints.transfer.copy_files import RetryPolicy, read_small
from rlvitals.checkpoints.transfer.filesystems import RemoteFiles
from rlvitals.startup.fast_dataclass import dataclass

MAX_MANIFEST_BYTES = 256 << 20  # bytes of a manifest: more is none of ours
MANIFEST_PATH = re.compile(r"(checkpoint-(\d+))/manifest\.json")


@dataclass(frozen=True, slots=True)
class RemoteCheckpoint:
    """A checkpoint of a backup."""

    name: str  # of its folder there
    manifest: Manifest


def named_checkpoints(
    remote: RemoteFiles, sizes: Mapping[str, int], patience: RetryPolicy
) -> dict[str, RemoteCheckpoint]:
    """Return the checkpoints with their final name, by name. Their bytes are not read."""
    checkpoints = dict(_find(remote, sizes, patience, MANIFEST_PATH))
    return {name: checkpoint for name, checkpoint in checkpoints.items() if checkpoint.name == name}


def is_older(manifest: Manifest, remote_checkpoint: RemoteCheckpoint | None) -> bool:
    """Return whether a backup has other files of that step, saved as late or later."""
    return (
        remote_checkpoint is not None
        and remote_checkpoint.manifest.files != manifest.files
        and remote_checkpoint.manifest.sequence >= manifest.sequence
    )


def unnamed_checkpoints(
    remote: RemoteFiles, sizes: Mapping[str, int], patience: RetryPolicy
) -> dict[str, RemoteCheckpoint]:
    """Return those interrupted between manifest and final name, by final name."""
    pattern = re.compile(r"\.(checkpoint-(\d+))\.(?:partial|gone)/manifest\.json")
    return dict(_find(remote, sizes, patience, pattern))


def _find(
    remote: RemoteFiles, sizes: Mapping[str, int], patience: RetryPolicy, pattern: re.Pattern[str]
) -> Iterator[tuple[str, RemoteCheckpoint]]:
    for path in sizes:
        match = pattern.fullmatch(path)
        if match is None or sizes[path] > MAX_MANIFEST_BYTES:
            continue
        folder = path.removesuffix(f"/{MANIFEST_FILE}")
        data = patience.call(partial(_read, remote, path))
        try:
            sealed = manifests.parse(data, f"{remote.name}/{path}", int(match[2]))
        except BadCheckpoint:
            continue
        if all(sizes.get(f"{folder}/{name}") == file.size for name, file in sealed.files.items()):
            yield match[1], RemoteCheckpoint(folder, sealed)


def _read(remote: RemoteFiles, path: str) -> bytes:
    return read_small(remote.read(path), MAX_MANIFEST_BYTES)
