"""Read a document with a list per metric, or lists of rows: `json.dump(history)`, `pickle.dump`.

    {"gamma": 0.99, "training_rewards": [-9.5, 14.9, ...], "epsilon": [...]}
    {"q_learning": [{"episode": 1, "reward": 3.5}, ...], "eval_history": [{...}, ...]}
    {"dqn": {"rewards": [...]}, "ppo": {"rewards": [...]}}      two runs
    {"reward": [{"step": 1, "value": 3.5}, ...]}    a list of points for each metric
    [[wall time, step, value], ...]                 TensorBoard's download of one curve
    [3.5, 4.0, ...]                                 one number an episode

A pickle's content is the same, and nothing that it names is called (`formats/plain_pickle.py`).
Numbers and texts beside the lists are settings. Nested objects are flattened with "/". Lists of the
same measure under several names are several runs (`formats/document_runs.py`).
"""

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from rlvitals.errors import UnreadableLog, quantity
from rlvitals.readers import multi_run
from rlvitals.readers.formats import column_guess, document_runs, lists, plain_pickle, run_labels
from rlvitals.readers.formats.columns import NAN, Columns, json_number, to_step
from rlvitals.readers.formats.compressed import bare
from rlvitals.readers.formats.document_runs import Content
from rlvitals.readers.formats.documents import points_after, read_document
from rlvitals.readers.formats.json_lines import flatten, parse_object
from rlvitals.readers.formats.partial_json import CutShortError, items, members
from rlvitals.readers.plain_jsonl import CONFIG_STEMS, ROLLOUT_STEMS
from rlvitals.readers.reader import Cursor, Reader
from rlvitals.startup.lazy_pattern import lazy_pattern
from rlvitals.types import Log

JSON_NUMBER = rb"(?:-?\d[\d.eE+-]*|NaN|-?Infinity|null)"
NAMED_LIST = lazy_pattern(
    rb'"([^"\\\n]{1,200})"\s*:\s*\[\s*\[?\s*'
    + rb"\s*\]?\s*,\s*\[?\s*".join([JSON_NUMBER, JSON_NUMBER])
    + rb"\s*[,\]]"
)
NAMED_ROWS = lazy_pattern(
    rb'"(?:[^"\\\n]{1,200}"\s*:\s*\[|\d{1,15}"\s*:)\s*(\{(?:[^{}]|\{[^{}]*\}){1,4000}\})'
    rb'\s*,\s*(?:"\d{1,15}"\s*:\s*)?\{'
)
POINT_TRIPLES = lazy_pattern(
    rb"\s*\[\s*\[\s*1\d{9}(?:\.\d+)?\s*,\s*\d+\s*,\s*" + JSON_NUMBER + rb"\s*\]\s*,", re.ASCII
)
NUMBERS_ALONE = lazy_pattern(
    rb"\s*\[\s*(?:\[\s*)?" + JSON_NUMBER + rb"\s*,\s*" + JSON_NUMBER + rb"\s*[,\]]"
)
UNNAMED_LIST = "values"  # the key of numbers that neither the document nor its name tells
CUT_DOCUMENT_NOTE = "the file is cut short: what stands before the cut was read"


def claims(path: Path, head: bytes) -> bool:
    """Return True if the document holds such lists, and is neither a side table nor losses alone.

    Losses alone are kept beside many a model: they make no run of its folder. Lists without a
    measure's name count where the file is named for one.
    """
    stem = path.stem.lower()
    if plain_pickle.is_pickle(path):
        return _is_outcome_file(stem)
    if column_guess.RESULT_FILE.match(stem) is not None or not _is_document(path, head):
        return False
    text = _text(head)
    if text.startswith(b"["):
        return POINT_TRIPLES.match(text) is not None or (
            _is_outcome_file(stem) and NUMBERS_ALONE.match(text) is not None
        )
    names = _names(text)
    measures = [name for name in names if column_guess.is_measure(name)]
    by_rows = any(column_guess.step_keys(row) and _has_outcome(row) for row in _rows(text))
    return by_rows or _has_outcome(measures) or (bool(names) and _is_outcome_file(stem))


