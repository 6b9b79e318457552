"""Read danijar's scope: a folder `scope/` with a file per metric, `train-loss.float`.

A file is packed rows of `>qd`: step and value, appended as they come. A "-" in its name stands for
the "/" of the key. Texts lie beside them in folders, `<key>.txt/<step>-<id>.txt` under an `index`
of rows `q8s` in the writer's own byte order; pictures and videos likewise, which are left.
Source: danijar/scope, `scope/formats.py` and `writer.py`.

Every file is a separate log. The files in a folder `scope` are joined into one run.
"""

import re
from pathlib import Path

import numpy as np

from rlvitals.errors import UnreadableLog
from rlvitals.readers.formats.columns import MAX_STEP, Columns
from rlvitals.readers.formats.compressed import bare
from rlvitals.readers.formats.lines import (
    REPLACED_NOTE,
    Position,
    is_replaced,
    open_log,
    position_at,
)
from rlvitals.readers.reader import Cursor, Reader
from rlvitals.types import Log

MAX_SCOPE_BYTES = 2**27  # 8 million rows, held as a whole
SCOPE_ROW = np.dtype([("step", ">i8"), ("value", ">f8")])


def _key(path: Path) -> str:
    return bare(path).name.removesuffix(".float").replace("-", "/")


def claims(path: Path, head: bytes) -> bool:
    """Claim what is named as scope names it and starts with a row."""
    if (
        path.suffix != ".float"
        # What the writer accepts.
        or re.match(r"[a-z0-9_]+(?:/[a-z0-9_]+)?", _key(path)) is None
        or len(head) < SCOPE_ROW.itemsize
    ):
        return False
    step = int(np.frombuffer(head, SCOPE_ROW, 1)["step"][0])
    return -1 <= step <= MAX_STEP


def read(path: Path, previous: Cursor | None) -> tuple[Log, Cursor]:
    """Read the rows after a cursor. Raises UnreadableLog."""
    start = previous if isinstance(previous, Position) else Position()
    with open_log(path) as file:
        replaced = is_replaced(file, start)
        offset = 0 if replaced else start.offset
        file.seek(offset)
        data = file.read(MAX_SCOPE_BYTES + 1)
        if len(data) > MAX_SCOPE_BYTES:
            raise UnreadableLog(
                f"more than {MAX_SCOPE_BYTES // 2**20} MiB of one metric,"
                f" {SCOPE_ROW.itemsize} bytes a row",
                where=str(path),
                hint=f"keep the last {MAX_SCOPE_BYTES:,} bytes of it in a copy",
            )
        count = len(data) // SCOPE_ROW.itemsize  # the rest is a row that is still being written
        end = position_at(file, offset + count * SCOPE_ROW.itemsize)
    rows = np.frombuffer(data, SCOPE_ROW, count)
    steps = rows["step"].astype(np.int64)
    is_valid = np.abs(steps) <= MAX_STEP
    if count and not is_valid.any():
        raise UnreadableLog(
            "not scope's: no row has a step", where=str(path), hint="rlvitals readers"
        )
    notes = [REPLACED_NOTE] if replaced else []
    if dropped := count - int(is_valid.sum()):
        plural = "" if dropped == 1 else "s"
        notes.append(f"{dropped:,} row{plural} refused: a step beyond 2**62")
    if len(data) > count * SCOPE_ROW.itemsize:
        notes.append("the last row is not complete: left for the next reading")
    columns = Columns()
    if is_valid.any():
        columns.extend(_key(path), steps[is_valid], rows["value"].astype(np.float64)[is_valid])
    return Log("scope", columns.series(), {}, tuple(notes), str(path)), end


def home(path: Path) -> Path:
    """Return the run's folder: the one that holds `scope/`."""
    return path.parent.parent if path.parent.name == "scope" else path.parent


READER = Reader(
    name="scope",
    title="danijar's scope, DreamerV3",
    looks_for="scope/*.float",
    example="logdir/dreamer/scope/train-loss.float",
    files=("*.float",),
    claims=claims,
    read=read,
    home=home,
    in_parts=True,
)
