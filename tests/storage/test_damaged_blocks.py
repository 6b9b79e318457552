"""Damage to a run's files: no wrong number, no crash, and what is whole is read."""

import random

import pytest
from effort import cases
from native_runs import record, rows_of

from rlvitals.errors import UnreadableLog
from rlvitals.storage import events, reader
from rlvitals.storage.compact import compact
from rlvitals.storage.frames import Kind, walk
from rlvitals.storage.run_folder import RunFolder, block_files
from rlvitals.storage.verify import verify

QUICK, LONG = 400, 20_000


@pytest.fixture(params=["growing", "packed"])
def file(request, tmp_path):
    record(tmp_path / "run", rows=8)
    if request.param == "packed":
        compact(tmp_path / "run")
    (found,) = block_files(tmp_path / "run")
    return found


def place(file):
    return file.packed or file.path


def contents(scan):
    """Return everything that a scan holds, comparable."""
    others = {("histogram", k, h.step, h.edges.tobytes(), h.counts.tobytes())
              for k, h in scan.histograms}  # fmt: skip
    others |= {("text", key, one.step, one.text) for key, one in scan.texts}
    others |= {("table", key, one.steps.tobytes(), str(one.columns)) for key, one in scan.tables}
    others |= {("settings", one.step, str(one.settings)) for one in scan.settings}
    return rows_of(scan) | others


def attempt(file):
    try:
        return reader.read_file(file)
    except UnreadableLog as error:
        assert "newer" in error.problem  # noqa: PT017 - the only reason to refuse
        return None


def test_every_truncation_is_a_prefix(file):
    data, original = place(file).read_bytes(), reader.read_file(file)
    known, before = contents(original), set()
    for size in (*range(0, len(data), cases(5, 1)), len(data)):
        place(file).write_bytes(data[:size])
        found = contents(reader.read_file(file))
        assert before <= found <= known
        before = found
    assert before == known


@pytest.mark.parametrize("rounds", [QUICK, pytest.param(LONG, marks=pytest.mark.soak)])
def test_flipped_bits_give_no_wrong_number(file, rounds):
    data, known = place(file).read_bytes(), contents(reader.read_file(file))
    rounds //= 4 if file.packed and rounds == QUICK else 1
    chance = random.Random(rounds)
    for n in range(rounds):
        at, bit = chance.randrange(len(data)), 1 << chance.randrange(8)
        place(file).write_bytes(data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :])
        found = attempt(file)
        assert found is not None
        assert contents(found) <= known
        assert found.damage or found.torn or contents(found) == known
        if n % 10:
            continue
        bad = [one for one in verify(file.path.parent.parent) if not one.is_intact or one.torn]
        assert bad, f"verify misses a flipped bit at {at}"


def test_of_a_damaged_block_all_others_are_read(file):
    data = place(file).read_bytes()
    known = contents(reader.read_file(file))
    for block in [one for one in walk(data) if one.header.kind not in {Kind.KEYS, Kind.START}]:
        if not block.header.size:
            continue
        broken = bytearray(data)
        broken[block.end - 1] ^= 1
        place(file).write_bytes(broken)
        found = reader.read_file(file)
        lost = known - contents(found)
        assert [one.offset for one in found.damage] == [block.offset]
        if block.header.kind == Kind.SCALARS:
            assert len(lost) == block.header.rows * block.header.columns
        elif block.header.kind == Kind.PACKED:
            assert {key for key, *_ in lost} in ({"loss", "kl"}, {"eval/return"})
        else:
            assert len(lost) == (block.header.kind != Kind.ORIGIN)


def test_rows_whose_key_table_is_lost_are_named_by_no_other(tmp_path):
    record(tmp_path, others=False)
    (file,) = block_files(tmp_path)
    data = bytearray(file.path.read_bytes())
    tables = [one for one in walk(bytes(data)) if one.header.kind == Kind.KEYS]
    data[tables[1].end - 1] ^= 1
    file.path.write_bytes(data)
    found = reader.read_file(file)
    assert {key for key, *_ in rows_of(found)} == {"eval/return"}
    assert any("key table is lost" in one.why for one in found.damage)
    (report,) = [one for one in verify(tmp_path) if one.name == "blocks/1-0.rlv"]
    assert report.rows == 2


def test_a_key_table_is_written_again_and_names_what_came_before(tmp_path):
    run = record(tmp_path, others=False, rows=400)
    (file,) = run.block_files()
    known = rows_of(reader.read_file(file))
    data = bytearray(file.path.read_bytes())
    first = next(one for one in walk(bytes(data)) if one.header.kind == Kind.KEYS)
    data[first.end - 1] ^= 1
    file.path.write_bytes(data)
    assert rows_of(reader.read_file(file)) == known


def test_two_processes_on_one_folder_are_both_whole(tmp_path):
    from native_runs import write

    from rlvitals.storage.blocks import Writer
    from rlvitals.storage.run_folder import About

    runs = [RunFolder.create(tmp_path, About()) for _ in range(2)]
    writers = [Writer(run.begin()[2]) for run in runs]
    for n in range(20):
        for writer in writers:
            write(writer, [n])
    for writer in writers:
        writer.close()
    one, two = reader.read(tmp_path).parts
    assert (one.file.attempt, two.file.attempt) == (1, 2)
    assert rows_of(one.scan) == rows_of(two.scan)
    assert len(rows_of(one.scan)) == 7 + 2 * 13


def test_damaged_events_are_counted_and_the_others_read(tmp_path):
    run = record(tmp_path)
    data = run.events_path.read_bytes()
    run.events_path.write_bytes(b"\xff\0{\n[1]\n" + data + b'{"event": "to')
    found = events.read(run.events_path)
    assert [event.kind for event in found.events] == ["start", "finish"]
    assert found.skipped == 2
