"""Lines without an end, and a log that shrinks while it is read."""

import os
import resource
import subprocess
import sys
import tracemalloc

import pytest

from rlvitals.readers.formats import lines
from rlvitals.readers.select import reader_of

GIB = 2**30
ROWS = 4000  # more than `claims` sees
FORMATS = {  # a row, what begins the long one, what stands before the first
    "metrics.jsonl": ('{{"step": {n}, "loss": {n}.5}}\n', '{"step": 1, "loss": ', ""),
    "progress.csv": ("{n},{n}.5\n", "1,", "time/total_timesteps,rollout/ep_rew_mean\n"),
    "train.log": ("{{'loss': {n}.5, 'epoch': {n}.0}}\n", "{'loss': ", ""),
}


def with_a_long_line(path, size):
    """Write a log with one line of many bytes, most of which take no place on the disk."""
    row, torn, head = FORMATS[path.name]
    with path.open("wb") as file:
        file.write((head + "".join(row.format(n=n) for n in range(ROWS)) + torn).encode())
        file.seek(size, os.SEEK_CUR)
        file.write(b"\n" + row.format(n=ROWS).encode())


@pytest.mark.parametrize("name", FORMATS)
def test_memory_does_not_grow_with_a_line_that_never_ends(tmp_path, monkeypatch, name):
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 2**16)
    monkeypatch.setattr(lines, "LINE_CHUNK_BYTES", 2**14)
    peaks = []
    for size in (2**22, 2**24):
        with_a_long_line(tmp_path / name, size)
        reader = reader_of(tmp_path / name)
        tracemalloc.start()
        log, _ = reader.read(tmp_path / name, None)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert max(map(len, log.series.values())) == ROWS + 1
        assert any("skipped" in note for note in log.notes), log.notes
    assert peaks[1] < peaks[0] + 2**20  # four times the line


@pytest.mark.soak
@pytest.mark.parametrize("name", FORMATS)
def test_a_line_of_a_gigabyte_takes_no_memory(tmp_path, name):
    with_a_long_line(tmp_path / name, GIB)
    command = [sys.executable, "-m", "rlvitals", "diagnose", str(tmp_path / name)]
    limit = (GIB, GIB)  # bytes of address space
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=600, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit),
    )  # fmt: skip
    assert done.returncode in {0, 1, 4}, done.stderr
    assert "skipped" in done.stdout


def test_a_log_that_shrinks_while_it_is_read_ends_there(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(f'{{"step": {n}, "loss": 1}}\n' for n in range(5000)))
    with lines.open_log(path) as file:
        found = iter(lines.Lines(file))
        first = next(found)
        os.truncate(path, first.end + 5)
        assert first.number == 1
        assert 0 < sum(1 for _ in found) < 5000
