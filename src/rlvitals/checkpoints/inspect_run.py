"""What checkpoints lie in a run's folder, in what state, and which a resume would take.

Nothing is changed: what `Checkpoints` would set aside or clear away is only told.
"""

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from rlvitals.checkpoints import disk, huggingface, naming, other_trainers, provenance, retention
from rlvitals.checkpoints import manifest as manifests
from rlvitals.checkpoints.manifest import BadCheckpoint, Manifest, NotSealed, UnreadableCheckpoint
from rlvitals.errors import UnreadableLog
from rlvitals.storage.run_folder import RUN_FILE, About, read_about
from rlvitals.tracking import other_processes


class State(StrEnum):
    """What can be said of a folder that is called like a checkpoint."""

    WHOLE = "whole"  # every byte is as it was sealed
    SEALED = "sealed"  # its files are there and as long as they were; their bytes were not read
    DAMAGED = "damaged"
    UNREADABLE = "unreadable"  # the file system does not give it: it may be whole
    UNSEALED = "unsealed"
    FOREIGN = "another run's"
    STALE = "stale"  # of a step that the run has gone back behind
    BARE = "weights only"
    ASIDE = "set aside"
    WRITING = "unfinished"  # being written, or left by a process that was killed


READ_AT_ONCE = 256 << 20  # bytes of one checkpoint: read in some tenths of a second
# Of Stable-Baselines3, Lightning, RLlib, and trainers that number their torch files.
OTHERS = re.compile(
    r"(checkpoints/)?(.*_steps\.zip|.*\.ckpt|checkpoint_\d+|(checkpoint|model)_(step_)?\d+\.pth?)"
)
USABLE = (State.WHOLE, State.SEALED)


@dataclass(frozen=True, slots=True)
class Seen:
    """One checkpoint, or what is called like one."""

    folder: Path
    step: int
    state: State
    why: str = ""  # in words: what is wrong, or missing
    size: int = 0  # bytes of its files, as they are now
    saved: float | None = None  # seconds since the epoch, as its manifest says
    health: str = ""  # the diagnosis at its step
    kept: tuple[str, ...] = ()  # why it is not deleted
    sealed: Manifest | None = None
    complete: bool = False  # unsealed, and it looks as if nothing were missing

    @property
    def usable(self) -> bool:
        """Whether a run can go on from it."""
        return self.state in USABLE


@dataclass(frozen=True, slots=True)
class Look:
    """The checkpoints of a run, the oldest first, and the one that a resume would take."""

    folder: Path
    seen: tuple[Seen, ...]
    taken: Seen | None
    why: str  # why that one, or why none
    about: About | None = None
    others: tuple[str, ...] = ()  # what other programs saved here: nobody can tell if it is whole
    trainers: tuple[str, ...] = ()  # processes that train here at the same time, or did

    def some(self, state: State) -> tuple[Seen, ...]:
        """Return those in a state."""
        return tuple(one for one in self.seen if one.state is state)


def look(folder: Path, *, verify: bool = False, most: int = 0) -> Look:
    """Look at a run's checkpoints. OSError.

    `verify`: read every byte. `most`: bytes of the one that is taken which are read all the same.
    """
    about = _about(folder)
    found = [_seen(path, step, about, verify=verify) for step, path in naming.steps(folder).items()]
    found = _with_stale(found)
    found = _with_reasons(found)
    usable = sorted((one for one in found if one.usable), key=_sequence, reverse=True)
    refused: list[Seen] = []
    for one in usable:
        checked = one
        if one.state is State.SEALED and one.size <= most:
            checked = _verified(one)
            found[found.index(one)] = checked
        if checked.usable:
            break
        refused.append(checked)
    else:
        checked = None
    if any(one.state is State.UNREADABLE for one in found):
        checked = None  # which is the newest cannot be told
    others = [*_aside(folder), *_unfinished(folder)]
    ordered = sorted((*found, *others), key=lambda one: (one.step, one.folder.name))
    foreign = of_others(folder)
    why = _why(checked, ordered, foreign)
    trainers = _trainers(folder, (each.sealed for each in found if each.sealed is not None))
    return Look(folder, tuple(ordered), checked, why, about, foreign, trainers)


