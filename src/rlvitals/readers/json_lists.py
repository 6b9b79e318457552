"""Read a JSON document with a list per metric, as `json.dump(history)` writes it.

    {"gamma": 0.99, "training_rewards": [-9.5, 14.9, ...], "epsilon": [...]}
    [[wall time, step, value], ...]                 TensorBoard's download of one curve

Numbers and texts beside the lists are settings. Nested objects are flattened with "/".
"""

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rlvitals.errors import UnreadableLog
from rlvitals.readers.formats import column_guess, lists
from rlvitals.readers.formats.columns import NAN, Columns, json_number, to_step
from rlvitals.readers.formats.compressed import bare
from rlvitals.readers.formats.documents import points_after, read_document
from rlvitals.readers.formats.json_lines import flatten
from rlvitals.readers.formats.partial_json import CutShortError, items, members
from rlvitals.readers.plain_jsonl import CONFIG_STEMS, ROLLOUT_STEMS
from rlvitals.readers.reader import Cursor, Reader
from rlvitals.types import Log, Setting

JSON_NUMBER = rb"(?:-?\d[\d.eE+-]*|NaN|-?Infinity|null)"
NAMED_LIST = re.compile(
    rb'"([^"\\\n]{1,200})"\s*:\s*\[\s*' + JSON_NUMBER + rb"\s*,\s*" + JSON_NUMBER + rb"\s*[,\]]"
)
POINT_TRIPLES = re.compile(
    rb"\s*\[\s*\[\s*1\d{9}(?:\.\d+)?\s*,\s*\d+\s*,\s*" + JSON_NUMBER + rb"\s*\]\s*,", re.ASCII
)
TAG_IN_NAME = re.compile(
    r"(?:.*-)?tag-(.+)"
)  # TensorBoard calls the file "run-NAME-tag-Epoch_reward"
MAX_LIST_SETTING = 200  # characters of a setting
CUT_DOCUMENT_NOTE = "the file is cut short: what stands before the cut was read"


def claims(path: Path, head: bytes) -> bool:
    """Return True if the document holds such lists, and is neither a side table nor losses alone.

    Losses alone are kept beside many a model: they make no run of its folder.
    """
    if column_guess.RESULT_FILE.match(path.stem.lower()) is not None or not claims_single(
        path, head
    ):
        return False
    names = [name.decode(errors="replace") for name in NAMED_LIST.findall(head)]
    return not names or any(column_guess.is_measure(n) and "loss" not in n.lower() for n in names)


def claims_single(path: Path, head: bytes) -> bool:
    """Return True if the document starts with named lists of numbers, one of them a measure."""
    if path.suffix.lower() != ".json" or b"\x00" in head:
        return False
    stem = path.stem.lower()
    if stem.startswith(CONFIG_STEMS) or stem in ROLLOUT_STEMS:
        return False
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"["):
        return POINT_TRIPLES.match(text) is not None
    return text.startswith(b"{") and any(
        column_guess.is_measure(name.decode(errors="replace")) for name in NAMED_LIST.findall(text)
    )


def read(path: Path, previous: Cursor | None = None) -> tuple[Log, Cursor]:
    """Read the points after a cursor. Raises UnreadableLog."""
    text = read_document(path).decode("utf-8-sig", errors="replace")
    is_curve = text.lstrip().startswith("[")
    columns, settings, unit, notes = _curve(path, text) if is_curve else _lists(text)
    if not len(columns):
        raise UnreadableLog("no list of numbers", where=str(path), hint="wait until it is written")
    series, cursor, replaced = points_after(columns.series(), previous)
    return Log("json-lists", series, settings, (*replaced, *notes), str(path), unit), cursor


Content = tuple[Columns, dict[str, Setting], str, list[str]]  # unit of the steps, notes


def _curve(path: Path, text: str) -> Content:
    """Return the points of TensorBoard's download, under the tag that the file is named by."""
    stem = bare(path).stem
    tag = TAG_IN_NAME.fullmatch(stem)
    columns, notes, refused = Columns(), [], 0
    try:
        for item in items(text):
            numbers = item if isinstance(item, list) else []
            time, step, value = map(json_number, numbers if len(numbers) == 3 else [None] * 3)  # noqa: PLR2004
            if (count := to_step(step)) is None or value is None:
                refused += 1
            else:
                columns.add(tag[1] if tag else stem, count, value, NAN if time is None else time)
    except CutShortError:
        notes.append(CUT_DOCUMENT_NOTE)
    if refused:
        notes.append(f"{refused:,} points refused: no [time, step, value]")
    return columns, {}, "steps", notes


def _lists(text: str) -> Content:
    """Return the lists of numbers of a document, and the settings beside them."""
    document: dict[str, object] = {}
    notes = []
    try:
        document.update(members(text))
    except CutShortError:
        notes.append(CUT_DOCUMENT_NOTE)
    arrays: dict[str, NDArray[np.float64]] = {}
    settings: dict[str, Setting] = {}
    for key, value in flatten(document):
        if isinstance(value, list):
            numbers = [json_number(item) for item in value]
            if len(value) >= lists.MIN_LIST_POINTS and any(n is not None for n in numbers):
                arrays[key] = np.array([NAN if n is None else n for n in numbers])
        elif isinstance(value, str):
            settings[key] = value[:MAX_LIST_SETTING]
        elif isinstance(value, bool | int | float):
            settings[key] = value
    columns, unit = lists.columns(arrays)
    if unit == "rows":
        notes.append(lists.NUMBERED_NOTE)
    return columns, settings, unit, notes


READER = Reader(
    name="json-lists",
    title="A JSON document of lists",
    looks_for="*.json with a list of numbers for each metric",
    example="results/training_rewards.json",
    files=("*.json",),
    claims=claims,
    read=read,
    claims_single=claims_single,
)
