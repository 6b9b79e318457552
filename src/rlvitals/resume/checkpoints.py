"""Save, keep, verify, resume: the checkpoints of one run in its folder."""

import shutil
import sys
import time as clock
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from os import PathLike
from pathlib import Path
from typing import Protocol

from rlvitals.errors import UsageError
from rlvitals.resume import cleaning, conditions, disk, naming, retention
from rlvitals.resume import manifest as manifests
from rlvitals.resume.manifest import BadCheckpoint, Manifest, NotSealed
from rlvitals.resume.retention import Best, Policy, surplus

ROOM = 1.2  # times the last checkpoint: so much must be free before the next is begun


class Recorded(Protocol):
    """What is used of a run that `rlvitals.start()` returned."""

    folder: Path
    id: str
    attempt: int
    world_size: int

    @property
    def settings(self) -> Mapping[str, object]:
        """The run's settings."""

    def note(self, text: str) -> None:
        """Count something a person should know of."""


Health = Callable[[int], str]  # the diagnosis at a step: "healthy", or what is wrong
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One sealed checkpoint."""

    folder: Path
    manifest: Manifest

    @property
    def step(self) -> int:
        """The step it was saved at."""
        return self.manifest.step


@dataclass(frozen=True, slots=True)
class Resumed:
    """The checkpoint a run goes on from, and how truly."""

    checkpoint: Checkpoint
    differs: tuple[str, ...]  # why it may not be bit for bit; empty: it is
    refused: tuple[str, ...]  # newer checkpoints that were not used, and why

    @property
    def step(self) -> int:
        """The step to go on from."""
        return self.checkpoint.step

    @property
    def folder(self) -> Path:
        """Where the state lies."""
        return self.checkpoint.folder

    @property
    def sentence(self) -> str:
        """Say it: the promise, or why it cannot be made."""
        at = f"resumed at step {self.step:,} from {self.folder.name}"
        if not self.differs:
            return f"{at}: bit-exact on this machine, with these versions, threads and processes"
        return f"{at}: continues, not bit-exact because {'; '.join(self.differs)}"


@dataclass(frozen=True, slots=True)
class _Owner:
    """Whose checkpoints these are."""

    folder: Path
    run_id: str
    attempt: int  # 0: to be counted
    world_size: int
    settings: str  # their hash
    note: Tell | None


def _owner(
    given: str | PathLike[str] | Recorded, settings: Mapping[str, object] | None, world_size: int
) -> _Owner:
    if isinstance(given, str | PathLike):
        own = conditions.settings_hash(settings) if settings else ""
        return _Owner(Path(given), "", 0, world_size, own, None)
    own = conditions.settings_hash(given.settings if settings is None else settings)
    return _Owner(given.folder, given.id, given.attempt, given.world_size, own, given.note)


class Checkpoints:
    """The checkpoints of a run: a folder is there whole and sealed, or it is not there.

    `folder_or_run`: the run's folder, or a run. `every`: steps between saves. Kept are the `keep`
    newest, the best by `keep_best` (a metric's name, or `Best`), those at multiples of
    `keep_every`, the pinned, and with `keep_healthy` the last whose `health(step)` was "healthy".
    `holds`: patterns of file names that each checkpoint must have. `tell` gets each sentence for
    a person (default: standard error). Raises UsageError for numbers that make no sense.
    """

    def __init__(  # noqa: PLR0913 - what is kept, each by its name
        self,
        folder_or_run: str | PathLike[str] | Recorded,
        *,
        every: int = 50,
        keep: int = 3,
        keep_best: str | Best | None = None,
        keep_every: int | None = None,
        keep_healthy: bool = True,
        health: Health | None = None,
        holds: Sequence[str] = (),
        settings: Mapping[str, object] | None = None,
        world_size: int = 1,
        tell: Tell | None = None,
    ) -> None:
        """Look at what is there, and clear away what a killed process was writing."""
        if every < 1:
            raise UsageError(f"every cannot be {every}", hint="a number of steps: every=50")
        best = Best(keep_best) if isinstance(keep_best, str) else keep_best
        self.policy = Policy(keep, best, keep_every, keep_healthy)
        self.every, self.holds, self._health = every, tuple(holds), health
        self._owner = _owner(folder_or_run, settings, world_size)
        self.folder = self._owner.folder
        self._to_person: Tell = _to_stderr if tell is None else tell
        self._base: int | None = None  # the step this process went on from; None: not asked yet
        self._saved: int | None = None  # the last step saved or resumed from
        self._no_room = False
        self._begin()

    def _begin(self) -> None:
        if self.folder.exists() and not self.folder.is_dir():
            raise UsageError("the run's folder is a file", where=str(self.folder))
        self.folder.mkdir(parents=True, exist_ok=True)
        for said in cleaning.clean(self.folder):
            self._tell(said)
        known = [one.manifest for one in self._sealed()]
        self._sequence = max((one.sequence for one in known), default=0)
        self.attempt = self._owner.attempt or 1 + max((one.attempt for one in known), default=0)

    def due(self, step: int) -> bool:
        """Tell whether `every` steps have passed since the last save, and there is room for one."""
        last = self._saved or 0
        if step <= last or step // self.every <= last // self.every:
            return False
        return self._has_room(step)

    @contextmanager
    def save(
        self,
        step: int,
        *,
        metrics: Mapping[str, float] | None = None,
        pinned: bool = False,
        facts: Mapping[str, object] | None = None,
    ) -> Iterator[Path]:
        """Give a folder to write a step's state into; it is sealed when the block ends.

        Where the block raises, nothing of it stays. A full disk is told, and does not raise:
        training goes on, and older checkpoints are as they were.
        """
        folder = naming.temporary(self.folder, step)
        cleaning.writing.add(folder)
        try:
            folder.mkdir(parents=True)
            yield folder
            made = self._manifest(step, metrics or {}, facts or {}, pinned=pinned)
            self._commit(folder, made)
        except BaseException as error:
            shutil.rmtree(folder, ignore_errors=True)
            if not disk.is_full(error):
                raise
            self._saved = step  # not at each step from now on: at the next that is due
            self._tell(f"checkpoint {step:,} was not saved, the disk is full: training goes on")
        else:
            self._prune()
        finally:
            cleaning.writing.discard(folder)

    def latest(self) -> Checkpoint | None:
        """Return the newest checkpoint of this run that is whole, or None; nothing is changed."""
        for one in self._own():
            try:
                manifests.verify(one.folder, one.manifest)
            except BadCheckpoint:
                continue
            return one
        return None

    def restore(self, load: Callable[[Path], object] | None = None) -> Resumed | None:
        """Find the newest checkpoint that is whole, call `load` with its folder, and tell.

        One that is not what was sealed is set aside as `checkpoint-<step>.corrupt`, and the next
        older one is taken. None: there is none, and the run starts afresh. What `load` raises (a
        shape that does not fit, say) is raised: it is no reason to take an older one.
        """
        refused = list(self._without_manifest())
        for one in self._own():
            try:
                manifests.verify(one.folder, one.manifest)
                self._complete(one.folder, one.manifest)
            except BadCheckpoint as error:
                refused.append(self._set_aside(one.folder, one.step, error))
                continue
            return self._resumed(one, tuple(refused), load)
        self._base, self._saved = -1, None
        self._tell("no checkpoint to resume from: this is a fresh start")
        return None

    def all(self) -> tuple[Checkpoint, ...]:
        """Return the sealed checkpoints that this run may go on from, the newest first."""
        return tuple(self._own())

    def pin(self, step: int) -> None:
        """Keep a checkpoint for good. Raises BadCheckpoint where there is none."""
        folder = naming.final(self.folder, step)
        sealed = manifests.verify(folder)
        manifests.write(folder, replace(sealed, pinned=True))

    def _resumed(
        self, one: Checkpoint, refused: tuple[str, ...], load: Callable[[Path], object] | None
    ) -> Resumed:
        if load is not None:
            load(one.folder)
        differs = conditions.differences(
            one.manifest, conditions.now(), self._owner.world_size, self._owner.settings
        )
        found = Resumed(one, differs, refused)
        self._base = self._saved = one.step
        for stale in self._stale():
            self._tell(f"{stale.folder.name} is of a later step: it is left as it is")
        self._tell(found.sentence)
        return found

    def _manifest(
        self, step: int, metrics: Mapping[str, float], facts: Mapping[str, object], *, pinned: bool
    ) -> Manifest:
        """Say what is being saved, its files excepted."""
        return Manifest(
            step=step,
            sequence=self._sequence + 1,
            files={},
            run_id=self._owner.run_id,
            attempt=self.attempt,
            parent=self._base,
            created=clock.time(),
            world_size=self._owner.world_size,
            settings_hash=self._owner.settings,
            versions=conditions.now(),
            health="" if self._health is None else str(self._health(step)),
            metrics=dict(metrics),
            pinned=pinned,
            facts={"kept": retention.written(self.policy), **facts},
        )

    def _commit(self, folder: Path, made: Manifest) -> None:
        """Seal, have it on the disk, and give it its name by one rename."""
        self._complete(folder, None)
        sealed = manifests.seal(folder, made)
        disk.settle(folder)
        target = naming.final(self.folder, sealed.step)
        replaced = None
        if target.exists():  # of an earlier attempt, from which this one did not go on
            replaced = naming.temporary(self.folder, sealed.step)
            target.rename(replaced)
        folder.rename(target)
        disk.sync_folder(self.folder)
        disk.write_whole(self.folder / naming.LATEST, f"{target.name}\n")
        self._sequence, self._saved = sealed.sequence, sealed.step
        if replaced is not None:
            cleaning.remove(replaced)

    def _complete(self, folder: Path, sealed: Manifest | None) -> None:
        """See that all is there that a checkpoint must hold. Raises BadCheckpoint."""
        if sealed is None:
            names = [path.relative_to(folder).as_posix() for path in disk.files(folder)]
        else:
            names = list(sealed.files)
        for pattern in self.holds:
            if not any(fnmatch(name, pattern) for name in names):
                raise BadCheckpoint(
                    f"it holds no {pattern}",
                    where=str(folder),
                    hint="save the optimizer and the random streams too: else a run cannot go on",
                )

    def _prune(self) -> None:
        """Delete what need not be kept. What cannot be deleted is told, and left."""
        own = {one.manifest.sequence: one for one in self._own()}
        entries = [retention.entry(one.manifest) for one in own.values()]
        for entry in surplus(entries, self.policy):
            try:
                cleaning.retire(self.folder, own[entry.sequence].folder)
            except OSError as error:
                self._tell(f"checkpoint-{entry.step} could not be deleted: {error.strerror}")

    def _sealed(self) -> Iterator[Checkpoint]:
        """Go through the sealed checkpoints of any run, in the order of steps."""
        for path in naming.steps(self.folder).values():
            try:
                yield Checkpoint(path, manifests.read(path))
            except BadCheckpoint:
                continue  # `restore` says so

    def _own(self) -> list[Checkpoint]:
        """Return this run's checkpoints that it may go on from, the newest first."""
        found = [one for one in self._sealed() if self._is_own(one) and not self._is_stale(one)]
        return sorted(found, key=lambda one: -one.manifest.sequence)

    def _stale(self) -> list[Checkpoint]:
        return [one for one in self._sealed() if self._is_own(one) and self._is_stale(one)]

    def _is_own(self, one: Checkpoint) -> bool:
        return not self._owner.run_id or one.manifest.run_id in {"", self._owner.run_id}

    def _is_stale(self, one: Checkpoint) -> bool:
        """See a checkpoint of a step that this attempt has gone back behind."""
        if self._base is None or one.manifest.attempt == self.attempt:
            return False
        return one.step > self._base

    def _without_manifest(self) -> Iterator[str]:
        """Set aside those whose manifest is damaged; folders of other programs stay."""
        for step, folder in naming.steps(self.folder).items():
            try:
                manifests.read(folder, step)
            except NotSealed as error:
                self._tell(f"{folder.name} is not used, and left as it is: {error.problem}")
            except BadCheckpoint as error:
                yield self._set_aside(folder, step, error)

    def _set_aside(self, folder: Path, step: int, why: BadCheckpoint) -> str:
        target = naming.aside(self.folder, step)
        said = f"{folder.name} is not used: {why.problem}"
        try:
            folder.rename(target)
            (target / "why.txt").write_text(f"{said}\n")
            said = f"{said}; it lies in {target.name}"
        except OSError:
            said = f"{said}; it could not be set aside"
        self._tell(said)
        return said

    def _has_room(self, step: int) -> bool:
        newest = next(iter(self._own()), None)
        if newest is None:
            return True
        needed = ROOM * sum(file.size for file in newest.manifest.files.values())
        try:
            there = disk.free(self.folder)
        except OSError:
            return True  # the save itself will tell
        enough = there >= needed
        if not enough and not self._no_room:
            self._tell(
                f"no checkpoint at step {step:,}: {needed / 1e6:,.0f} MB are needed, "
                f"{there / 1e6:,.0f} MB are free; training goes on"
            )
        self._no_room = not enough
        return enough

    def _tell(self, text: str) -> None:
        if self._owner.note is not None:
            self._owner.note(text)
        self._to_person(text)


def _to_stderr(text: str) -> None:
    sys.stderr.write(f"rlvitals: {text}\n")
