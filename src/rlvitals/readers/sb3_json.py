"""Read Stable-Baselines3's `progress.json`: one object per line, append-only.

Source: `stable_baselines3/common/logger.py`, `JSONOutputFormat.write`.
"""

from pathlib import Path

from rlvitals.readers.formats.columns import Columns, json_number, to_step
from rlvitals.readers.formats.json_lines import Nulls, Objects, flatten
from rlvitals.readers.formats.lines import Lines, Position, open_log
from rlvitals.readers.reader import Cursor, Reader
from rlvitals.readers.sb3_csv import SB3_STEP, SB3_STEP_UNIT
from rlvitals.readers.thin_columns import ThinReader
from rlvitals.types import Log


def claims(path: Path, head: bytes) -> bool:
    """Claim JSON lines that name SB3's step."""
    starts = head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")
    return path.suffix in {".json", ".jsonl"} and starts and f'"{SB3_STEP}"'.encode() in head


def read(path: Path, previous: Cursor | None, columns: Columns | None = None) -> tuple[Log, Cursor]:
    """Read the objects after a cursor. Raises UnreadableLog where the file cannot be read."""
    columns = Columns() if columns is None else columns
    nulls = Nulls()
    with open_log(path) as file:
        objects = Objects(Lines(file, previous if isinstance(previous, Position) else None))
        for number, item in objects:
            step = to_step(json_number(item.pop(SB3_STEP, None)))
            if step is None:
                objects.refused.add(number, f"has no {SB3_STEP}")
                continue
            columns.add_row(step, nulls.numbers(flatten(item)))
        end = objects.position()
    notes = (*objects.notes(), *nulls.notes())
    return Log("sb3-json", columns.drain(), {}, notes, str(path), SB3_STEP_UNIT), end


READER = Reader(
    name="sb3-json",
    title="Stable-Baselines3 JSON lines",
    looks_for="progress.json",
    example="logs/ppo/progress.json",
    files=("*.json",),
    claims=claims,
    read=read,
    read_thin=ThinReader(read),
    thins_alone=True,
)
