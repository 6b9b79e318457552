"""What every reader promises, as checks that each reader's tests call with logs of its own."""

import os
import random

import numpy as np
from effort import cases

from rlvitals.errors import UnreadableLog

EVERY_BYTE = cases(1024, 8192)  # logs up to this size are cut at every byte, longer ones at random
RANDOM_CUTS = cases(120, 500)


def chance_of(seed):
    """Return a generator that gives the same numbers on every run."""
    return random.Random(seed)  # nothing secret


def points(log):
    """Return {key: float64 [3, n]} of steps, times and values."""
    return {
        key: np.stack([series.steps.astype(float), series.times, series.values])
        for key, series in log.series.items()
    }


def assert_equal(found, expected):
    assert sorted(found) == sorted(expected)
    for key, columns in expected.items():
        np.testing.assert_array_equal(found[key], columns, err_msg=key)


def cuts(size, seed=0):
    if size <= EVERY_BYTE:
        return range(size)
    return sorted(chance_of(seed).sample(range(size), RANDOM_CUTS))


def check_truncations(reader, path, data, *, refusals=False):
    """Cut a log: what reads is a prefix that only grows. Returns the share of cuts that read.

    Formats that are written as a whole may refuse a part of it (`refusals`), by its name.
    """
    path.write_bytes(data)
    whole = points(reader.read(path, None)[0])
    assert whole
    count = _size(whole)
    read = 0
    sizes = cuts(len(data))
    for size in reversed(sizes):
        os.truncate(path, size)
        try:
            found = points(reader.read(path, None)[0])
        except UnreadableLog as error:
            if not refusals or str(path) not in error.where:
                raise
            continue
        for key, columns in found.items():
            expected = whole[key][:, : columns.shape[1]]
            np.testing.assert_array_equal(columns, expected, err_msg=f"{key} at {size}")
        assert _size(found) <= count, f"a shorter file reads as more, at {size} bytes"
        count = _size(found)
        read += 1
    return read / len(sizes)


def _size(found):
    return sum(columns.shape[1] for columns in found.values())


def read_in_pieces(reader, path, data, ends):
    """Read a file as it grows to each of `ends` bytes; return the points put together."""
    cursor, pieces = None, {}
    for end in (*ends, len(data)):
        path.write_bytes(data[:end])
        try:
            log, cursor = reader.read(path, cursor)
        except UnreadableLog:
            assert cursor is None, "a log that read before still reads"
            continue
        for key, columns in points(log).items():
            pieces.setdefault(key, []).append(columns)
    return {key: np.concatenate(columns, axis=1) for key, columns in pieces.items()}


def check_growth(reader, path, data, ends):
    """A file that grows to each of `ends` bytes gives what reading it at once gives."""
    path.write_bytes(data)
    whole = points(reader.read(path, None)[0])
    assert_equal(read_in_pieces(reader, path, data, ends), whole)


def check_cursor(reader, path, data, rounds=60, seed=0):
    """Reading as the file grows, cut anywhere, gives what reading it at once gives."""
    path.write_bytes(data)
    whole = points(reader.read(path, None)[0])
    chance = chance_of(seed)
    for _ in range(cases(rounds // 3, rounds)):
        ends = sorted(chance.choices(range(len(data)), k=chance.randint(1, 8)))
        assert_equal(read_in_pieces(reader, path, data, ends), whole)
    cursor = reader.read(path, None)[1]
    log, again = reader.read(path, cursor)
    assert log.series == {}
    assert again == cursor


def check_damage(reader, path, data, rounds=200, seed=0):
    """Flipped, lost and doubled bytes never raise anything but UnreadableLog."""
    chance = chance_of(seed)
    for _ in range(cases(rounds // 3, rounds)):
        damaged = bytearray(data)
        for _ in range(chance.randint(1, 5)):
            at = chance.randrange(len(damaged))
            match chance.randrange(3):
                case 0:
                    damaged[at] = chance.randrange(256)
                case 1:
                    del damaged[at : at + chance.randint(1, 40)]
                case 2:
                    damaged[at:at] = chance.randbytes(chance.randint(1, 40))
        path.write_bytes(damaged)
        try:
            log, cursor = reader.read(path, None)
            reader.read(path, cursor)
        except UnreadableLog:
            continue
        assert all(len(s.steps) == len(s.times) == len(s.values) for s in log.series.values())
