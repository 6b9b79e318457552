"""Databases as their writers leave them: open, closed, crashed, copied, locked, damaged."""

import os
import shutil
import sqlite3
import struct
import time
from contextlib import closing

import pytest

from rlvitals.errors import UnreadableLog
from rlvitals.readers.formats import sqlite


def values(db):
    return [row[0] for row in sqlite.rows(db, "SELECT a FROM t ORDER BY a")]


def make(path, mode="delete", count=3):
    """Write a database and return the connection that has it open."""
    db = sqlite3.connect(path)
    db.execute(f"PRAGMA journal_mode={mode}")
    db.execute("CREATE TABLE t (a INTEGER, b TEXT)")
    db.executemany("INSERT INTO t VALUES (?, ?)", [(n, "x" * 300) for n in range(count)])
    db.commit()
    return db


def files(folder):
    return {file.name: file.stat().st_size for file in folder.iterdir()}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.db"


@pytest.mark.parametrize("name", ["with space#?%20.db", "ü\udcff.db", "-a.db"])
@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_any_name(tmp_path, name, mode):
    path = tmp_path / name
    with closing(make(path, mode)):
        assert sqlite.read_database(path, values) == [0, 1, 2]
    assert sqlite.read_database(path, values) == [0, 1, 2]
    assert files(tmp_path).keys() == {name}


@pytest.mark.parametrize("mode", ["delete", "wal", "truncate", "persist"])
def test_a_closed_database_is_read_and_nothing_is_left_beside_it(path, mode):
    make(path, mode).close()
    before = files(path.parent)
    assert sqlite.read_database(path, values) == [0, 1, 2]
    assert sqlite.tables(path) == {"t": {"a", "b"}}
    assert files(path.parent) == before


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_a_database_that_is_open_elsewhere_is_read_as_it_grows(path, mode):
    with closing(make(path, mode)) as db:
        before = sorted(files(path.parent))
        assert sqlite.read_database(path, values) == [0, 1, 2]
        db.execute("INSERT INTO t VALUES (3, '')")
        assert sqlite.read_database(path, values) == [0, 1, 2]  # not committed
        db.commit()
        assert sqlite.read_database(path, values) == [0, 1, 2, 3]
        assert sorted(files(path.parent)) == before


def test_what_a_crash_left_in_the_log_is_read_from_a_copy(path, tmp_path):
    (tmp_path / "crash").mkdir()
    crashed = tmp_path / "crash" / "a.db"
    with closing(make(path, "wal")):
        shutil.copy(path, crashed)
        shutil.copy(f"{path}-wal", f"{crashed}-wal")
    before = files(crashed.parent)
    assert before["a.db"] == 4096  # the rows are in the log alone
    assert sqlite.read_database(crashed, values) == [0, 1, 2]
    assert files(crashed.parent) == before


def test_a_write_that_a_crash_cut_is_undone_in_a_copy(path, tmp_path):
    (tmp_path / "crash").mkdir()
    crashed = tmp_path / "crash" / "a.db"
    with closing(make(path, count=2000)) as db:
        db.execute("PRAGMA cache_size=1")  # so that changed pages reach the file before the end
        db.execute("UPDATE t SET a = -1, b = b || 'y'")
        shutil.copy(path, crashed)
        shutil.copy(f"{path}-journal", f"{crashed}-journal")
    before = files(crashed.parent)
    assert sqlite.read_database(crashed, values) == list(range(2000))
    assert files(crashed.parent) == before


def test_a_copy_that_would_be_too_large_is_refused(path, tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite, "MAX_COPY_BYTES", 4096)
    (tmp_path / "crash").mkdir()
    with closing(make(path, "wal")):
        shutil.copy(path, tmp_path / "crash" / "a.db")
        shutil.copy(f"{path}-wal", tmp_path / "crash" / "a.db-wal")
    with pytest.raises(UnreadableLog, match="too large to copy"):
        sqlite.read_database(tmp_path / "crash" / "a.db", values)


def test_a_locked_database_is_said_in_time(path):
    with closing(make(path)) as db:
        db.execute("BEGIN EXCLUSIVE")
        with pytest.raises(UnreadableLog, match="locked by the program") as error:
            sqlite.read_database(path, values, lock_seconds=0.2)
        assert str(path) in error.value.where
        assert sqlite.has_columns(path, path.read_bytes(), {"t": frozenset("ab")})


