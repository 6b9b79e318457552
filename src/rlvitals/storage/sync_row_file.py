"""Append rows at once, on the thread that logs them."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from struct import Struct, error

from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage import frames, payloads
from rlvitals.storage.frames import Kind
from rlvitals.storage.safe_files import open_append


@dataclass(slots=True)
class _Layout:
    """Rows under the same keys."""

    names: bytes  # the frame of the key table
    number: int
    pack: Struct
    written: int = 0  # rows


class RowFile:
    """Appends single rows to a block file, next to the Writer of the file.

    A row is one call to the system, which no other thread's call and no signal divides: nothing
    has to be locked, and a call that is interrupted has written its row once or not at all.
    """

    def __init__(self, path: Path, numbers: Iterator[int], repeat: int, max_layouts: int) -> None:
        """Open a file; `numbers` are those of its key tables, repeated every so many rows.

        `most`: key tables that are remembered.
        """
        self._file = os.fdopen(open_append(path), "ab", buffering=0)
        self._numbers = numbers
        self._repeat = repeat
        self._max_layouts = max_layouts
        self._layouts: dict[tuple[str, ...], _Layout] = {}
        self.rename: Callable[[tuple[str, ...]], tuple[str, ...]] = tuple  # as they are written

    def write(self, step: int, time: float, row: Mapping[str, object]) -> bool:
        """Hand a row to the system; False where it took none of it or not all, or for no number."""
        if not row:
            return True
        keys = tuple(row)
        layout = self._layouts.get(keys) or self._add_layout(keys)
        try:
            payload = layout.pack.pack(step, time, *row.values())
            data = frames.pack(Kind.SCALARS, payload, len(keys), layout.number, rows=1)
            if layout.written % self._repeat == 0:
                data = layout.names + data
            written = self._file.write(data)
            if written != len(data):
                # A full disk may still have accepted a part of a row.
                end = self._file.tell()
                if end == os.fstat(self._file.fileno()).st_size:  # else others went on behind it
                    self._file.truncate(end - written)
                return False
        except (OSError, OverflowError, TypeError, ValueError, error):
            return False
        layout.written += 1
        return True

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _add_layout(self, keys: tuple[str, ...]) -> _Layout:
        number, names = next(self._numbers), payloads.encode_json(self.rename(keys))
        frame = frames.pack(Kind.KEYS, names, columns=len(keys), table=number)
        if len(self._layouts) >= self._max_layouts:
            self._layouts = {}  # another thread may be writing by one of them
        layout = _Layout(frame, number, Struct(f"<qd{len(keys)}d"))
        self._layouts[keys] = layout
        return layout
