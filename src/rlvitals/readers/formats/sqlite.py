"""Read SQLite databases of other programs without writing to them or blocking them.

    kinds = tables(path)                            # table -> its columns; for `claims`
    found = reading(path, lambda db: rows(db, "SELECT a, b FROM t"))

A reader must leave no file next to a user's database, but SQLite itself leaves a `-wal` and a
`-shm` wherever it opens a database in WAL mode, read-only or not. So a database whose log is
empty is opened as immutable, and read again if it changed meanwhile; one that a program has
open (both files are there) is read with that program's locks; one that was left unfinished, by
a crash or a copy, is read from a copy of its own, as is one in a folder we cannot write to.
Source: sqlite.org's pages "URI Filenames", "Write-Ahead Logging" and "Defense Against The Dark
Arts" (the settings for a file that nobody vouches for).
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from rlvitals.errors import UnreadableLog
from rlvitals.readers.formats.lines import open_log

if TYPE_CHECKING:
    from sqlite3 import Connection

T = TypeVar("T")
Row = tuple[object, ...]

SQLITE_HEADER_BYTES = 100
MAX_COPY_BYTES = 2 * 2**30
MAX_VALUE_BYTES = 64 * 2**20
# A table takes some bytes and some instructions a row. Far more of these than the file has
# bytes is a tree of pages that was damaged into a loop.
FREE_INSTRUCTIONS, INSTRUCTIONS_PER_BYTE = 20_000_000, 4
INSTRUCTIONS_PER_CHECK = 100_000  # instructions
NOT_SQLITE = "not an SQLite database, or an encrypted one"
COLUMNS_QUERY = (
    "SELECT m.name, c.name FROM sqlite_master AS m, pragma_table_info(m.name) AS c"
    " WHERE m.type = 'table'"
)


class _State(NamedTuple):
    """Sizes and times of a database's files, to detect a write."""

    size: int
    changed: int  # ns
    wal: int  # bytes; -1 for none
    shm: bool
    journal: int


def is_database(head: bytes) -> bool:
    """Return True if the first bytes are those of an SQLite database; an encrypted one is not."""
    return head.startswith(b"SQLite format 3\x00")


def tables(path: Path) -> Mapping[str, frozenset[str]]:
    """Return the names of the tables, each with its columns' names. Raises UnreadableLog."""
    return read_database(path, _tables, 0.5)  # seconds: only the tables are asked for


def has_columns(path: Path, head: bytes, required: Mapping[str, frozenset[str]]) -> bool:
    """Tell for `claims` whether a file is a database that has these tables and columns.

    One that cannot be opened now is recognised by names in its first pages, so that its reader can
    say what is wrong with it.
    """
    if not is_database(head):
        return False
    try:
        actual = tables(path)
    except UnreadableLog:
        start = b""
        with suppress(UnreadableLog), open_log(path) as file:
            start = file.read(2**22)  # a schema may outgrow the first page
        start = start or head
        return all(column.encode() in start for names in required.values() for column in names)
    return all(names <= actual.get(table, frozenset()) for table, names in required.items())


def read_database(path: Path, work: Callable[["Connection"], T], lock_seconds: float = 5.0) -> T:
    """Return what `work` reads in one transaction: one moment of the database.

    `wait` is for a writer's lock, in seconds.

    Raises UnreadableLog where it is no database, locked, damaged or forever changing.
    """
    import sqlite3  # noqa: PLC0415 - only for databases

    head = _header(path)
    copy = False
    for _ in range(4):  # at a database that changes while it is read
        state = _state(path)
        no_log = state.wal < 0 or (state.wal == 0 and not state.shm)  # a -shm alone was left behind
        # Byte 18 of the header is 2 where the database is in WAL mode.
        immutable = head[18] > 1 and no_log
        copy = copy or (state.wal > 0 and not state.shm)
        try:
            if copy:
                result = _from_copy(path, work, lock_seconds)
            else:
                options = "mode=ro&immutable=1" if immutable else "mode=ro"
                result = _run_work(
                    f"{path.absolute().as_uri()}?{options}", state, work, lock_seconds
                )
        except (sqlite3.Error, UnicodeDecodeError) as error:  # a message may quote damage
            # SQLite would have to write first: undo or redo what a crash left.
            if not copy and getattr(error, "sqlite_errorname", "").startswith(
                ("SQLITE_READONLY", "SQLITE_CANTOPEN")
            ):
                copy = True
            elif _is_lock(error) or _state(path) == state:  # else half of a write was seen
                raise _refusal(path, error) from None
            continue
        if _state(path) == state or not (immutable or copy):
            return result
    raise UnreadableLog("the database changes faster than it can be read", where=str(path))


