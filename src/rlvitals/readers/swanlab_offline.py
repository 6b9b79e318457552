"""Read SwanLab's `.swanlab` files: scalars and the end of the run.

The framing is LevelDB's (`leveldb_log.py`), a payload one Record of
`swanlab/proto/swanlab/record/v1`. Every mode of SwanLab writes this file; what its local mode
puts under `logs/` beside it is the same once more. The config is in `files/config.yaml`.
Before 0.8 the file is called `backup.swanlab`, version 1, and a payload is a line of JSON:
`{"model_type": "Scalar", "data": {...}}` (SwanLab 0.7, `proto/v0.py`).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from pathlib import Path

from rlvitals.errors import quantity
from rlvitals.readers.formats.column_guess import seconds
from rlvitals.readers.formats.columns import MAX_STEP, NAN, Columns, json_number, to_step
from rlvitals.readers.formats.json_lines import parse_object
from rlvitals.readers.formats.leveldb_log import Format, Records
from rlvitals.readers.formats.lines import REPLACED_NOTE, Position, is_replaced, open_log
from rlvitals.readers.formats.protobuf import Field, Malformed, double, fields, to_signed
from rlvitals.readers.reader import Cursor, Reader
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Ending, Log, Setting

SWANLAB_FORMAT = Format("SwanLab", b":SWL", 0xE1D6, (1, 2), "swanlab sync")
# StartRecord
START_TEXTS = {1: "project", 4: "name", 5: "description", 7: "group", 8: "job_type", 10: "id"}
# RunState: finished, crashed, aborted; 130 is what Ctrl+C exits with.
STATE_EXIT_CODES = {1: 0, 2: 1, 3: 130}


@dataclass(frozen=True, slots=True)
class SwanLabCursor:
    """Position to resume from, and the state of the earlier records so far."""

    position: Position = field(default_factory=Position)
    about: Mapping[str, Setting] = field(default_factory=dict)
    ending: Ending | None = None


def claims(path: Path, head: bytes) -> bool:
    """Claim what starts like a `.swanlab` log; `runs.swanlab` is a database and no log."""
    return (
        len(head) >= len(SWANLAB_FORMAT.ident)
        and SWANLAB_FORMAT.begins(head)
        and path.name != "runs.swanlab"
    )


def read(path: Path, previous: Cursor | None) -> tuple[Log, Cursor]:
    """Read the records after a cursor. Raises UnreadableLog where the file is not SwanLab's."""
    cursor = previous if isinstance(previous, SwanLabCursor) else SwanLabCursor()
    with open_log(path) as file:
        SWANLAB_FORMAT.check(file, path)
        replaced = is_replaced(file, cursor.position)
        if replaced:
            cursor = SwanLabCursor()
        run = _Run(cursor)
        records = Records(file, cursor.position.offset)
        run.take(records)
        end = SwanLabCursor(records.position(), run.about, run.ending)
    notes = ([REPLACED_NOTE] if replaced else []) + records.notes() + run.notes()
    series = run.columns.series()
    log = Log("swanlab", series, run.about, tuple(notes), str(path), ending=run.ending)
    return log, end


class _Run:
    """Collects what the records of one reading say."""

    def __init__(self, previous: SwanLabCursor) -> None:
        self.columns = Columns()
        self.about = dict(previous.about)
        self.ending = previous.ending
        self._malformed = 0
        self._media: set[str] = set()

    def take(self, payloads: Iterable[bytes]) -> None:
        """Take records; one that is no protobuf is counted."""
        for payload in payloads:
            try:
                if payload[:1] == b"{":  # as no protobuf record begins
                    self._old_record(payload)
                    continue
                for item in fields(payload):
                    self._record(item)
            except Malformed:
                self._malformed += 1

    def _record(self, item: Field) -> None:
        match item.id:
            case 13:  # scalar
                self._scalar(item.data)
            case 14:  # media, its key
                self._media.update(_texts(item.data, 1))
            case 10:  # start
                for inner in fields(item.data):
                    if inner.id in START_TEXTS:
                        self._tell(START_TEXTS[inner.id], inner.data.decode(errors="replace"))
                self._tell("tags", ", ".join(_texts(item.data, 6)))
            case 11:  # finish, its state and error
                state = next((f.number for f in fields(item.data) if f.id == 1), 0)
                error = "".join(_texts(item.data, 2)).strip()
                if state in STATE_EXIT_CODES:
                    self.ending = Ending(STATE_EXIT_CODES[state], error)

    def _scalar(self, data: bytes) -> None:
        key, step, time, value = b"", 0, NAN, None
        for item in fields(data):
            match item.id:
                case 1:  # key
                    key = item.data
                case 2:  # step
                    step = to_signed(item.number)
                case 4:  # timestamp
                    by_id = {field.id: to_signed(field.number) for field in fields(item.data)}
                    time = by_id.get(1, 0) + by_id.get(2, 0) * 1e-9
                case 5:  # value, its number
                    value = next((double(f) for f in fields(item.data) if f.id == 1), 0.0)
        if value is None or not key or abs(step) > MAX_STEP:
            raise Malformed
        self.columns.add(key.decode(errors="replace"), step, value, time)

    def _old_record(self, payload: bytes) -> None:
        record = parse_object(payload.decode(errors="replace")) or {}
        kind, data = record.get("model_type"), record.get("data")
        if not isinstance(data, dict):
            raise Malformed
        if kind == "Scalar":
            metric = data.get("metric")
            point = metric if isinstance(metric, Mapping) else {}
            step, value = to_step(json_number(data.get("step"))), json_number(point.get("data"))
            if step is None or value is None:
                raise Malformed
            time = point.get("create_time")
            time_s = seconds(time) if isinstance(time, str) else None
            self.columns.add(str(data.get("key")), step, value, NAN if time_s is None else time_s)
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
            self.ending = Ending(0 if data.get("success") else 1)

    def _tell(self, name: str, text: object) -> None:
        if isinstance(text, str) and text:
            self.about[f"swanlab/{name}"] = text

    def notes(self) -> list[str]:
        """Return notes for the user."""
        notes = (
            ["no finish record: the run is still going, or was killed"]
            if self.ending is None
            else []
        )
        if self._malformed:
            plural = "" if self._malformed == 1 else "s"
            notes.append(f"{self._malformed:,} record{plural} could not be understood")
        if self._media:
            some = ", ".join(sorted(self._media)[:3])
            notes.append(f"{quantity(len(self._media), 'key')} of media not read: {some}")
        return notes


def _texts(data: bytes, number: int) -> Iterator[str]:
    return (f.data.decode(errors="replace") for f in fields(data) if f.id == number)


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
