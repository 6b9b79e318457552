"""Inspect the checkpoints of a run folder, and the one that a resume would use.

Nothing is changed: what `Checkpoints` would set aside or remove is only reported.
"""

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path

from rlvitals.checkpoints import disk, huggingface, naming, other_trainers, provenance, retention
from rlvitals.checkpoints import manifest as manifests
from rlvitals.checkpoints.manifest import BadCheckpoint, Manifest, NotSealed, UnreadableCheckpoint
from rlvitals.errors import UnreadableLog, quantity
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage import holds
from rlvitals.storage.run_folder import RUN_FILE, About, read_about
from rlvitals.tracking import other_processes


class CheckpointState(StrEnum):
    """State of a folder that is named like a checkpoint."""

    WHOLE = "whole"  # every byte is as it was sealed
    SEALED = "sealed"  # its files are there and as long as they were; their bytes were not read
    DAMAGED = "damaged"
    UNREADABLE = "unreadable"  # a read error: it may be intact
    UNSEALED = "unsealed"
    FOREIGN = "another run's"
    STALE = "stale"  # of a step that the run has gone back behind
    BARE = "weights only"
    ASIDE = "set aside"
    WRITING = "unfinished"  # being written, or left by a process that was killed


MAX_QUICK_READ_BYTES = 256 << 20  # bytes of one checkpoint: read in some tenths of a second


@dataclass(frozen=True, slots=True)
class CheckpointStatus:
    """One checkpoint, or a folder that is named like one."""

    folder: Path
    step: int
    state: CheckpointState
    why: str = ""  # in words: what is wrong, or missing
    size: int = 0  # bytes of its files, as they are now
    saved: float | None = None  # seconds since the epoch, as its manifest says
    health: str = ""  # the diagnosis at its step
    kept: tuple[str, ...] = ()  # why it is not deleted
    sealed: Manifest | None = None
    complete: bool = False  # unsealed, and it looks as if nothing were missing

    @property
    def usable(self) -> bool:
        """Whether a run can continue from it."""
        return self.state in {CheckpointState.WHOLE, CheckpointState.SEALED}


@dataclass(frozen=True, slots=True)
class Inspection:
    """The checkpoints of a run, the oldest first, and the one that a resume would use."""

    folder: Path
    seen: tuple[CheckpointStatus, ...]
    taken: CheckpointStatus | None
    why: str  # why that one, or why none
    about: About | None = None
    others: tuple[str, ...] = ()  # saved by other programs, without a seal
    trainers: tuple[str, ...] = ()  # processes that train here at the same time, or did

    def some(self, state: CheckpointState) -> tuple[CheckpointStatus, ...]:
        """Return the checkpoints in a state."""
        return tuple(entry for entry in self.seen if entry.state is state)


def inspect(folder: Path, *, verify: bool = False, most: int = 0) -> Inspection:
    """Inspect the checkpoints of a run. Raises OSError.

    `verify`: read every byte. `most`: size, in bytes, up to which the chosen one is read anyway.
    """
    try:
        run_info = read_about(folder / RUN_FILE)
    except UnreadableLog:
        run_info = None
    entries = [
        _inspect_folder(path, step, run_info, verify=verify)
        for step, path in naming.find_checkpoints(folder).items()
    ]
    entries = _mark_stale(entries)
    entries = _add_keep_reasons(entries)
    usable = sorted((entry for entry in entries if entry.usable), key=_sequence, reverse=True)
    refused: list[CheckpointStatus] = []
    for entry in usable:
        choice = entry
        if entry.state is CheckpointState.SEALED and entry.size <= most:
            choice = _verify(entry)
            entries[entries.index(entry)] = choice
        if choice.usable:
            break
        refused.append(choice)
    else:
        choice = None
    if any(entry.state is CheckpointState.UNREADABLE for entry in entries):
        choice = None  # the newest is unknown
    leftovers = [*_list_set_aside(folder), *_list_unfinished(folder)]
    ordered = sorted((*entries, *leftovers), key=lambda entry: (entry.step, entry.folder.name))
    other_files = list_other_checkpoints(folder)
    reason = _explain_choice(choice, ordered, other_files)
    trainers = _list_trainers(
        folder, (entry.sealed for entry in entries if entry.sealed is not None)
    )
    return Inspection(folder, tuple(ordered), choice, reason, run_info, other_files, trainers)


def _list_trainers(folder: Path, sealed: Iterable[Manifest]) -> tuple[str, ...]:
    """Name the processes that record or save here at the same time; empty if only one does."""
    beats = other_processes.recording(folder, time.time())
    if len(beats) > 1:
        return tuple(
            f"process {beat.writer.pid} on {beat.writer.host}, attempt {beat.attempt}"
            for beat in beats
        )
    names = other_trainers.overlapping(sealed)
    return tuple(f"{other_trainers.label(name)} saved checkpoints" for name in names)


