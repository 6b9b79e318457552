"""What a run folder holds, for tests of what is written into one."""

import json
from pathlib import Path

import rlvitals
from rlvitals.metrics import canonicalize
from rlvitals.storage import blocks


def log(folder):
    """The one log of a run folder."""
    (found,) = (log for log in rlvitals.read(folder) if log.source == "rlvitals")
    return found


def trace(folder):
    return canonicalize.trace([log(folder)])


def unmapped(folder):
    return {key for key in trace(folder).unmapped if not key.startswith("axis/")}


def rows(folder):
    """(step, {key: value}) in the order written."""
    found = []
    for path in sorted(Path(folder, "blocks").glob("*.rlv")):
        for part in blocks.scan(path).scalars:
            columns = zip(part.steps, part.values.T, strict=True)
            found += [(int(s), dict(zip(part.keys, v, strict=True))) for s, v in columns]
    return found


def events(folder, kind=None):
    lines = Path(folder, "events.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    return [one for one in found if kind in {None, one["event"]}]


def settings(folder):
    return log(folder).settings


def notes(folder):
    return [str(one) for one in events(folder, "note")]
