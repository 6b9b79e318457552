"""From a folder that was written to a checkpoint: hashed, on the disk, sealed, and named."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from fnmatch import fnmatch
from pathlib import Path

from rlvitals.checkpoints import disk, naming, recovery
from rlvitals.checkpoints import manifest as manifests
from rlvitals.checkpoints.manifest import BadCheckpoint, File, Manifest, UnreadableCheckpoint
from rlvitals.checkpoints.ranks import Group, agree, each
from rlvitals.storage.safe_files import sync


def commit(  # noqa: PLR0913, PLR0917 - what is sealed, by whom
    group: Group,
    folder: Path,
    made: Manifest,
    known: Mapping[str, File],
    holds: Sequence[str],
    error: Exception | None = None,
) -> str:
    """Hash, have it on the disk, seal it, and give it its name by one rename.

    `known`: files whose hashes this process knows from writing them. `error`: why it failed to
    write. The processes of a group share the work. Returns what a person should know. Raises
    `error`, or what failed elsewhere; OSError; BadCheckpoint for a folder that is none.
    """
    parts = agree(group, {name: asdict(file) for name, file in known.items()}, error)
    files = {name: File(**said) for part in parts for name, said in part.items()}
    there = agree(group, manifests.names(folder))[0]  # as rank 0 sees it
    rest = [name for name in there if name not in files]
    share = rest[group.rank :: group.size]

    def hashed() -> dict[str, object]:
        complete(folder, there, holds)
        found = {name: asdict(manifests.look(folder, name)) for name in share}
        for name in (*share, *known):
            sync(folder / name)
        return dict(found)

    for part in each(group, hashed):
        files |= {name: File(**said) for name, said in part.items()}

    def named() -> str:
        if group.rank:
            return ""
        manifests.write(folder, replace(made, files=manifests.sized(folder, files)))
        disk.settle_folders(folder)
        return _name(folder, made)

    return str(each(group, named)[0])


def complete(folder: Path, names: Sequence[str], holds: Sequence[str]) -> None:
    """See that all is there that a checkpoint must hold. Raises BadCheckpoint."""
    for pattern in holds:
        if not any(fnmatch(name, pattern) for name in names):
            raise BadCheckpoint(
                f"it holds no {pattern}",
                where=str(folder),
                hint="save the optimizer and the random streams too: else a run cannot go on",
            )


def _name(folder: Path, made: Manifest) -> str:
    """Let a sealed folder be a checkpoint, and the newest; returns what a person should know."""
    target, replaced, said = naming.final(folder.parent, made.step), None, ""
    if os.path.lexists(target):
        if _is_earlier(target, made):
            replaced = naming.temporary(folder.parent, made.step)
            target.rename(replaced)
        else:
            kept = naming.aside(folder.parent, made.step, naming.OTHER)
            target.rename(kept)
            said = f"{target.name} was {_other(kept)}: it lies in {kept.name} now"
    folder.rename(target)
    disk.sync_folder(folder.parent)
    disk.write_whole(folder.parent / naming.LATEST, f"{target.name}\n")
    if replaced is not None:
        recovery.remove(replaced)
    return said


def _is_earlier(there: Path, made: Manifest) -> bool:
    """See a checkpoint of an earlier attempt, from which this one did not go on."""
    try:
        return manifests.read(there).run_id in {"", made.run_id}
    except (BadCheckpoint, UnreadableCheckpoint):
        return False


def _other(there: Path) -> str:
    """Say why a checkpoint is not taken for one of an earlier attempt."""
    try:
        manifests.read(there)
    except UnreadableCheckpoint as error:
        return f"not read, {error.problem}"
    except BadCheckpoint:
        pass
    return "not of this run"
