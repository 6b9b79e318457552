"""Pack a run's many small blocks into few big ones.

A packed file is written beside, made safe on the disk and renamed; then the file that it stands
for goes. A crash at any byte leaves the file itself, or both: the packed one says how much of the
other it stands for, so nothing is counted twice.
"""

import os
import time as clock
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from rlvitals.store import blocks, columns, frames, latest, packed, payloads
from rlvitals.store.blocks import Scalars, hold
from rlvitals.store.files import sync
from rlvitals.store.frames import SIZE, Damage, Frame, Kind, Tail
from rlvitals.store.packed import Origin, PackedFile
from rlvitals.store.run_folder import BlockFile, block_files

BLOCK_BYTES = 32 << 20  # of a packed block: a metric of a million points is in a few dozen places
MAX_HELD = 256 << 20  # bytes of rows that wait for their block to fill
QUIET = 600  # seconds: a writer on another machine may be seen by its file alone
Keys = tuple[str, ...]
OTHERS = frozenset({Kind.HISTOGRAM, Kind.TEXT, Kind.TABLE, Kind.SETTINGS})


@dataclass(frozen=True, slots=True)
class Packed:
    """What became of one file."""

    name: str
    before: int  # bytes
    after: int  # bytes; as before where it was left
    why: str = ""  # it was left


def compact(folder: Path) -> tuple[Packed, ...]:
    """Pack every file of a run folder that nobody writes to. Raises OSError, UnreadableLog."""
    done = []
    for file in block_files(folder):
        for left in file.path.parent.glob(f".{file.path.stem}.packed.*"):
            left.unlink(missing_ok=True)  # of a compaction that was killed
        if file.path.exists():
            done.append(_compact(file))
    return tuple(done)


def _compact(file: BlockFile) -> Packed:
    name, before = file.path.name, file.path.stat().st_size
    with file.path.open("rb") as held:
        if not hold(held.fileno(), alone=True):
            return Packed(name, before, before, "it is still written to")
        if clock.time() - file.path.stat().st_mtime < QUIET and not latest.has_ended(file.path):
            return Packed(name, before, before, "it may still be written to")
        why, target = pack(file)
    if why:
        return Packed(name, before, before, why)
    file.path.unlink()
    sync(file.path.parent)
    return Packed(name, before, target.stat().st_size)


def pack(file: BlockFile) -> tuple[str, Path]:
    """Write the packed file of an attempt's rank, beside it; or say why not. Raises OSError."""
    target = file.path.with_suffix(".packed.rlv")
    beside = target.with_name(f".{file.path.stem}.packed.{os.urandom(6).hex()}")
    try:
        with beside.open("xb") as made:
            why = _Packing(made).take(file)
            made.flush()
            os.fsync(made.fileno())
        if not why:
            beside.replace(target)
            sync(target.parent)
    finally:
        beside.unlink(missing_ok=True)
    return why, target


class _Packing:
    """Gathers rows by key table until they fill a block."""

    def __init__(self, into: IO[bytes]) -> None:
        self._into = into
        self._held: dict[Keys, list[Scalars]] = defaultdict(list)
        self._sizes: Counter[Keys] = Counter()  # bytes of the rows that wait
        self._numbers: dict[Keys, int] = {}

    def take(self, file: BlockFile) -> str:
        """Write a file's rows packed; return why it cannot be packed, "" where it can."""
        with file.path.open("rb", buffering=0) as source:
            head = source.read(SIZE)
            if frames.parse(head) is None:
                return "no block of it is whole"
            before = Origin(0, 0, 0, {}, head, ended=False)
            if file.packed is not None:
                with PackedFile(file.packed) as packed_file:
                    if packed_file.damage or packed_file.origin is None:
                        return f"{file.packed.name} is damaged"
                    if packed_file.origin.head != head:
                        return f"{file.packed.name} stands for another file"
                    before = packed_file.origin
                    self._repack(packed_file)
            end, problem = self._follow(source, before)
        if problem:
            return problem
        for keys in list(self._held):
            self._write(keys)
        self._into.write(end.frame() + frames.pack(Kind.END, b""))
        return ""

    def _repack(self, packed_file: PackedFile) -> None:
        """Take what an earlier compaction packed."""
        for block in packed_file.blocks:
            self._hold(packed_file.scalars(block))
        for frame in packed_file.others:
            self._copy(frame)

    def _follow(self, source: IO[bytes], before: Origin) -> tuple[Origin, str]:
        """Take what follows in the file itself."""
        tables = dict(before.tables)
        rows, others, covers, ended = before.rows, before.others, before.covers, before.ended
        for part in frames.stream(source, before.covers):
            if isinstance(part, Damage):
                return before, f"it is damaged: {part}"
            if isinstance(part, Tail):  # the process was killed while it wrote
                break
            kind, ended, covers = part.header.kind, part.header.kind == Kind.END, part.end
            if kind == Kind.KEYS:
                tables[part.header.table] = tuple(payloads.from_json(part.payload))
            elif kind == Kind.SCALARS:
                if part.header.table not in tables:
                    return before, f"the key table of the rows at offset {part.offset:,} is lost"
                self._hold(blocks.to_scalars(part, tables[part.header.table], rows))
                rows += part.header.rows
            elif kind in OTHERS:
                self._copy(part)
                others += 1
        return Origin(covers, rows, others, tables, before.head, ended), ""

    def _copy(self, frame: Frame) -> None:
        self._into.write(frames.to_bytes(frame.header) + frame.payload)

    def _hold(self, part: Scalars) -> None:
        self._held[part.keys].append(part)
        self._sizes[part.keys] += 8 * len(part.steps) * (2 + len(part.keys))
        if self._sizes[part.keys] >= BLOCK_BYTES:
            self._write(part.keys)
        elif self._sizes.total() > MAX_HELD:
            self._write(self._sizes.most_common(1)[0][0])

    def _write(self, keys: Keys) -> None:
        """Write the rows that wait under some keys."""
        whole = columns.joined(self._held.pop(keys))
        del self._sizes[keys]
        if keys not in self._numbers:
            self._numbers[keys] = len(self._numbers)
            names = payloads.to_json(keys)
            table = frames.pack(Kind.KEYS, names, len(keys), self._numbers[keys])
            self._into.write(table)
        most = max(1, BLOCK_BYTES // (8 * (2 + len(keys))))
        for begin in range(0, len(whole.steps), most):
            part = columns.cut(whole, slice(begin, begin + most))
            self._into.writelines(packed.block(part, self._numbers[keys]))
