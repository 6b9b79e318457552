"""The fast path reads what was written: every record once, in order, and no damaged one."""

import io
import math
import struct

import log_checks
import numpy as np
import pytest
import tfrecords as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvitals.readers import tensorboard
from rlvitals.readers.event_files import framing, loop_cycles, scalars
from rlvitals.readers.event_files.contents import Contents
from rlvitals.readers.event_files.sampled import SampledItems
from rlvitals.readers.event_files.scalars import WINDOW_SLACK_BYTES
from rlvitals.readers.event_files.stream import MAX_RECORD_BYTES, Stream

NAME = "events.out.tfevents.1700000000.host.1.0"
STEPS = [0, 1, 127, 128, 2**14, 2**21 - 1, 2**35, 2**56, 2**62, -1, -(2**40), -(2**62)]
VALUES = [0.0, -0.0, 1.5, -1e-30, 3e38, math.nan, math.inf, -math.inf]
TAGS = ["a", "loss", "train/policy_loss", "train/value_loss", "é" * 20, "x" * 130, "r/" + "y" * 300]


class Written:
    """Records with the points that each of them holds."""

    def __init__(self):
        self.records = [(tf.VERSION, [])]
        self.clock = 1.7e9

    def add(self, step, points, *others, time=True):
        """Add an event of `(tag, value, encoding)` points, and of other values."""
        self.clock += 0.125
        found = [value_of(*point) for point in points]
        record = tf.event(step, *found, *others, time=self.clock if time else None)
        when = self.clock if time else math.nan
        held = [(tag, step, when, number) for tag, number, _ in points]
        self.records.append((record, held))

    def data(self):
        return b"".join(record for record, _ in self.records)

    def expected(self, without=()):
        """Return {tag: float64 [3, n]} of all records but some."""
        columns = {}
        for index, (_, points) in enumerate(self.records):
            for tag, *numbers in points if index not in without else ():
                columns.setdefault(tag, []).append(numbers)
        return {tag: np.array(rows, float).T for tag, rows in columns.items()}


def value_of(tag, number, encoding):
    match encoding:
        case "simple":
            return tf.simple(tag, number)
        case "content":
            return tf.value(tag, tf.tensor(1, tf.text(4, struct.pack("<f", number))))
        case "list":
            return tf.value(tag, tf.tensor(1, tf.text(5, struct.pack("<f", number))))
        case "described":
            return tf.value(tag, tf.tensor(1, tf.single(5, number)) + tf.plugin("scalars"))
        case "double":
            return tf.value(tag, tf.tensor(2, tf.text(4, struct.pack("<d", number))))


ENCODINGS = ["simple", "content", "list", "described", "double"]


def rounds(written, chance):
    """A training loop: the same tags again and again."""
    encoding = chance.choice(["simple", "simple", *ENCODINGS])
    tags = chance.sample(TAGS, chance.randint(1, 5))
    tags += tags[:1] * chance.randint(0, 1)  # one of them twice a round
    first, stride = chance.choice(STEPS[:7]), chance.choice([0, 1, 7, 500])
    for index in range(chance.choice([3, 47, 48, 70, 130])):
        for tag in tags:
            written.add(first + index * stride, [(tag, number(chance), encoding)])


def odd_events(written, chance):
    """Tags and lengths at random, some without a time, some with nothing to read."""
    for _ in range(chance.randint(1, 40)):
        tag, step = chance.choice(TAGS) + "z" * chance.randint(0, 3), chance.choice(STEPS)
        point = (tag, number(chance), chance.choice(ENCODINGS))
        written.add(step, [point], time=chance.random() < 0.9)
        if chance.random() < 0.1:
            written.add(step, [], tf.value("words", tf.tensor(7, tf.text(8, "hello"))))


def several_values(written, chance):
    """Events of several numbers each, one of them perhaps twice."""
    tags = [*chance.sample(TAGS, chance.randint(2, 4)), *chance.sample(TAGS, 1)]
    for index in range(chance.choice([2, 60])):
        written.add(index, [(tag, number(chance), "simple") for tag in tags])


def histograms(written, chance):
    for step in range(chance.randint(1, 5)):
        size = chance.choice([1, 30, 1500])
        limits, counts = list(range(size)), [chance.randint(0, 9) for _ in range(size)]
        written.add(step, [], tf.histogram(f"h{chance.randint(0, 1)}", limits, counts))


def number(chance):
    found = chance.choice(VALUES) if chance.random() < 0.2 else chance.gauss(0, 1)
    return struct.unpack("<f", struct.pack("<f", found))[0]


BLOCKS = [rounds, odd_events, several_values, histograms]
mixtures = st.tuples(
    st.lists(st.sampled_from(BLOCKS), min_size=1, max_size=5), st.integers(0, 2**32)
)


