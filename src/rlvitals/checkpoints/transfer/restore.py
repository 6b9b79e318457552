"""A run brought back from its backup: every file verified, the folder there whole or not at all."""

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rlvitals.checkpoints import manifest as manifests
from rlvitals.checkpoints import naming
from rlvitals.checkpoints.naming import MANIFEST
from rlvitals.checkpoints.transfer import (
    backup_index,
    byte_text,
    copy_files,
    file_selection,
    index_check,
    path_safety,
)
from rlvitals.checkpoints.transfer.backup_index import Index, Version
from rlvitals.checkpoints.transfer.copy_files import Broken, Changed, Patience
from rlvitals.checkpoints.transfer.filesystems import Folder, Place
from rlvitals.checkpoints.transfer.verify_remote import Arrived, sealed_at, unnamed_at
from rlvitals.checkpoints.transfer.work_folder import gathering, put_in_place
from rlvitals.errors import UnreadableLog, UsageError, VitalsError


@dataclass(slots=True)
class Restored:
    """What was brought back."""

    folder: Path
    newest: int | None = None  # the step of the newest checkpoint
    checkpoints: int = 0
    files: int = 0
    size: int = 0  # bytes
    aside: Path | None = None  # where the folder lies that was in its place
    damaged: list[str] = field(default_factory=list)  # what could not be brought back whole
    left: list[str] = field(default_factory=list)  # what lies there and was not brought back


@dataclass(frozen=True, slots=True)
class _Work:
    place: Place
    sizes: Mapping[str, int]
    made: Folder  # where it is gathered
    there: Mapping[str, int]  # what an earlier try got there
    done: Restored
    patience: Patience

    def bring(self, piece: copy_files.Piece, target: str) -> None:
        begun = self.there.get(target) == piece.size
        if not (begun and copy_files.same(self.made, piece, target, self.patience)):
            copy_files.copy(self.made, piece, target, self.patience)
        self.done.files += 1
        self.done.size += piece.size


