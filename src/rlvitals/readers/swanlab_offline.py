"""SwanLab's `.swanlab` files: scalars, and how the run ended.

The framing is LevelDB's (`leveldb_log.py`), a payload one Record of
`swanlab/proto/swanlab/record/v1`. Every mode of SwanLab writes this file; what its local mode
puts under `logs/` beside it is the same once more. The config is in `files/config.yaml`.
Before 0.8 the file is called `backup.swanlab`, version 1, and a payload is a line of JSON:
`{"model_type": "Scalar", "data": {...}}` (SwanLab 0.7, `proto/v0.py`).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rlvitals.readers.formats.column_guess import seconds
from rlvitals.readers.formats.columns import MAX_STEP, NAN, Columns, json_number, whole
from rlvitals.readers.formats.json_lines import parse_object
from rlvitals.readers.formats.leveldb_log import Format, Records
from rlvitals.readers.formats.lines import REPLACED, Position, is_replaced, opened
from rlvitals.readers.formats.protobuf import Field, Malformed, double, fields, signed
from rlvitals.readers.reader import Cursor, Reader
from rlvitals.types import Ending, Log, Setting

FORMAT = Format("SwanLab", b":SWL", 0xE1D6, (1, 2), "swanlab sync")
JSON_BEGINS = b"{"  # no protobuf record does
# Record, ScalarRecord, ScalarValue, google.protobuf.Timestamp
START, FINISH, SCALAR, MEDIA = 10, 11, 13, 14
KEY, STEP, TIMESTAMP, VALUE = 1, 2, 4, 5
NUMBER = 1
SECONDS, NANOS = 1, 2
# StartRecord, FinishRecord, its RunState
TAGS = 6
TEXTS = {1: "project", 4: "name", 5: "description", 7: "group", 8: "job_type", 10: "id"}
STATE, ERROR = 1, 2
FINISHED, CRASHED, ABORTED = 1, 2, 3
EXIT_CODES = {FINISHED: 0, CRASHED: 1, ABORTED: 130}  # 130 is what Ctrl+C exits with
NO_FINISH = "no finish record: the run is still going, or was killed"


@dataclass(frozen=True, slots=True)
class SwanLabCursor:
    """Where to go on, and what the records so far have said."""

    position: Position = field(default_factory=Position)
    about: Mapping[str, Setting] = field(default_factory=dict)
    ending: Ending | None = None


def claims(path: Path, head: bytes) -> bool:
    """Claim what starts like a `.swanlab` log; `runs.swanlab` is a database and no log."""
    return len(head) >= len(FORMAT.ident) and FORMAT.begins(head) and path.name != "runs.swanlab"


def read(path: Path, since: Cursor | None) -> tuple[Log, Cursor]:
    """Read the records after a cursor. Raises UnreadableLog where the file is not SwanLab's."""
    cursor = since if isinstance(since, SwanLabCursor) else SwanLabCursor()
    with opened(path) as file:
        FORMAT.check(file, path)
        replaced = is_replaced(file, cursor.position)
        if replaced:
            cursor = SwanLabCursor()
        run = _Run(cursor)
        records = Records(file, cursor.position.offset)
        run.take(records)
        end = SwanLabCursor(records.position(), run.about, run.ending)
    notes = ([REPLACED] if replaced else []) + records.notes() + run.notes()
    series = run.columns.series()
    log = Log("swanlab", series, run.about, tuple(notes), str(path), ending=run.ending)
    return log, end


