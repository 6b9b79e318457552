"""Check that it is the right folder: another with a similar name may contain the run."""

import re
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from itertools import islice
from pathlib import Path

from rlvitals.checkpoints import naming
from rlvitals.doctor.check import Check, Problem
from rlvitals.doctor.context import Context
from rlvitals.errors import quantity
from rlvitals.following.duration_text import format_duration
from rlvitals.readers.discovery.sources import is_folder
from rlvitals.rules.rule import Severity
from rlvitals.startup.fast_dataclass import dataclass

NAME_SEPARATOR = re.compile(r"[-_. ]+")
MIN_LIKENESS = 0.6  # of 1: how alike the parts of two names must be


@dataclass(frozen=True, slots=True)
class Similar:
    """A folder with a similar name."""

    path: Path
    differs: str
    holds: str
    likeness: float


def check_folder_name(context: Context) -> Iterable[Problem]:
    """Yield folders with similar names if this one lacks the expected content."""
    checkpoints = context.checkpoints
    if context.path.is_file() or (checkpoints is not None and checkpoints.seen):
        return
    if context.folder is not None and context.traces:
        matches = [folder for folder in find_similar(context) if "checkpoint" in folder.holds]
        sentence = "this folder has no checkpoint, one that is called almost like it has"
        severity = Severity.NOTE
    else:
        matches = list(find_similar(context))
        problem = (
            "there is no such folder" if context.folder is None else "this folder holds no run"
        )
        sentence = f"{problem}, but one that is called almost like it does"
        severity = Severity.ERROR
    if matches:
        best_matches = matches[:3]
        evidence = [
            f"{folder.path}: {folder.differs}; it holds {folder.holds}" for folder in best_matches
        ]
        tries = [f"rlvitals status {best_matches[0].path}"]
        tries.append("give the training that output folder, seed and mode: it resumes there")
        yield Problem(severity, sentence, tuple(evidence), tuple(tries))


def find_similar(context: Context) -> list[Similar]:
    """Return nearby folders with content and a similar name, the most similar first."""
    path = context.path if context.path.name else context.path.resolve()
    matches = []
    for folder in islice(_iter_neighbours(path), 2000):
        if folder == path or not is_folder(folder):
            continue
        alike = name_likeness(path.name, folder.name)
        if alike >= MIN_LIKENESS and (holds := _describe_content(folder, context.time_s)):
            matches.append(
                Similar(folder, describe_difference(path.name, folder.name), holds, alike)
            )
    return sorted(matches, key=lambda match: (-match.likeness, match.path.name))


def _iter_neighbours(path: Path) -> Iterator[Path]:
    """Yield the folders next to a path; if its parent does not exist, those one level up."""
    parent = path.parent
    if is_folder(parent):
        yield from _list_folders(parent)
        return
    ancestor = next((folder for folder in parent.parents if is_folder(folder)), None)
    for sibling in _list_folders(ancestor) if ancestor is not None else ():
        yield sibling
        yield from _list_folders(sibling)


def _list_folders(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if is_folder(path))
    except OSError:
        return []


def name_likeness(first_name: str, second_name: str) -> float:
    """Return the similarity of two names, part by part, from 0 to 1."""
    first, second = (
        NAME_SEPARATOR.split(first_name.lower()),
        NAME_SEPARATOR.split(second_name.lower()),
    )
    by_part = SequenceMatcher(None, first, second, autojunk=False).ratio()
    by_letter = SequenceMatcher(
        None, first_name.lower(), second_name.lower(), autojunk=False
    ).ratio()
    return max(by_part, by_letter if by_letter > 0.8 else 0.0)  # a slip of a finger


def describe_difference(first_name: str, second_name: str) -> str:
    """Describe the difference of two names."""
    first, second = NAME_SEPARATOR.split(first_name), NAME_SEPARATOR.split(second_name)
    missing = [segment for segment in first if segment not in second]
    extra = [segment for segment in second if segment not in first]
    if len(missing) == len(extra) == 1 and missing[0].isdigit() and extra[0].isdigit():
        return f"another seed or number: {extra[0]} in place of {missing[0]}"
    if missing and extra:
        return f"{'-'.join(extra)} in place of {'-'.join(missing)}"
    if extra:
        return f"it has -{'-'.join(extra)} besides"
    return (
        f"it has no -{'-'.join(missing)}" if missing else "its parts are spelt or joined otherwise"
    )


def _describe_content(folder: Path, time_s: float) -> str:
    """Describe a folder's content of a run; "" if there is none."""
    try:
        names = {path.name for path in folder.iterdir()}
        steps = list(naming.find_checkpoints(folder))
        age = format_duration(max(0.0, time_s - folder.stat().st_mtime))
    except OSError:
        return ""
    if steps:
        return f"{quantity(len(steps), 'checkpoint')}, the last of step {steps[-1]:,}, {age} old"
    logs = [
        name
        for name in names
        if name in ("trainer_state.json", "run.json", "progress.csv", "training_progress.json")
        or name.startswith("events.out.tfevents.")
    ]
    return f"{min(logs)}, {age} old" if logs else ""


FOLDER_NAME_CHECK = Check("folder-name", "Is it the right folder?", check_folder_name)
