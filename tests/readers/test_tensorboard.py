import io
import itertools
import math
import struct
import sys

import log_checks
import numpy as np
import pytest
import tfrecords as tf

import rlvitals
from rlvitals.errors import UnreadableLog
from rlvitals.readers import tensorboard
from rlvitals.readers.event_files.scalars import WINDOW_SLACK_BYTES
from rlvitals.readers.event_files.stream import MAX_RECORD_BYTES, Stream, Taken
from rlvitals.readers.formats.protobuf import Malformed, fields, to_signed, varint
from rlvitals.readers.select import reader_of
from rlvitals.storage.crc32c import crc32c

NAME = "events.out.tfevents.1700000000.host.1.0"


def a_log(events=60):
    """Two tags in one event, one tag apart, a step that goes back, NaN and inf."""
    data = tf.VERSION
    for i in range(events):
        numbers = (
            tf.simple("loss", 1 / (i + 1)),
            tf.simple("kl", [math.nan, math.inf, 0.5][i % 3]),
        )
        data += tf.event(i % 40 * 1000, *numbers, time=1.0e9 + i)
        data += tf.event(i * 1000, tf.simple("entropy", -i))
    return data


@pytest.fixture
def path(tmp_path):
    return tmp_path / NAME


def read(path, data):
    path.write_bytes(data)
    return tensorboard.read(path, None)[0]


def test_crc32c_of_rfc_3720():
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(bytes([255] * 32)) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E
    assert crc32c(b"") == 0


@pytest.mark.parametrize("size", [2047, 2048, 2049, 2303, 2304, 9999])
def test_crc32c_of_long_data(size):
    data = log_checks.chance_of(size).randbytes(size)
    assert crc32c(data) == tf.crc32c(data)


def test_scalars_steps_and_times(path):
    log = read(path, a_log())
    assert list(log.series) == ["loss", "kl", "entropy"]
    loss, kl = log.series["loss"], log.series["kl"]
    np.testing.assert_array_equal(loss.steps, [i % 40 * 1000 for i in range(60)])
    np.testing.assert_array_equal(loss.times, 1.0e9 + np.arange(60))
    np.testing.assert_array_equal(loss.values, (1 / np.arange(1, 61)).astype(np.float32))
    assert np.isnan(kl.values[0])
    assert np.isinf(kl.values[1])
    assert log.notes == ()
    assert reader_of(path) is tensorboard.READER


def test_files_of_one_second_stand_in_the_order_of_their_first_events(tmp_path):
    """The writers of a process number their files as text: the tenth sorts before the ninth."""
    for number, steps in ((9, range(30)), (10, range(20, 60))):
        events = (tf.event(step, tf.simple("loss", number), time=1.7e9 + step) for step in steps)
        file = tmp_path / f"events.out.tfevents.1700000000.host.1.{number}"
        file.write_bytes(tf.VERSION + b"".join(events))
    trace = rlvitals.trace(tmp_path)
    assert trace.lifecycle.seams == (20,)


def test_step_zero_is_left_out_of_the_file_and_read(path):
    log = read(path, tf.VERSION + tf.event(0, tf.simple("x", 7), time=None))
    assert log.series["x"].steps.tolist() == [0]
    assert np.isnan(log.series["x"].times[0])


def bfloat16(number):
    return struct.unpack("<I", struct.pack("<f", number))[0] >> 16


half = struct.pack("<e", -1.5)
ENCODINGS = {
    "float content": (1, tf.text(4, struct.pack("<f", 0.1)), np.float32(0.1)),
    "float list": (1, tf.single(5, 0.1), np.float32(0.1)),
    "float packed": (1, tf.text(5, struct.pack("<f", 0.1)), np.float32(0.1)),
    "double content": (2, tf.text(4, struct.pack("<d", 0.1)), 0.1),
    "double list": (2, tf.double(6, 0.1), 0.1),
    "double packed": (2, tf.text(6, struct.pack("<d", 0.1)), 0.1),
    "int32 content": (3, tf.text(4, struct.pack("<i", -7)), -7),
    "int32 list": (3, tf.integer(7, -7), -7),
    "int32 packed": (3, tf.text(7, tf.varint(-7)), -7),
    "uint8 content": (4, tf.text(4, b"\xff"), 255),
    "int16 content": (5, tf.text(4, struct.pack("<h", -300)), -300),
    "int8 content": (6, tf.text(4, b"\xff"), -1),
    "int64 content": (9, tf.text(4, struct.pack("<q", -(2**40))), -(2**40)),
    "int64 list": (9, tf.integer(10, -(2**40)), -(2**40)),
    "bool content": (10, tf.text(4, b"\x01"), 1),
    "bool list": (10, tf.integer(11, 1), 1),
    "bfloat16 content": (14, tf.text(4, struct.pack("<H", bfloat16(-2.5))), -2.5),
    "bfloat16 list": (14, tf.integer(13, bfloat16(-2.5)), -2.5),
    "uint16 list": (17, tf.integer(7, 65535), 65535),
    "half content": (19, tf.text(4, half), -1.5),
    "half list": (19, tf.text(13, tf.varint(struct.unpack("<H", half)[0])), -1.5),
    "uint32 list": (22, tf.integer(16, 2**32 - 1), 2**32 - 1),
    "uint64 list": (23, tf.integer(17, 2**64 - 1), float(2**64 - 1)),
    "a zero left out": (1, b"", 0.0),
    "nan": (2, tf.double(6, math.nan), math.nan),
}


