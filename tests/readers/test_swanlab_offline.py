"""SwanLab's files: what the real library writes, read as its own reader reads it."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import leveldb
import log_checks
import numpy as np
import pytest
from effort import cases, sampled
from swanlab.proto.swanlab.record.v1.record_pb2 import Record
from swanlab.sdk.internal.core_python.store import DataStoreReader
from waiting import HANG_SECONDS

from rlvitals.errors import UnreadableLog
from rlvitals.readers import swanlab_offline
from rlvitals.readers.discovery import sources
from rlvitals.readers.formats.lines import REPLACED_NOTE, read_head
from rlvitals.readers.select import reader_of

READER = swanlab_offline.READER
SCRIPT = Path(__file__).with_name("swanlab_script.py")
ENDINGS = ("offline-ends", "offline-raises", "local-ends")


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """{mode and ending: the folder of that run}, written by the real library."""
    root = tmp_path_factory.mktemp("swanlab")
    folders = {name: root / name for name in (*ENDINGS, "offline-killed")}
    for folder in folders.values():
        folder.mkdir()
    subprocess.run(
        [sys.executable, SCRIPT, *folders.values()],
        env={**os.environ, "HOME": str(root)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
        timeout=HANG_SECONDS,
    )
    return {name: next(folder.glob("run-*")) for name, folder in folders.items()}


def file_of(folder):
    return next(folder.glob("run-*.swanlab"))


def library(path):
    """{key: [(step, time, value)]} through SwanLab's own reader and protobuf."""
    reader, found = DataStoreReader(), {}
    reader.open(path)
    for data in reader:
        record = Record.FromString(data)
        if record.HasField("scalar"):
            one = record.scalar
            time = one.timestamp.seconds + one.timestamp.nanos * 1e-9
            found.setdefault(one.key, []).append((one.step, time, one.value.number))
    reader.close()
    return found


def scalar(key, step, value):
    made = Record(num=step)
    made.scalar.key, made.scalar.step, made.scalar.value.number = key, step, value
    made.scalar.timestamp.seconds = 1_700_000_000 + step
    return made.SerializeToString()


def run_of(count):
    return [scalar(key, n, n / 7) for n in range(count) for key in ("loss", "eval/return")]


@pytest.fixture
def write(tmp_path):
    def make(data, name="run-x.swanlab"):
        path = tmp_path / name
        if isinstance(data, list):
            data, _ = leveldb.framed(leveldb.SWANLAB, data)
        path.write_bytes(data)
        return path

    return make


def read(path):
    return READER.read(path, None)[0]


@pytest.mark.parametrize("name", sampled(ENDINGS, 3))
def test_every_number_is_the_librarys(runs, name):
    expected = library(file_of(runs[name]))
    found = log_checks.points(read(file_of(runs[name])))
    assert {"loss", "bad", "eval/return"} <= set(expected)
    assert set(found) == set(expected)
    for key, rows in expected.items():
        np.testing.assert_array_equal(found[key], np.array(rows, float).T)
    assert found["loss"][0].tolist() == [10.0 * n for n in range(60)]
    assert math.isnan(found["bad"][2][1])
    assert found["bad"][2][0] == -math.inf


def test_what_the_run_says_of_itself(runs):
    log = read(file_of(runs["offline-ends"]))
    assert log.settings["swanlab/project"] == "cart"
    assert log.settings["swanlab/name"] == "first"
    assert log.settings["swanlab/tags"] == "a, b"
    assert any("media" in note and "said" in note for note in log.notes)


def test_the_config_beside_it_holds_the_settings(runs):
    (run,) = sources.find(runs["offline-ends"])
    found = {key: value for log in sources.read(run) for key, value in log.settings.items()}
    assert found["lr"] == 1e-3
    assert found["net/width"] == 64


def test_how_it_ended(runs):
    assert read(file_of(runs["offline-ends"])).ending.exit_code == 0
    raised = read(file_of(runs["offline-raises"])).ending
    assert raised.exit_code == 1
    assert "ValueError: the loss is gone" in raised.traceback
    killed = read(file_of(runs["offline-killed"]))
    assert killed.ending is None
    assert "no finish record: the run is still going, or was killed" in killed.notes


def test_the_reader_is_found(runs, write):
    for path in (*map(file_of, runs.values()), write(run_of(1))):
        if path.stat().st_size:
            assert reader_of(path) is READER
            assert READER.claims(path, read_head(path))
    assert not READER.claims(Path("runs.swanlab"), b"SQLite format 3\0")


