"""Read the healthy runs of language models and schedulers, which measure the rules for them.

`scripts/keep_healthy.py` selected them from the runs of `scripts/record_*.py`.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rlvitals
from rlvitals.faults.folder import INDEX_NAME


@dataclass(frozen=True, slots=True)
class HealthyRun:
    """A healthy run in the index."""

    file: str
    settings: dict[str, Any]
    made_by: str

    @property
    def framework(self) -> str:
        """The library that trained the run; ours where none is stated."""
        _, _, libraries = self.made_by.partition(", ")
        return libraries.split(" ")[0] or "rlvitals"

    @property
    def task(self) -> str:
        """The first two parts of the file's name: runs of one task are alike."""
        return "-".join(self.file.split(".")[0].split("-")[:2])


def read(folder: Path) -> tuple[HealthyRun, ...]:
    """List the runs of a folder; empty for a missing folder."""
    index = folder / INDEX_NAME
    if not index.exists():
        return ()
    return tuple(HealthyRun(**json.loads(line)) for line in index.read_text().splitlines())


def diagnose_healthy(folder: Path) -> Iterator[rlvitals.lab.Judged]:
    """Diagnose every run."""
    for run in read(folder):
        trace = rlvitals.trace(folder / run.file, settings=run.settings)
        yield rlvitals.lab.reduce_diagnosis(
            rlvitals.diagnose(trace), healthy=True, framework=run.framework, task=run.task
        )