@pytest.mark.parametrize("name", ENCODINGS)
def test_tensors_of_every_type(path, name):
    dtype, body, expected = ENCODINGS[name]
    # Only the first event of a tag carries its metadata.
    first = tf.value("x", tf.tensor(dtype, body) + tf.plugin("scalars", data_class=1))
    data = tf.VERSION + tf.event(1, first) + tf.event(2, tf.value("x", tf.tensor(dtype, body)))
    log = read(path, data)
    assert log.series["x"].steps.tolist() == [1, 2]
    np.testing.assert_array_equal(log.series["x"].values, [expected, expected])


def test_what_is_no_scalar_is_passed_over(path):
    one = tf.tensor(1, tf.single(5, 1))
    words = tf.tensor(7, tf.text(8, "hello"))
    data = tf.VERSION
    data += tf.event(1, tf.value("pr", one + tf.plugin("pr_curves")), tf.value("text", words))
    data += tf.event(2, tf.value("pr", one), tf.value("histogram", tf.text(5, tf.double(1, 0.0))))
    data += tf.event(3, tf.value("bare", one))
    assert list(read(path, data).series) == ["bare"]
    cursor = tensorboard.read(path, None)[1]
    path.write_bytes(data + tf.event(4, tf.value("pr", one), tf.value("bare", one)))
    assert list(tensorboard.read(path, cursor)[0].series) == ["bare"]


def test_a_vector_among_scalars_is_noted(path):
    shape = tf.text(2, tf.integer(1, 3))
    vector = tf.tensor(1, tf.text(4, bytes(12)), shape) + tf.plugin("scalars")
    log = read(path, tf.VERSION + tf.event(1, tf.value("v", vector), tf.simple("x", 1)))
    assert list(log.series) == ["x"]
    assert log.notes == ("v: tensors of more than one number are not read",)


def test_settings_of_hparams(path):
    def entry(key, value):
        return tf.text(1, tf.text(1, key) + tf.text(2, value))

    entries = entry("lr", tf.double(2, 3e-4)) + entry("env", tf.text(3, "CartPole-v1"))
    session = tf.text(3, entries + entry("anneal", tf.integer(4, 1)))
    start = tf.value("_hparams_/session_start_info", tf.plugin("hparams", session))
    log = read(path, tf.VERSION + tf.event(0, start))
    assert log.settings == {"lr": 3e-4, "env": "CartPole-v1", "anneal": True}
    assert log.series == {}


def test_truncations(path):
    log_checks.check_truncations(tensorboard.READER, path, a_log(12))
    log_checks.check_truncations(tensorboard.READER, path, a_log(100))


def test_reading_on(path):
    log_checks.check_cursor(tensorboard.READER, path, a_log())


def test_damage_never_breaks_the_reader(path):
    log_checks.check_damage(tensorboard.READER, path, a_log())


@pytest.mark.parametrize("seed", range(20))
def test_damage_costs_the_damaged_records_only(path, seed):
    chance = log_checks.chance_of(seed)
    records = [tf.event(i, tf.simple("x", i), time=1.0e9 + i) for i in range(200)]
    broken = sorted(chance.sample(range(len(records) - 1), 10))
    for i in broken:
        damaged = bytearray(records[i])
        at = chance.randrange(len(damaged))
        match chance.randrange(3):
            case 0:
                damaged[at] ^= 1 << chance.randrange(8)
            case 1:
                del damaged[at]
            case 2:
                damaged = damaged[:at]
        records[i] = bytes(damaged)
    expected = [i for i in range(200) if i not in broken]
    log = read(path, tf.VERSION + b"".join(records))
    assert log.series["x"].steps.tolist() == expected
    np.testing.assert_array_equal(log.series["x"].values, expected)
    assert "damaged bytes skipped: the first at byte" in log.notes[0]
    data = path.read_bytes()
    pieces = log_checks.read_in_pieces(tensorboard.READER, path, data, range(0, len(data), 777))
    np.testing.assert_array_equal(pieces["x"][0], expected)


def test_the_bytes_skipped_are_counted(path):
    good = tf.event(1, tf.simple("x", 1))
    log = read(path, tf.VERSION + good + bytes(1000) + good)
    assert len(log.series["x"]) == 2
    at = len(tf.VERSION + good)
    assert log.notes == (f"1,000 damaged bytes skipped: the first at byte {at:,}",)


def test_a_damaged_end_is_left_for_the_next_reading(path):
    good = tf.event(1, tf.simple("x", 1))
    path.write_bytes(tf.VERSION + good + bytes(len(good)))
    log, cursor = tensorboard.read(path, None)
    assert log.notes == (f"the last {len(good):,} bytes are damaged or not complete yet: left",)
    path.write_bytes(tf.VERSION + good + good)  # written late, as network file systems may
    assert len(tensorboard.read(path, cursor)[0].series["x"]) == 1


