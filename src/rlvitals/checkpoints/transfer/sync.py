"""One round of a backup: what is new goes there, verified; what the run gave up goes after it."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from pathlib import Path

from rlvitals.checkpoints import manifest as manifests
from rlvitals.checkpoints import naming, provenance
from rlvitals.checkpoints.catalog import Checkpoint
from rlvitals.checkpoints.manifest import BadCheckpoint
from rlvitals.checkpoints.naming import MANIFEST
from rlvitals.checkpoints.transfer import backup_index, byte_text, copy_files, file_selection
from rlvitals.checkpoints.transfer.backup_index import ABSENT, Index, Version
from rlvitals.checkpoints.transfer.copy_files import Changed, Patience, Piece
from rlvitals.checkpoints.transfer.file_selection import Content
from rlvitals.checkpoints.transfer.filesystems import Folder, Place
from rlvitals.checkpoints.transfer.timeouts import Hung
from rlvitals.checkpoints.transfer.verify_remote import Arrived, sealed_at
from rlvitals.errors import UsageError, VitalsError
from rlvitals.storage.run_folder import RUN_FILE

TAIL = 1 << 20  # bytes: of a file that large the new tail alone is sent, where that is possible
TRIES = 3  # at a file that is rewritten while it is copied
PACKED = ".packed.rlv"  # a block file that stands for the one that grew


@dataclass(slots=True)
class Done:
    """What a round did."""

    target: str
    checkpoints: list[str] = field(default_factory=list)  # copied: names
    held: set[str] | None = None  # the run's checkpoints that lie whole there; None: not seen yet
    newest: str = ""  # that lies whole at the target
    files: int = 0  # copied, those of checkpoints too
    size: int = 0  # bytes copied
    removed: list[str] = field(default_factory=list)  # checkpoints that the run no longer keeps
    left: tuple[str, ...] = ()  # what was not copied, and need not be
    failed: list[str] = field(default_factory=list)  # what should have been

    @property
    def sentence(self) -> str:
        """Say what the target holds, and what is new there."""
        head = "Backup not complete" if self.failed else "✓ Backup complete"
        newest = f"; newest: {self.newest}" if self.newest else "; no checkpoint yet"
        if not self.files:
            return f"{head}: nothing new for {self.target}{newest}"
        names = self.checkpoints
        count = f"{len(names)} checkpoint{'s' * (len(names) != 1)}, " if names else ""
        return (
            f"{head}: {count}{self.files:,} file{'s' * (self.files != 1)}, "
            f"{byte_text.size(self.size)} copied to {self.target} and verified{newest}"
        )


@dataclass(slots=True)
class _Round:
    place: Place
    found: Content
    index: Index
    sizes: dict[str, int]
    patience: Patience
    done: Done
    tell: Callable[[str], None]
    gone: bool = False  # a checkpoint was, since it was found

    def copy(self, piece: Piece, name: str) -> None:
        copy_files.copy(self.place, piece, name, self.patience)
        self.done.files += 1
        self.done.size += piece.size

    def save_index(self, changed: Index) -> None:
        if changed != self.index:
            backup_index.write(self.place, changed, self.patience)
            self.index = changed


def mirror(  # noqa: PLR0913 - what, where to, how, each by its name
    folder: Path,
    remote: Place,
    *,
    keep_all: bool = False,
    patience: Patience | None = None,
    tell: Callable[[str], None] = lambda _: None,
    result: Done | None = None,
) -> Done:
    """Bring a run's backup up to date. Raises VitalsError, copying.Stopped, what the place raises.

    At the target is, once this returns, what the run keeps, each file read back. Checkpoints that
    the run deleted go there too, unless `keep_all`; the newest and all that another program put
    there stay. `done` is filled while it goes on: it says how far a round came that broke off.
    """
    patience, result = patience or Patience(), result or Done(remote.name)
    apart(folder, remote)
    content = file_selection.find(folder)
    sizes = patience.call(remote.sizes)
    own_index = Index(content.run_id, folder.resolve().name, _source(folder))
    index = backup_index.owned(remote, sizes, own_index, patience)
    result.left = content.left
    result.failed += content.unreadable
    sync = _Round(remote, content, index, sizes, patience, result, tell)
    if file_selection.INDEX not in sizes:
        backup_index.write(
            remote, index, patience
        )  # from the first byte on it is said whose this is
    arrived = _Checkpoints(sync).bring()
    for _ in range(TRIES):
        if not sync.gone:  # pruned or saved anew while it was copied
            break
        sync.gone = False
        sync.found, sync.sizes = file_selection.find(folder), patience.call(remote.sizes)
        arrived = _Checkpoints(sync).bring()
    if not keep_all:
        _drop(sync, arrived)
    _logs(sync, content.logs)
    _latest(sync, arrived)
    remote.tidy()
    return sync.done


def apart(folder: Path, remote: Place) -> None:
    """See that neither lies in the other. Raises UsageError."""
    if not isinstance(remote, Folder):
        return
    source, target = folder.resolve(), remote.path.resolve()
    if source == target:
        raise UsageError("the run and the target are the same folder", where=remote.name)
    if source in target.parents or target in source.parents:
        inner = "target lies in the run" if source in target.parents else "run lies in the target"
        hint = "a folder elsewhere, best on another disk"
        raise UsageError(f"the {inner}", where=remote.name, hint=hint)


def _source(folder: Path) -> str:
    text = f"{provenance.now()['host']}:{folder.resolve()}"
    return blake2b(text.encode(), digest_size=8).hexdigest()


class _Checkpoints:
    """Brings the checkpoints that are not there yet: the newest first."""

    def __init__(self, sync: _Round) -> None:
        self._round = sync

    def bring(self) -> dict[str, Arrived]:
        """Return what lies whole at the target, by the names of the folders."""
        sync = self._round
        present = sealed_at(sync.place, sync.sizes, sync.patience)
        missing = [
            checkpoint
            for checkpoint in sync.found.checkpoints
            if not self._is_there(checkpoint, present)
        ]
        sync.done.held = complete_names = present.keys() - {
            checkpoint.folder.name for checkpoint in missing
        }
        if not missing:
            return present
        if RUN_FILE in sync.found.logs:  # without it a restored checkpoint is nobody's
            _logs(sync, (RUN_FILE,))
        for checkpoint in missing:
            totals = sync.done.files, sync.done.size
            try:
                present[checkpoint.folder.name] = self._bring(checkpoint, present)
                complete_names.add(checkpoint.folder.name)
            except Changed as error:
                sync.done.files, sync.done.size = totals
                self._say(checkpoint, error)
        return present

    def _is_there(self, checkpoint: Checkpoint, present: Mapping[str, Arrived]) -> bool:
        remote_checkpoint = present.get(checkpoint.folder.name)
        return remote_checkpoint is not None and remote_checkpoint.manifest == checkpoint.manifest

    def _bring(self, checkpoint: Checkpoint, present: Mapping[str, Arrived]) -> Arrived:
        sync, name = self._round, checkpoint.folder.name
        seal = file_selection.seal(checkpoint)
        remote_checkpoint = present.get(name)
        old_files = sync.index.checkpoints.get(name, ())
        old_files = (
            _files(remote_checkpoint.manifest.files) if remote_checkpoint is not None else old_files
        )
        if (
            remote_checkpoint is not None
            and remote_checkpoint.manifest.files == checkpoint.manifest.files
        ):
            # Only the manifest differs: the checkpoint was pinned.
            sync.copy(seal, f"{name}/{MANIFEST}")
            return replace(remote_checkpoint, manifest=checkpoint.manifest)
        work_folder = sync.place.begin(name, replaces=remote_checkpoint is not None)
        self._announce(checkpoint, work_folder)
        self._fill(checkpoint, work_folder)
        sync.copy(seal, f"{work_folder}/{MANIFEST}")
        names = _files(checkpoint.manifest.files)
        sync.patience.call(partial(sync.place.settle, work_folder, name, names, old_files))
        sync.done.checkpoints.append(name)
        size = byte_text.size(file_selection.size(checkpoint.manifest))
        sync.tell(f"{name}: {size} copied and verified")
        return Arrived(name, checkpoint.manifest)

    def _announce(self, checkpoint: Checkpoint, work_folder: str) -> None:
        """See that there is room, and write down what is about to be put there."""
        sync = self._round
        free_bytes, needed_bytes = sync.place.room(), file_selection.size(checkpoint.manifest)
        if free_bytes is not None and free_bytes < needed_bytes:
            raise VitalsError(
                byte_text.no_room(needed_bytes, free_bytes),
                where=sync.place.name,
                hint="make room there; the run goes on",
            )
        checkpoints = {
            **sync.index.checkpoints,
            checkpoint.folder.name: _files(checkpoint.manifest.files),
        }
        sync.save_index(replace(sync.index, checkpoints=checkpoints))
        stale = [
            name
            for name in sync.sizes
            if name.startswith(f"{work_folder}/")
            and name[len(work_folder) + 1 :] not in checkpoint.manifest.files
        ]  # of another checkpoint of that step, broken off: its seal was never there
        sync.place.remove(stale)

    def _fill(self, checkpoint: Checkpoint, work_folder: str) -> None:
        """Copy the files that an earlier round did not get through with."""
        sync = self._round
        for piece in file_selection.pieces(checkpoint):
            target = f"{work_folder}/{piece.name}"
            is_started = sync.sizes.get(target) == piece.size
            if not (is_started and copy_files.same(sync.place, piece, target, sync.patience)):
                sync.copy(piece, target)

    def _say(self, checkpoint: Checkpoint, error: Changed) -> None:
        """Tell a checkpoint that went while it was copied from one that is damaged."""
        name = checkpoint.folder.name
        if _still(checkpoint):
            self._round.done.failed.append(f"{name} is damaged in the run, not copied: {error}")
        else:
            self._round.done.left = (*self._round.done.left, f"{name} is gone meanwhile")
            self._round.gone = True


def _still(checkpoint: Checkpoint) -> bool:
    try:
        return manifests.read(checkpoint.folder) == checkpoint.manifest
    except BadCheckpoint:
        return False


def _files(names: Mapping[str, object]) -> tuple[str, ...]:
    """Name a checkpoint's files, its seal last."""
    return (*sorted(names), MANIFEST)