def _trainers(folder: Path, sealed: Iterable[Manifest]) -> tuple[str, ...]:
    """Name the processes that record or save here at the same time; empty where one does."""
    beats = other_processes.recording(folder, time.time())
    if len(beats) > 1:
        return tuple(
            f"process {beat.writer.pid} on {beat.writer.host}, attempt {beat.attempt}"
            for beat in beats
        )
    names = other_trainers.overlapping(sealed)
    return tuple(f"{other_trainers.label(name)} saved checkpoints" for name in names)


def of_others(folder: Path) -> tuple[str, ...]:
    """Name what other programs saved, which has no seal and no fixed place. OSError."""
    names = [one.name for one in folder.iterdir()]
    inner = folder / "checkpoints"
    if inner.is_dir():
        names += [f"{inner.name}/{one.name}" for one in inner.iterdir()]
    return tuple(sorted(name for name in names if OTHERS.fullmatch(name)))


def try_to(folder: Path) -> Look | None:
    """Look, and read what is read at once; None where the folder cannot be looked into."""
    try:
        return look(folder, most=READ_AT_ONCE)
    except OSError:
        return None


def differences(taken: Seen, about: About | None) -> tuple[str, ...]:
    """Say what was different, as of the run's last start, when a checkpoint was saved."""
    if taken.sealed is None or about is None:
        return ()
    last = about.attempts[-1].world_size if about.attempts else taken.sealed.world_size
    of_a_trainer = huggingface.STATE in taken.sealed.files  # it has settings of its own
    settings = provenance.settings_hash(about.settings) if not of_a_trainer else ""
    bare = replace(taken.sealed, versions={}, facts={})
    return provenance.differences(bare, {}, last, settings)


def _seen(folder: Path, step: int, about: About | None, *, verify: bool) -> Seen:
    try:
        with manifests.reading(folder):
            bare = Seen(folder, step, State.UNSEALED, size=disk.size(folder))
            return _of_seal(bare, about, verify=verify)
    except UnreadableCheckpoint as error:
        return Seen(folder, step, State.UNREADABLE, _unread(error))


def _of_seal(bare: Seen, about: About | None, *, verify: bool) -> Seen:
    """Say what the manifest of a folder makes it. Raises OSError, UnreadableCheckpoint."""
    folder, step = bare.folder, bare.step
    try:
        sealed = manifests.read(folder, step)
    except NotSealed as error:
        cut = huggingface.looks_cut(folder, step) if _of_a_trainer(folder) else ""
        complete = _of_a_trainer(folder) and not cut
        why = error.problem if (folder / naming.MANIFEST).exists() else "no manifest"
        also = cut or ("else complete" if complete else "")
        return replace(bare, why=f"{why}; {also}" if also else why, complete=complete)
    except BadCheckpoint as error:
        return replace(bare, state=State.DAMAGED, why=error.problem)
    own = replace(bare, saved=sealed.created or None, health=sealed.health, sealed=sealed)
    if about is not None and about.id and sealed.run_id not in {"", about.id}:
        return replace(own, state=State.FOREIGN, why="its manifest names another run")
    if sealed.facts.get("weights_only"):
        return replace(own, state=State.BARE, why="a resume would begin a new optimizer")
    if verify:
        return _verified(own)
    lost = _lengths(folder, sealed)
    return replace(own, state=State.DAMAGED if lost else State.SEALED, why=lost)


def _of_a_trainer(folder: Path) -> bool:
    """Tell whether a Hugging Face trainer wrote a folder, or began to."""
    names = {entry.name for entry in folder.iterdir()}
    return bool(names & {huggingface.STATE, "training_args.bin", *huggingface.ADAPTER}) or any(
        name.endswith((".safetensors", "optimizer.pt", "scheduler.pt")) for name in names
    )


def _verified(one: Seen) -> Seen:
    try:
        manifests.verify(one.folder, one.sealed)
    except UnreadableCheckpoint as error:
        return replace(one, state=State.UNREADABLE, why=_unread(error))
    except BadCheckpoint as error:
        return replace(one, state=State.DAMAGED, why=error.problem)
    return replace(one, state=State.WHOLE)


def _unread(error: UnreadableCheckpoint) -> str:
    """Say which file cannot be read, and why."""
    return f"{Path(error.where).name} {error.problem}"


