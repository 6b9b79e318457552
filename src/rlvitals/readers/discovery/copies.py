"""Drop files whose content another file of the run contains."""

import re
from pathlib import Path

from rlvitals.errors import UnreadableLog
from rlvitals.readers import native, rllib, trainer_state
from rlvitals.readers.discovery.run_names import CHECKPOINT_FOLDER
from rlvitals.readers.formats.compressed import bare
from rlvitals.readers.formats.lines import read_head
from rlvitals.readers.reader import Files, Reader
from rlvitals.storage.run_folder import BLOCKS_FOLDER, EVENTS_FILE, RUN_FILE


def without_copies(files: Files) -> tuple[list[tuple[Path, Reader]], list[str]]:
    """Drop what another file of the run holds in full; say what was dropped."""
    plain = {file for file, _ in files}
    packed = [file for file in plain if bare(file) != file and bare(file) in plain]
    remaining = [pair for pair in files if pair[0] not in packed]
    notes = [f"{file.name} not read: {bare(file).name} stands beside it" for file in sorted(packed)]
    # The sinks' files next to a run's blocks contain the same.
    folders = {
        file.parent
        for file, reader in remaining
        if file.name == RUN_FILE and reader.name == native.READER.name
    }
    remaining = [
        (file, reader)
        for file, reader in remaining
        if not any(_is_sink_copy(file, folder) for folder in folders)
    ]
    states = [file for file, reader in remaining if reader.name == trainer_state.READER.name]
    if len(states) > 1:
        best = max(states, key=_state_rank)
        remaining = [pair for pair in remaining if pair[0] not in states or pair[0] == best]
        notes.append(f"read of {len(states)} trainer_state.json: {best.parent.name}'s, the newest")
    tuned = [file for file, reader in remaining if reader.name == rllib.READER.name]
    results = {file.parent for file in tuned if bare(file).name == "result.json"}
    twins = [f for f in tuned if bare(f).suffix == ".csv" and f.parent in results]
    if twins:
        remaining = [pair for pair in remaining if pair[0] not in twins]
        notes.append("progress.csv not read: result.json holds the same and more")
    return remaining, notes


def _is_sink_copy(file: Path, folder: Path) -> bool:
    """Return True for a file that is read with, or written from, a run folder's blocks."""
    if not (folder / BLOCKS_FOLDER).is_dir() or not file.is_relative_to(folder):
        return False
    first, *subpath = file.relative_to(folder).parts
    # What sinks write into a run folder of ours.
    return (first in {BLOCKS_FOLDER, "tensorboard", "metrics"} and bool(subpath)) or (
        not subpath and first in {EVENTS_FILE, "metrics.jsonl", "ppo_training.log"}
    )


def _state_rank(file: Path) -> tuple[int, bool]:
    """Rank a trainer's states by their last step; of equals the output folder's own wins."""
    checkpoint = CHECKPOINT_FOLDER.fullmatch(file.parent.name)
    try:
        head = read_head(file)
    except UnreadableLog:  # gone since it was found: reading it says so
        head = b""
    step_text = re.search(rb'"global_step":\s*(\d+)', head)
    step = int(step_text[1]) if step_text else 0
    return (int(checkpoint[1]) if checkpoint else step), checkpoint is None
