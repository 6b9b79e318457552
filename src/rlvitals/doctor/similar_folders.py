"""Whether it is the right folder: another one may be called almost like it, and hold the run."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice
from pathlib import Path

from rlvitals.checkpoints import naming
from rlvitals.doctor.check import Check, Trouble
from rlvitals.doctor.context import Scene
from rlvitals.following.duration_text import span
from rlvitals.readers.discovery.sources import is_folder
from rlvitals.rules.rule import Severity

PARTS = re.compile(r"[-_. ]+")
ALIKE = 0.6  # of 1: how alike the parts of two names must be
MOST_FOLDERS, MOST_SHOWN = 2000, 3
LOGS = ("trainer_state.json", "run.json", "progress.csv", "training_progress.json")
EVENTS = "events.out.tfevents."


@dataclass(frozen=True, slots=True)
class Similar:
    """A folder that is called almost as the one asked for."""

    path: Path
    differs: str
    holds: str
    likeness: float


def look(scene: Scene) -> Iterable[Trouble]:
    """Tell of folders with almost this name where this one does not hold what is sought."""
    held = scene.checkpoints
    if scene.path.is_file() or (held is not None and held.seen):
        return
    if scene.folder is not None and scene.traces:
        found = [one for one in similar(scene) if "checkpoint" in one.holds]
        said = "this folder has no checkpoint, one that is called almost like it has"
        severity = Severity.NOTE
    else:
        found = list(similar(scene))
        what = "there is no such folder" if scene.folder is None else "this folder holds no run"
        said = f"{what}, but one that is called almost like it does"
        severity = Severity.ERROR
    if found:
        shown = found[:MOST_SHOWN]
        evidence = [f"{one.path}: {one.differs}; it holds {one.holds}" for one in shown]
        tries = [f"rlvitals status {shown[0].path}"]
        tries.append("give the training that output folder, seed and mode: it resumes there")
        yield Trouble(severity, said, tuple(evidence), tuple(tries))


def similar(scene: Scene) -> list[Similar]:
    """Return the folders near by that hold something and are called almost so, the likest first."""
    asked = scene.path if scene.path.name else scene.path.resolve()
    found = []
    for folder in islice(_around(asked), MOST_FOLDERS):
        if folder == asked or not is_folder(folder):
            continue
        alike = likeness(asked.name, folder.name)
        if alike >= ALIKE and (holds := _holds(folder, scene.now)):
            found.append(Similar(folder, difference(asked.name, folder.name), holds, alike))
    return sorted(found, key=lambda one: (-one.likeness, one.path.name))


def _around(asked: Path) -> Iterator[Path]:
    """Go through the folders beside a path; where what it lies in is not there, through cousins."""
    parent = asked.parent
    if is_folder(parent):
        yield from _folders(parent)
        return
    above = next((one for one in parent.parents if is_folder(one)), None)
    for aunt in _folders(above) if above is not None else ():
        yield aunt
        yield from _folders(aunt)


def _folders(folder: Path) -> list[Path]:
    try:
        return sorted(one for one in folder.iterdir() if is_folder(one))
    except OSError:
        return []


def likeness(one: str, other: str) -> float:
    """Tell how alike two names are, part by part, from 0 to 1."""
    first, second = PARTS.split(one.lower()), PARTS.split(other.lower())
    by_part = SequenceMatcher(None, first, second, autojunk=False).ratio()
    by_letter = SequenceMatcher(None, one.lower(), other.lower(), autojunk=False).ratio()
    return max(by_part, by_letter if by_letter > 0.8 else 0.0)  # noqa: PLR2004 - a slip of a finger


def difference(asked: str, found: str) -> str:
    """Say in words in what two names differ."""
    first, second = PARTS.split(asked), PARTS.split(found)
    lacks = [one for one in first if one not in second]
    more = [one for one in second if one not in first]
    if len(lacks) == len(more) == 1 and lacks[0].isdigit() and more[0].isdigit():
        return f"another seed or number: {more[0]} in place of {lacks[0]}"
    if lacks and more:
        return f"{'-'.join(more)} in place of {'-'.join(lacks)}"
    if more:
        return f"it has -{'-'.join(more)} besides"
    return f"it has no -{'-'.join(lacks)}" if lacks else "its parts are spelt or joined otherwise"


def _holds(folder: Path, now: float) -> str:
    """Say what a folder holds of a run; empty: nothing."""
    try:
        names = {one.name for one in folder.iterdir()}
        steps = list(naming.steps(folder))
        age = span(max(0.0, now - folder.stat().st_mtime))
    except OSError:
        return ""
    if steps:
        more = "s" if len(steps) > 1 else ""
        return f"{len(steps)} checkpoint{more}, the last of step {steps[-1]:,}, {age} old"
    logs = [name for name in names if name in LOGS or name.startswith(EVENTS)]
    return f"{min(logs)}, {age} old" if logs else ""


CHECK = Check("folder-name", "Is it the right folder?", look)
