"""What thousands of names cost: counted in calls and bytes, each name as much as the one before."""

import sys

import numpy as np
import pytest
from recording_checks import points

import rlvitals
from rlvitals.metrics.canonicalize import trace
from rlvitals.readers import native
from rlvitals.storage import blocks
from rlvitals.storage.blocks import Writer, scan
from rlvitals.storage.run_folder import RUN_FILE
from rlvitals.tracking.row_batches import Batcher
from rlvitals.tracking.warnings_log import Notes

COUNTS = (200, 400, 800)
MOST = 2.2  # times the work for twice the names


def calls(work):
    """Count the calls of Python functions and of built-in ones that some work makes."""
    count = 0

    def see(_frame, event, _arg):
        nonlocal count
        count += event in {"call", "c_call"}

    sys.setprofile(see)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def is_linear(work):
    found = [work(count) for count in COUNTS]
    assert found[1] < MOST * found[0], found
    assert found[2] < MOST * found[1], found


def rows(count):
    """Rows of a new name each, as they wait for the recorder's thread."""
    return [cell for i in range(count) for cell in (i, 1.0, {f"name/{i}": float(i)}, None)]


def test_laying_out_rows_of_a_new_name_each_is_linear():
    def work(count):
        flat, batcher = rows(count), Batcher(Notes())
        return calls(lambda: batcher.rows(flat))

    is_linear(work)


def test_rows_that_share_a_metric_stay_in_order():
    flat = []
    for i in range(60):
        flat += (i, 1.0, {"loss": float(i), f"name/{i % 7}": 1.0, "axis/episode": i}, None)
    found = Batcher(Notes()).rows(flat)
    assert np.concatenate([part.steps for part in found]).tolist() == list(range(60))


def written(folder, count):
    run = rlvitals.start(folder)
    for i in range(count):
        run.log(i, {f"name/{i}": float(i)})
    run.finish()
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("names")
    return {count: written(root / f"{count}", count) for count in COUNTS}


def test_every_name_is_kept_and_takes_as_many_bytes_as_the_others(runs):
    for count, folder in runs.items():
        found = points(folder)
        assert [found[f"name/{i}"] for i in range(count)] == [[(i, float(i))] for i in range(count)]
    is_linear(lambda count: sum(p.stat().st_size for p in (runs[count] / "blocks").iterdir()))


def test_reading_and_naming_thousands_of_names_is_linear(runs):
    def work(count):
        return calls(lambda: trace([native.read(runs[count] / RUN_FILE, None)[0]]))

    work(COUNTS[0])  # what is computed once
    is_linear(work)


@pytest.mark.parametrize("at_once", [False, True])
def test_a_writer_remembers_so_many_layouts_and_loses_no_row(tmp_path, monkeypatch, at_once):
    monkeypatch.setattr(blocks, "MAX_KEY_TABLES", 3)
    writer = Writer(tmp_path / "1-0.rlv")
    direct = writer.rows()
    for i in range(40):
        name = f"name/{i % 5}"
        if at_once:
            writer.flush()
            assert direct.write(i, 1.0, {name: float(i)})
        else:
            writer.scalars((name,), np.array([i]), np.array([1.0]), np.array([[float(i)]]))
    assert len(writer._tables) <= 3
    assert len(direct._layouts) <= 3
    direct.close()
    writer.close()
    found = scan(tmp_path / "1-0.rlv")
    assert not found.damage
    assert sorted((one.keys[0], *one.steps.tolist()) for one in found.scalars) == sorted(
        (f"name/{i % 5}", i) for i in range(40)
    )


@pytest.mark.soak
def test_a_hundred_thousand_rows_of_a_new_name_each_are_all_kept(tmp_path):
    found = points(written(tmp_path / "run", 100_000))
    assert all(found[f"name/{i}"] == [(i, float(i))] for i in range(100_000))
