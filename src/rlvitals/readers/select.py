"""Select the reader of a file."""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from fnmatch import translate
from functools import lru_cache, partial
from pathlib import Path

from rlvitals.errors import UnreadableLog
from rlvitals.readers import READERS
from rlvitals.readers.formats import table_head
from rlvitals.readers.formats.compressed import bare
from rlvitals.readers.formats.lines import HEAD_BYTES, is_packed, packing_note, read_head
from rlvitals.readers.formats.sqlite import is_database
from rlvitals.readers.reader import Cursor, Reader
from rlvitals.types import Log

READERS_HINT = "rlvitals readers: it lists the logs that are read"


@lru_cache(maxsize=1)
def _names() -> re.Pattern[str]:
    patterns = {pattern for reader in READERS for pattern in reader.files}
    return re.compile("|".join(translate(pattern) for pattern in sorted(patterns)))


def may_be_log(path: Path) -> bool:
    """Tell by its name alone whether a file in a folder is worth opening."""
    return _names().match(bare(path).name.lower()) is not None


def claim(path: Path) -> Reader | None:
    """Return the reader that claims a file. Raises UnreadableLog where it cannot be opened."""
    head = read_head(path)
    if is_database(head) and is_packed(path):  # whose it is only the whole file tells
        raise UnreadableLog(
            "a compressed database: it is read in place", where=str(path), hint="unpack it first"
        )
    name = bare(path)
    reader = next((reader for reader in READERS if reader.claims(name, head)), None)
    return _reader_for(reader, path, head) if reader else None


def _reader_for(reader: Reader, path: Path, head: bytes) -> Reader:
    """Return a reader as it reads this file: of several runs, or packed."""
    runs: Mapping[str, Reader] = {}
    if reader.split:
        with suppress(UnreadableLog, OSError):  # reading it says so
            runs = _runs_of(reader.split, path, path.stat().st_size, head)
    if is_packed(path):
        reader, runs = _wrap_packed(reader), {k: _wrap_packed(run) for k, run in runs.items()}
    return replace(reader, runs=partial(_same_runs, runs)) if len(runs) > 1 else reader


@lru_cache(maxsize=256)
def _runs_of(
    split: Callable[[Path, bytes], Mapping[str, Reader]], path: Path, _size: int, head: bytes
) -> Mapping[str, Reader]:
    """Split a file once for each size and head: a folder is searched again whenever it changes."""
    return split(path, head)


def _same_runs(runs: Mapping[str, Reader], _: Path) -> Mapping[str, Reader]:
    return runs


def _wrap_packed(reader: Reader) -> Reader:
    """Return a reader as it reads a packed file: it says where that is not whole."""
    home = reader.home
    return replace(
        reader,
        read=partial(_read_with_packing_note, reader),
        read_thin=None,
        read_whole=None,
        home=None if home is None else partial(_packed_home, home),
    )


def _packed_home(home: Callable[[Path], Path], file: Path) -> Path:
    return home(bare(file))


def _read_with_packing_note(
    reader: Reader, path: Path, previous: Cursor | None
) -> tuple[Log, Cursor]:
    log, cursor = reader.read(path, previous)
    note = packing_note(path)
    return (replace(log, notes=(*log.notes, note)) if note else log), cursor


def reader_of(path: Path) -> Reader:
    """Return the reader that claims a file. Raises UnreadableLog where none does."""
    if reader := claim(path):
        return reader
    head = read_head(path)
    name = bare(path)
    reader = next((r for r in READERS if r.claims_single and r.claims_single(name, head)), None)
    if reader is not None:
        return _reader_for(reader, path, head)
    problem = "not a training log that any reader knows" if head else "the file is empty"
    if head and len(head) < HEAD_BYTES and b"\n" not in head and b"\0" not in head:
        problem += ": it ends within its first line, so it may be one that has just begun"
    table = table_head.head_of(head)
    columns = f", a table with the columns {', '.join(table.names[:12])}" if table else ""
    # Several files in one: none is read inside.
    raise UnreadableLog(
        problem,
        where=f"{path}{columns}",
        hint="unpack it first"
        if bare(path).suffix.lower() in (".tar", ".tgz", ".zip", ".7z", ".rar")
        else READERS_HINT,
    )