def _is_outcome_file(stem: str) -> bool:
    return column_guess.is_curve(stem) and _has_outcome([stem])


def claims_single(path: Path, head: bytes) -> bool:
    """Return True if the document starts with lists of numbers, or of rows with a measure."""
    if plain_pickle.is_pickle(path, head):
        return True
    if not _is_document(path, head):
        return False
    text = _text(head)
    if text.startswith(b"["):
        return any(start.match(text) for start in (POINT_TRIPLES, NUMBERS_ALONE))
    return any(map(column_guess.is_measure, _names(text))) or any(
        any(map(column_guess.is_measure, row)) for row in _rows(text)
    )


def _is_document(path: Path, head: bytes) -> bool:
    stem = path.stem.lower()
    is_side_file = stem.startswith(CONFIG_STEMS) or stem in ROLLOUT_STEMS
    # A list of numbers is written to a text file, too, one a line.
    is_list = path.suffix.lower() == ".txt" and re.match(rb"\s*\[\s*-?\d[^,\n]*,\s*\n", head)
    is_named = path.suffix.lower() == ".json" or is_list is not None
    return is_named and b"\x00" not in head and not is_side_file


def _text(head: bytes) -> bytes:
    return head.removeprefix(b"\xef\xbb\xbf").lstrip()


def _names(text: bytes) -> list[str]:
    """Return the names of the lists of numbers, and of points, in a document's beginning."""
    point = rb'\{(?=[^{}]{0,400}"step"\s*:)(?=[^{}]{0,400}"value"\s*:)'
    point_lists = re.findall(rb'"([^"\\\n]{1,200})"\s*:\s*\[\s*' + point, text)
    names = (*NAMED_LIST.findall(text), *point_lists)
    return [name.decode(errors="replace") for name in names]


def _rows(text: bytes) -> list[list[str]]:
    """Return the names of the numbers in the first row of each list of rows, likewise."""
    rows = (parse_object(row.decode(errors="replace")) or {} for row in NAMED_ROWS.findall(text))
    return [[key for key, n in flatten(row) if json_number(n) is not None] for row in rows]


def _has_outcome(names: list[str]) -> bool:
    return any(column_guess.is_measure(name) and "loss" not in name.lower() for name in names)


def split(path: Path, _: bytes) -> Mapping[str, Reader]:
    """Return a reader for each run of a document. Raises UnreadableLog."""
    return multi_run.readers(READER, {name: name for name in _contents(path)}, _read_run)


def read(path: Path, previous: Cursor | None = None) -> tuple[Log, Cursor]:
    """Read the points after a cursor. Raises UnreadableLog."""
    contents = _contents(path)
    return _log(path, contents[multi_run.only(path, {name: name for name in contents})], previous)


def _read_run(path: Path, previous: Cursor | None = None, *, run: str) -> tuple[Log, Cursor]:
    contents = _contents(path)
    if run not in contents:
        hint = f"it holds {', '.join(list(contents)[: multi_run.MAX_HINT_RUNS])}"
        raise UnreadableLog(f"no run called {run!r} any more", where=str(path), hint=hint)
    return _log(path, contents[run], previous)


def _log(path: Path, content: Content, previous: Cursor | None) -> tuple[Log, Cursor]:
    series, cursor, replaced = points_after(content.columns.series(), previous)
    notes = (*replaced, *content.notes)
    return Log("json-lists", series, content.settings, notes, str(path), content.unit), cursor


