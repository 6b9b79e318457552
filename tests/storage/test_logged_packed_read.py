"""What a run logs is what it reads, before it is packed and afterwards, bit by bit."""

import math
import struct
import tempfile
from pathlib import Path

import numpy as np
import pytest
from effort import cases
from hypothesis import example, given, settings
from hypothesis import strategies as st
from native_runs import points, record

import rlvitals
from rlvitals.readers import native
from rlvitals.storage import compacted, reader
from rlvitals.storage.blocks import Writer
from rlvitals.storage.compact import compact
from rlvitals.storage.run_folder import RUN_FILE, RunFolder
from rlvitals.storage.verify import verify
from rlvitals.types import Histogram

LIMIT = 2**63 - 1
FINITE = float(np.finfo(np.float64).max)
BITS = st.integers(0, 2**64 - 1).map(lambda bits: struct.unpack("<d", struct.pack("<Q", bits))[0])
SPECIAL = st.sampled_from([
    0.0, -0.0, math.nan, math.inf, -math.inf, 5e-324, -5e-324, FINITE, -FINITE, 2.0**53, 2.0**62,
    2**62, -(2**62), LIMIT, -(2**63),
])  # fmt: skip
VALUES = SPECIAL | BITS | st.floats() | st.integers(-(2**70), 2**70)
STEPS = st.integers(-(2**63), LIMIT) | st.sampled_from([0, 0, 1, LIMIT])
NAMES = st.sampled_from(["a", "a/b", "é", "", "\x00", "x" * 300])
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
CELLS = st.none() | st.booleans() | TEXTS | st.floats() | st.integers(-(2**200), 2**200)
EDGES = st.lists(VALUES.filter(lambda v: not math.isnan(v)), max_size=5).map(sorted)
LOGGED = st.one_of(
    st.tuples(st.just("log"), STEPS, st.dictionaries(NAMES, VALUES, max_size=3)),
    st.tuples(st.just("log_histogram"), STEPS, NAMES, st.lists(VALUES, max_size=6)),
    st.tuples(st.just("edges"), STEPS, NAMES, EDGES),
    st.tuples(st.just("log_text"), STEPS, NAMES, TEXTS),
    st.tuples(st.just("log_table"), STEPS, NAMES, st.dictionaries(NAMES, st.just(None)), CELLS),
)


def log(run, calls):
    """Log each; return the numbers that the rows hold, by name."""
    rows = {}
    for what, step, *rest in calls:
        if what == "log":
            run.log(step, rest[0], time=1.0)
            for key, value in rest[0].items():
                rows.setdefault(key, []).append((step, np.float64(value).tobytes()))
        elif what == "edges":
            key, edges = rest
            run.log_histogram(step, key, edges=edges, counts=[1.5] * (len(edges) - 1))
        elif what == "log_table":
            key, columns, cell = rest
            run.log_table(step, key, {name: [cell, None] for name in columns})
        else:
            getattr(run, what)(step, *rest)
    return rows


def content(folder):
    """Everything that a reader returns of a run, as bytes and texts that compare exactly."""
    found, _ = native.read(folder / RUN_FILE, None)
    assert not [note for note in found.notes if "damaged" in note]
    return (
        points(found.series),
        {
            key: [(h.step, h.time, h.edges.tobytes(), h.counts.tobytes()) for h in listed]
            for key, listed in found.histograms.items()
        },
        {key: [(t.step, t.text) for t in listed] for key, listed in found.texts.items()},
        {key: (t.steps.tolist(), repr(t.columns)) for key, t in found.tables.items()},
    )


@settings(max_examples=cases(12, 40), deadline=None)
@given(st.lists(LOGGED, max_size=12))
@example([("log_histogram", 1, "h", [2**62, 2**62 + 1000, -(2**62)])])
@example([("log_histogram", 1, "h", [2.0**62])])
@example([("log_histogram", 1, "h", [FINITE, -FINITE])])
@example([("log_histogram", 1, "h", [5e-324, 0.0, 1e-323])])
@example([("edges", 1, "h", [-(2**62), 0, 2**62])])
@example([("log", LIMIT, {"a": -0.0}), ("log", LIMIT, {"a": math.nan}), ("log", -5, {"a": 1})])
def test_what_is_logged_is_read_before_and_after_packing(calls):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "run"
        run = rlvitals.start(folder, strict=False)
        rows = log(run, calls)
        run.finish()
        before = content(folder)
        found, _ = native.read(folder / RUN_FILE, None)
        for key, logged in rows.items():
            series = found.series[key]
            bits = [value.tobytes() for value in series.values]
            assert [*zip(series.steps.tolist(), bits, strict=True)] == logged
        for listed in found.histograms.values():
            for one in listed:
                assert len(one.edges) == len(one.counts) + 1 >= 2
                assert (np.diff(one.edges[np.isfinite(one.edges)]) >= 0).all()
        assert all(report.is_intact for report in verify(folder))
        assert [done.why for done in compact(folder)] == [""]
        assert content(folder) == before
        assert all(report.is_intact for report in verify(folder))