def list_other_checkpoints(folder: Path) -> tuple[str, ...]:
    """Name checkpoints of other programs, which have no manifest. Raises OSError."""
    names = [path.name for path in folder.iterdir()]
    inner = folder / "checkpoints"
    if inner.is_dir():
        names += [f"{inner.name}/{path.name}" for path in inner.iterdir()]
    # Of Stable-Baselines3, Lightning, RLlib, and trainers that number their torch files.
    pattern = re.compile(
        r"(checkpoints/)?(.*_steps\.zip|.*\.ckpt|checkpoint_\d+"
        r"|(checkpoint|model)_(step_)?\d+\.pth?)"
    )
    return tuple(sorted(name for name in names if pattern.fullmatch(name)))


def try_inspect(folder: Path) -> Inspection | None:
    """Inspect a run and read small checkpoints; None if the folder cannot be read."""
    try:
        return inspect(folder, most=MAX_QUICK_READ_BYTES)
    except OSError:
        return None


def differences(chosen: CheckpointStatus, run_info: About | None) -> tuple[str, ...]:
    """Return what differed, at the run's last start, from the process that saved a checkpoint."""
    if chosen.sealed is None or run_info is None:
        return ()
    last = run_info.attempts[-1].world_size if run_info.attempts else chosen.sealed.world_size
    of_a_trainer = (
        huggingface.TRAINER_STATE_FILE in chosen.sealed.files
    )  # it has settings of its own
    settings = provenance.hash_settings(run_info.settings) if not of_a_trainer else ""
    comparable = replace(chosen.sealed, versions={}, facts={})
    return provenance.differences(comparable, {}, last, settings)


def _inspect_folder(
    folder: Path, step: int, run_info: About | None, *, verify: bool
) -> CheckpointStatus:
    try:
        with manifests.read_errors(folder):
            entry = CheckpointStatus(
                folder, step, CheckpointState.UNSEALED, size=disk.count_bytes(folder)
            )
            return _inspect_manifest(entry, run_info, verify=verify)
    except UnreadableCheckpoint as error:
        return CheckpointStatus(folder, step, CheckpointState.UNREADABLE, _format_read_error(error))


def _inspect_manifest(
    entry: CheckpointStatus, run_info: About | None, *, verify: bool
) -> CheckpointStatus:
    """Return the status that the manifest implies. Raises OSError, UnreadableCheckpoint."""
    folder, step = entry.folder, entry.step
    try:
        sealed = manifests.read(folder, step)
    except NotSealed as error:
        damage = huggingface.find_damage(folder, step) if _is_huggingface_folder(folder) else ""
        complete = _is_huggingface_folder(folder) and not damage
        problem = error.problem if (folder / naming.MANIFEST_FILE).exists() else "no manifest"
        details = damage or ("else complete" if complete else "")
        return replace(
            entry, why=f"{problem}; {details}" if details else problem, complete=complete
        )
    except BadCheckpoint as error:
        return replace(entry, state=CheckpointState.DAMAGED, why=error.problem)
    sealed_entry = replace(entry, saved=sealed.created or None, health=sealed.health, sealed=sealed)
    if run_info is not None and run_info.id and sealed.run_id not in {"", run_info.id}:
        return replace(
            sealed_entry, state=CheckpointState.FOREIGN, why="its manifest names another run"
        )
    if sealed.facts.get("weights_only"):
        return replace(
            sealed_entry, state=CheckpointState.BARE, why="a resume would begin a new optimizer"
        )
    if verify:
        return _verify(sealed_entry)
    problem = _find_size_mismatch(folder, sealed)
    return replace(
        sealed_entry,
        state=CheckpointState.DAMAGED if problem else CheckpointState.SEALED,
        why=problem,
    )


def _is_huggingface_folder(folder: Path) -> bool:
    """Return whether a Hugging Face trainer wrote a folder, or began to."""
    names = {entry.name for entry in folder.iterdir()}
    return bool(
        names & {huggingface.TRAINER_STATE_FILE, "training_args.bin", *huggingface.ADAPTER_FILES}
    ) or any(name.endswith((".safetensors", "optimizer.pt", "scheduler.pt")) for name in names)


def _verify(entry: CheckpointStatus) -> CheckpointStatus:
    try:
        manifests.verify(entry.folder, entry.sealed)
    except UnreadableCheckpoint as error:
        return replace(entry, state=CheckpointState.UNREADABLE, why=_format_read_error(error))
    except BadCheckpoint as error:
        return replace(entry, state=CheckpointState.DAMAGED, why=error.problem)
    return replace(entry, state=CheckpointState.WHOLE)


def _format_read_error(error: UnreadableCheckpoint) -> str:
    """Return the name of the unreadable file and the error."""
    return f"{Path(error.where).name} {error.problem}"