def test_junk_is_refused_by_name(path):
    for junk in (bytes(5000), log_checks.chance_of(0).randbytes(5000), b"a,b\n1,2\n" * 9):
        path.write_bytes(junk)
        with pytest.raises(UnreadableLog, match="no record in it is intact"):
            tensorboard.read(path, None)
    path.write_bytes(b"")
    with pytest.raises(UnreadableLog, match="empty"):
        reader_of(path)


def test_events_that_are_no_protobuf_are_counted(path):
    good = tf.event(1, tf.simple("x", 1))
    log = read(path, tf.VERSION + tf.record(b"\xff" * 20) + good + tf.record(b"\x0b"))
    assert len(log.series["x"]) == 1
    assert log.notes == ("2 events could not be understood",)


def test_absurd_steps_are_refused(path):
    log = read(
        path, tf.VERSION + tf.event(2**63 - 1, tf.simple("x", 1)) + tf.event(-5, tf.simple("x", 2))
    )
    assert log.series["x"].steps.tolist() == [-5]
    assert log.notes == ("x: a step of 9223372036854775807 is not read",)


@pytest.mark.parametrize("length", [2**31, 2**62, 2**63, 2**64 - 1])
def test_a_length_beyond_any_file_hides_nothing_before_it(path, length):
    claimed = struct.pack("<Q", length)
    data = tf.VERSION + tf.event(1, tf.simple("x", 1.5)) + claimed + tf.masked(claimed) + b"y" * 99
    log = read(path, data)
    assert log.series["x"].values.tolist() == [1.5]
    assert log.notes == (f"the last {99 + 12} bytes are damaged or not complete yet: left",)


def test_a_huge_record_is_passed_over_unread():
    class Sparse(io.BytesIO):
        """A file whose one long record was never written to, as a sparse file's."""

        loaded = 0

        def readinto(self, buffer):
            count = super().readinto(buffer)
            self.loaded += count
            return count

    good = tf.record(b"")
    length = struct.pack("<Q", MAX_RECORD_BYTES + 1)
    huge = length + tf.masked(length) + bytes(MAX_RECORD_BYTES + 5)
    stream, taken = Stream(file := Sparse(good + huge + good), 0, WINDOW_SLACK_BYTES), []

    def take(_data, base, frames, final):  # noqa: ARG001
        taken.extend(frames.starts + base)
        return Taken([], len(frames.starts))

    stream.read(take)
    assert taken == [0, len(good + huge)]
    assert stream.notes() == ["1 record over 64 MiB passed over"]
    assert file.loaded < MAX_RECORD_BYTES / 4


def test_another_run_in_the_same_place_is_read_from_its_start(path):
    path.write_bytes(tf.VERSION + tf.event(1, tf.simple("x", 1)))
    cursor = tensorboard.read(path, None)[1]
    read(path, tf.VERSION + tf.event(1, tf.simple("y", 1), time=2.0e9))
    log = tensorboard.read(path, cursor)[0]
    assert list(log.series) == ["y"]
    assert "replaced" in log.notes[0]


def counted(path):
    """Read a file; return how many calls, Python's and C's, that takes, and the log."""
    count = itertools.count()
    sys.setprofile(lambda _, event, __: next(count) if event in {"call", "c_call"} else None)
    try:
        log, _ = tensorboard.read(path, None)
    finally:
        sys.setprofile(None)
    return next(count), log


def test_a_file_twice_as_long_takes_twice_the_calls(path):
    path.write_bytes(a_log(500))
    few, _ = counted(path)
    path.write_bytes(a_log(1000))
    many, _ = counted(path)
    assert many < 2.2 * few


def test_damage_everywhere_is_no_hang(path):
    good, bad = tf.event(1, tf.simple("x", 1)), bytearray(tf.event(2, tf.simple("x", 2)))
    bad[20] ^= 1
    calls = []
    for damaged in (500, 1000):
        path.write_bytes(tf.VERSION + (good + bad) * damaged)
        count, log = counted(path)
        assert log.series["x"].values.tolist() == [1] * damaged
        calls.append(count)
    assert calls[1] < 2.2 * calls[0]


def test_varints():
    assert varint(b"\xac\x02", 0) == (300, 2)
    assert to_signed(varint(tf.varint(-1), 0)[0]) == -1
    for bad in (b"", b"\xff", b"\xff" * 11):
        with pytest.raises(Malformed):
            varint(bad, 0)
    for bad in (b"\x0a\x05abc", b"\x09abc", b"\x0f"):
        with pytest.raises(Malformed):
            list(fields(bad))


@pytest.mark.soak
def test_zeros_that_a_crash_left_are_passed_quickly(path):
    path.write_bytes(tf.VERSION + tf.event(1, tf.simple("x", 1)))
    with path.open("r+b") as file:
        file.truncate(2**28)
    count, log = counted(path)
    assert count < 100_000  # 2**28 where each zero is looked at for a header
    assert len(log.series["x"]) == 1
