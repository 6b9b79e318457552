"""A file of blocks: what is written is read, whatever happens to the file."""

import os

import numpy as np
import pytest

from rlvitals.errors import UnreadableLog
from rlvitals.storage import frames
from rlvitals.storage.blocks import Writer, scan
from rlvitals.types import Histogram, Table, Text

NAN, INF = float("nan"), float("inf")


def rows(count, first=0):
    steps = np.arange(first, first + count)
    return steps, 1e9 + steps, np.array([steps * 0.5, -1.0 * steps])


def write(path, blocks=3, close=True):
    writer = Writer(path)
    for n in range(blocks):
        writer.scalars(("a", "b"), *rows(4, 4 * n))
        writer.flush()
    if close:
        writer.close()
    return writer


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "1-0.rlv"
    writer = Writer(path)
    values = np.array([[1.0, NAN, INF], [-INF, -0.0, 5e-324]])
    writer.scalars(("a", "b/c"), np.array([5, 3, -2]), np.array([1.0, NAN, 3.0]), values)
    writer.histogram("h", Histogram(7, 2.0, np.array([-INF, 0.0, INF]), np.array([1.0, 2.0])))
    writer.text("t", Text(8, NAN, "ä\ud800\n"))
    writer.table("s", Table(np.array([1, 2]), {"x": ["y", None], "r": [1.5, 2]}))
    writer.settings(9, 4.0, {"lr": 1e-3, "net": [64, 64]})
    writer.close()
    found = scan(path)
    (one,) = found.scalars
    assert one.keys == ("a", "b/c")
    assert one.steps.tolist() == [5, 3, -2]
    assert one.times.tobytes() == np.array([1.0, NAN, 3.0]).tobytes()
    assert one.values.tobytes() == values.tobytes()
    ((key, histogram),) = found.histograms
    assert (key, histogram.step, histogram.time) == ("h", 7, 2.0)
    assert histogram.edges.tolist() == [-INF, 0.0, INF]
    assert histogram.counts.tolist() == [1.0, 2.0]
    ((key, text),) = found.texts
    assert (key, text.step, text.text) == ("t", 8, "ä\\ud800\n")  # UTF-8 has no lone surrogate
    ((key, table),) = found.tables
    assert table.columns == {"x": ["y", None], "r": [1.5, 2]}
    assert found.settings[0].settings == {"lr": 1e-3, "net": [64, 64]}
    assert found.cursor.ended
    assert not found.damage
    assert found.torn == 0


def test_a_flush_is_seen_by_a_cursor_and_a_torn_tail_waits(tmp_path):
    path = tmp_path / "1-0.rlv"
    writer = write(path, 2, close=False)
    first = scan(path)
    assert sum(len(one.steps) for one in first.scalars) == 8
    whole = path.read_bytes()
    writer.scalars(("a", "b"), *rows(3, 8))
    writer.flush()
    grown = path.read_bytes()
    path.write_bytes(grown[: len(whole) + 50])
    half = scan(path, first.cursor)
    assert (half.scalars, half.torn, half.damage) == ((), 50, ())
    path.write_bytes(grown)
    (last,) = scan(path, half.cursor).scalars
    assert last.steps.tolist() == [8, 9, 10]
    writer.close()


def test_a_damaged_block_is_named_and_the_others_are_read(tmp_path):
    path = tmp_path / "1-0.rlv"
    write(path)
    data = bytearray(path.read_bytes())
    blocks = [part for part in frames.walk(bytes(data)) if part.header.kind == frames.Kind.SCALARS]
    data[blocks[1].offset + 40] ^= 1
    path.write_bytes(data)
    found = scan(path)
    assert [one.steps[0] for one in found.scalars] == [0, 8]
    assert [one.offset for one in found.damage] == [blocks[1].offset]


def test_a_newer_format_is_refused_by_name(tmp_path, monkeypatch):
    path = tmp_path / "1-0.rlv"
    monkeypatch.setattr(frames, "BLOCK_FORMAT", 2)
    write(path)
    monkeypatch.undo()
    with pytest.raises(UnreadableLog, match="format 2, written by a newer rlvitals"):
        scan(path)


def test_another_file_under_the_name_is_read_from_its_start(tmp_path):
    path = tmp_path / "1-0.rlv"
    write(path, 3)
    cursor = scan(path).cursor
    path.unlink()
    write(path, 4)
    found = scan(path, cursor)
    assert found.replaced
    assert len(found.scalars) == 4


def test_a_disk_that_fills_up_in_mid_write_leaves_every_block_whole(tmp_path, monkeypatch):
    path = tmp_path / "1-0.rlv"
    writer = write(path, 1, close=False)
    room = [100]

    def full(fd, parts):
        if not room[0]:
            raise OSError(28, "No space left on device")
        took = os.write(fd, b"".join(parts)[: room[0]])
        room[0] -= took
        return took

    monkeypatch.setattr(os, "writev", full)
    for n in (4, 8):
        writer.scalars(("a", "b"), *rows(4, n))
        with pytest.raises(OSError, match="No space"):
            writer.flush()
    monkeypatch.undo()
    writer.close()
    found = scan(path)
    assert not found.damage
    assert np.concatenate([one.steps for one in found.scalars]).tolist() == list(range(12))
