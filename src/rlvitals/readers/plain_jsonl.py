"""Read JSON lines, or a JSON array of rows, with a step-like key.

Nested objects are flattened with "/"; lists and text are left out. verl's
`{"step": 1, "data": {...}}` reads as its data, ms-swift's "10/100" as step 10, LLaMA-Factory's
`current_steps` beside its `total_steps` as the step. The step key is recognised by its name
(`column_guess.py`) in the first row that has one, for the complete file. A first object that has no
number in common with the rows below it holds settings. Hugging Face's `epoch` is
a fraction and counts nothing: rows that have it alone are numbered.
"""

import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO

from rlvitals.errors import UnreadableLog, quantity
from rlvitals.readers.formats import column_guess
from rlvitals.readers.formats.columns import (
    MAX_SETTING_CHARACTERS,
    NAN,
    Columns,
    json_number,
    to_step,
)
from rlvitals.readers.formats.json_lines import Nulls, Objects, flatten, parse_object
from rlvitals.readers.formats.lines import REPLACED_NOTE, Lines, Position, open_log
from rlvitals.readers.formats.partial_json import CutShortError, items, members
from rlvitals.readers.formats.rows import Refusals
from rlvitals.readers.reader import Cursor, Reader
from rlvitals.readers.thin_columns import ThinReader
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Log, Setting

MAX_JSON_ARRAY_BYTES = 2**29  # an array is held as a whole
MAX_PROBED_OBJECTS = 20  # first objects, which tell a log and its header
# One object on one line that says how a run was started, not how it went.
CONFIG_STEMS = (
    "param",
    "config",
    "arg",
    "hyper",
    "hparam",
    "setting",
    "metadata",
    "summary",
    "version",
)
ROLLOUT_STEMS = frozenset(
    {"traces", "rollouts", "samples", "generations"}
)  # what such files are called
TOTAL_STEPS_KEY = "max_steps"


@dataclass(frozen=True, slots=True)
class _Cursor:
    """Position of the last reading, and the state of the rows before it."""

    position: Position | None = None
    rows: int = 0
    step: str | None = None  # "" is the row number
    last: str = ""  # of an array: its last row
    texts: Mapping[str, frozenset[str]] = field(default_factory=dict)  # as `_Reading` has them
    numbers: frozenset[str] = frozenset()  # keys that held one
    header: Mapping[str, Setting] = field(default_factory=dict)


def claims(path: Path, head: bytes) -> bool:
    """Return True if the first objects hold a step-like key, or clearly are a training log."""
    if (
        path.suffix.lower() not in (".json", ".jsonl", ".ndjson", ".jsonlines", ".log", ".txt", "")
        or b"\x00" in head
    ):
        return False
    if path.suffix == ".json" and path.stem.lower().startswith(CONFIG_STEMS):
        return False
    objects = [_unwrap(item) for item in _probe(head)]
    # Lines that are samples with their step, a file for each step; texts or lists of messages.
    sample_keys = (
        *(("input", "output"), ("prompt", "completion"), ("prompt", "response")),
        *(("prompt", "output"), ("question", "answer"), ("messages",), ("conversation",)),
        *(("trajectory",), ("completion_ids",), ("token_ids",)),
    )
    if path.stem.lower() in ROLLOUT_STEMS or any(
        all(isinstance(item.get(key), str | list) for key in keys)
        for item in objects
        for keys in sample_keys
    ):
        return False
    if path.suffix == ".json" and len(objects) == 1 and not head.lstrip().startswith(b"["):
        return False  # a document
    return any(
        column_guess.step_keys(numbers) for item in objects if (numbers := _numbers(item))
    ) or (
        len(objects) > 1
        and any(column_guess.is_measure(key) for i in objects for key in _numbers(i))
    )


def _probe(head: bytes) -> list[dict[str, object]]:
    text = head.decode("utf-8-sig", errors="replace")
    objects: list[dict[str, object]] = []
    if text.lstrip().startswith("["):
        try:
            for item in items(text):
                if not isinstance(item, dict) or len(objects) >= MAX_PROBED_OBJECTS:
                    break
                objects.append(item)
        except CutShortError:
            pass
        return objects
    lines = [line for line in text.split("\n")[:MAX_PROBED_OBJECTS] if not line.isspace()]
    objects = [item for line in lines if line and (item := parse_object(line)) is not None]
    if not objects and len(lines) == 1 and lines[0].lstrip().startswith("{"):
        content: dict[str, object] = {}
        with contextlib.suppress(CutShortError):
            content.update(members(lines[0]))
        objects = [content]  # a first line longer than the head
    return objects


