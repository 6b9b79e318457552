"""Healthy runs of language models and schedulers: what rules that a control task has no use for
are measured on. `scripts/keep_healthy.py` put them there from runs that `scripts/record_*.py` made.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rlvitals
from rlvitals.faults.folder import INDEX


@dataclass(frozen=True, slots=True)
class Kept:
    """One healthy run."""

    file: str
    settings: dict[str, Any]
    made_by: str


def read(folder: Path) -> tuple[Kept, ...]:
    """List the runs of a folder; none where it is not there."""
    index = folder / INDEX
    if not index.exists():
        return ()
    return tuple(Kept(**json.loads(line)) for line in index.read_text().splitlines())


def judged(folder: Path) -> Iterator[rlvitals.Judged]:
    """Diagnose every one."""
    for run in read(folder):
        trace = rlvitals.trace(folder / run.file, settings=run.settings)
        yield rlvitals.judged(rlvitals.diagnose(trace), healthy=True)
