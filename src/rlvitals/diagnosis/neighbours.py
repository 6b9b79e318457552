"""Read the marked healthy runs beside a run, and compare it with them."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from rlvitals.diagnosis import load, marks
from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.diagnosis.summary import Sentence
from rlvitals.diagnosis.verdict import GOOD_VERDICTS
from rlvitals.errors import UnreadableLog
from rlvitals.metrics.canonicalize import Given
from rlvitals.readers.discovery.sources import Run
from rlvitals.rules.rule import Severity


def attach(diagnosis: Diagnosis, run: Run, overrides: Given) -> Diagnosis:
    """Add the comparison with marked healthy runs beside a run that is not plainly well.

    No evidence is stronger, so that it is the first sentence of the summary.
    """
    has_warning = diagnosis.worst is not None and diagnosis.worst > Severity.NOTE
    if not has_warning and diagnosis.verdict.word in GOOD_VERDICTS:
        return diagnosis
    healthy = []
    for sibling in _healthy_runs(run):
        try:
            healthy.append(load.load(sibling, overrides))
        except UnreadableLog:
            continue
        if len(healthy) == 8:  # enough for a band; each is read in full
            break
    if not healthy:
        return diagnosis
    from rlvitals.comparison.siblings import compare_siblings  # noqa: PLC0415 - few runs have any

    compared = compare_siblings(diagnosis.trace, healthy)
    if compared is None:
        return diagnosis
    sentence = Sentence("siblings", f"Beside healthy siblings, {compared.sentence}.", "neutral")
    return replace(diagnosis, siblings=compared, tldr=(sentence, *diagnosis.tldr))


def _healthy_runs(run: Run) -> Iterator[Run]:
    """Yield the runs in the folders beside a run, and in its own, that are marked healthy."""
    for folder in _marked_folders(run.root):
        try:
            runs = load.runs(folder)
        except UnreadableLog:
            continue
        for sibling in runs:
            mark = marks.read(sibling)
            is_same = sibling.root == run.root.absolute() and sibling.name == run.name
            if mark is not None and mark.label == "healthy" and not is_same:
                yield sibling


def _marked_folders(root: Path) -> list[Path]:
    """List the folders with marks: the run's own and those beside it, by name; of 200 at most."""
    parent = root.absolute().parent
    try:
        with os.scandir(parent) as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir())
    except OSError:
        return []
    folders = [parent / name for name in names] if len(names) <= 200 else [root]
    files = ("marks.jsonl", ".rlvitals-marks.jsonl")
    return [folder for folder in folders if any((folder / file).is_file() for file in files)]