def _find_size_mismatch(folder: Path, sealed: Manifest) -> str:
    """Return a sentence for the first file of another size than sealed; "" if none."""
    for name, file in sealed.files.items():
        try:
            size = (folder / name).lstat().st_size
        except (FileNotFoundError, NotADirectoryError):
            return f"{name} is missing"
        if size != file.size:
            return f"{name} has {size:,} bytes, {file.size:,} were sealed"
    return ""


def _mark_stale(entries: Sequence[CheckpointStatus]) -> list[CheckpointStatus]:
    """Mark checkpoints of later steps than one that was saved after them."""
    newest = max((entry for entry in entries if entry.usable), key=_sequence, default=None)
    return [
        replace(
            entry,
            state=CheckpointState.STALE,
            why=f"the run went back, and has saved step {newest.step:,}",
        )
        if newest is not None and entry.usable and entry.step > newest.step
        else entry
        for entry in entries
    ]


def _add_keep_reasons(entries: Sequence[CheckpointStatus]) -> list[CheckpointStatus]:
    """Add to each usable checkpoint why retention keeps it."""
    usable = [entry for entry in entries if entry.sealed is not None and entry.usable]
    newest = max(usable, key=_sequence, default=None)
    policy_fields = newest.sealed.facts.get("kept") if newest and newest.sealed else None
    policy = retention.policy_from_dict(policy_fields)
    candidates = [
        retention.make_entry(entry.sealed, has_hold=holds.applies(entry.folder))
        for entry in usable
        if entry.sealed is not None
    ]
    reasons = retention.keep_reasons(candidates, policy)
    return [
        replace(entry, kept=reasons.get(_sequence(entry), ())) if entry in usable else entry
        for entry in entries
    ]


def _sequence(entry: CheckpointStatus) -> int:
    return entry.sealed.sequence if entry.sealed is not None else -1


def _list_set_aside(folder: Path) -> list[CheckpointStatus]:
    entries = []
    asides = (naming.CORRUPT_SUFFIX, naming.FRESH_START_SUFFIX)
    paths = [
        path for suffix in asides for path in folder.glob(f"{naming.CHECKPOINT_PREFIX}*.{suffix}*")
    ]
    for path in sorted(paths):
        step = path.name.removeprefix(naming.CHECKPOINT_PREFIX).partition(".")[0]
        if path.is_dir() and step.isdigit():
            entries.append(
                CheckpointStatus(
                    path,
                    int(step),
                    CheckpointState.ASIDE,
                    why=_read_set_aside_reason(path),
                    size=disk.count_bytes(path),
                )
            )
    return entries


def _read_set_aside_reason(path: Path) -> str:
    """Return why a checkpoint was set aside."""
    if f".{naming.FRESH_START_SUFFIX}" in path.name:
        return "set aside whole, for a fresh start"
    try:
        text = (path / "why.txt").read_text(errors="replace").strip()
    except OSError:
        return "nobody wrote down why"
    return text.partition(": ")[2] or text


def _list_unfinished(folder: Path) -> list[CheckpointStatus]:
    return [
        CheckpointStatus(
            leftover.path,
            leftover.step,
            CheckpointState.WRITING,
            why="it has no name yet: being written, or its process was killed",
            size=disk.count_bytes(leftover.path),
        )
        for leftover in naming.find_unfinished(folder)
    ]


def _explain_choice(
    choice: CheckpointStatus | None, entries: Sequence[CheckpointStatus], other_files: Sequence[str]
) -> str:
    """Return why a resume uses this checkpoint, or none."""
    if unreadable := [entry for entry in entries if entry.state is CheckpointState.UNREADABLE]:
        return f"a resume stops: {unreadable[-1].folder.name} cannot be read"
    if choice is not None:
        newer = [entry for entry in entries if not entry.usable and _is_newer(entry, choice)]
        reason = (
            "the newest that is sealed"
            if choice.state is CheckpointState.SEALED
            else "the newest whole"
        )
        exceptions = ", ".join(f"{entry.folder.name} is {entry.state}" for entry in newer)
        return f"{reason}; {exceptions}" if exceptions else reason
    return _explain_no_choice(entries, other_files)


def _explain_no_choice(entries: Sequence[CheckpointStatus], other_files: Sequence[str]) -> str:
    if not entries and other_files:
        count = quantity(len(other_files), "checkpoint")
        return f"another program saved {count}, without a seal; the last is {other_files[-1]}"
    if not entries:
        return "there is no checkpoint: a run starts afresh"
    complete = [entry for entry in entries if entry.complete]
    if complete:
        return f"none is sealed; {complete[-1].folder.name} looks complete"
    if any(entry.sealed is not None or entry.state is CheckpointState.DAMAGED for entry in entries):
        return "none is whole and of this run: a resume stops, and asks for --fresh"
    return "none is sealed and whole: a run starts afresh"


def _is_newer(entry: CheckpointStatus, choice: CheckpointStatus) -> bool:
    if entry.sealed is not None:
        return _sequence(entry) > _sequence(choice) and entry.state is not CheckpointState.STALE
    return entry.step > choice.step
