"""Read Sacred's run folder: `metrics.json`, and the `info.json` of PyMARL.

    metrics.json: {"return_mean": {"steps": [...], "timestamps": [...], "values": [...]}}
    info.json:    {"return_mean": [...], "return_mean_T": [...]}

In `info.json` a number of numpy is {"py/object": "numpy.float64", "value": 5.5} (jsonpickle), and a
tensor is no number: it is left out. Read from `sacred/observers/file_storage.py` and from
`utils/logging.py` of PyMARL and EPyMARL.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from rlvitals.errors import UnreadableLog
from rlvitals.readers.formats import column_guess
from rlvitals.readers.formats.columns import NAN, Columns, json_number, to_step
from rlvitals.readers.formats.documents import points_after, read_document
from rlvitals.readers.formats.partial_json import CutShortError, members
from rlvitals.readers.reader import Cursor, Reader
from rlvitals.types import Log

SACRED_STEPS_SUFFIX = "_T"  # behind a metric's name: the environment steps of its values
Point = tuple[int, float, float]  # step, value, time


def claims(path: Path, head: bytes) -> bool:
    """Return True if the file is named as Sacred names it, and starts so."""
    starts = {
        "metrics.json": rb'\s*\{\s*"[^"]+"\s*:\s*\{\s*"(?:steps|timestamps|values)"\s*:\s*\[',
        "info.json": rb'\s*\{\s*"[^"]+"\s*:\s*\[\s*(?:-?\d|NaN|-?Infinity|\{\s*"(?:dtype|py/))',
    }
    start = starts.get(path.name.lower())
    return start is not None and re.match(start, head) is not None


def read(path: Path, previous: Cursor | None = None) -> tuple[Log, Cursor]:
    """Read the points after a cursor. Raises UnreadableLog."""
    document: dict[str, object] = {}
    notes = []
    try:
        document.update(members(read_document(path).decode("utf-8-sig", errors="replace")))
    except CutShortError:
        notes.append("the file is cut short: the metrics before the cut were read")
    columns, left_out = Columns(), []
    for key, value in document.items():
        if key.endswith(SACRED_STEPS_SUFFIX) and key.removesuffix(SACRED_STEPS_SUFFIX) in document:
            continue
        points = list(_points(value, document.get(f"{key}{SACRED_STEPS_SUFFIX}")))
        for step, number, time in points:
            columns.add(key, step, number, time)
        if not points:
            left_out.append(key)
    if not len(columns):
        raise UnreadableLog("no metric with its steps", where=str(path), hint="wait for the first")
    if left_out:
        notes.append(f"no numbers, or no steps beside them: {', '.join(left_out[:4])}")
    series, cursor, replaced = points_after(columns.series(), previous)
    return Log("sacred", series, {}, (*replaced, *notes), str(path), "environment steps"), cursor


def _points(value: object, steps: object) -> Iterator[Point]:
    """Yield the points of one metric, in the order they were logged."""
    times: object = None
    if isinstance(value, dict):
        steps, times = value.get("steps"), value.get("timestamps")
        value = value.get("values")
    if not isinstance(value, list) or not isinstance(steps, list):
        return
    stamps = times if isinstance(times, list) and len(times) == len(value) else [None] * len(value)
    numbers = (json_number(v.get("value") if isinstance(v, dict) else v) for v in value)
    for number, step, stamp in zip(numbers, steps, stamps, strict=False):
        if number is not None and (count := to_step(json_number(step))) is not None:
            time = column_guess.seconds(stamp) if isinstance(stamp, str) else None
            yield count, number, NAN if time is None else time


def _folder(file: Path) -> Path:
    return file.parent


READER = Reader(
    name="sacred",
    title="Sacred: PyMARL, EPyMARL",
    looks_for="metrics.json or info.json of a Sacred run",
    example="results/sacred/4/info.json",
    files=("metrics.json", "info.json"),
    claims=claims,
    read=read,
    home=_folder,
)