def _unwrap(item: dict[str, object]) -> dict[str, object]:
    data = item.get("data")
    if item.keys() == {"step", "data"} and isinstance(data, dict):
        return {"step": item["step"], **data}
    # ms-swift writes its step and the last one as "10/100".
    for key in ("global_step/max_steps", "iteration"):
        text = item.get(key)
        if isinstance(text, str) and (match := re.fullmatch(r"(\d{1,15})/(\d{1,15})", text)):
            others_by_key = {k: v for k, v in item.items() if k != key}
            return {"step": int(match[1]), TOTAL_STEPS_KEY: match[2], **others_by_key}
    current, total = item.get("current_steps"), item.get("total_steps")
    if isinstance(current, int) and isinstance(total, int):  # LLaMA-Factory
        counts = ("current_steps", "total_steps")
        others_by_key = {key: value for key, value in item.items() if key not in counts}
        return {"step": current, TOTAL_STEPS_KEY: str(total), **others_by_key}
    return item


def _is_fraction(key: str, value: object) -> bool:
    """Return True for an epoch as Hugging Face logs it: 0.0, 0.05."""
    is_epoch = column_guess.normalise_name(key) in column_guess.EPOCH_STEPS
    return is_epoch and isinstance(value, float) and (value == 0 or not value.is_integer())


def _is_setting(key: str) -> bool:
    """Return True for a key of an object that holds how the run was started: none counts steps."""
    first, _, subkey = key.partition("/")
    return bool(subkey) and first.lower() in {
        "arg", "args", "arguments", "cfg", "config", "hparams", "hyperparameters", "params",
        "settings", "metadata",
    }  # fmt: skip


def _numbers(item: Mapping[str, object]) -> dict[str, float]:
    return {k: v for k, x in flatten(item) if (v := json_number(x)) is not None}


def _is_header(objects: Sequence[Mapping[str, object]]) -> bool:
    """Return True if the first object holds settings: no number of it stands in a row below."""
    first_keys, *keys_below = (_numbers(item).keys() for item in objects)
    rows = [keys for keys in keys_below if column_guess.step_keys(keys)]
    time_keys = {column_guess.time_key(first_keys)}
    return len(rows) > 1 and not first_keys - time_keys & set().union(*keys_below)


def read(
    path: Path, previous: Cursor | None = None, columns: Columns | None = None
) -> tuple[Log, Cursor]:
    """Read the rows after a cursor. Raises UnreadableLog."""
    columns = Columns() if columns is None else columns
    resume = previous if isinstance(previous, _Cursor) else _Cursor()
    with open_log(path) as file:
        is_array = file.read(4096).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
        read_rows = _array if is_array else _lines
        reading, notes, cursor = read_rows(file, path, resume, columns)
    # A file that was read before may be empty now: its writer starts it anew.
    if reading.step is None and previous is None:
        met = ", ".join(list(reading.met)[:12])
        names = (*column_guess.PLAIN_STEPS[:1], *column_guess.ENVIRONMENT_STEPS[:2])
        raise UnreadableLog(
            f"no step-like key among {met}" if met else "no complete row of JSON",
            where=str(path),
            hint=f"log one of {', '.join(names)}",
        )
    unit = "rows" if reading.step == "" else column_guess.step_unit(reading.step or "")
    settings = reading.settings()  # which keys hold points decides: before they are drained
    log = Log(
        source="jsonl",
        series=reading.columns.drain(),
        settings=settings,
        notes=(*notes, *reading.notes()),
        where=str(path),
        step_unit=unit,
    )
    return log, cursor


def _lines(
    file: BinaryIO, _: Path, resume: _Cursor, columns: Columns
) -> tuple["_Reading", list[str], _Cursor]:
    lines = Lines(file, resume.position)
    if lines.replaced:
        resume = _Cursor()
    objects = Objects(lines)
    reading = _Reading(objects.refused, resume, columns)
    reading.take(objects)
    return reading, objects.notes(), reading.cursor(objects.position())


def _array(
    file: BinaryIO, path: Path, resume: _Cursor, columns: Columns
) -> tuple["_Reading", list[str], _Cursor]:
    file.seek(0)
    data = file.read(MAX_JSON_ARRAY_BYTES + 1)
    if len(data) > MAX_JSON_ARRAY_BYTES:
        raise UnreadableLog(
            f"a JSON array of more than {MAX_JSON_ARRAY_BYTES // 2**20} MiB",
            where=str(path),
            hint="write one object a line",
        )
    rows: list[object] = []
    notes: list[str] = []
    try:
        rows.extend(items(data.decode("utf-8-sig", errors="replace")))
    except CutShortError:
        notes.append(f"the file is cut short: {quantity(len(rows), 'row')} before the cut")
    if not rows:
        raise UnreadableLog("no whole row", where=str(path), hint="wait for its first row")
    if resume.rows and (
        len(rows) < resume.rows or json.dumps(rows[resume.rows - 1]) != resume.last
    ):
        notes.append(REPLACED_NOTE)
        resume = _Cursor()
    refused = Refusals(position_noun="row")
    reading = _Reading(refused, resume, columns)
    reading.take(_objects(rows, resume.rows, refused))
    notes += refused.notes()
    return reading, notes, replace(reading.cursor(None), last=json.dumps(rows[-1]))