class _Run:
    """Collects what the records of one reading say."""

    def __init__(self, before: SwanLabCursor) -> None:
        self.columns = Columns()
        self.about = dict(before.about)
        self.ending = before.ending
        self._malformed = 0
        self._media: set[str] = set()

    def take(self, payloads: Iterable[bytes]) -> None:
        """Take records; one that is no protobuf is counted."""
        for payload in payloads:
            try:
                if payload[:1] == JSON_BEGINS:
                    self._old_record(payload)
                    continue
                for part in fields(payload):
                    self._record(part)
            except Malformed:
                self._malformed += 1

    def _record(self, part: Field) -> None:
        if part.id == SCALAR:
            self._scalar(part.data)
        elif part.id == MEDIA:
            self._media.update(_texts(part.data, KEY))
        elif part.id == START:
            for inner in fields(part.data):
                if inner.id in TEXTS:
                    self._tell(TEXTS[inner.id], inner.data.decode(errors="replace"))
            self._tell("tags", ", ".join(_texts(part.data, TAGS)))
        elif part.id == FINISH:
            state = next((f.number for f in fields(part.data) if f.id == STATE), 0)
            error = "".join(_texts(part.data, ERROR)).strip()
            if state in EXIT_CODES:
                self.ending = Ending(EXIT_CODES[state], error)

    def _scalar(self, data: bytes) -> None:
        key, step, time, value = b"", 0, NAN, None
        for part in fields(data):
            if part.id == KEY:
                key = part.data
            elif part.id == STEP:
                step = signed(part.number)
            elif part.id == TIMESTAMP:
                time = _seconds(part.data)
            elif part.id == VALUE:
                value = next((double(f) for f in fields(part.data) if f.id == NUMBER), 0.0)
        if value is None or not key or abs(step) > MAX_STEP:
            raise Malformed
        self.columns.add(key.decode(errors="replace"), step, value, time)

    def _old_record(self, payload: bytes) -> None:
        record = parse_object(payload.decode(errors="replace")) or {}
        kind, data = record.get("model_type"), record.get("data")
        if not isinstance(data, dict):
            raise Malformed
        if kind == "Scalar":
            self._old_scalar(data)
        elif kind == "Media":
            self._media.add(str(data.get("key")))
        elif kind == "Project":
            self._tell("project", data.get("name"))
        elif kind == "Experiment":
            for name in ("name", "description", "id"):
                self._tell(name, data.get(name))
            tags = data.get("tags")
            self._tell("tags", ", ".join(map(str, tags)) if isinstance(tags, list) else "")
        elif kind == "Footer":
            self.ending = Ending(EXIT_CODES[FINISHED if data.get("success") else CRASHED])

    def _tell(self, name: str, text: object) -> None:
        if isinstance(text, str) and text:
            self.about[f"swanlab/{name}"] = text

    def _old_scalar(self, data: Mapping[str, object]) -> None:
        metric = data.get("metric")
        point = metric if isinstance(metric, Mapping) else {}
        step, value = whole(json_number(data.get("step"))), json_number(point.get("data"))
        if step is None or value is None:
            raise Malformed
        time = point.get("create_time")
        found = seconds(time) if isinstance(time, str) else None
        self.columns.add(str(data.get("key")), step, value, NAN if found is None else found)

    def notes(self) -> list[str]:
        """Say what a person should know of these records."""
        notes = [NO_FINISH] if self.ending is None else []
        if self._malformed:
            plural = "" if self._malformed == 1 else "s"
            notes.append(f"{self._malformed:,} record{plural} could not be understood")
        if self._media:
            some = ", ".join(sorted(self._media)[:3])
            notes.append(f"{len(self._media)} keys of media not read: {some}")
        return notes


def _texts(data: bytes, number: int) -> Iterator[str]:
    return (f.data.decode(errors="replace") for f in fields(data) if f.id == number)


def _seconds(data: bytes) -> float:
    found = {part.id: signed(part.number) for part in fields(data)}
    return found.get(SECONDS, 0) + found.get(NANOS, 0) * 1e-9


READER = Reader(
    name="swanlab",
    title="SwanLab log",
    looks_for="run-*.swanlab",
    example="swanlog/run-20260131_100000-a1b2c3d4/run-a1b2c3d4.swanlab",
    files=("*.swanlab",),
    claims=claims,
    read=read,
    in_parts=True,
    sums_up=True,
)
