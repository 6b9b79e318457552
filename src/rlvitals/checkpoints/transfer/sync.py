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
        made = self.checkpoints
        count = f"{len(made)} checkpoint{'s' * (len(made) != 1)}, " if made else ""
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
    place: Place,
    *,
    keep_all: bool = False,
    patience: Patience | None = None,
    tell: Callable[[str], None] = lambda _: None,
    done: Done | None = None,
) -> Done:
    """Bring a run's backup up to date. Raises VitalsError, copying.Stopped, what the place raises.

    At the target is, once this returns, what the run keeps, each file read back. Checkpoints that
    the run deleted go there too, unless `keep_all`; the newest and all that another program put
    there stay. `done` is filled while it goes on: it says how far a round came that broke off.
    """
    patience, done = patience or Patience(), done or Done(place.name)
    apart(folder, place)
    found = file_selection.find(folder)
    sizes = patience.call(place.sizes)
    mine = Index(found.run_id, folder.resolve().name, _source(folder))
    now = backup_index.owned(place, sizes, mine, patience)
    done.left = found.left
    done.failed += found.unreadable
    one = _Round(place, found, now, sizes, patience, done, tell)
    if file_selection.INDEX not in sizes:
        backup_index.write(place, now, patience)  # from the first byte on it is said whose this is
    arrived = _Checkpoints(one).bring()
    for _ in range(TRIES):
        if not one.gone:  # pruned or saved anew while it was copied
            break
        one.gone = False
        one.found, one.sizes = file_selection.find(folder), patience.call(place.sizes)
        arrived = _Checkpoints(one).bring()
    if not keep_all:
        _drop(one, arrived)
    _logs(one, found.logs)
    _latest(one, arrived)
    place.tidy()
    return one.done


def apart(folder: Path, place: Place) -> None:
    """See that neither lies in the other. Raises UsageError."""
    if not isinstance(place, Folder):
        return
    source, target = folder.resolve(), place.path.resolve()
    if source == target:
        raise UsageError("the run and the target are the same folder", where=place.name)
    if source in target.parents or target in source.parents:
        inner = "target lies in the run" if source in target.parents else "run lies in the target"
        hint = "a folder elsewhere, best on another disk"
        raise UsageError(f"the {inner}", where=place.name, hint=hint)


def _source(folder: Path) -> str:
    said = f"{provenance.now()['host']}:{folder.resolve()}"
    return blake2b(said.encode(), digest_size=8).hexdigest()


class _Checkpoints:
    """Brings the checkpoints that are not there yet: the newest first."""

    def __init__(self, one: _Round) -> None:
        self._round = one

    def bring(self) -> dict[str, Arrived]:
        """Return what lies whole at the target, by the names of the folders."""
        one = self._round
        there = sealed_at(one.place, one.sizes, one.patience)
        wanted = [ours for ours in one.found.checkpoints if not self._is_there(ours, there)]
        one.done.held = held = there.keys() - {ours.folder.name for ours in wanted}
        if not wanted:
            return there
        if RUN_FILE in one.found.logs:  # without it a restored checkpoint is nobody's
            _logs(one, (RUN_FILE,))
        for ours in wanted:
            before = one.done.files, one.done.size
            try:
                there[ours.folder.name] = self._bring(ours, there)
                held.add(ours.folder.name)
            except Changed as error:
                one.done.files, one.done.size = before
                self._say(ours, error)
        return there

    def _is_there(self, ours: Checkpoint, there: Mapping[str, Arrived]) -> bool:
        other = there.get(ours.folder.name)
        return other is not None and other.manifest == ours.manifest

    def _bring(self, ours: Checkpoint, there: Mapping[str, Arrived]) -> Arrived:
        one, name = self._round, ours.folder.name
        seal = file_selection.seal(ours)
        other = there.get(name)
        old = one.index.checkpoints.get(name, ())
        old = _files(other.manifest.files) if other is not None else old
        if other is not None and other.manifest.files == ours.manifest.files:  # it was pinned
            one.copy(seal, f"{name}/{MANIFEST}")
            return replace(other, manifest=ours.manifest)
        made = one.place.begin(name, replaces=other is not None)
        self._announce(ours, made)
        self._fill(ours, made)
        one.copy(seal, f"{made}/{MANIFEST}")
        names = _files(ours.manifest.files)
        one.patience.call(partial(one.place.settle, made, name, names, old))
        one.done.checkpoints.append(name)
        one.tell(
            f"{name}: {byte_text.size(file_selection.size(ours.manifest))} copied and verified"
        )
        return Arrived(name, ours.manifest)

    def _announce(self, ours: Checkpoint, made: str) -> None:
        """See that there is room, and write down what is about to be put there."""
        one = self._round
        room, needed = one.place.room(), file_selection.size(ours.manifest)
        if room is not None and room < needed:
            raise VitalsError(
                byte_text.no_room(needed, room),
                where=one.place.name,
                hint="make room there; the run goes on",
            )
        known = {**one.index.checkpoints, ours.folder.name: _files(ours.manifest.files)}
        one.save_index(replace(one.index, checkpoints=known))
        stale = [
            name
            for name in one.sizes
            if name.startswith(f"{made}/") and name[len(made) + 1 :] not in ours.manifest.files
        ]  # of another checkpoint of that step, broken off: its seal was never there
        one.place.remove(stale)

    def _fill(self, ours: Checkpoint, made: str) -> None:
        """Copy the files that an earlier round did not get through with."""
        one = self._round
        for piece in file_selection.pieces(ours):
            target = f"{made}/{piece.name}"
            begun = one.sizes.get(target) == piece.size
            if not (begun and copy_files.same(one.place, piece, target, one.patience)):
                one.copy(piece, target)

    def _say(self, ours: Checkpoint, why: Changed) -> None:
        """Tell a checkpoint that went while it was copied from one that is damaged."""
        name = ours.folder.name
        if _still(ours):
            self._round.done.failed.append(f"{name} is damaged in the run, not copied: {why}")
        else:
            self._round.done.left = (*self._round.done.left, f"{name} is gone meanwhile")
            self._round.gone = True