def test_a_local_run_is_counted_once(runs):
    (run,) = sources.find(runs["local-ends"].parent)
    assert [reader.name for _, reader in run.files] == ["swanlab"]


@pytest.mark.parametrize("name", ["offline-raises"])
def test_real_files_cut_grown_and_damaged(runs, name, tmp_path):
    data = file_of(runs[name]).read_bytes()
    path = tmp_path / "run-x.swanlab"
    log_checks.check_truncations(READER, path, data)
    log_checks.check_cursor(READER, path, data, rounds=10)
    log_checks.check_damage(READER, path, data, rounds=60)


def test_a_log_of_many_blocks(tmp_path):
    data, ends = leveldb.framed(leveldb.SWANLAB, run_of(1500))
    path = tmp_path / "run-x.swanlab"
    path.write_bytes(data)
    assert read(path).series["loss"].values.tolist() == [n / 7 for n in range(1500)]
    log_checks.check_growth(READER, path, data, ends[::200])


def test_flipped_bits_never_give_a_wrong_number(tmp_path):
    data, _ = leveldb.framed(leveldb.SWANLAB, run_of(15))
    path = tmp_path / "run-x.swanlab"
    path.write_bytes(data)
    whole = {key: set(columns_of(s)) for key, s in read(path).series.items()}
    for _ in leveldb.flip_bits(path, data, cases(400, 2000), log_checks.chance_of(0)):
        try:
            log = read(path)
        except UnreadableLog:
            continue
        assert all(set(columns_of(s)) <= whole[key] for key, s in log.series.items())
        assert len(log.notes) > 1


def columns_of(series):
    columns = series.steps.tolist(), series.times.tolist(), series.values.tolist()
    return list(zip(*columns, strict=True))


def test_a_file_written_anew_is_read_from_its_start(write):
    _, cursor = READER.read(write(run_of(30)), None)
    log, _ = READER.read(write([scalar("other", n, 1.0) for n in range(99)]), cursor)
    assert REPLACED_NOTE in log.notes
    assert len(log.series["other"]) == 99


@pytest.mark.parametrize(
    ("data", "problem"),
    [(b"not a log at all", "header"), (b":SWL\xd6\xe1\x03", "version 3")],
)
def test_other_files_are_refused_by_name(write, data, problem):
    with pytest.raises(UnreadableLog, match=problem):
        read(write(data))


def test_records_that_are_no_scalars_are_counted(write):
    payloads = [*run_of(3), b"\x6a\xff\xff\x03ab", Record(num=1).SerializeToString()]
    log = read(write(payloads))
    assert len(log.series["loss"]) == 3
    assert "1 record could not be understood" in log.notes


def old_record(kind, **data):
    return (json.dumps({"model_type": kind, "data": data}) + "\n").encode()


def old_scalar(step, value):
    time = f"2025-06-20T13:30:{step:02}.5+00:00"
    metric = {"index": step, "data": value, "create_time": time}
    return old_record("Scalar", metric=metric, key="train/loss", step=step, epoch=step + 1)


def test_files_before_0_8_hold_lines_of_json(write, tmp_path):
    payloads = [
        old_record("Header", backup_type="DEFAULT", create_time="2025-06-20T13:30:00+00:00"),
        old_record("Project", name="cart", workspace=None, public=None),
        old_record("Experiment", id="x1", name="first", colors=[], description=None, tags=["a"]),
        *(old_scalar(n, value) for n, value in enumerate([0.5, "NaN", math.inf, 3])),
        old_record("Scalar", metric=None, key="train/loss", step=9, epoch=1),
        b"{not json",
        old_record("Footer", success=False, create_time="2025-06-20T13:31:00+00:00"),
    ]
    data, ends = leveldb.framed(leveldb.SWANLAB[:-1] + b"\x01", payloads)
    path = write(data, "backup.swanlab")
    assert reader_of(path) is READER
    log = read(path)
    found = log.series["train/loss"]
    assert found.steps.tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(found.values, [0.5, math.nan, math.inf, 3.0])
    assert (found.times - found.times[0]).tolist() == [0.0, 1.0, 2.0, 3.0]
    assert log.settings["swanlab/name"] == "first"
    assert log.ending.exit_code == 1
    assert "2 records could not be understood" in log.notes
    log_checks.check_truncations(READER, tmp_path / "backup.swanlab", data)
    log_checks.check_growth(READER, tmp_path / "backup.swanlab", data, ends)
