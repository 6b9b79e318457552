"""Which checkpoints lie whole at a place: sealed, every file there with its size."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from rlvitals.checkpoints import manifest as manifests
from rlvitals.checkpoints.manifest import BadCheckpoint, Manifest
from rlvitals.checkpoints.naming import MANIFEST
from rlvitals.checkpoints.transfer.copy_files import Patience, first
from rlvitals.checkpoints.transfer.filesystems import Place

LARGEST = 256 << 20  # bytes of a manifest: more is none of ours
SEALED = re.compile(r"(checkpoint-(\d+))/manifest\.json")
ON_ITS_WAY = re.compile(r"\.(checkpoint-(\d+))\.(?:partial|gone)/manifest\.json")


@dataclass(frozen=True, slots=True)
class Arrived:
    """A checkpoint at a place."""

    name: str  # of its folder there
    manifest: Manifest


def sealed_at(remote: Place, sizes: Mapping[str, int], patience: Patience) -> dict[str, Arrived]:
    """Return the checkpoints that have their name, by it. Their bytes are not looked at."""
    checkpoints = dict(_found(remote, sizes, patience, SEALED))
    return {name: checkpoint for name, checkpoint in checkpoints.items() if checkpoint.name == name}


def unnamed_at(remote: Place, sizes: Mapping[str, int], patience: Patience) -> dict[str, Arrived]:
    """Return those that were killed between their seal and their name, by the name to be."""
    return dict(_found(remote, sizes, patience, ON_ITS_WAY))


def _found(
    remote: Place, sizes: Mapping[str, int], patience: Patience, pattern: re.Pattern[str]
) -> Iterator[tuple[str, Arrived]]:
    for path in sizes:
        match = pattern.fullmatch(path)
        if match is None or sizes[path] > LARGEST:
            continue
        folder = path.removesuffix(f"/{MANIFEST}")
        data = patience.call(partial(_content, remote, path))
        try:
            sealed = manifests.parse(data, f"{remote.name}/{path}", int(match[2]))
        except BadCheckpoint:
            continue
        if all(sizes.get(f"{folder}/{name}") == file.size for name, file in sealed.files.items()):
            yield match[1], Arrived(folder, sealed)


def _content(remote: Place, path: str) -> bytes:
    return first(remote.read(path), LARGEST)
