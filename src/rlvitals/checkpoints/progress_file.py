"""`training_progress.json`: read whatever state it is in, replaced whole, its last good copy kept.

<run>/training_progress.json             how far the run is
<run>/.training_progress.previous.json   the copy before it: used where the file is damaged
<run>/training_progress.json.corrupt     a damaged one, set aside
"""

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

from rlvitals.checkpoints import disk
from rlvitals.storage import temp_files
from rlvitals.storage.safe_files import read_regular

FILE = "training_progress.json"
PREVIOUS_PROGRESS_FILE = ".training_progress.previous.json"


@dataclass(frozen=True, slots=True)
class StoredProgress:
    """What a folder's progress file holds, and what is wrong with it."""

    content: Mapping[str, Any] = field(default_factory=dict)
    damage: str = ""  # in words; then `said` is the copy before it, or nothing
    exists: bool = True  # whether there is, or was, a file


def load(folder: Path) -> StoredProgress:
    """Read the file, or the copy before it where that is damaged; nothing is changed."""
    content, damage = _try_parse(folder / FILE)
    if content is not None:
        return StoredProgress(content)
    previous, _ = _try_parse(folder / PREVIOUS_PROGRESS_FILE)
    if not damage and previous is None:
        return StoredProgress(exists=False)
    if not damage:  # the copy is there, the file is not: deleted, or lost
        damage = f"{FILE} is missing, a copy of it is there"
    if previous is None:
        return StoredProgress(damage=f"{damage}, and there is no good copy of it")
    return StoredProgress(previous, f"{damage}: the copy before it is used")


def save(folder: Path, content: Mapping[str, object]) -> None:
    """Replace the file by one rename; what it held is kept as the copy before. OSError.

    A damaged file is set aside, and never becomes the copy.
    """
    path = folder / FILE
    current, damage = _parse(path)
    if current is not None:
        _keep_copy(path, folder / PREVIOUS_PROGRESS_FILE)
    elif damage:
        path.replace(_set_aside_path(path))
    disk.write_whole(path, json.dumps(content, indent=2, allow_nan=False) + "\n")


def _try_parse(path: Path) -> tuple[dict[str, Any] | None, str]:
    try:
        return _parse(path)
    except OSError as error:
        return None, f"{path.name} cannot be read: {error.strerror or error}"


def _parse(path: Path) -> tuple[dict[str, Any] | None, str]:
    """Return what a file says, or None and what is wrong with it: nothing where it is not there.

    OSError where it is there and cannot be read.
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


def _keep_copy(path: Path, copy: Path) -> None:
    """Make `copy` what `path` is now: by a link, where the file system knows them."""
    temporary = temp_files.half(copy)
    try:
        try:
            os.link(path, temporary)
        except OSError:
            shutil.copyfile(path, temporary)
        temporary.replace(copy)
    finally:
        temporary.unlink(missing_ok=True)


def _set_aside_path(path: Path) -> Path:
    target, count = path.with_name(f"{path.name}.corrupt"), 1
    while target.exists():
        target, count = path.with_name(f"{path.name}.corrupt-{count}"), count + 1
    return target


def _parse_float(text: str) -> float | None:
    """Read a number; one that JSON cannot write again is none."""
    number = float(text)
    return number if isfinite(number) else None


def _parse_nan(_: str) -> None:
    """Read NaN and the infinities as nothing."""
