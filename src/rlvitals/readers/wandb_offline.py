"""W&B's `.wandb` files: history, config, defined metrics, histograms, and how the run ended.

The framing is LevelDB's (`leveldb_log.py`), a payload one Record of `wandb_internal.proto`. Summary
records hold what the history says once more and are passed over. Config keys keep their names,
nested ones joined by "/"; what the run record says of the run stands under `wandb/...`.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from rlvitals.readers.formats.columns import NAN, Columns
from rlvitals.readers.formats.json_lines import flatten, parse_object
from rlvitals.readers.formats.leveldb_log import HEADER, Format, Records
from rlvitals.readers.formats.lines import REPLACED, Position, is_replaced, opened
from rlvitals.readers.formats.protobuf import BYTES, Field, Malformed, fields, signed, sized
from rlvitals.readers.reader import Cursor, Reader
from rlvitals.readers.wandb.media import histogram, media_kind, take_media
from rlvitals.readers.wandb.rows import CONTINUED, key_and_value, parse
from rlvitals.readers.wandb.steps import OWN, RowSteps, StepChoice
from rlvitals.types import Ending, Histogram, Log, Setting

FORMAT = Format("W&B", b":W&B", 0xBEE1, (0,), "wandb sync")
# Record
HISTORY, OUTPUT, CONFIG, METRIC, OUTPUT_RAW, RUN, EXIT = 2, 4, 5, 12, 13, 17, 18
NUM_TAG, HISTORY_TAG, SUMMARY_TAG = 0x08, 0x12, 0x1A
# ConfigRecord, RunRecord, GitRepoRecord, MetricRecord, RunExitRecord, OutputRecord
UPDATE, REMOVE = 1, 2
RUN_CONFIG, RUN_TAGS, RUN_RESUMED, RUN_GIT = 4, 10, 18, 21
RUN_TEXTS = {1: "id", 3: "project", 6: "group", 7: "job_type", 8: "name", 9: "notes"}
GIT_COMMIT = 2
METRIC_NAME, METRIC_GLOB, METRIC_STEP = 1, 2, 4
EXIT_CODE = 1
LINE = 3
BATCH_ROWS, BATCH_BYTES = 2048, 2**22  # rows that are walked side by side: what a cache holds
TIMESTAMP = "_timestamp"
TAIL = 32768  # characters of the console that are kept, to find a traceback in
TRACEBACK = "Traceback (most recent call last):"
ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
NO_EXIT = "no exit record: the run is still going, or was killed"


@dataclass(frozen=True, slots=True)
class WandbCursor:
    """Where to go on, and what the records so far have said."""

    position: Position = field(default_factory=Position)
    steps: StepChoice = field(default_factory=StepChoice)
    config: Mapping[str, object] = field(default_factory=dict)
    about: Mapping[str, Setting] = field(default_factory=dict)
    exit_code: int | None = None
    console: str = ""


def claims(path: Path, head: bytes) -> bool:
    """Claim what starts like a `.wandb` file, or is called one and not empty."""
    whole = FORMAT.begins(head) and len(head) >= HEADER.size
    return whole or (bool(head) and path.suffix.lower() == ".wandb")


def read(path: Path, since: Cursor | None) -> tuple[Log, Cursor]:
    """Read the records after a cursor. Raises UnreadableLog where the file is not W&B's."""
    cursor = since if isinstance(since, WandbCursor) else WandbCursor()
    with opened(path) as file:
        FORMAT.check(file, path)
        replaced = is_replaced(file, cursor.position)
        if replaced:
            cursor = WandbCursor()
        run = _Run(cursor)
        records = Records(file, cursor.position.offset)
        run.take(records)
        end = run.cursor(records.position())
    notes = ([REPLACED] if replaced else []) + records.notes() + run.notes()
    log = Log(
        source="wandb",
        series=run.columns.series(),
        settings=run.settings(),
        notes=tuple(notes),
        where=str(path),
        step_unit=end.steps.unit,
        histograms=run.histograms,
        ending=run.ending(),
    )
    return log, end