def test_every_finite_value_of_a_histogram_is_counted():
    from rlvitals.tracking.media import count_values

    for values in ([2.0**62], [FINITE, -FINITE], [2.0**53, 2.0**53 + 2], [-0.0], [5e-324, 0.0],
                   [1.0, 2.0**62], [-(2.0**63), 2.0**63], [1e300, 1e300]):  # fmt: skip
        one = count_values(0, 0.0, np.array([*values, math.nan, math.inf]))
        assert one.counts.sum() == len(values) + 1, values
        assert len(one.edges) == len(one.counts) + 1


@pytest.mark.parametrize("what", ["a value", "a step", "a histogram", "a text left out"])
def test_a_packed_file_that_differs_is_not_kept(tmp_path, monkeypatch, what):
    """A fault of the writing itself: its checksums are right, its content is not."""
    run = record(tmp_path, rows=9)
    (file,) = run.block_files()
    before, data = reader.read(tmp_path), file.path.read_bytes()
    from rlvitals.storage import compact as module

    def wrong_block(part, table):
        if what == "a value":
            part.values[0, 0] += 1.0
        elif what == "a step":
            part.steps[-1] += 1
        return real_block(part, table)

    def wrong_copy(self, frame):
        if what == "a histogram" and frame.header.kind == 4:
            self._into.write(
                module.frames.pack(4, bytes(frame.payload[:-8]) + struct.pack("<d", 9.0))
            )
        elif what != "a text left out" or frame.header.kind != 5:
            real_copy(self, frame)

    real_block, real_copy = compacted.block, module._Packer._copy
    if what in {"a value", "a step"}:
        monkeypatch.setattr(module.columns, "select_rows", _copied(module.columns.select_rows))
        monkeypatch.setattr(compacted, "block", wrong_block)
    else:
        monkeypatch.setattr(module._Packer, "_copy", wrong_copy)
    (left,) = compact(tmp_path)
    assert left.why.startswith("what was packed differs from it")
    assert file.path.read_bytes() == data
    assert [path.name for path in (tmp_path / "blocks").iterdir()] == [file.path.name]
    monkeypatch.undo()
    assert points(reader.series(reader.read(tmp_path).parts, 0)) == points(
        reader.series(before.parts, 0)
    )
    assert [done.why for done in compact(tmp_path)] == [""]


def _copied(real):
    def cut(part, rows):
        found = real(part, rows)
        return type(found)(
            found.keys, found.steps.copy(), found.times.copy(), found.values.copy(), found.first,
            found.order,
        )  # fmt: skip

    return cut


def test_a_block_that_cannot_be_decoded_is_named_before_and_after_packing(tmp_path):
    """Older versions wrote histograms without edges: whole by their checksum, not by content."""
    run = RunFolder.create(tmp_path, record(tmp_path / "other").about)
    run, _, path = run.begin()
    writer = Writer(path)
    writer.scalars(("a",), np.array([1]), np.array([1.0]), np.array([[2.0]]))
    one = Histogram(1, 1.0, np.array([0.0, 1.0]), np.array([3.0]))
    payload = compacted.payloads.encode_histogram("h", one)[:-8]  # an edge is missing
    writer._add(compacted.Kind.HISTOGRAM, payload)
    writer.close()
    (report,) = [one for one in verify(tmp_path) if one.name.endswith(".rlv")]
    assert "n counts and n + 1 edges" in report.damage[0].why
    (left,) = compact(tmp_path)
    assert left.why.startswith("it is damaged: ")
    assert path.exists()


def test_verify_compares_a_packed_index_with_its_columns(tmp_path):
    record(tmp_path, rows=9)
    compact(tmp_path)
    (path,) = (tmp_path / "blocks").iterdir()
    frames = compacted.frames
    parts = list(frames.walk(path.read_bytes()))
    written = []
    for part in parts:
        payload, header = bytes(part.payload), part.header
        if header.kind == compacted.Kind.PACKED:
            payload = payload[:-8] + struct.pack("<d", 99.0)  # with a right checksum of its own
            payload = bytes(payload)
        written.append(frames.pack(header.kind, payload, header.columns, header.table, header.rows))
    path.write_bytes(b"".join(written))
    (report,) = [one for one in verify(tmp_path) if one.name.endswith(".rlv")]
    assert {one.why for one in report.damage} == {"its index does not match its columns"}
    found, _ = native.read(tmp_path / RUN_FILE, None)
    assert any("is damaged" in note for note in found.notes)