def _drop(sync: _Round, arrived: Mapping[str, Arrived]) -> None:
    """Delete what this backup put there and the run deleted: never the newest that is whole."""
    newest = max((checkpoint.manifest.sequence for checkpoint in arrived.values()), default=None)
    own_sequences = [checkpoint.manifest.sequence for checkpoint in sync.found.checkpoints]
    if newest is None or not own_sequences or newest not in own_sequences:
        return  # the run has lost what lies here: this is what a backup is for
    for name, files in sorted(sync.index.checkpoints.items()):
        remote_checkpoint = arrived.get(name)
        is_older = remote_checkpoint is None or remote_checkpoint.manifest.sequence < newest
        if (sync.found.folder / name).exists() or not is_older:
            continue
        sync.patience.call(partial(sync.place.drop, name, files))
        if remote_checkpoint is not None:
            sync.done.removed.append(name)
        remaining = {
            checkpoint: checkpoint_files
            for checkpoint, checkpoint_files in sync.index.checkpoints.items()
            if checkpoint != name
        }
        sync.save_index(replace(sync.index, checkpoints=remaining))


def _logs(sync: _Round, names: tuple[str, ...]) -> None:
    """Bring the files that differ. One that is rewritten meanwhile is looked at again."""
    pieces = {name: sync.patience.call(partial(_look, sync, name)) for name in names}
    new = {name: piece for name, piece in pieces.items() if piece is not None}
    changed = {name: piece for name, piece in new.items() if not _is_there(sync, piece)}
    versions = dict(sync.index.files)
    # Rounds that were killed may have left any of the versions they announced.
    announced = {name: (*versions.get(name, (ABSENT,)), _version(new[name])) for name in changed}
    sync.save_index(replace(sync.index, files={**versions, **announced}))
    for name, piece in changed.items():
        last = _bring(sync, piece)
        if last is not None:
            versions[name] = (_version(last),)
            sync.sizes[name] = last.size
    if len(names) > 1:
        _superseded(sync, versions)
    sync.save_index(replace(sync.index, files=versions))


