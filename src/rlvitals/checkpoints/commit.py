"""Commit a written folder as a checkpoint: hash, sync to disk, seal, rename."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from fnmatch import fnmatch
from pathlib import Path

from rlvitals.checkpoints import disk, naming, recovery
from rlvitals.checkpoints import manifest as manifests
from rlvitals.checkpoints.manifest import BadCheckpoint, File, Manifest, UnreadableCheckpoint
from rlvitals.checkpoints.ranks import Group, exchange_values, run_on_all
from rlvitals.storage import holds
from rlvitals.storage.safe_files import sync


def commit(  # noqa: PLR0913, PLR0917 - what is sealed, by whom
    group: Group,
    folder: Path,
    draft: Manifest,
    hashes: Mapping[str, File],
    patterns: Sequence[str],
    error: Exception | None = None,
) -> str:
    """Hash the files, sync them to disk, write the manifest and rename the folder once.

    `hashes`: files whose hashes this process computed while writing them. `patterns`: file names
    that a checkpoint must contain. `error`: the exception if writing failed. The processes of a
    group share the work. Returns a message for the user, or "". Raises `error`, or the failure of
    another process; OSError; BadCheckpoint for an incomplete folder.
    """
    own = {name: asdict(file) for name, file in hashes.items()}
    shares = exchange_values(group, own, error)
    files = {name: File(**fields) for share in shares for name, fields in share.items()}
    names = exchange_values(group, manifests.list_files(folder))[0]  # as rank 0 sees it
    unhashed = [name for name in names if name not in files]
    share = unhashed[group.rank :: group.size]

    def hash_share() -> dict[str, object]:
        check_complete(folder, names, patterns)
        files = {name: asdict(manifests.describe_file(folder, name)) for name in share}
        for name in (*share, *hashes):
            sync(folder / name)
        return dict(files)

    for share_files in run_on_all(group, hash_share):
        files |= {name: File(**fields) for name, fields in share_files.items()}

    def publish() -> str:
        if group.rank:
            return ""
        manifests.write(folder, replace(draft, files=manifests.check_sizes(folder, files)))
        disk.sync_folders(folder)
        return publish_folder(folder, draft)

    return str(run_on_all(group, publish)[0])


def check_complete(folder: Path, names: Sequence[str], patterns: Sequence[str]) -> None:
    """Check that every required file pattern is present. Raises BadCheckpoint."""
    for pattern in patterns:
        if not any(fnmatch(name, pattern) for name in names):
            raise BadCheckpoint(
                f"it holds no {pattern}",
                where=str(folder),
                hint="save the optimizer and the random streams too: else a run cannot go on",
            )


def publish_folder(folder: Path, manifest: Manifest) -> str:
    """Rename a sealed folder to its final name and update `latest`; return a message, or ""."""
    target, previous, message = naming.checkpoint_path(folder.parent, manifest.step), None, ""
    if os.path.lexists(target):
        if _is_earlier(target, manifest) and not holds.applies(target):
            previous = naming.unfinished_path(folder.parent, manifest.step)
            target.rename(previous)
        else:
            backup_path = naming.set_aside_path(
                folder.parent, manifest.step, naming.OTHER_RUN_SUFFIX
            )
            target.rename(backup_path)
            is_earlier = _is_earlier(backup_path, manifest)
            other = "on hold" if is_earlier else _describe_other(backup_path)
            message = f"{target.name} was {other}: it lies in {backup_path.name} now"
    folder.rename(target)
    disk.sync_folder(folder.parent)
    disk.replace_text(folder.parent / naming.LATEST_FILE, f"{target.name}\n")
    if previous is not None:
        recovery.delete_folder(previous)
    return message


def _is_earlier(folder: Path, manifest: Manifest) -> bool:
    """Return whether the folder is a checkpoint of an earlier attempt of this run."""
    try:
        return manifests.read(folder).run_id in {"", manifest.run_id}
    except (BadCheckpoint, UnreadableCheckpoint):
        return False


def _describe_other(folder: Path) -> str:
    """Return why a checkpoint is not taken for one of an earlier attempt."""
    try:
        manifests.read(folder)
    except UnreadableCheckpoint as error:
        return f"not read, {error.problem}"
    except BadCheckpoint:
        pass
    return "not of this run"
