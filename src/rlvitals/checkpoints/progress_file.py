"""Read and replace `training_progress.json`, with its last good copy.

<run>/training_progress.json             progress of the run
<run>/.training_progress.previous.json   previous copy: used if the file is damaged
<run>/training_progress.json.corrupt     a damaged file, set aside
"""

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import field
from math import isfinite
from pathlib import Path
from typing import Any

from rlvitals.checkpoints import disk
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage import temp_files
from rlvitals.storage.safe_files import read_regular

PROGRESS_FILE = "training_progress.json"
PREVIOUS_PROGRESS_FILE = ".training_progress.previous.json"


@dataclass(frozen=True, slots=True)
class StoredProgress:
    """Content of a folder's progress file, and its damage."""

    content: Mapping[str, Any] = field(default_factory=dict)
    damage: str = ""  # a sentence; then `content` is the previous copy, or empty
    exists: bool = True  # whether there is, or was, a file


def load(folder: Path) -> StoredProgress:
    """Read the file, or its previous copy if the file is damaged; change nothing."""
    content, damage = _try_parse(folder / PROGRESS_FILE)
    if content is not None:
        return StoredProgress(content)
    previous, _ = _try_parse(folder / PREVIOUS_PROGRESS_FILE)
    if not damage and previous is None:
        return StoredProgress(exists=False)
    if not damage:  # the copy is there, the file is not: deleted, or lost
        damage = f"{PROGRESS_FILE} is missing, a copy of it is there"
    if previous is None:
        return StoredProgress(damage=f"{damage}, and there is no good copy of it")
    return StoredProgress(previous, f"{damage}: the copy before it is used")


def save(folder: Path, content: Mapping[str, object]) -> None:
    """Replace the file by one rename, and keep the old one as the previous copy. Raises OSError.

    A damaged file is set aside, and never becomes the copy.
    """
    path = folder / PROGRESS_FILE
    current, damage = _parse(path)
    if current is not None:
        # The copy is a hard link if the file system supports them.
        copy = folder / PREVIOUS_PROGRESS_FILE
        temporary = temp_files.temp_path(copy)
        try:
            try:
                os.link(path, temporary)
            except OSError:
                shutil.copyfile(path, temporary)
            temporary.replace(copy)
        finally:
            temporary.unlink(missing_ok=True)
    elif damage:
        target, count = path.with_name(f"{path.name}.corrupt"), 1
        while target.exists():
            target, count = path.with_name(f"{path.name}.corrupt-{count}"), count + 1
        path.replace(target)
    disk.replace_text(path, json.dumps(content, indent=2, allow_nan=False) + "\n")


def _try_parse(path: Path) -> tuple[dict[str, Any] | None, str]:
    try:
        return _parse(path)
    except OSError as error:
        return None, f"{path.name} cannot be read: {error.strerror or error}"


def _parse(path: Path) -> tuple[dict[str, Any] | None, str]:
    """Return the content, or None and the damage; (None, "") if there is no file.

    Raises OSError if the file cannot be read.
    """
    try:
        data = read_regular(path)
    except FileNotFoundError:
        return None, ""
    if not data.strip(b"\0 \t\r\n"):
        return None, f"{path.name} is empty"
    try:
        content = json.loads(data, parse_constant=_parse_nan, parse_float=_parse_float)
    except (ValueError, RecursionError):
        return None, f"{path.name} is damaged"
    if not isinstance(content, dict) or not isinstance(content.get("status"), str):
        return None, f"{path.name} does not say a status"
    return content, ""


def _parse_float(text: str) -> float | None:
    """Parse a number; None if JSON cannot represent it."""
    number = float(text)
    return number if isfinite(number) else None


def _parse_nan(_: str) -> None:
    """Parse NaN and the infinities as None."""
