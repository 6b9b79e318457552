"""Files of a run that shrink or are replaced while they are read."""

import os
import shutil

import pytest
from native_runs import record

from rlvitals.readers import native
from rlvitals.storage import blocks, reader
from rlvitals.storage.compact import compact
from rlvitals.storage.compacted import PackedFile
from rlvitals.storage.run_folder import RUN_FILE


@pytest.fixture
def run(tmp_path):
    record(tmp_path / "run", rows=40)
    return tmp_path / "run"


def test_a_block_file_that_shrinks_while_it_is_read_is_read_up_to_there(run, monkeypatch):
    path = run / "blocks" / "1-0.rlv"
    size = path.stat().st_size
    read = blocks.frames.read

    def cut(file, count):
        os.truncate(path, size // 2)
        return read(file, count)

    monkeypatch.setattr(blocks.frames, "read", cut)
    log, _ = native.read(run / RUN_FILE, None)
    assert log.series
    assert any("no whole block" in note for note in log.notes)


@pytest.mark.parametrize("part", [0.0, 0.3, 0.6, 0.95])
def test_a_packed_file_that_shrinks_while_it_is_open_gives_what_is_left(run, part):
    compact(run)
    path = run / "blocks" / "1-0.packed.rlv"
    with PackedFile(path) as packed:
        os.truncate(path, int(part * path.stat().st_size))
        for key in ("loss", "eval/return", "none"):
            series = packed.series(key)
            assert series is None or len(series) <= 40
    with PackedFile(path) as packed:
        os.truncate(path, int(part * path.stat().st_size))
        packed.all_scalars()
        assert packed.damage or part == 0.0


def test_a_run_that_is_replaced_while_it_is_followed_is_read_anew(run, tmp_path):
    first = reader.read(run)
    record(tmp_path / "other", rows=7)
    shutil.rmtree(run / "blocks")
    shutil.move(tmp_path / "other" / "blocks", run / "blocks")
    again = reader.read(run, first.cursor)
    assert again.replaced
    assert sum(len(one.steps) for one in again.parts[0].scan.scalars) == 7