def _objects(
    rows: list[object], start: int, refused: Refusals
) -> Iterator[tuple[int, dict[str, object]]]:
    for number, row in enumerate(rows[start:], start + 1):
        if isinstance(row, dict):
            yield number, row
        else:
            refused.add(number, "is not a JSON object")


class _Reading:
    """Points and state of the rows of one reading."""

    def __init__(self, refused: Refusals, resume: _Cursor, columns: Columns) -> None:
        self.columns = columns
        self.rows, self.step = resume.rows, resume.step
        self.header = dict(resume.header)  # settings of the first object, where it is no row
        self.met: dict[str, None] = {}  # keys of rows without a step, in order
        self._refused = refused
        self._nulls = Nulls()
        # Of each key of text, two texts at most.
        self._texts = {key: set(texts) for key, texts in resume.texts.items()}
        self._before = resume.numbers

    def cursor(self, position: Position | None) -> _Cursor:
        """Return the position to resume from."""
        texts = {key: frozenset(values) for key, values in self._texts.items()}
        numbers = self._before | self.columns.keys()
        return _Cursor(position, self.rows, self.step, "", texts, numbers, self.header)

    def take(self, rows: Iterable[tuple[int, dict[str, object]]]) -> None:
        """Take numbered rows; refuse those without a step."""
        rows = iter(rows)
        if self.rows < 2:
            first_rows = list(islice(rows, MAX_PROBED_OBJECTS))
            objects = [_unwrap(item) for _, item in first_rows]
            if not self.rows and objects and _is_header(objects):
                self._take_settings(dict(flatten(first_rows.pop(0)[1])))
            elif self.step and objects and not any(self.step in _numbers(item) for item in objects):
                self.step = None  # of a header that was alone until now
            rows = chain(first_rows, rows)
        for number, item in rows:
            self.rows += 1
            plain = _unwrap(item)
            if self.step is None and plain is not item:
                self.step = "step"  # the writer's own, whatever else counts steps in its data
            self._row(number, dict(flatten(plain)))

    def _take_settings(self, header: dict[str, object]) -> None:
        self.rows += 1
        self.header = {
            key: value[:MAX_SETTING_CHARACTERS] if isinstance(value, str) else value
            for key, value in header.items()
            if isinstance(value, str | int | float)
        }

    def _row(self, number: int, row: dict[str, object]) -> None:
        step = self._step(row)
        if step is None:
            self.met.update(dict.fromkeys(row))
            problem = f"no whole number as `{self.step}`" if self.step else "no step-like key"
            self._refused.add(number, f"has {problem}")
            return
        time_key = column_guess.time_key(row)
        stamp = row[time_key] if time_key else None
        time = column_guess.seconds(stamp) if isinstance(stamp, str | int | float) else None
        for key, value in row.items():
            if key == self.step or (key == time_key and time is not None):
                continue
            if (point := self._nulls.number(key, value)) is not None:
                self.columns.add(key, step, point, NAN if time is None else time)
            elif isinstance(value, str):
                texts = self._texts.setdefault(key, set())
                if len(texts) < 2:  # two texts show that a key changes
                    texts.add(value[:MAX_SETTING_CHARACTERS])

    def _step(self, row: dict[str, object]) -> int | None:
        """Return a row's step, None where it has none; the first row with one decides how."""
        if self.step is None:
            numbers = {k: json_number(v) for k, v in row.items() if not _is_setting(k)}
            keys = column_guess.step_keys(k for k in numbers if not _is_fraction(k, row[k]))
            fits = [key for key in keys if to_step(numbers[key]) is not None]
            if fits:
                self.step = fits[0]
            elif not keys and any(
                n is not None and column_guess.is_measure(k) for k, n in numbers.items()
            ):
                self.step = ""
        if self.step:
            return to_step(json_number(row.get(self.step)))
        return None if self.step is None else self.rows

    def settings(self) -> dict[str, Setting]:
        """Return the settings of the first object, and the texts that never change."""
        points = self._before | self.columns.keys()
        constants = self.header | {
            key: next(iter(texts))
            for key, texts in self._texts.items()
            if len(texts) == 1 and key not in points
        }
        total = constants.get(TOTAL_STEPS_KEY)
        return (
            constants | {TOTAL_STEPS_KEY: int(total)}
            if isinstance(total, str) and total.isdigit()
            else constants
        )

    def notes(self) -> list[str]:
        """Describe how rows were numbered, and what was null."""
        numbered = ["no step-like key: points are numbered by row"] if self.step == "" else []
        return [*numbered, *self._nulls.notes()]


READER = Reader(
    name="jsonl",
    title="Any JSON lines with a step key",
    looks_for="*.jsonl or *.json with a step-like key",
    example="run/metrics.jsonl",
    files=("*.json", "*.jsonl", "*.ndjson", "*.jsonlines", "*.log", "*.txt"),
    claims=claims,
    read=read,
    sums_up=True,
    read_thin=ThinReader(read),
    thins_alone=True,
)
