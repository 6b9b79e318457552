"""gzip and zstd: every reader reads what they pack, and damage or a bomb is named."""

import gzip
import json
import os
import shutil
import zlib
from pathlib import Path

import log_checks
import numpy as np
import pytest
import tfrecords
from backports import zstd
from loading import read_log

from rlvitals.errors import UnreadableLog
from rlvitals.readers import select
from rlvitals.readers.discovery import sources
from rlvitals.readers.formats import compressed
from rlvitals.readers.formats.lines import REPLACED_NOTE, open_log

TESTS = Path(__file__).parents[1]
CHECKED = {zstd.CompressionParameter.checksum_flag: 1}
PACK = {
    ".gz": gzip.compress,
    ".zst": lambda data: zstd.compress(data, options=CHECKED),
    ".zstd": lambda data: zstd.compress(data, options=CHECKED),
}
PACKED = pytest.mark.parametrize("suffix", PACK)
EVENTS = tfrecords.VERSION + b"".join(
    tfrecords.event(n, tfrecords.simple("loss", n / 7), time=1.7e9 + n) for n in range(20)
)


def rows(make, count=20):
    return "".join(f"{make(n)}\n" for n in range(count)).encode()


# One log for each reader of a single file.
LOGS = {
    "tensorboard": ("events.out.tfevents.1700000001.host.1.0", EVENTS),
    "sb3-csv": ("progress.csv", TESTS / "runs/ppo-cartpole-healthy/run.csv"),
    "sb3-json": (
        "progress.json",
        rows(lambda n: json.dumps({"time/total_timesteps": n, "train/loss": n / 7})),
    ),
    "sb3-monitor": (
        "0.monitor.csv",
        b'#{"t_start": 1.7e9}\nr,l,t\n' + rows(lambda n: f"{n},5,{n}.5"),
    ),
    "rllib": (
        "result.json",
        rows(lambda n: json.dumps({"training_iteration": n, "timesteps_total": n, "loss": 1.5})),
    ),
    "scheduler-csv": ("ppo_metrics_1.csv", TESTS / "runs/scheduler-healthy/run.csv"),
    "trainer-state": ("trainer_state.json", TESTS / "runs/grpo-healthy/run.json"),
    "csv": ("losses.csv", b"step,loss\n" + rows(lambda n: f"{n},{n / 7}")),
    "jsonl": ("losses.jsonl", rows(lambda n: json.dumps({"step": n, "loss": n / 7}))),
}
TABLE = LOGS["csv"][1]


def content(log):
    return log.read_bytes() if isinstance(log, Path) else log


@PACKED
@pytest.mark.parametrize("name", LOGS)
def test_a_packed_log_reads_as_the_plain_one(tmp_path, name, suffix):
    file, log = LOGS[name]
    data = content(log)
    plain, packed = tmp_path / file, tmp_path / "packed" / f"{file}{suffix}"
    packed.parent.mkdir()
    plain.write_bytes(data)
    packed.write_bytes(PACK[suffix](data))
    assert select.may_be_log(packed)
    reader = select.reader_of(packed)
    assert reader.name == select.reader_of(plain).name == name
    expected = read_log(plain)
    found, cursor = reader.read(packed, None)
    log_checks.assert_equal(log_checks.points(found), log_checks.points(expected))
    assert log_checks.points(expected)
    assert found.settings == expected.settings
    assert found.notes == expected.notes
    again, same = reader.read(packed, cursor)
    assert again.series == {}
    assert same == cursor


@PACKED
def test_a_packed_file_is_a_run_of_a_folder(tmp_path, suffix):
    for run in ("a", "b"):
        (tmp_path / run).mkdir()
        (tmp_path / run / f"progress.csv{suffix}").write_bytes(PACK[suffix](TABLE))
    found = sources.find(tmp_path)
    assert [run.name for run in found] == ["a", "b"]
    (log,) = sources.read(found[0])
    assert len(log.series["loss"]) == 20


def test_a_packed_copy_beside_its_original_is_not_read_twice(tmp_path):
    (tmp_path / "losses.csv").write_bytes(TABLE)
    (tmp_path / "losses.csv.gz").write_bytes(gzip.compress(TABLE))
    (run,) = sources.find(tmp_path)
    assert [file.name for file, _ in run.files] == ["losses.csv"]
    assert run.notes == ("losses.csv.gz not read: losses.csv stands beside it",)


def test_what_a_file_starts_with_decides_not_its_name(tmp_path):
    (tmp_path / "plain.csv.gz").write_bytes(TABLE)
    (tmp_path / "packed.csv").write_bytes(gzip.compress(TABLE))
    for name in ("plain.csv.gz", "packed.csv"):
        assert len(read_log(tmp_path / name).series["loss"]) == 20


@PACKED
def test_members_one_after_another_are_one_log(tmp_path, suffix):
    path = tmp_path / f"a.csv{suffix}"
    pack = PACK[suffix]
    parts = TABLE.splitlines(keepends=True)
    path.write_bytes(b"".join(map(pack, parts)))
    assert len(read_log(path).series["loss"]) == 20
    assert read_log(path).notes == ()


