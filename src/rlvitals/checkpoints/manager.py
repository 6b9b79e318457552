"""Save, retain, verify and resume the checkpoints of a run."""

import shutil
import time as clock
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Self

from rlvitals.checkpoints import disk, naming, provenance, ranks, recovery, retention, selection
from rlvitals.checkpoints import manifest as manifests
from rlvitals.checkpoints.async_writer import AsyncWriter
from rlvitals.checkpoints.catalog import Catalog, Checkpoint
from rlvitals.checkpoints.commit import commit
from rlvitals.checkpoints.disk import disk_is_full
from rlvitals.checkpoints.manifest import BadCheckpoint, CannotResume, File, Manifest
from rlvitals.checkpoints.other_trainers import this_process
from rlvitals.checkpoints.owner import RecordedRun, Tell, check_writable, find_owner, print_stderr
from rlvitals.checkpoints.resume_result import Resumed
from rlvitals.checkpoints.retention import Best, Policy
from rlvitals.checkpoints.state.tensors import BufferPool
from rlvitals.checkpoints.state.training_state import State, rank_folder
from rlvitals.checkpoints.training_code import code
from rlvitals.errors import UsageError

Health = Callable[[int], str]  # the diagnosis at a step: "healthy", or what is wrong


class Checkpoints:
    """The checkpoints of a run: a folder is either complete and sealed, or absent.

    `folder_or_run`: a run, or its folder; for a folder, `settings` and `world_size` (processes) are
    the training's. `every`: steps between saves. Retained are the `keep` newest, the best by
    `keep_best` (a metric's name, or `Best`), the first at or after each multiple of `keep_every`
    steps, the pinned, and with `keep_healthy` the last whose step `health` called "healthy".
    `holds`: file name patterns that each checkpoint must match. `background`: `save_state` only
    copies, and a thread writes. `together`: every process of the training creates this object and
    calls its methods at the same steps; each writes its part of one checkpoint and waits at most
    `patience` seconds for the others. `tell` receives each message for the user (default: standard
    error). Raises UsageError for invalid numbers or an unusable folder.
    """

    _catalog_type: type[Catalog] = Catalog  # how it looks at what lies in the folder

    def __init__(  # noqa: PLR0913 - what is kept, each by its name
        self,
        folder_or_run: str | PathLike[str] | RecordedRun,
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
        background: bool = False,
        together: bool = False,
        patience: float = 600.0,
        tell: Tell | None = None,
    ) -> None:
        """Read the folder, and remove what a killed process was writing."""
        if every < 1:
            raise UsageError(f"every cannot be {every}", hint="a number of steps: every=50")
        best = Best(keep_best) if isinstance(keep_best, str) else keep_best
        self.policy = Policy(keep, best, keep_every, keep_healthy)
        self.every, self.holds, self._health = every, tuple(holds), health
        self._owner = find_owner(folder_or_run, settings, world_size)
        self.folder = self._owner.folder
        self._to_person: Tell = print_stderr if tell is None else tell
        self._group = ranks.find_group(self._owner, patience) if together else ranks.SingleProcess()
        self._world = self._group.size if together else self._owner.world_size
        self._catalog = self._catalog_type(self.folder, self._owner.run_id, self._tell)
        self._catalog.mirror = self._owner.mirror
        self._buffers = BufferPool() if background else None
        self._writer = AsyncWriter(self._tell)
        self._saved: int | None = None  # the last step saved or resumed from
        self._no_room = False
        code.begin()
        counts = ranks.run_on_all(self._group, self._recover)[0]
        self._sequence, self._catalog.attempt, process = counts
        self._catalog.sequence = self._sequence
        self._catalog.process = "" if isinstance(self._group, ranks.SingleProcess) else process

    def _recover(self) -> tuple[int, int, str]:
        """Remove unfinished folders; return last sequence, attempt, process. CannotResume."""
        with manifests.read_errors(self.folder):
            if self._group.rank == 0:
                for text in recovery.recover(self.folder):
                    self._tell(text)
            sealed = [checkpoint.manifest for checkpoint in self._catalog.iter_sealed()]
        attempt = self._owner.attempt or 1 + max((m.attempt for m in sealed), default=0)
        return max((m.sequence for m in sealed), default=0), attempt, this_process()

    @property
    def attempt(self) -> int:
        """Number of this start of the run's process, from 1."""
        return self._catalog.attempt

    def due(self, step: int) -> bool:
        """Return whether `every` steps have passed since the last save, and the disk has room.

        False while a checkpoint is being written: the first step after that returns True. With
        several processes, which must all get the same answer, only the steps count.
        """
        last = self._saved or 0
        if step <= last or step // self.every <= last // self.every:
            return False
        if self._group.size > 1:
            return True
        self._writer.check()
        return not self._writer.busy and self._has_room(step)

    @contextmanager
    def save(
        self,
        step: int,
        *,
        metrics: Mapping[str, float] | None = None,
        pinned: bool = False,
        facts: Mapping[str, object] | None = None,
    ) -> Iterator[Path]:
        """Yield a folder to write the state of `step` into; seal it when the block ends.

        `metrics` are numbers by name, `facts` more fields of the manifest; `pinned` retains it. If
        the block raises, the folder is removed. A full disk is reported and raises nothing:
        training continues, and older checkpoints stay as they were. Several processes get the same
        folder, and each writes files of its own names.
        """
        manifest = self._draft_manifest(step, metrics, facts, pinned=pinned)
        with self._commit_folder(manifest, {}) as folder:
            yield folder

    def save_state(
        self,
        step: int,
        state: State,
        *,
        metrics: Mapping[str, float] | None = None,
        pinned: bool = False,
        facts: Mapping[str, object] | None = None,
    ) -> None:
        """Save the `state` of a program; with `background`, return as soon as it is copied.

        `step`, `metrics`, `pinned` and `facts` are as in `save`. Waits for a checkpoint that is
        still being written, and raises its error here.
        """
        manifest = self._draft_manifest(step, metrics, facts, pinned=pinned)
        copy = state.copy(self._buffers)
        manifest = replace(manifest, facts={**manifest.facts, "not_saved": list(copy.not_saved)})

        def write() -> None:
            files: dict[str, File] = {}
            with self._commit_folder(manifest, files) as folder:
                own_folder = rank_folder(folder, self._group.rank, self._group.size)
                own_folder.mkdir(exist_ok=True)
                arrays = copy.save(own_folder)
                files |= {
                    (own_folder / k).relative_to(folder).as_posix(): v for k, v in arrays.items()
                }

        if self._buffers is None:
            write()
        else:
            self._saved = step
            self._writer.begin(f"checkpoint {step:,}", write)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait at most `timeout` seconds for the write in progress; False if it did not end.

        Raises the error of the write.
        """
        return self._writer.wait(timeout)

    def close(self) -> None:
        """Wait for the write in progress. Raises its error."""
        self._writer.wait()

    def __enter__(self) -> Self:
        """Return the object itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Wait for the write in progress; its error does not replace one of the block."""
        if error is None:
            self.close()
        else:
            self._writer.join()

    def latest(self) -> Checkpoint | None:
        """Return the newest intact checkpoint of this run, or None; change nothing."""
        self._writer.join()
        return next(filter(_is_intact, self._catalog.list_usable()), None)

    def best(self) -> Checkpoint | None:
        """Return the best intact checkpoint by `keep_best`, or by the saved policy; or None."""
        self._writer.join()
        candidates = self._catalog.list_usable()
        policies = (checkpoint.manifest.facts.get("kept") for checkpoint in candidates)
        ranked = self.policy.best or retention.policy_from_dict(next(policies, None)).best
        remaining = {checkpoint.manifest.sequence: checkpoint for checkpoint in candidates}
        while ranked and (
            first := ranked.of([retention.make_entry(c.manifest) for c in remaining.values()])
        ):
            if _is_intact(checkpoint := remaining.pop(first.sequence)):
                return checkpoint
        return None

    def restore(
        self,
        load: Callable[[Path], object] | None = None,
        *,
        fresh: bool = False,
        require_resume: bool = False,
    ) -> Resumed | None:
        """Find the newest intact checkpoint, call `load` with its folder, and report it.

        A damaged checkpoint is renamed to `checkpoint-<step>.corrupt`, and the next older one is
        used. None: no checkpoint was ever sealed here, and the run starts at step 0. `fresh` starts
        at step 0 in any case: existing checkpoints are renamed to `checkpoint-<step>.before-fresh`.
        Exceptions of `load` (a shape that does not fit, say) are raised: they are no reason to use
        an older checkpoint. Sentences that `load` returns as a tuple state why the run does not
        continue bit for bit. Several processes share the verification.

        Raises CannotResume, and renames nothing, if a file cannot be read (a read error is no
        damage), if no sealed checkpoint is intact and of this run, and with `require_resume` if
        there is none; UsageError with both `fresh` and `require_resume`. What a run's bucket has
        from another machine is fetched first.
        """
        self._writer.wait()
        with manifests.read_errors(self.folder):
            checkpoint, refused = selection.choose_checkpoint(
                self._group, self._catalog, self.holds, fresh=fresh, require_resume=require_resume
            )
        self._sequence = max(self._sequence, self._catalog.sequence)
        if checkpoint is not None:
            return self._finish_restore(checkpoint, refused, load)
        self._catalog.base, self._saved = -1, None
        reason = "as asked" if fresh else "no checkpoint to resume from"
        self._tell(f"{reason}: this is a fresh start")
        return None

    def restore_state(
        self, state: State, *, fresh: bool = False, require_resume: bool = False
    ) -> Resumed | None:
        """Load what `save_state` saved into `state`; `fresh`, `require_resume`: as in `restore`.

        A process that is new since the save gets another's state, without its random streams.
        """
        return self.restore(
            lambda folder: state.load_rank(folder, self._group.rank),
            fresh=fresh,
            require_resume=require_resume,
        )

    def all(self) -> tuple[Checkpoint, ...]:
        """Return the sealed checkpoints that this run may continue from, the newest first."""
        self._writer.join()
        return tuple(self._catalog.list_usable())

    def at(self, step: int) -> Checkpoint:
        """Return a step's checkpoint; change nothing. Raises BadCheckpoint if it is not intact."""
        self._writer.join()
        folder = naming.checkpoint_path(self.folder, step)
        return Checkpoint(folder, manifests.verify(folder))

    def pin(self, step: int) -> None:
        """Keep a checkpoint permanently. Raises BadCheckpoint if there is none."""
        checkpoint = self.at(step)
        manifests.write(checkpoint.folder, replace(checkpoint.manifest, pinned=True))

    def _finish_restore(
        self,
        checkpoint: Checkpoint,
        refused: tuple[str, ...],
        load: Callable[[Path], object] | None,
    ) -> Resumed:
        sentences: object = ()
        if load is not None:
            with ranks.wrap_exceptions(checkpoint.folder):
                sentences = load(checkpoint.folder)
        differs, unverified = provenance.compare(
            checkpoint.manifest, self._world, self._owner.settings
        )
        if isinstance(sentences, tuple):
            differs += tuple(text for text in sentences if text not in differs)
        result = Resumed(checkpoint, differs, refused, unverified)
        self._catalog.base = self._saved = checkpoint.step
        for stale in self._catalog.list_stale():
            self._tell(f"{stale.folder.name} is of a later step: it is left as it is")
        self._tell(result.sentence)
        return result

    def _draft_manifest(
        self,
        step: int,
        metrics: Mapping[str, float] | None,
        facts: Mapping[str, object] | None,
        *,
        pinned: bool,
    ) -> Manifest:
        """Return the manifest of the next save without its files, after any write in progress."""
        if isinstance(self._group, ranks.SingleProcess):
            ranks.refuse_separate_saves(self._owner)
        check_writable(self.folder)
        self._writer.wait()
        self._sequence = max(self._sequence, self._catalog.find_other_trainers())
        return Manifest(
            step=step,
            sequence=self._sequence + 1,
            files={},
            run_id=self._owner.run_id,
            attempt=self.attempt,
            parent=self._catalog.base,
            created=clock.time(),
            world_size=self._world,
            settings_hash=self._owner.settings,
            versions=provenance.current_versions(),
            health="" if self._health is None else str(self._health(step)),
            metrics=dict(metrics or {}),
            pinned=pinned,
            facts={"kept": retention.policy_to_dict(self.policy), **(facts or {})},
            process=self._catalog.process or this_process(),
        )

    @contextmanager
    def _commit_folder(self, manifest: Manifest, files: Mapping[str, File]) -> Iterator[Path]:
        """Yield a folder to write into, and commit it. `files`: hashes known by then."""
        name = naming.unfinished_path(self.folder, manifest.step).name
        folder = self.folder / ranks.exchange_values(self._group, name)[0]
        recovery.writing.add(folder)
        try:
            error: Exception | None = None
            try:
                folder.mkdir(parents=True, exist_ok=True)
                with ranks.wrap_exceptions(folder):
                    yield folder
            except Exception as exception:  # noqa: BLE001 - `commit` raises it when all have heard
                error = exception
            manifest = replace(manifest, code=code.record())
            if self._group.rank == 0:
                self._catalog.move_other_aside(manifest.step)
            message = commit(self._group, folder, manifest, files, self.holds, error)
        except BaseException as exception:
            if self._group.rank == 0:
                shutil.rmtree(folder, ignore_errors=True)
            if not disk_is_full(exception):
                raise
            self._saved = manifest.step  # not at each step from now on: at the next that is due
            problem = "was not saved, the disk is full: training goes on"
            self._tell(f"checkpoint {manifest.step:,} {problem}")
        else:
            self._sequence, self._saved = manifest.sequence, manifest.step
            if message:
                self._tell(message)
            if self._group.rank == 0:
                self._catalog.prune(self.policy)
        finally:
            recovery.writing.discard(folder)

    def _has_room(self, step: int) -> bool:
        try:
            newest = next(iter(self._catalog.list_usable()), None)
            free_bytes = disk.count_free_bytes(self.folder)
        except (OSError, CannotResume):
            return True  # the save itself will tell
        if newest is None:
            return True
        needed_bytes = disk.FREE_SPACE_FACTOR * newest.size
        enough = free_bytes >= needed_bytes
        if not enough and not self._no_room:
            self._tell(
                f"no checkpoint at step {step:,}: {needed_bytes / 1e6:,.0f} MB are needed, "
                f"{free_bytes / 1e6:,.0f} MB are free; training goes on"
            )
        self._no_room = not enough
        return enough

    def _tell(self, text: str) -> None:
        if self._owner.note is not None:
            self._owner.note(text)
        if self._group.rank == 0:
            self._to_person(text)


def _is_intact(checkpoint: Checkpoint) -> bool:
    try:
        manifests.verify(checkpoint.folder, checkpoint.manifest)
    except BadCheckpoint:
        return False
    return True