def test_a_database_that_changes_while_it_is_read_is_read_again(path):
    make(path, "wal").close()
    seen = []

    def work(db):
        found = values(db)
        if len(seen) < 2:
            with closing(sqlite3.connect(path)) as writer, writer:
                writer.execute("INSERT INTO t VALUES (?, '')", (10 + len(seen),))
        seen.append(found)
        return found

    assert sqlite.read_database(path, work) == [0, 1, 2, 10, 11]
    assert len(seen) == 3


def test_a_database_that_never_stands_still_is_refused(path):
    make(path, "wal").close()

    def work(_):
        os.utime(path, ns=(time.time_ns(),) * 2)

    with pytest.raises(UnreadableLog, match="changes faster"):
        sqlite.read_database(path, work)


@pytest.mark.parametrize("data", [b"", b"SQLite", os.urandom(9000), b"SQLite format 3\0"])
def test_what_is_no_database_is_refused(path, data):
    path.write_bytes(data)
    with pytest.raises(UnreadableLog) as error:
        sqlite.read_database(path, values)
    assert str(path) in error.value.where
    assert not sqlite.has_columns(path, data, {"t": frozenset("ab")})


def test_no_file_and_no_regular_file(tmp_path):
    with pytest.raises(UnreadableLog, match="this path does not exist"):
        sqlite.read_database(tmp_path / "gone.db", values)
    os.mkfifo(tmp_path / "pipe.db")
    with pytest.raises(UnreadableLog, match="not a regular file"):
        sqlite.read_database(tmp_path / "pipe.db", values)


def test_a_database_cut_short_is_refused_at_every_page(path):
    make(path, count=2000).close()
    data = path.read_bytes()
    for size in range(100, len(data), 1000):
        path.write_bytes(data[:size])
        with pytest.raises(UnreadableLog) as error:
            sqlite.read_database(path, values)
        assert "sqlite3" in error.value.hint


def test_pages_in_a_loop_end(path, monkeypatch):
    """Every child of the table's root is the same leaf, again and again."""
    monkeypatch.setattr(sqlite, "FREE_INSTRUCTIONS", 10_000)
    monkeypatch.setattr(sqlite, "INSTRUCTIONS_PER_BYTE", 0)
    monkeypatch.setattr(sqlite, "INSTRUCTIONS_PER_CHECK", 100)
    make(path, count=2000).close()
    data = bytearray(path.read_bytes())
    root = 4096
    (cells,) = struct.unpack(">H", data[root + 3 : root + 5])
    assert data[root] == 5  # an inner page
    assert cells > 50
    for n in range(cells):
        (at,) = struct.unpack(">H", data[root + 12 + 2 * n : root + 14 + 2 * n])
        data[root + at : root + at + 4] = struct.pack(">I", 3)
    path.write_bytes(data)
    with pytest.raises(UnreadableLog, match="tables never end"):
        sqlite.read_database(path, values)


def test_a_huge_value_is_refused(path, monkeypatch):
    monkeypatch.setattr(sqlite, "MAX_VALUE_BYTES", 1000)
    with closing(make(path)) as db, db:
        db.execute("INSERT INTO t VALUES (9, zeroblob(5000))")
    with pytest.raises(UnreadableLog, match="too big"):
        sqlite.read_database(path, lambda db: list(sqlite.rows(db, "SELECT b FROM t")))


def test_a_view_is_no_table(path):
    with closing(make(path)) as db, db:
        db.execute("CREATE VIEW v AS SELECT a FROM t")
    assert sqlite.tables(path) == {"t": {"a", "b"}}


@pytest.mark.parametrize("lost", [("-shm",), ("-wal",), ("-wal", "-shm")])
@pytest.mark.parametrize("checkpointed", [False, True])
def test_a_wal_database_without_the_files_beside_it(tmp_path, lost, checkpointed):
    """Copied while its program runs: what was not moved into the database is in its log alone."""
    source, target = tmp_path / "a.db", tmp_path / "copy" / "a.db"
    target.parent.mkdir()
    with closing(make(source, "wal")) as db:
        if checkpointed:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            db.execute("INSERT INTO t VALUES (3, '')")
            db.commit()
        for end in ("", "-wal", "-shm"):
            if end not in lost:
                shutil.copy(f"{source}{end}", f"{target}{end}")
    before = files(target.parent)
    if "-wal" not in lost:
        assert sqlite.read_database(target, values) == ([0, 1, 2, 3] if checkpointed else [0, 1, 2])
    elif checkpointed:
        assert sqlite.read_database(target, values) == [0, 1, 2]
    else:
        with pytest.raises(UnreadableLog, match="no such table"):
            sqlite.read_database(target, values)
    assert files(target.parent).keys() == before.keys()