def _header(path: Path) -> bytes:
    """Return the file's header. Raises UnreadableLog where there is none, or pages are missing.

    SQLite itself would read what is missing of the last page as zeros.
    """
    with open_log(path) as file:
        head = file.read(SQLITE_HEADER_BYTES)
    if not is_database(head) or len(head) < SQLITE_HEADER_BYTES:
        raise UnreadableLog(NOT_SQLITE, where=str(path))
    page = int.from_bytes(head[16:18], "big")
    pages = int.from_bytes(head[28:32], "big")
    size, expected = path.stat().st_size, pages * (65536 if page == 1 else page)
    kept_up = head[24:28] == head[92:96]  # the number of pages, by old versions of SQLite
    if kept_up and size < expected and _size(path, "-journal") <= 0:  # no write is under way
        raise UnreadableLog(
            f"the database is cut short: {size:,} of {expected:,} bytes are there",
            where=str(path),
            hint=_recovery(path),
        )
    return head


def rows(connection: "Connection", query: str, values: Row = ()) -> Iterator[Row]:
    """Yield a query's rows."""
    yield from connection.execute(query, values)


def columns(connection: "Connection", table: str) -> frozenset[str]:
    """Return the names of a table's columns; empty where there is no such table."""
    matches = rows(connection, f"{COLUMNS_QUERY} AND m.name = ?", (table,))
    return frozenset(str(column) for _, column in matches)


def _tables(connection: "Connection") -> dict[str, frozenset[str]]:
    by_table: dict[str, set[str]] = {}
    for table, column in rows(connection, COLUMNS_QUERY):
        by_table.setdefault(str(table), set()).add(str(column))
    return {table: frozenset(names) for table, names in by_table.items()}


def _run_work(uri: str, state: _State, work: Callable[["Connection"], T], lock_seconds: float) -> T:
    import sqlite3  # noqa: PLC0415

    left = FREE_INSTRUCTIONS + INSTRUCTIONS_PER_BYTE * (state.size + max(state.wal, 0))

    def watch() -> bool:  # true stops the query
        nonlocal left
        left -= INSTRUCTIONS_PER_CHECK
        return left < 0

    connection = sqlite3.connect(uri, timeout=lock_seconds, isolation_level=None, uri=True)
    with closing(connection):
        connection.text_factory = lambda data: data.decode(errors="replace")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
        connection.set_progress_handler(watch, INSTRUCTIONS_PER_CHECK)
        for pragma in ("trusted_schema=OFF", "cell_size_check=ON", "mmap_size=0"):
            connection.execute(f"PRAGMA {pragma}")
        connection.execute("BEGIN")
        return work(connection)


def _state(path: Path) -> _State:
    with open_log(path):  # says what is wrong with the file
        status = path.stat()
    wal, shm, journal = (_size(path, end) for end in ("-wal", "-shm", "-journal"))
    return _State(status.st_size, status.st_mtime_ns, wal, shm >= 0, journal)


def wal_files(path: Path) -> Iterator[Path]:
    """Yield the file that a database grows in before it grows itself."""
    yield _sibling(path, "-wal")


def _sibling(path: Path, end: str) -> Path:
    return path.with_name(path.name + end)


def _size(path: Path, end: str) -> int:
    try:
        return _sibling(path, end).stat().st_size
    except OSError:
        return -1


def _from_copy(path: Path, work: Callable[["Connection"], T], lock_seconds: float) -> T:
    with _copy_database(path) as copy:
        return _run_work(f"{copy.absolute().as_uri()}?mode=rw", _state(copy), work, lock_seconds)


@contextmanager
def _copy_database(path: Path) -> Iterator[Path]:
    """Copy a database with its log and its journal to a folder that goes again."""
    sizes = {end: _size(path, end) for end in ("", "-wal", "-journal")}
    if sum(sizes.values()) > MAX_COPY_BYTES:
        raise UnreadableLog(
            "the database was left unfinished, and is too large to copy for reading",
            where=str(path),
            hint=f"close the program that writes it, or: sqlite3 {path} 'PRAGMA wal_checkpoint'",
        )
    with tempfile.TemporaryDirectory(prefix="rlvitals-") as folder:
        copy = Path(folder, "copy.db")
        for end, size in sizes.items():
            if size >= 0:
                with (
                    open_log(_sibling(path, end)) as source,
                    _sibling(copy, end).open("wb") as target,
                ):
                    shutil.copyfileobj(source, target)
        yield copy


def _is_lock(error: Exception) -> bool:
    return getattr(error, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


def _refusal(path: Path, error: Exception) -> UnreadableLog:
    """Convert an error of SQLite to an UnreadableLog."""
    code = getattr(error, "sqlite_errorname", "")
    if _is_lock(error):
        return UnreadableLog(
            "the database is locked by the program that writes it",
            where=str(path),
            hint="try again when it has written",
        )
    if code.startswith("SQLITE_NOTADB"):
        problem = NOT_SQLITE
    elif code.startswith("SQLITE_INTERRUPT"):
        problem = "the database is damaged: its tables never end"
    else:
        problem = f"the database cannot be read: {error}"
    return UnreadableLog(problem, where=str(path), hint=_recovery(path))


def _recovery(path: Path) -> str:
    return f"sqlite3 {path} .recover | sqlite3 repaired.db"
