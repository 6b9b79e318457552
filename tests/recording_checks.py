"""What a run folder holds, read back for tests."""

import time
from collections import defaultdict
from pathlib import Path

import numpy as np
from waiting import HANG_SECONDS

from rlvitals.storage import blocks, events


def await_machine(run):
    """Wait until a run holds a measurement of its machine that is not logged yet."""
    sampler = run._pump.measure_machine.__self__
    deadline = time.monotonic() + HANG_SECONDS
    while not sampler._samples:
        assert time.monotonic() < deadline, "the machine is not measured"
        time.sleep(0.01)


def scans(folder):
    return {
        path.stem: blocks.scan(path)
        for path in sorted((Path(folder) / "blocks").glob("*.rlv"))
        if path.stat().st_size
    }


def points(folder, blocks_of=None):
    """Each metric's (step, value) in the order written, of all ranks or of one "attempt-rank"."""
    found = defaultdict(list)
    for stem, scan in scans(folder).items():
        assert not scan.damage, scan.damage
        if blocks_of in {None, stem}:
            for part in scan.scalars:
                for key, column in zip(part.keys, part.values, strict=True):
                    found[key] += zip(part.steps.tolist(), column.tolist(), strict=True)
    return dict(found)


def values(folder, key):
    return [value for _, value in points(folder)[key]]


def happened(folder, kind=None):
    found = events.read(Path(folder) / "events.jsonl").events
    return [event for event in found if kind in {None, event.kind}]


def notes(folder):
    """The notes of a run by text, with their highest count."""
    found = {}
    for event in happened(folder, "note"):
        found[event.facts["text"]] = event.facts["count"]
    return found


def same(one, other):
    return np.array_equal(one, other, equal_nan=True)