def _contents(path: Path) -> dict[str, Content]:
    """Return the runs of a document by name. Raises UnreadableLog where it holds none."""
    text = _document(path)
    is_list = text.lstrip().startswith("[")
    contents = {"": _list(path, text)} if is_list else _members(path, text)
    contents = {name: content for name, content in contents.items() if len(content.columns)}
    if not contents:
        pickled = plain_pickle.is_pickle(bare(path))
        hint = plain_pickle.PICKLE_HINT if pickled else "wait until it is written"
        raise UnreadableLog("no list of numbers", where=str(path), hint=hint)
    return contents


def _document(path: Path) -> str:
    data, name = read_document(path), bare(path)
    if not plain_pickle.is_pickle(name, data):
        return data.decode("utf-8-sig", errors="replace")
    try:
        return plain_pickle.as_json(data, name.stem)
    except plain_pickle.NotPlainError as error:
        problem = f"a Python pickle whose numbers cannot be read: {error}"
        raise UnreadableLog(problem, where=str(path), hint=plain_pickle.PICKLE_HINT) from error


def _members(path: Path, text: str) -> dict[str, Content]:
    document: dict[str, object] = {}
    notes = []
    try:
        document.update(members(text))
    except CutShortError:
        notes.append(CUT_DOCUMENT_NOTE)
    name = run_labels.measure_name(bare(path).stem) or UNNAMED_LIST
    return document_runs.contents(dict(flatten(document)), name, notes)


def _list(path: Path, text: str) -> Content:
    """Return the points of a list: numbers, rows of numbers, or TensorBoard's download."""
    values: list[object] = []
    notes = []
    try:
        values.extend(items(text))
    except CutShortError:
        notes.append(CUT_DOCUMENT_NOTE)
    if POINT_TRIPLES.match(text[:200].encode()) is not None:
        return _curve(path, values, notes)
    name = run_labels.measure_name(bare(path).stem) or UNNAMED_LIST
    rows = [[json_number(n) for n in (v if isinstance(v, list) else [v])] for v in values]
    width = len(rows[0]) if rows else 0
    numbers = [[NAN if n is None else n for n in row] for row in rows if len(row) == width]
    array = np.array(numbers, dtype=np.float64).reshape(len(numbers), width)
    if len(numbers) < len(values):
        notes.append(
            f"{quantity(len(values) - len(numbers), 'item')} refused:"
            f" not {quantity(width, 'number')}"
        )
    arrays = {name: array}
    if width == 2 and lists.counts(array[:, 0]):  # a step and its value
        arrays = {"step": array[:, 0], name: array[:, 1]}
    curves = {key: curve for key, a in arrays.items()
              if (curve := lists.mean_curve(key, a, notes)) is not None}  # fmt: skip
    columns, unit = lists.columns(curves)
    if unit == "rows":
        notes.append(lists.NUMBERED_NOTE)
    return Content(columns, {}, unit, notes)


def _curve(path: Path, values: list[object], notes: list[str]) -> Content:
    """Return the points of TensorBoard's download, under the tag that the file is named by."""
    stem = bare(path).stem
    # TensorBoard calls the file "run-NAME-tag-Epoch_reward"
    tag = re.fullmatch(r"(?:.*-)?tag-(.+)", stem)
    columns, refused = Columns(), 0
    for item in values:
        numbers = item if isinstance(item, list) else []
        time, step, value = map(json_number, numbers if len(numbers) == 3 else [None] * 3)
        if (count := to_step(step)) is None or value is None:
            refused += 1
        else:
            columns.add(tag[1] if tag else stem, count, value, NAN if time is None else time)
    if refused:
        notes.append(f"{quantity(refused, 'point')} refused: no [time, step, value]")
    return Content(columns, {}, "steps", notes)


READER = Reader(
    name="json-lists",
    title="A document of lists: JSON, or a pickle",
    looks_for="*.json or *.pkl with a list of numbers, or of rows, for each metric",
    example="results/training_rewards.json",
    files=("*.json", "*.pkl", "*.pickle"),
    claims=claims,
    read=read,
    claims_single=claims_single,
    split=split,
)
