"""What waits for a disk that takes none: bounded, numbers last, and whole once there is room."""

import errno
import os

import numpy as np
import pytest

from rlvitals.storage import blocks, write_buffer
from rlvitals.storage.blocks import Writer
from rlvitals.storage.frames import Kind
from rlvitals.storage.write_buffer import Budget
from rlvitals.types import Histogram, Table, Text


@pytest.fixture
def disk(monkeypatch):
    """A disk that takes nothing while `full`, and then a few bytes at a time."""
    state = {"full": True, "most": 1000}
    write = write_buffer._write

    def limited(fd, parts):
        if state["full"]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(fd, [b"".join(parts)[: state["most"]]])

    monkeypatch.setattr(write_buffer, "_write", limited)
    return state


def rows(writer, first, count=10, keys=("x", "y")):
    steps = np.arange(first, first + count)
    values = np.stack([steps + 0.5 * i for i in range(len(keys))])
    writer.scalars(keys, steps, steps * 1.0, values)


def text(writer, step, letters=1000):
    writer.text("answer", Text(step, 1.0, "x" * letters))


def steps(path):
    return [step for part in blocks.scan(path).scalars for step in part.steps.tolist()]


def test_texts_tables_and_histograms_go_before_the_first_row(tmp_path, disk):
    budget = Budget(200_000)
    writer = Writer(tmp_path / "a.rlv", budget=budget)
    for i in range(500):
        rows(writer, 10 * i)
        text(writer, i)
        writer.table("t", Table(np.array([i]), {"a": ["y" * 300]}))
        writer.histogram("h", Histogram(i, 1.0, np.arange(4.0), np.ones(3)))
        assert budget.used == writer.pending <= budget.limit
    assert not writer.dropped[Kind.SCALARS]
    assert writer.dropped[Kind.TEXT] > 300
    disk["full"] = False
    waiting = writer.waiting
    writer.close()
    found = blocks.scan(tmp_path / "a.rlv")
    assert steps(tmp_path / "a.rlv") == list(range(5000))
    assert not found.damage
    lengths = {Kind.TEXT: found.texts, Kind.TABLE: found.tables, Kind.HISTOGRAM: found.histograms}
    for kind, parts in lengths.items():
        assert len(parts) == waiting[kind] == 500 - writer.dropped[kind]
    assert [one.step for _, one in found.texts] == list(range(writer.dropped[Kind.TEXT], 500))
    assert budget.used == 0


def test_of_rows_the_oldest_go_and_each_is_counted(tmp_path, disk):
    writer = Writer(tmp_path / "a.rlv", budget=Budget(50_000))
    writer.settings(0, 1.0, {"lr": 1})
    for i in range(1000):
        rows(writer, 10 * i)
    lost = writer.dropped[Kind.SCALARS]
    assert lost > 5000
    disk["full"] = False
    writer.close()
    assert steps(tmp_path / "a.rlv") == list(range(lost, 10_000))
    assert len(blocks.scan(tmp_path / "a.rlv").settings) == 1


def test_names_made_anew_at_each_row_do_not_fill_memory_and_stay_readable(tmp_path, disk):
    budget = Budget(50_000)
    writer = Writer(tmp_path / "a.rlv", budget=budget)
    for i in range(2000):
        rows(writer, i, 1, (f"name {i}",))
        rows(writer, i, 1, ("always",))
        assert budget.used <= budget.limit
    disk["full"] = False
    writer.close()
    found = blocks.scan(tmp_path / "a.rlv")
    assert not found.damage, "every row that is left has its names"
    assert sum(len(part.steps) for part in found.scalars) == 4000 - writer.dropped[Kind.SCALARS]
    assert found.scalars[-1].keys == ("always",)


def test_a_block_that_is_partly_written_is_never_dropped(tmp_path, disk):
    writer = Writer(tmp_path / "a.rlv", budget=Budget(50_000))
    text(writer, 0, 5000)
    disk["full"] = False
    out = writer._out
    assert write_buffer._write(out.fd, out._blocks[0].chunks)
    out._advance(100)
    os.truncate(tmp_path / "a.rlv", 100)
    disk["full"] = True
    for i in range(1000):
        rows(writer, 10 * i)
    disk["full"] = False
    writer.close()
    found = blocks.scan(tmp_path / "a.rlv")
    assert not found.damage


def test_what_other_holders_keep_counts_as_well(tmp_path, disk):
    assert disk["full"]
    budget = Budget(50_000)
    writer = Writer(tmp_path / "a.rlv", budget=budget)
    budget.used += 40_000
    for i in range(100):
        rows(writer, 10 * i)
    assert writer.dropped[Kind.SCALARS]
    assert budget.used <= budget.limit
    assert writer.pending == budget.used - 40_000


def test_many_small_blocks_are_written_in_order(tmp_path, monkeypatch):
    monkeypatch.setattr(write_buffer, "MAX_WRITE_PARTS", 4)
    writer = Writer(tmp_path / "a.rlv")
    for i in range(50):
        rows(writer, i, 1)
    writer.close()
    assert steps(tmp_path / "a.rlv") == list(range(50))
