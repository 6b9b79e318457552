"""Files that another file of the same run holds in full."""

import re
from pathlib import Path

from rlvitals.errors import UnreadableLog
from rlvitals.readers import native, rllib, trainer_state
from rlvitals.readers.discovery.run_names import CHECKPOINT
from rlvitals.readers.formats.compressed import bare
from rlvitals.readers.formats.lines import read_head
from rlvitals.readers.reader import Files, Reader
from rlvitals.storage.run_folder import BLOCKS_FOLDER, EVENTS_FILE, RUN_FILE

SINKS = frozenset({BLOCKS_FOLDER, "tensorboard", "metrics"})  # folders in a run folder of ours
WRITTEN = frozenset({EVENTS_FILE, "metrics.jsonl", "ppo_training.log"})


def without_copies(files: Files) -> tuple[list[tuple[Path, Reader]], list[str]]:
    """Drop what another file of the run holds in full; say what was dropped."""
    plain = {file for file, _ in files}
    packed = [file for file in plain if bare(file) != file and bare(file) in plain]
    kept = [pair for pair in files if pair[0] not in packed]
    notes = [f"{file.name} not read: {bare(file).name} stands beside it" for file in sorted(packed)]
    kept = _without_sinks(kept)
    states = [file for file, reader in kept if reader.name == trainer_state.READER.name]
    if len(states) > 1:
        best = max(states, key=_state_rank)
        kept = [pair for pair in kept if pair[0] not in states or pair[0] == best]
        notes.append(f"read of {len(states)} trainer_state.json: {best.parent.name}'s, the newest")
    tuned = [file for file, reader in kept if reader.name == rllib.READER.name]
    results = {file.parent for file in tuned if bare(file).name == "result.json"}
    twins = [f for f in tuned if bare(f).suffix == ".csv" and f.parent in results]
    if twins:
        kept = [pair for pair in kept if pair[0] not in twins]
        notes.append("progress.csv not read: result.json holds the same and more")
    return kept, notes


def _without_sinks(files: list[tuple[Path, Reader]]) -> list[tuple[Path, Reader]]:
    """Drop what our own recorder wrote beside a run's blocks: they hold the same, and more."""
    folders = {file.parent for file, reader in files if file.name == RUN_FILE and _is_own(reader)}
    return [
        (file, reader)
        for file, reader in files
        if not any(_is_beside(file, folder) for folder in folders)
    ]


def _is_own(reader: Reader) -> bool:
    return reader.name == native.READER.name


def _is_beside(file: Path, folder: Path) -> bool:
    """Tell what is read with, or written from, a run folder's blocks."""
    if not (folder / BLOCKS_FOLDER).is_dir() or not file.is_relative_to(folder):
        return False
    first, *rest = file.relative_to(folder).parts
    return (first in SINKS and bool(rest)) or (not rest and first in WRITTEN)


def _state_rank(file: Path) -> tuple[int, bool]:
    """Rank a trainer's states by their last step; of equals the output folder's own wins."""
    found = CHECKPOINT.fullmatch(file.parent.name)
    try:
        head = read_head(file)
    except UnreadableLog:  # gone since it was found: reading it says so
        head = b""
    written = re.search(rb'"global_step":\s*(\d+)', head)
    step = int(written[1]) if written else 0
    return (int(found[1]) if found else step), found is None