def restore(
    place: Place,
    folder: Path | None = None,
    *,
    force: bool = False,
    patience: Patience | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Restored:
    """Bring a run back into a folder (default: of the name that the run's folder had, here).

    A folder that is there is set aside, where it holds the same run at an older step; else only
    with `force`. Raises UnreadableLog where no backup is, UsageError, OSError.
    """
    patience = patience or Patience()
    sizes = patience.call(place.sizes)
    known = backup_index.read(place, sizes, patience)
    if known is None:
        problem = "no backup is here" if sizes else "nothing is here"
        hint = "the TARGET that `rlvitals backup RUN TARGET` was given"
        raise UnreadableLog(problem, where=place.name, hint=hint)
    target = folder or Path(_plain(known.name))
    here = _sealed(place, sizes, patience)
    _may(target, known, here, force=force)
    with gathering(target, "restoring", go_on=True) as made:
        there = Folder(made).sizes()
        done = Restored(target, left=list(index_check.files(known, sizes)))
        work = _Work(place, sizes, Folder(made), there, done, patience)
        _room(made, known, here, there)
        _checkpoints(work, [one for one in here if not _is_foreign(work, known, one)], tell)
        usable = {naming.final(Path(), one.manifest.step).name for one in here}
        done.damaged += index_check.damaged(sizes, usable)
        done.left += index_check.missing(known, sizes, usable)
        _logs(work, known)
        _forget(work)
        work.done.aside = put_in_place(made, target)
    return work.done


def _sealed(place: Place, sizes: Mapping[str, int], patience: Patience) -> list[Arrived]:
    """Return the checkpoints that may be brought back, the newest first."""
    named, unnamed = sealed_at(place, sizes, patience), unnamed_at(place, sizes, patience)
    found = {**unnamed, **named}
    return sorted(found.values(), key=lambda one: -one.manifest.sequence)


def _is_foreign(work: _Work, known: Index, one: Arrived) -> bool:
    """Tell, and say, that a checkpoint in a backup is of another run."""
    foreign = bool(known.run_id) and one.manifest.run_id not in {"", known.run_id}
    if foreign:
        work.done.damaged.append(f"{one.name} is another run's, not restored")
    return foreign


def _may(target: Path, known: Index, here: list[Arrived], *, force: bool) -> None:
    """See whether the folder may be replaced. Raises UsageError."""
    if not os.path.lexists(target):
        return
    if not target.is_dir():
        raise UsageError("this is a file, a folder is needed", where=str(target), hint="-o FOLDER")
    if force or not any(target.iterdir()):
        return
    hint = "name another folder with -o, or --force: what is there is set aside, not deleted"
    try:
        there = file_selection.find(target)
    except VitalsError:
        problem = "the folder is not empty, and holds no run"
        raise UsageError(problem, where=str(target), hint=hint) from None
    if there.run_id != known.run_id or not known.run_id:
        raise UsageError("the folder holds another run", where=str(target), hint=hint)
    newest = max((one.manifest.sequence for one in here), default=0)
    steps = [one for one in there.checkpoints if one.manifest.sequence >= newest]
    if steps or not here:
        backed = f"step {here[0].manifest.step:,}" if here else "no checkpoint"
        own = f"step {there.checkpoints[0].step:,}" if there.checkpoints else "its own logs"
        problem = f"the folder is as new as the backup: {own} there, {backed} in the backup"
        raise UsageError(problem, where=str(target), hint=hint)


def _room(made: Path, known: Index, here: list[Arrived], there: Mapping[str, int]) -> None:
    needed = sum(file_selection.size(one.manifest) for one in here)
    needed += sum(versions[-1].size for versions in known.files.values() if versions)
    needed -= sum(there.values())
    free = Folder(made).room()
    if free is not None and free < needed:
        raise VitalsError(
            byte_text.no_room(needed, free),
            where=str(made.parent.parent),
            hint="name a folder on another disk with -o",
        )


def _checkpoints(work: _Work, here: list[Arrived], tell: Callable[[str], None]) -> None:
    """Bring each checkpoint, its seal last; one that is damaged there is left there."""
    for one in here:
        name = naming.final(Path(), one.manifest.step).name
        try:
            for file, said in sorted(one.manifest.files.items()):
                source = f"{one.name}/{file}"
                piece = copy_files.of_place(work.place, source, said.size, said.xxh3_128)
                work.bring(piece, f"{name}/{file}")
            manifests.write(work.made.path / name, one.manifest)
        except (Changed, Broken, FileNotFoundError) as error:
            work.done.damaged.append(f"{name} is damaged in the backup, not restored: {error}")
            shutil.rmtree(work.made.path / name, ignore_errors=True)
            continue
        if not work.done.checkpoints:
            work.done.newest = one.manifest.step
            Folder(work.made.path).write(naming.LATEST, (f"{name}\n".encode(),))
        work.done.checkpoints += 1
        tell(f"{name}: {byte_text.size(file_selection.size(one.manifest))} restored and verified")


def _logs(work: _Work, known: Index) -> None:
    for name, versions in known.files.items():
        inside = index_check.is_of_a_backup(name)
        if why := path_safety.wrong(name) or (
            "it is part of a checkpoint, or hidden" if inside else ""
        ):
            raise UnreadableLog(f"the backup names {name!r}: {why}", where=work.place.name)
        if name not in work.sizes:
            if backup_index.ABSENT not in versions:
                work.done.damaged.append(f"{name} is missing in the backup")
        elif not any(_version(work, name, one) for one in _likely(versions, work.sizes[name])):
            work.done.damaged.append(f"{name} is damaged in the backup, not restored")


def _likely(versions: tuple[Version, ...], size: int) -> list[Version]:
    """Order the versions that may be there: that of its size first, then what it began as."""
    fitting = [one for one in versions if 0 <= one.size <= size]
    return sorted(fitting, key=lambda one: (one.size != size, -one.size))


def _version(work: _Work, name: str, version: Version) -> bool:
    try:
        work.bring(copy_files.of_place(work.place, name, version.size, version.xxh3_128), name)
    except Changed:
        return False
    return True


def _forget(work: _Work) -> None:
    """Delete what an earlier try gathered of a backup that has changed since."""
    made = work.made.path
    own = {naming.LATEST}
    for path in Folder(made).sizes():
        top = path.split("/", 1)[0]
        sealed = naming.FINAL.fullmatch(top) and (made / top / MANIFEST).exists()
        if path not in own and not sealed and not (path in work.sizes and _is_file(path)):
            work.made.remove([path])


def _is_file(path: str) -> bool:
    return not path.startswith(".") and not path.rpartition("/")[2].startswith(".")


def _plain(name: str) -> str:
    """Return a folder's name from elsewhere. Raises UsageError where it is none."""
    if "/" in name or path_safety.wrong(name):
        raise UsageError(f"the backup names no folder: {name!r}", hint="name one: -o FOLDER")
    return name
