"""Read W&B's `.wandb` files: history, config, defined metrics, histograms, exit.

The framing is LevelDB's (`leveldb_log.py`), a payload one Record of `wandb_internal.proto`. Summary
records hold what the history says once more and are passed over. Config keys keep their names,
nested ones joined by "/"; the fields of the run record are under `wandb/...`.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path

import numpy as np

from rlvitals.errors import quantity
from rlvitals.readers.formats.columns import NAN, Columns
from rlvitals.readers.formats.json_lines import flatten, parse_object
from rlvitals.readers.formats.leveldb_log import LEVELDB_HEADER, Format, Records
from rlvitals.readers.formats.lines import REPLACED_NOTE, Position, is_replaced, open_log
from rlvitals.readers.formats.protobuf import (
    BYTES,
    VARINT_CONTINUATION,
    Field,
    Malformed,
    fields,
    read_sized,
    to_signed,
)
from rlvitals.readers.reader import Cursor, Reader
from rlvitals.readers.wandb.media import histogram, media_kind, take_media
from rlvitals.readers.wandb.rows import key_and_value, parse
from rlvitals.readers.wandb.steps import WANDB_STEP, RowSteps, StepChoice
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Ending, Histogram, Log, Setting

WANDB_FORMAT = Format("W&B", b":W&B", 0xBEE1, (0,), "wandb sync")
# RunRecord
RUN_TEXTS = {1: "id", 3: "project", 6: "group", 7: "job_type", 8: "name", 9: "notes"}
NO_EXIT_NOTE = "no exit record: the run is still going, or was killed"


@dataclass(frozen=True, slots=True)
class WandbCursor:
    """Position to resume from, and the state of the earlier records so far."""

    position: Position = field(default_factory=Position)
    steps: StepChoice = field(default_factory=StepChoice)
    config: Mapping[str, object] = field(default_factory=dict)
    about: Mapping[str, Setting] = field(default_factory=dict)
    exit_code: int | None = None
    console: str = ""


def claims(path: Path, head: bytes) -> bool:
    """Claim what starts like a `.wandb` file, or is called one and not empty."""
    has_header = WANDB_FORMAT.begins(head) and len(head) >= LEVELDB_HEADER.size
    return has_header or (bool(head) and path.suffix.lower() == ".wandb")


def read(path: Path, previous: Cursor | None) -> tuple[Log, Cursor]:
    """Read the records after a cursor. Raises UnreadableLog where the file is not W&B's."""
    cursor = previous if isinstance(previous, WandbCursor) else WandbCursor()
    with open_log(path) as file:
        WANDB_FORMAT.check(file, path)
        replaced = is_replaced(file, cursor.position)
        if replaced:
            cursor = WandbCursor()
        run = _Run(cursor)
        records = Records(file, cursor.position.offset)
        run.take(records)
        end = run.cursor(records.position())
    notes = ([REPLACED_NOTE] if replaced else []) + records.notes() + run.notes()
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

    def __init__(self, previous: WandbCursor) -> None:
        self.columns = Columns()
        self.histograms: dict[str, list[Histogram]] = {}
        self._steps = previous.steps
        self._config = dict(previous.config)
        self._about = dict(previous.about)
        self._exit_code = previous.exit_code
        self._console = previous.console
        self._rows: list[bytes] = []
        self._bytes = 0
        self._malformed = 0  # records, rows and values that could not be understood
        self._homeless = 0  # rows without a step
        self._media: dict[str, str] = {}  # keys that hold pictures and the like, their kind

    def cursor(self, position: Position) -> WandbCursor:
        """Return the position to resume from."""
        return WandbCursor(
            position, self._steps, self._config, self._about, self._exit_code, self._console
        )

    def take(self, payloads: Iterable[bytes]) -> None:
        """Take records, and read the history rows among them, many at a time."""
        for payload in payloads:
            try:
                offset = 0
                if payload[0] == 0x08:  # num, which stands before the rest
                    offset = 2
                    while payload[offset - 1] >= VARINT_CONTINUATION:
                        offset += 1
                tag = payload[offset]
            except IndexError:  # nothing in it
                continue
            if tag == 0x1A:  # summary
                continue
            try:
                if tag != 0x12:  # history
                    self._take(payload)
                    continue
                row = read_sized(payload, offset + 1)
            except Malformed:
                self._malformed += 1
                continue
            self._rows.append(row)
            self._bytes += len(row)
            # Rows that are read side by side: what a cache holds.
            if len(self._rows) >= 2048 or self._bytes >= 2**22:
                self.flush()
        self.flush()

    def _take(self, payload: bytes) -> None:
        for item in fields(payload):
            if item.wire == BYTES:
                self._record(item)

    def _record(self, item: Field) -> None:
        match item.id:
            case 2:  # history
                self._rows.append(item.data)
            case 5:  # config
                self._configure(item.data)
            case 12:  # metric
                self.flush()  # it holds for the rows after it
                by_id = {
                    field.id: field.data.decode(errors="replace") for field in fields(item.data)
                }
                keys = by_id.get(1) or by_id.get(2)  # name, glob_name
                if keys:
                    metric = by_id.get(4, "").replace("\\.", ".")  # step_metric
                    self._steps = self._steps.define(keys.replace("\\.", "."), metric)
            case 17:  # run
                self._describe(item.data)
            case 18:  # exit, its exit_code
                codes = (to_signed(f.number) for f in fields(item.data) if f.id == 1)
                self._exit_code = next(codes, 0)
            case 4 | 13:  # output, output_raw
                line = b"".join(f.data for f in fields(item.data) if f.id == 3)  # line
                # The end of the console is searched for a traceback.
                self._console = (self._console + line.decode(errors="replace"))[-32768:]

    def _configure(self, data: bytes) -> None:
        for update in fields(data):
            match update.id:
                case 1:  # update
                    name, text = key_and_value(update.data)
                    item = parse_object(f'{{"value": {text.decode(errors="replace")}}}')
                    if item is None:
                        self._malformed += 1
                    else:
                        self._config[name] = item["value"]
                case 2:  # remove
                    name, _ = key_and_value(update.data)
                    self._config.pop(name, None)

    def _describe(self, data: bytes) -> None:
        tags = []
        for item in fields(data):
            text = item.data.decode(errors="replace")
            match item.id:
                case 4:  # config
                    self._configure(item.data)
                case 10:  # tags
                    tags.append(text)
                case 18:  # resumed
                    self._about["wandb/resumed"] = bool(item.number)
                case 21:  # git, its commit
                    for inner in fields(item.data):
                        commit_field = 2
                        if inner.id == commit_field:
                            self._about["wandb/commit"] = inner.data.decode(errors="replace")
                case _ if item.id in RUN_TEXTS:
                    self._about[f"wandb/{RUN_TEXTS[item.id]}"] = text
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
        row_numbers, values = rows.numbers.get("_timestamp", (np.zeros(0, np.int64), np.zeros(0)))
        times[row_numbers] = values
        for key, (row_numbers, values) in rows.numbers.items():
            good = steps.good[row_numbers]
            good_rows = row_numbers[good]
            if len(good_rows) and key not in (WANDB_STEP, "_timestamp"):
                self.columns.extend(key, steps.of(key)[good_rows], values[good], times[good_rows])
        for row, key, value in media:
            if steps.good[row]:
                edges_and_counts = histogram(value)
                if edges_and_counts is None:
                    self._media[key] = media_kind(value)
                else:
                    self.histograms.setdefault(key, []).append(
                        Histogram(int(steps.of(key)[row]), float(times[row]), *edges_and_counts)
                    )

    def settings(self) -> dict[str, Setting]:
        """Return the config, nested values under names joined by "/", and the run's own facts."""
        config = {
            # `{"value": ..., "desc": ...}`, as W&B's config files have it.
            key: value["value"]
            if isinstance(value, Mapping) and "value" in value and value.keys() <= {"value", "desc"}
            else value
            for key, value in self._config.items()
            if key != "_wandb"
        }
        flat = {k: v for k, v in flatten(config) if isinstance(v, bool | int | float | str)}
        return {**self._about, **flat}

    def ending(self) -> Ending | None:
        """Return how the process ended, None without an exit record."""
        if self._exit_code is None:
            return None
        start = self._console.rfind("Traceback (most recent call last):") if self._exit_code else -1
        return Ending(
            self._exit_code,
            re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self._console[start:]).strip()
            if start >= 0
            else "",
        )

    def notes(self) -> list[str]:
        """Return notes for the user."""
        notes = [NO_EXIT_NOTE] if self._exit_code is None else []
        if self._malformed:
            notes.append(f"{quantity(self._malformed, 'record')} could not be understood")
        if self._homeless:
            notes.append(f"{quantity(self._homeless, 'history row')} refused: no step in them")
        if self._media:
            key, kind = next(iter(self._media.items()))
            example = f"{key}, of the kind {kind}"
            notes.append(f"{quantity(len(self._media), 'key')} of media not read: {example}")
        axes = sorted({m for m in self._steps.defined.values() if m and m != self._steps.main})
        notes += [f"keys defined to be over `{axis}` stand at its steps" for axis in axes]
        if self._steps.main not in (None, WANDB_STEP):
            notes.append(f"steps are those of `{self._steps.main}`")
        return notes


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
