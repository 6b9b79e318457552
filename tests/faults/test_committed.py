"""The benchmark in the repository: whole, small, and no worse than what was committed to."""

from pathlib import Path

import pytest

from rlvitals.faults import bench, folder
from rlvitals.faults.run_list import plan

ROOT = Path(__file__).resolve().parents[2]
TRACES = ROOT / "faults" / "tier-1"
LIMIT = 20_000_000  # bytes


def test_every_planned_run_is_there():
    there = {(run.task, run.name) for run in folder.read(TRACES)}
    assert there == {(run.task.name, run.name) for run in plan()}
    assert all(folder.trace(TRACES, run).exists() for run in folder.read(TRACES))


def test_it_is_small():
    assert sum(file.stat().st_size for file in (ROOT / "faults").rglob("*")) < LIMIT


@pytest.mark.parametrize("sample", [True, pytest.param(False, marks=pytest.mark.soak)])
def test_recall_has_not_fallen_nor_false_alarms_risen(sample):
    lines = []
    score = ROOT / "faults" / "score.json"
    assert bench.check(TRACES, 1, score, lines.append, sample=sample) == 0, lines
