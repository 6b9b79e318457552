"""What every reader promises, as checks: prefixes, cursors, refusals by name."""

import numpy as np

from rlvitals.errors import UnreadableLog

WHOLE = 8000  # bytes: up to here every cut is tried
CUTS = 500


def cuts(size, every=False):
    """The sizes a file of `size` bytes is cut to."""
    if size <= WHOLE or every:
        return range(size)
    return sorted(np.random.default_rng(7).choice(size, CUTS, replace=False).tolist())


def columns(log):
    return {
        k: (s.steps.tolist(), s.times.tolist(), s.values.tolist()) for k, s in log.series.items()
    }


def assert_same(one, other):
    assert list(one) == list(other)
    for key in one:
        for a, b in zip(one[key], other[key], strict=True):
            np.testing.assert_array_equal(a, b, err_msg=key)


def assert_prefix(part, whole):
    """Check that every column of `part` is the beginning of the same column of `whole`."""
    assert set(part.series) <= set(whole.series)
    for key, series in part.series.items():
        full = whole.series[key]
        for name in ("steps", "times", "values"):
            begun = getattr(full, name)[: len(series)]
            assert np.array_equal(getattr(series, name), begun, equal_nan=True), (key, name)


def read_or_refused(reader, path):
    """Read a log; None where it is refused with its name."""
    try:
        return reader.read(path, None)[0]
    except UnreadableLog as error:
        if str(path) not in error.where:
            raise
        return None


def assert_cuts_read_as_prefixes(reader, path, tmp_path):
    """Cut a log at every byte, or at 500: what reads is a prefix, what does not says why.

    Returns how many cuts read.
    """
    data, (whole, _) = path.read_bytes(), reader.read(path, None)
    cut = tmp_path / "cut" / path.name
    cut.parent.mkdir(exist_ok=True)
    read = points = 0
    for size in cuts(len(data)):
        cut.write_bytes(data[:size])
        log = read_or_refused(reader, cut)
        if log is None:
            continue
        read += 1
        assert_prefix(log, whole)
        now = sum(map(len, log.series.values()))
        assert now >= points, "a longer file holds fewer points"
        points = now
    return read


def assert_grows(reader, path, tmp_path, sizes):
    """Follow a file that grows to each size in turn: the pieces are the whole, once."""
    data, (whole, _) = path.read_bytes(), reader.read(path, None)
    growing = tmp_path / "growing" / path.name
    growing.parent.mkdir(exist_ok=True)
    cursor, found = None, {}
    for size in [*sizes, len(data)]:
        growing.write_bytes(data[:size])
        try:
            log, cursor = reader.read(growing, cursor)
        except UnreadableLog:
            assert cursor is None, "a log that read before still reads"
            continue
        for key, points in columns(log).items():
            for old, new in zip(found.setdefault(key, ([], [], [])), points, strict=True):
                old.extend(new)
    assert set(found) == set(whole.series)
    for key, (steps, times, values) in found.items():
        np.testing.assert_array_equal(steps, whole.series[key].steps, err_msg=key)
        np.testing.assert_array_equal(times, whole.series[key].times, err_msg=key)
        np.testing.assert_array_equal(values, whole.series[key].values, err_msg=key)
