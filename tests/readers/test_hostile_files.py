"""What no reader may answer with a traceback, a hang or a wrong number."""

import os

import pytest
import tfrecords as tf
from effort import sampled
from log_checks import chance_of
from test_rllib import csv_log, json_log
from test_sb3 import monitor_log, sb3_csv_log, sb3_json_log

from rlvitals.errors import UnreadableLog
from rlvitals.readers import rllib, sb3_csv, sb3_json, sb3_monitor, tensorboard
from rlvitals.readers.select import reader_of

EVENTS = "events.out.tfevents.1.host.1.0"
CASES = {
    "tensorboard": (tensorboard.READER, EVENTS, tf.VERSION + tf.event(1, tf.simple("x", 1))),
    "sb3-csv": (sb3_csv.READER, "progress.csv", sb3_csv_log()),
    "sb3-json": (sb3_json.READER, "progress.json", sb3_json_log()),
    "sb3-monitor": (sb3_monitor.READER, "0.monitor.csv", monitor_log()),
    "rllib csv": (rllib.READER, "progress.csv", csv_log()),
    "rllib json": (rllib.READER, "result.json", json_log()),
}
every_reader = pytest.mark.parametrize(("reader", "name", "data"), CASES.values(), ids=CASES)
JUNK = {
    "nothing": b"",
    "zeros": bytes(3000),
    "noise": chance_of(1).randbytes(3000),
    "page": b"<!DOCTYPE html>\n<html><body>Not found</body></html>\n",
    "picture": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 9,
}


@every_reader
@pytest.mark.parametrize("junk", JUNK.values(), ids=JUNK)
def test_junk_under_a_good_name(tmp_path, reader, name, data, junk):  # noqa: ARG001
    path = tmp_path / name
    path.write_bytes(junk)
    try:
        found = reader.read(path, None)[0].series
    except UnreadableLog as error:
        found = {} if str(path) in error.where and error.hint else None
    assert found == {}
    if reader is not tensorboard.READER or not junk:
        with pytest.raises(UnreadableLog, match=r"not a training log|empty"):
            reader_of(path)


@every_reader
def test_what_cannot_be_read(tmp_path, reader, name, data):  # noqa: ARG001
    path = tmp_path / name
    with pytest.raises(UnreadableLog, match="this path does not exist"):
        reader.read(path, None)
    path.mkdir()
    with pytest.raises(UnreadableLog, match="a folder"):
        reader.read(path, None)
    path.rmdir()
    path.symlink_to(path)
    with pytest.raises(UnreadableLog, match="symbolic links"):
        reader.read(path, None)


@every_reader
def test_a_file_that_vanishes_or_shrinks_while_it_is_followed(tmp_path, reader, name, data):
    path = tmp_path / name
    path.write_bytes(data)
    whole, cursor = reader.read(path, None)
    path.write_bytes(data[: len(data) // 2])
    log, _ = reader.read(path, cursor)
    assert any("replaced" in note for note in log.notes)
    for key, series in log.series.items():
        assert series.values.tobytes() == whole.series[key].values[: len(series)].tobytes()
    path.unlink()
    with pytest.raises(UnreadableLog, match="this path does not exist"):
        reader.read(path, cursor)


@pytest.mark.parametrize(
    ("reader", "name", "data"),
    sampled([pytest.param(*case) for key, case in CASES.items() if key != "tensorboard"], 2),
)
def test_a_line_of_100_mb_hides_nothing(tmp_path, reader, name, data):
    path = tmp_path / name
    whole = reader.read(_write(path, data), None)[0]
    lines = data.splitlines(keepends=True)
    with path.open("wb") as file:
        file.writelines(lines[:3])
        file.write(b"x" * 100_000_000 + b"\n")
        file.writelines(lines[3:])
    log, _ = reader.read(path, None)
    assert "1 line over 16 MiB skipped: the first is line 4" in log.notes
    for key, series in whole.series.items():
        assert log.series[key].values.tobytes() == series.values.tobytes()


@every_reader
def test_bytes_that_are_not_utf_8(tmp_path, reader, name, data):
    path = tmp_path / name
    if reader is tensorboard.READER:
        data = tf.VERSION + tf.event(1, tf.simple(b"\xff\xfe", 1), tf.simple("x", 2))
        assert list(reader.read(_write(path, data), None)[0].series) == ["\ufffd\ufffd", "x"]
        return
    whole = reader.read(_write(path, data), None)[0]
    log = reader.read(_write(path, data + b"\xff\xfe\x00,\x80\n"), None)[0]
    assert any("line" in note and "refused" in note for note in log.notes)
    assert {k: len(s) for k, s in log.series.items()} == {
        k: len(s) for k, s in whole.series.items()
    }


def _write(path, data):
    path.write_bytes(data)
    return path


def test_a_pipe_does_not_hang(tmp_path):
    path = tmp_path / "progress.csv"
    os.mkfifo(path)
    with pytest.raises(UnreadableLog, match="not a regular file"):
        reader_of(path)
