"""Packing a run: the same numbers before, after, and whenever it is cut short."""

import os
from pathlib import Path

from native_runs import read, record, rows_of, write

from rlvitals.storage import reader
from rlvitals.storage.blocks import Writer
from rlvitals.storage.compact import compact, pack
from rlvitals.storage.run_folder import block_files


def test_packed_is_the_same(tmp_path):
    record(tmp_path, attempts=2, rows=30)
    before, others = read(tmp_path), reader.read(tmp_path)
    assert all(not done.why for done in compact(tmp_path))
    assert {path.name for path in (tmp_path / "blocks").iterdir()} == {
        "1-0.packed.rlv", "2-0.packed.rlv",
    }  # fmt: skip
    assert read(tmp_path) == before
    after = reader.read(tmp_path)
    for old, new in zip(others.parts, after.parts, strict=True):
        assert old.scan.texts == new.scan.texts
        assert old.scan.settings == new.scan.settings
        assert len(old.scan.histograms) == len(new.scan.histograms) == 1
        assert old.scan.tables[0][1].columns == new.scan.tables[0][1].columns
    assert compact(tmp_path) == ()


def test_blocks_are_split_where_they_grow_large(tmp_path, monkeypatch):
    from rlvitals.storage import compact as module

    record(tmp_path, rows=200)
    before = read(tmp_path)
    monkeypatch.setattr(module, "PACKED_BLOCK_BYTES", 1000)
    monkeypatch.setattr(module, "MAX_BUFFERED_BYTES", 1500)
    compact(tmp_path)
    assert read(tmp_path) == before


def test_who_reads_by_cursor_sees_nothing_twice_and_misses_nothing(tmp_path):
    run = record(tmp_path, rows=5, close=False)
    first = reader.read(tmp_path)
    (file,) = run.block_files()
    writer = Writer(file.path)
    write(writer, range(5, 15))
    second = reader.read(tmp_path, first.cursor)
    writer.close()
    lost = reader.read(tmp_path, second.cursor)
    whole_run = read(tmp_path)
    compact(tmp_path)
    for since in (first, second):
        rest = reader.read(tmp_path, since.cursor)
        assert not rest.replaced
        (part,) = rest.parts
        expected = 10 if since is first else 0
        assert sum(len(one.steps) for one in part.scan.scalars) == expected
        assert not part.scan.texts
    assert rows_of(second.parts[0].scan) == rows_of(
        reader.read(tmp_path, first.cursor).parts[0].scan
    )
    assert not lost.parts[0].scan.scalars
    assert read(tmp_path) == whole_run


def test_a_run_that_is_written_to_is_left(tmp_path):
    run = record(tmp_path, rows=5, close=False)
    writer = Writer(run.block_files()[0].path)
    (left,) = compact(tmp_path)
    assert left.why == "it is still written to"
    writer.close()
    (packed,) = compact(tmp_path)
    assert packed.why == ""


def test_a_file_of_a_killed_process_is_packed_when_it_is_quiet(tmp_path):
    run = record(tmp_path, rows=5)
    (file,) = run.block_files()
    data = file.path.read_bytes()
    file.path.write_bytes(data[:-40])
    before = read(tmp_path)
    assert [one.why for one in compact(tmp_path)] == ["it may still be written to"]
    os.utime(file.path, (1, 1))
    assert [one.why for one in compact(tmp_path)] == [""]
    assert read(tmp_path) == before


def test_a_damaged_file_is_left_as_it_is(tmp_path):
    run = record(tmp_path, rows=9)
    (file,) = run.block_files()
    data = bytearray(file.path.read_bytes())
    data[len(data) // 2] ^= 1
    file.path.write_bytes(data)
    (left,) = compact(tmp_path)
    assert left.why.startswith("it is damaged: ")
    assert file.path.read_bytes() == data


def test_what_came_after_an_earlier_packing_is_packed_with_it(tmp_path):
    run = record(tmp_path, rows=9, close=False)
    (file,) = run.block_files()
    assert pack(file)[0] == ""
    writer = Writer(file.path)
    write(writer, range(9, 21))
    writer.close()
    both = read(tmp_path)
    compact(tmp_path)
    assert read(tmp_path) == both
    (again,) = block_files(tmp_path)
    assert not again.path.exists()
    assert len(rows_of(reader.read_file(again))) == 7 + 2 * 14


class Crash(BaseException):
    """What stands for a process that is killed."""


def test_a_crash_at_any_moment_leaves_every_number_once(tmp_path, monkeypatch):
    """Every call to the system that changes something is the last one, in turn."""
    moment = 0
    while True:
        folder = tmp_path / f"{moment}"
        record(folder, rows=12)
        before = read(folder)
        with monkeypatch.context() as patch:
            left = [moment]
            for owner, name in ((Path, "replace"), (Path, "unlink"), (os, "fsync")):
                patch.setattr(owner, name, _dies(getattr(owner, name), left))
            try:
                compact(folder)
            except Crash:
                crashed = True
            else:
                crashed = False
        assert read(folder) == before
        assert all(not done.why for done in compact(folder))
        assert read(folder) == before
        assert [path.name for path in (folder / "blocks").iterdir()] == ["1-0.packed.rlv"]
        moment += 1
        if not crashed:
            break
    assert moment > 5


def _dies(real, left):
    def call(*args, **kwargs):
        if left[0] <= 0:
            raise Crash
        left[0] -= 1
        return real(*args, **kwargs)

    return call


def test_a_packed_file_cut_at_any_byte_beside_its_source_is_not_read(tmp_path):
    """What a crash leaves of the new file has another name until it is whole."""
    record(tmp_path, rows=6)
    before = read(tmp_path)
    (file,) = block_files(tmp_path)
    pack(file)
    packed = file.path.with_suffix(".packed.rlv")
    data = packed.read_bytes()
    packed.unlink()
    hidden = packed.with_name(".1-0.packed.00ff")
    for size in range(0, len(data), 7):
        hidden.write_bytes(data[:size])
        assert read(tmp_path) == before
    compact(tmp_path)
    assert not hidden.exists()