def written_by(mixture):
    blocks, seed = mixture
    written, chance = Written(), log_checks.chance_of(seed)
    for block in blocks:
        block(written, chance)
    return written, chance


def read(folder, data, window=None):
    """Read in windows of some bytes; None: as they are."""
    path = folder / NAME
    path.write_bytes(data)
    if window is None:
        return tensorboard.read(path, None)[0]
    contents, stream = Contents({}), Stream(io.BytesIO(data), 0, WINDOW_SLACK_BYTES)
    stream._buffer = np.zeros(window + WINDOW_SLACK_BYTES, np.uint8)
    stream.read(contents.take)
    notes = (*stream.notes(), *contents.events.notes())
    return tensorboard.Log("tensorboard", contents.points.series(), notes=notes)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("events")


@settings(max_examples=60, deadline=None)
@given(mixture=mixtures, window=st.sampled_from([None, 2**10, 2**14]))
def test_what_was_written_is_read(folder, mixture, window):
    written, _ = written_by(mixture)
    log = read(folder, written.data(), window)
    log_checks.assert_equal(log_checks.points(log), written.expected())
    assert list(log.series) == list(written.expected())
    assert log.notes == ()


@settings(max_examples=60, deadline=None)
@given(mixture=mixtures, window=st.sampled_from([None, 2**12]))
def test_a_flipped_bit_loses_its_record_alone(folder, mixture, window):
    written, chance = written_by(mixture)
    written.add(1, [("last", 1.0, "simple")])
    records = [bytearray(record) for record, _ in written.records]
    broken = chance.sample(range(len(records) - 1), min(len(records) - 1, chance.randint(1, 4)))
    for index in broken:
        at = chance.randrange(8 * len(records[index]))
        records[index][at // 8] ^= 1 << at % 8
    log = read(folder, b"".join(records), window)
    log_checks.assert_equal(log_checks.points(log), written.expected(without=broken))
    lost = sum(len(records[index]) for index in broken)
    first = sum(len(record) for record in records[: min(broken)])
    assert log.notes == (f"{lost:,} damaged bytes skipped: the first at byte {first:,}",)


@settings(max_examples=25, deadline=None)
@given(mixture=mixtures)
def test_reading_on_equals_reading_at_once(folder, mixture):
    written, chance = written_by(mixture)
    data = written.data()
    ends = sorted(chance.choices(range(len(data)), k=4))
    found = log_checks.read_in_pieces(tensorboard.READER, folder / NAME, data, ends)
    log_checks.assert_equal(found, written.expected())


def flips(folder, count, seed):
    """Flip bits of a log that takes every path: no point is wrong, none but one record's gone."""
    written, chance = Written(), log_checks.chance_of(seed)
    for index in range(70):
        written.add(index, [("loss", index / 8, "simple")])
        written.add(index, [("reward", -index, "described")])
    odd_events(written, chance)
    histograms(written, chance)
    written.add(71, [("last", 1.0, "simple")])
    data = written.data()
    ends = np.cumsum([len(record) for record, _ in written.records])
    for at in chance.choices(range(8 * int(ends[-2])), k=count):
        damaged = bytearray(data)
        damaged[at // 8] ^= 1 << at % 8
        log = read(folder, damaged)
        lost = int(ends.searchsorted(at // 8, side="right"))
        log_checks.assert_equal(log_checks.points(log), written.expected(without=[lost]))
        assert "damaged bytes skipped" in log.notes[0]


def test_bit_flips(folder):
    flips(folder, 150, 0)


def test_a_flipped_bit_of_what_others_are_told_by(folder):
    """The first round, and the first record of a length, must not teach what is damaged."""
    written = Written()
    for index in range(1, 71):
        written.add(index, [("loss", index, "simple"), ("reward", index, "simple")])
        written.add(index, [("kl", index, "simple")])
    data = written.data()
    start = len(tf.VERSION)
    size = sum(len(record) for record, _ in written.records[1:3])
    for at in range(8 * start, 8 * (start + size), 3):
        loop_cycles._CYCLES.clear()
        scalars._SHAPES.clear()
        damaged = bytearray(data)
        damaged[at // 8] ^= 1 << at % 8
        lost = 1 if at // 8 < start + len(written.records[1][0]) else 2
        log = read(folder, damaged)
        log_checks.assert_equal(log_checks.points(log), written.expected(without=[lost]))


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(4))
def test_many_bit_flips(folder, seed):
    flips(folder, 2000, seed)


def test_the_fast_path_is_taken(folder, monkeypatch):
    """Rounds and single lengths are read as columns: hardly an event one by one."""
    taken = []
    monkeypatch.setattr(Contents, "_add_odd", lambda *arguments: taken.extend(arguments[3]))
    written = Written()
    for index in range(400):
        for tag in TAGS[:4]:
            written.add(index, [(tag, index, "list")])
    for index in range(100):
        for tag in TAGS[: 2 + index % 3]:
            written.add(index * 300, [(tag, index, "simple"), (tag, -index, "simple")])
    read(folder, written.data())
    assert len(taken) < 30
    assert len(written.records) > 1800


def test_a_tag_that_is_no_scalar_after_all(folder):
    """What was read before the file said so stays, as it would for whoever follows the file."""
    written = Written()
    for index in range(200):
        written.add(index, [("pr", index, "content"), ("loss", index, "simple")])
    said = tf.value("pr", tf.tensor(1, tf.single(5, 1.0)) + tf.plugin("pr_curves"))
    data = written.data() + tf.event(200, said)
    log = read(folder, data + written.data().removeprefix(tf.VERSION))
    assert len(log.series["pr"]) == 200
    assert len(log.series["loss"]) == 400


def test_headers_are_found_at_every_place_and_length():
    for length in [*range(1, 70), 255, 256, 257, 300, 511, 512, 1000, 65535]:
        for shift in range(4):
            lead = tf.record(b"\x07" * (16 + shift))
            data = lead + tf.record(b"\x07" * length) + tf.record(b"\x01")
            buffer = np.frombuffer(data + bytes(64), np.uint8)
            headers = framing.find_headers(buffer, len(data))
            frames = framing.follow(memoryview(data), headers, 0, MAX_RECORD_BYTES)
            assert frames.starts.tolist() == [0, len(lead), len(data) - 17]
            assert frames.end == len(data)


def test_a_record_within_a_record_is_no_record(folder):
    inner = tf.event(1, tf.simple("inner", 1.0))
    data = tf.VERSION + tf.record(tf.text(9, inner * 20)) + tf.event(1, tf.simple("outer", 2.0))
    assert list(read(folder, data).series) == ["outer"]
    at = data.index(inner) + 5 * len(inner) + 20
    damaged = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
    assert list(read(folder, damaged).series) == ["outer"]


@pytest.mark.soak
@pytest.mark.parametrize("length", [12, 40, 4000])
def test_headers_without_records_end_in_time(folder, length):
    """Each header is valid and none of the records it promises is there: the search is bounded."""
    promise = tf.record(bytes(2**20))[:12]
    junk = (promise + b"\xaa" * (length - 12)) * (3 * 2**20 // length)
    log = read(folder, tf.VERSION + b"\xff" * 12 + junk)
    left = f"{len(junk) + 12:,}"
    assert log.notes == (f"the last {left} bytes are damaged or not complete yet: left",)


def test_what_is_learnt_of_other_files_is_bounded(folder, monkeypatch):
    monkeypatch.setattr(scalars, "MAX_CACHED_TEMPLATES", 50)
    monkeypatch.setattr(loop_cycles, "MAX_CACHED_CYCLES", 3)
    for run in range(30):
        written = Written()
        for index in range(80):
            written.add(index, [(f"tag {run}{'y' * (run % 8)}", index, "simple")])
            written.add(index, [(f"b {run}", index, "simple")])
        log = read(folder, written.data())
        log_checks.assert_equal(log_checks.points(log), written.expected())
    assert sum(len(s.templates) for kind in scalars._SHAPES.values() for s in kind) < 100
    assert len(loop_cycles._CYCLES) <= 3


def test_too_many_histograms_and_texts_are_thinned(folder):
    data = tf.VERSION
    words = tf.tensor(7, tf.text(8, "hello"))
    for step in range(3000):
        data += tf.event(step, tf.histogram("h", [0, 1], [0, step]))
        data += tf.event(step, tf.value("t/text_summary", words))
    log = read(folder, data)
    kept = [one.step for one in log.histograms["h"]]
    assert kept == list(range(0, 3000, 8))
    assert all(one.counts.tolist() == [one.step] for one in log.histograms["h"])
    assert [text.step for text in log.texts["t/text_summary"]] == list(range(0, 3000, 4))
    assert log.notes == (
        "h: 375 of 3000 histograms kept, evenly spread",
        "t/text_summary: 750 of 3000 texts kept, evenly spread",
    )


def test_what_is_kept_is_bounded_in_bytes():
    kept = SampledItems("texts", 100, 1000)
    for index in range(200):
        for tag in "ab":
            if kept.wants(tag, 50):
                kept.add(tag, index, 50)
    assert 10 <= sum(map(len, kept.items().values())) <= 20
    assert not kept.wants("c", 1001)
    for items in kept.items().values():
        assert len(set(np.diff(items).tolist())) == 1