def _lengths(folder: Path, sealed: Manifest) -> str:
    """Say which file is not as long as it was sealed; empty where all are."""
    for name, file in sealed.files.items():
        try:
            size = (folder / name).lstat().st_size
        except (FileNotFoundError, NotADirectoryError):
            return f"{name} is missing"
        if size != file.size:
            return f"{name} has {size:,} bytes, {file.size:,} were sealed"
    return ""


def _with_stale(found: Sequence[Seen]) -> list[Seen]:
    """Mark those of steps that the run has gone back behind since."""
    newest = max((one for one in found if one.usable), key=_sequence, default=None)
    return [
        replace(
            one, state=State.STALE, why=f"the run went back, and has saved step {newest.step:,}"
        )
        if newest is not None and one.usable and one.step > newest.step
        else one
        for one in found
    ]


def _with_reasons(found: Sequence[Seen]) -> list[Seen]:
    """Say of each that is kept why retention keeps it."""
    own = [one for one in found if one.sealed is not None and one.usable]
    newest = max(own, key=_sequence, default=None)
    said = newest.sealed.facts.get("kept") if newest and newest.sealed else None
    policy = retention.policy(said)
    entries = [retention.entry(one.sealed) for one in own if one.sealed is not None]
    reasons = retention.reasons(entries, policy)
    return [
        replace(one, kept=reasons.get(_sequence(one), ())) if one in own else one for one in found
    ]


def _sequence(one: Seen) -> int:
    return one.sealed.sequence if one.sealed is not None else -1


def _aside(folder: Path) -> list[Seen]:
    found = []
    asides = (naming.CORRUPT, naming.BEFORE)
    paths = [path for why in asides for path in folder.glob(f"{naming.PREFIX}*.{why}*")]
    for path in sorted(paths):
        step = path.name.removeprefix(naming.PREFIX).partition(".")[0]
        if path.is_dir() and step.isdigit():
            found.append(
                Seen(
                    path,
                    int(step),
                    State.ASIDE,
                    why=_told(path),
                    size=disk.size(path),
                )
            )
    return found


def _told(path: Path) -> str:
    """Read why a checkpoint was set aside."""
    if f".{naming.BEFORE}" in path.name:
        return "set aside whole, for a fresh start"
    try:
        said = (path / "why.txt").read_text(errors="replace").strip()
    except OSError:
        return "nobody wrote down why"
    return said.partition(": ")[2] or said


def _unfinished(folder: Path) -> list[Seen]:
    return [
        Seen(
            one.path,
            one.step,
            State.WRITING,
            why="it has no name yet: being written, or its process was killed",
            size=disk.size(one.path),
        )
        for one in naming.unfinished(folder)
    ]


def _why(taken: Seen | None, seen: Sequence[Seen], others: Sequence[str]) -> str:
    """Say why a resume takes this one, or none."""
    if unread := [one for one in seen if one.state is State.UNREADABLE]:
        return f"a resume stops: {unread[-1].folder.name} cannot be read"
    if taken is not None:
        newer = [one for one in seen if not one.usable and _is_newer(one, taken)]
        said = "the newest that is sealed" if taken.state is State.SEALED else "the newest whole"
        passed = ", ".join(f"{one.folder.name} is {one.state}" for one in newer)
        return f"{said}; {passed}" if passed else said
    return _why_none(seen, others)


def _why_none(seen: Sequence[Seen], others: Sequence[str]) -> str:
    if not seen and others:
        count = f"{len(others)} checkpoint{'s' if len(others) > 1 else ''}"
        return f"another program saved {count}, without a seal; the last is {others[-1]}"
    if not seen:
        return "there is no checkpoint: a run starts afresh"
    complete = [one for one in seen if one.complete]
    if complete:
        return f"none is sealed; {complete[-1].folder.name} looks complete"
    if any(one.sealed is not None or one.state is State.DAMAGED for one in seen):
        return "none is whole and of this run: a resume stops, and asks for --fresh"
    return "none is sealed and whole: a run starts afresh"


def _is_newer(one: Seen, taken: Seen) -> bool:
    if one.sealed is not None:
        return _sequence(one) > _sequence(taken) and one.state is not State.STALE
    return one.step > taken.step


def _about(folder: Path) -> About | None:
    try:
        return read_about(folder / RUN_FILE)
    except UnreadableLog:
        return None