def test_members_longer_than_a_piece_are_one_log(tmp_path):
    path = tmp_path / "a.csv.gz"
    long = b"step,loss\n" + rows(lambda n: f"{n},{zlib.crc32(b'%d' % n)}", 60_000)
    halves = long[:400_000], long[400_000:]
    path.write_bytes(b"".join(map(gzip.compress, halves)))
    assert path.stat().st_size > compressed.PACKED_CHUNK_BYTES
    with open_log(path) as file:
        assert file.read() == long


def test_a_frame_of_remarks_and_zeros_after_the_end_are_passed_over(tmp_path):
    path = tmp_path / "a.csv.zst"
    path.write_bytes(b"\x50\x2a\x4d\x18\x03\0\0\0abc" + zstd.compress(TABLE))
    assert read_log(path).notes == ()
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(TABLE) + b"\0" * 700)
    assert read_log(path).notes == ()
    path.write_bytes(gzip.compress(TABLE) + b"remark")
    assert read_log(path).notes == ("bytes after the compressed content are left out",)
    assert len(read_log(path).series["loss"]) == 20


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_cut_reads_as_a_prefix_and_says_so(tmp_path, suffix):
    rng = np.random.default_rng(0)
    parts = [rows(lambda n: f"{n},{rng.random()}", 100) for _ in range(8)]  # a member each
    data = b"".join(map(PACK[suffix], [b"step,loss\n", *parts]))
    path = tmp_path / f"a.csv{suffix}"
    path.write_bytes(data)
    reader = select.reader_of(path)
    assert log_checks.check_truncations(reader, path, data, refusals=True) > 0.6
    path.write_bytes(data[: len(data) * 3 // 4])
    log = read_log(path)
    assert compressed.CUT_NOTE in log.notes
    assert 400 <= len(log.series["loss"]) < 800


def test_blocks_of_zstd_before_a_cut_are_read(tmp_path):
    rng = np.random.default_rng(0)
    table = b"step,loss\n" + rows(lambda n: f"{n},{rng.random()}", 30_000)
    path = tmp_path / "a.csv.zst"
    path.write_bytes(zstd.compress(table)[:200_000])
    assert len(read_log(path).series["loss"]) > 10_000


@pytest.mark.soak
@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_flipped_bits_never_give_a_wrong_number(tmp_path, suffix):
    rng = log_checks.chance_of(1)
    table = b"step,loss\n" + rows(lambda n: f"{n},{rng.random()}", 150)
    data, path = PACK[suffix](table), tmp_path / f"a.csv{suffix}"
    path.write_bytes(data)
    whole = read_log(path).series["loss"].values
    refused = 0
    for trial in range(2000):
        flipped = bytearray(data)
        # Half of them near the end, where damage can look like a cut.
        at = rng.randrange(len(data) * 8) if trial % 2 else (len(data) * 8 - rng.randrange(1, 400))
        flipped[at // 8] ^= 1 << at % 8
        path.write_bytes(flipped)
        try:
            found = read_log(path).series.get("loss")
        except UnreadableLog:
            refused += 1
            continue
        if found is not None:
            np.testing.assert_array_equal(found.values, whole[: len(found)])
    assert refused > 1500


def test_a_checksum_that_does_not_fit_is_named(tmp_path):
    data = bytearray(gzip.compress(TABLE))
    data[-6] ^= 1  # of the CRC-32
    path = tmp_path / "a.csv.gz"
    path.write_bytes(data)
    with pytest.raises(UnreadableLog, match="gzip file is damaged"):
        read_log(path)


def test_a_rotated_packed_log_is_read_from_its_start(tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(TABLE))
    reader = select.reader_of(path)
    _, cursor = reader.read(path, None)
    path.write_bytes(gzip.compress(b"step,loss\n100,1\n"))
    log, _ = reader.read(path, cursor)
    assert log.series["loss"].steps.tolist() == [100]
    assert REPLACED_NOTE in log.notes


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_bomb_is_refused_and_leaves_no_file(tmp_path, suffix, monkeypatch):
    monkeypatch.setattr(compressed, "MAX_UNCHECKED_BYTES", 4 * 2**20)
    path, temporary = tmp_path / f"a.csv{suffix}", tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    monkeypatch.setattr(compressed, "MAX_IN_MEMORY_BYTES", 2**20)
    path.write_bytes(PACK[suffix](b"step,loss\n" + b"1,1\n" * 3_000_000))
    assert path.stat().st_size * compressed.MAX_UNPACK_RATIO < 12_000_000
    with pytest.raises(UnreadableLog, match="unpacks to more than") as error:
        read_log(path)
    assert str(path) in error.value.where
    assert os.listdir(temporary) == []  # noqa: PTH208 - names are enough


def test_a_log_that_hardly_changes_is_no_bomb(tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"step,loss\n" + rows(lambda n: f"{n // 1000},0.5", 100_000)))
    assert path.stat().st_size * 80 < 800_000
    assert len(read_log(path).series["loss"]) == 100_000


def test_a_packed_file_that_is_no_log_is_refused_by_name(tmp_path):
    path = tmp_path / "weights.csv.gz"
    path.write_bytes(gzip.compress(b"\0\1\2" * 900))
    with pytest.raises(UnreadableLog, match="not a training log"):
        read_log(path)
    shutil.copy(path, tmp_path / "empty.csv.gz")
    path.write_bytes(gzip.compress(b""))
    with pytest.raises(UnreadableLog, match="empty"):
        read_log(path)