def _still(ours: Checkpoint) -> bool:
    try:
        return manifests.read(ours.folder) == ours.manifest
    except BadCheckpoint:
        return False


def _files(names: Mapping[str, object]) -> tuple[str, ...]:
    """Name a checkpoint's files, its seal last."""
    return (*sorted(names), MANIFEST)


def _drop(one: _Round, arrived: Mapping[str, Arrived]) -> None:
    """Delete what this backup put there and the run deleted: never the newest that is whole."""
    newest = max((each.manifest.sequence for each in arrived.values()), default=None)
    own = [each.manifest.sequence for each in one.found.checkpoints]
    if newest is None or not own or newest not in own:
        return  # the run has lost what lies here: this is what a backup is for
    for name, files in sorted(one.index.checkpoints.items()):
        other = arrived.get(name)
        older = other is None or other.manifest.sequence < newest
        if (one.found.folder / name).exists() or not older:
            continue
        one.patience.call(partial(one.place.drop, name, files))
        if other is not None:
            one.done.removed.append(name)
        kept = {each: its for each, its in one.index.checkpoints.items() if each != name}
        one.save_index(replace(one.index, checkpoints=kept))


def _logs(one: _Round, names: tuple[str, ...]) -> None:
    """Bring the files that differ. One that is rewritten meanwhile is looked at again."""
    looked = {name: one.patience.call(partial(_look, one, name)) for name in names}
    new = {name: piece for name, piece in looked.items() if piece is not None}
    wanted = {name: piece for name, piece in new.items() if not _is_there(one, piece)}
    known = dict(one.index.files)
    # Rounds that were killed may have left any of the versions they announced.
    announced = {name: (*known.get(name, (ABSENT,)), _version(new[name])) for name in wanted}
    one.save_index(replace(one.index, files={**known, **announced}))
    for name, piece in wanted.items():
        last = _bring(one, piece)
        if last is not None:
            known[name] = (_version(last),)
            one.sizes[name] = last.size
    if len(names) > 1:
        _superseded(one, known)
    one.save_index(replace(one.index, files=known))


def _look(one: _Round, name: str) -> Piece | None:
    try:
        return copy_files.look(one.found.folder / name, name)
    except Changed:
        return None  # gone since it was listed


def _is_there(one: _Round, piece: Piece) -> bool:
    known = one.index.files.get(piece.name, ())
    return known == (_version(piece),) and one.sizes.get(piece.name) == piece.size


def _version(piece: Piece) -> Version:
    return Version(piece.size, piece.xxh3_128)


def _bring(one: _Round, piece: Piece) -> Piece | None:
    """Copy a file; return it as it was copied, or None where it would not hold still."""
    before = one.index.files.get(piece.name, ())[:-1]
    if len(before) == 1 and _has_tail(one, piece, before[0]) and _extended(one, piece, before[0]):
        return piece
    for _ in range(TRIES):
        try:
            one.copy(piece, piece.name)
        except Changed:
            again = _look(one, piece.name)
            if again is None:
                return None
            piece = again
        else:
            return piece
    one.done.failed.append(f"{piece.name} was rewritten each time it was read: not copied")
    return None


def _has_tail(one: _Round, piece: Piece, before: Version) -> bool:
    there = one.sizes.get(piece.name)
    return there == before.size and TAIL <= before.size < piece.size


def _extended(one: _Round, piece: Piece, before: Version) -> bool:
    """Send the new tail alone, where what is there is how the file begins."""
    try:
        if copy_files.digest(piece.chunks(0), before.size) != before.xxh3_128:
            return False
        copy_files.extend(one.place, piece, piece.name, before.size, one.patience)
    except (copy_files.Stopped, Hung):
        raise
    except Exception:  # noqa: BLE001 - a place that cannot, each in its way: the file goes whole
        return False
    one.done.files += 1
    one.done.size += piece.size - before.size
    return True


def _superseded(one: _Round, known: dict[str, tuple[Version, ...]]) -> None:
    """Delete block files that were packed since: the packed one would miss what they lack."""
    for name in [name for name in known if name.endswith(PACKED)]:
        grown = f"{name.removesuffix(PACKED)}.rlv"
        if grown in known and not os.path.lexists(one.found.folder / grown):
            one.patience.call(partial(one.place.remove, [grown]))
            del known[grown]


def _latest(one: _Round, arrived: Mapping[str, Arrived]) -> None:
    """Name the newest that is whole there."""
    if not arrived:
        return
    newest = max(arrived.values(), key=lambda each: each.manifest.sequence)
    one.done.newest = newest.name
    said = f"{newest.name}\n".encode()
    there = one.sizes.get(naming.LATEST) == len(said)
    if there and copy_files.first(one.place.read(naming.LATEST), len(said)) == said:
        return
    one.patience.call(lambda: one.place.write(naming.LATEST, (said,)))