class _Run:
    """Collects what the records of one reading say."""

    def __init__(self, before: WandbCursor) -> None:
        self.columns = Columns()
        self.histograms: dict[str, list[Histogram]] = {}
        self._steps = before.steps
        self._config = dict(before.config)
        self._about = dict(before.about)
        self._exit_code = before.exit_code
        self._console = before.console
        self._rows: list[bytes] = []
        self._bytes = 0
        self._malformed = 0  # records, rows and values that could not be understood
        self._homeless = 0  # rows without a step
        self._media: dict[str, str] = {}  # keys that hold pictures and the like, their kind

    def cursor(self, position: Position) -> WandbCursor:
        """Return where to go on."""
        return WandbCursor(
            position, self._steps, self._config, self._about, self._exit_code, self._console
        )

    def take(self, payloads: Iterable[bytes]) -> None:
        """Take records, and read the history rows among them, many at a time."""
        for payload in payloads:
            try:
                at = 0
                if payload[0] == NUM_TAG:  # it stands before the rest
                    at = 2
                    while payload[at - 1] >= CONTINUED:
                        at += 1
                tag = payload[at]
            except IndexError:  # nothing in it
                continue
            if tag == SUMMARY_TAG:
                continue
            try:
                if tag != HISTORY_TAG:
                    self._take(payload)
                    continue
                row = sized(payload, at + 1)
            except Malformed:
                self._malformed += 1
                continue
            self._rows.append(row)
            self._bytes += len(row)
            if len(self._rows) >= BATCH_ROWS or self._bytes >= BATCH_BYTES:
                self.flush()
        self.flush()

    def _take(self, payload: bytes) -> None:
        for part in fields(payload):
            if part.wire == BYTES:
                self._record(part)

    def _record(self, part: Field) -> None:
        if part.id == HISTORY:
            self._rows.append(part.data)
        elif part.id == CONFIG:
            self._configure(part.data)
        elif part.id == METRIC:
            self.flush()  # it holds for the rows after it
            self._define(part.data)
        elif part.id == RUN:
            self._describe(part.data)
        elif part.id == EXIT:
            codes = (signed(f.number) for f in fields(part.data) if f.id == EXIT_CODE)
            self._exit_code = next(codes, 0)
        elif part.id in (OUTPUT, OUTPUT_RAW):
            line = b"".join(f.data for f in fields(part.data) if f.id == LINE)
            self._console = (self._console + line.decode(errors="replace"))[-TAIL:]

    def _configure(self, data: bytes) -> None:
        for part in fields(data):
            if part.id not in (UPDATE, REMOVE):
                continue
            name, text = key_and_value(part.data)
            if part.id == REMOVE:
                self._config.pop(name, None)
                continue
            item = parse_object(f'{{"value": {text.decode(errors="replace")}}}')
            if item is None:
                self._malformed += 1
            else:
                self._config[name] = item["value"]

    def _define(self, data: bytes) -> None:
        found = {part.id: part.data.decode(errors="replace") for part in fields(data)}
        keys = found.get(METRIC_NAME) or found.get(METRIC_GLOB)
        if keys:
            metric = found.get(METRIC_STEP, "").replace("\\.", ".")
            self._steps = self._steps.define(keys.replace("\\.", "."), metric)

    def _describe(self, data: bytes) -> None:
        tags = []
        for part in fields(data):
            text = part.data.decode(errors="replace")
            if part.id == RUN_CONFIG:
                self._configure(part.data)
            elif part.id in RUN_TEXTS:
                self._about[f"wandb/{RUN_TEXTS[part.id]}"] = text
            elif part.id == RUN_TAGS:
                tags.append(text)
            elif part.id == RUN_RESUMED:
                self._about["wandb/resumed"] = bool(part.number)
            elif part.id == RUN_GIT:
                for inner in fields(part.data):
                    if inner.id == GIT_COMMIT:
                        self._about["wandb/commit"] = inner.data.decode(errors="replace")
        if tags:
            self._about["wandb/tags"] = ", ".join(tags)

    def flush(self) -> None:
        """Read the history rows that are held."""
        if not self._rows:
            return
        rows = parse(self._rows)
        media = take_media(rows)
        self._rows, self._bytes = [], 0
        self._malformed += rows.malformed
        steps = RowSteps(rows, self._steps)
        self._steps = steps.choice
        self._homeless += int((~steps.good).sum())
        times = np.full(rows.count, NAN)
        where, values = rows.numbers.get(TIMESTAMP, (np.zeros(0, np.int64), np.zeros(0)))
        times[where] = values
        for key, (where, values) in rows.numbers.items():
            good = steps.good[where]
            at = where[good]
            if len(at) and key not in (OWN, TIMESTAMP):
                self.columns.extend(key, steps.of(key)[at], values[good], times[at])
        for row, key, value in media:
            if steps.good[row]:
                self._take_media(int(steps.of(key)[row]), float(times[row]), key, value)

    def _take_media(self, step: int, time: float, key: str, value: Mapping[str, object]) -> None:
        found = histogram(value)
        if found is None:
            self._media[key] = media_kind(value)
        else:
            self.histograms.setdefault(key, []).append(Histogram(step, time, *found))

    def settings(self) -> dict[str, Setting]:
        """Return the config, nested values under names joined by "/", and the run's own facts."""
        config = {key: _unwrapped(value) for key, value in self._config.items() if key != "_wandb"}
        flat = {k: v for k, v in flatten(config) if isinstance(v, bool | int | float | str)}
        return {**self._about, **flat}

    def ending(self) -> Ending | None:
        """Return how the process ended, None without an exit record."""
        if self._exit_code is None:
            return None
        at = self._console.rfind(TRACEBACK) if self._exit_code else -1
        return Ending(self._exit_code, ANSI.sub("", self._console[at:]).strip() if at >= 0 else "")

    def notes(self) -> list[str]:
        """Say what a person should know of these records."""
        notes = [NO_EXIT] if self._exit_code is None else []
        if self._malformed:
            notes.append(f"{_counted(self._malformed, 'record')} could not be understood")
        if self._homeless:
            notes.append(f"{_counted(self._homeless, 'history row')} refused: no step in them")
        if self._media:
            key, kind = next(iter(self._media.items()))
            which = f"{key}, of the kind {kind}"
            notes.append(f"{_counted(len(self._media), 'key')} of media not read: {which}")
        axes = sorted({m for m in self._steps.defined.values() if m and m != self._steps.main})
        notes += [f"keys defined to be over `{axis}` stand at its steps" for axis in axes]
        if self._steps.main not in (None, OWN):
            notes.append(f"steps are those of `{self._steps.main}`")
        return notes


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _unwrapped(value: object) -> object:
    """Take a setting out of `{"value": ..., "desc": ...}`, as W&B's config files have it."""
    if isinstance(value, Mapping) and "value" in value and value.keys() <= {"value", "desc"}:
        return value["value"]
    return value


READER = Reader(
    name="wandb",
    title="Weights & Biases offline file",
    looks_for="run-*.wandb",
    example="wandb/offline-run-20260131_100000-a1b2c3d4/run-a1b2c3d4.wandb",
    files=("*.wandb",),
    claims=claims,
    read=read,
    in_parts=True,
    sums_up=True,
)