def _look(sync: _Round, name: str) -> Piece | None:
    try:
        return copy_files.look(sync.found.folder / name, name)
    except Changed:
        return None  # gone since it was listed


def _is_there(sync: _Round, piece: Piece) -> bool:
    versions = sync.index.files.get(piece.name, ())
    return versions == (_version(piece),) and sync.sizes.get(piece.name) == piece.size


def _version(piece: Piece) -> Version:
    return Version(piece.size, piece.xxh3_128)


def _bring(sync: _Round, piece: Piece) -> Piece | None:
    """Copy a file; return it as it was copied, or None where it would not hold still."""
    previous = sync.index.files.get(piece.name, ())[:-1]
    if (
        len(previous) == 1
        and _has_tail(sync, piece, previous[0])
        and _extended(sync, piece, previous[0])
    ):
        return piece
    for _ in range(TRIES):
        try:
            sync.copy(piece, piece.name)
        except Changed:
            rewritten = _look(sync, piece.name)
            if rewritten is None:
                return None
            piece = rewritten
        else:
            return piece
    sync.done.failed.append(f"{piece.name} was rewritten each time it was read: not copied")
    return None


def _has_tail(sync: _Round, piece: Piece, previous: Version) -> bool:
    size = sync.sizes.get(piece.name)
    return size == previous.size and TAIL <= previous.size < piece.size


def _extended(sync: _Round, piece: Piece, previous: Version) -> bool:
    """Send the new tail alone, where what is there is how the file begins."""
    try:
        if copy_files.digest(piece.chunks(0), previous.size) != previous.xxh3_128:
            return False
        copy_files.extend(sync.place, piece, piece.name, previous.size, sync.patience)
    except (copy_files.Stopped, Hung):
        raise
    except Exception:  # noqa: BLE001 - a place that cannot, each in its way: the file goes whole
        return False
    sync.done.files += 1
    sync.done.size += piece.size - previous.size
    return True


def _superseded(sync: _Round, versions: dict[str, tuple[Version, ...]]) -> None:
    """Delete block files that were packed since: the packed one would miss what they lack."""
    for name in [name for name in versions if name.endswith(PACKED)]:
        source = f"{name.removesuffix(PACKED)}.rlv"
        if source in versions and not os.path.lexists(sync.found.folder / source):
            sync.patience.call(partial(sync.place.remove, [source]))
            del versions[source]


def _latest(sync: _Round, arrived: Mapping[str, Arrived]) -> None:
    """Name the newest that is whole there."""
    if not arrived:
        return
    newest = max(arrived.values(), key=lambda each: each.manifest.sequence)
    sync.done.newest = newest.name
    text = f"{newest.name}\n".encode()
    is_current = sync.sizes.get(naming.LATEST) == len(text)
    if is_current and copy_files.first(sync.place.read(naming.LATEST), len(text)) == text:
        return
    sync.patience.call(lambda: sync.place.write(naming.LATEST, (text,)))
