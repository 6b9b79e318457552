"""Disks that take nothing, folders that are removed or renamed: what is lost, and who is told."""

import os
import shutil
import threading

import numpy as np
import pytest
from recording_checks import happened, notes, points, values
from test_faults import both_ways, full  # noqa: F401 - a fixture

import rlvitals
from rlvitals.storage import events, write_buffer
from rlvitals.storage.run_folder import RunFolder
from rlvitals.tracking import validation
from rlvitals.tracking.sinks import native
from rlvitals.tracking.warnings_log import MAX_NOTE_PATTERNS, Notes

LONG = 600.0  # seconds: no test depends on how busy the machine is
DISK = "the disk takes no rows: No space left on device"
WHOLE = [(step, float(step)) for step in range(200)]


def log(run, first, last):
    for step in range(first, last):
        run.log(step, {"x": step})


def warnings(caplog):
    return [record.getMessage() for record in caplog.records]


@both_ways
def test_flush_is_true_only_where_the_system_has_all_of_it(tmp_path, full, caplog):  # noqa: F811
    run = rlvitals.start(tmp_path, strict=False)
    log(run, 0, 100)
    assert run.flush(LONG)
    full["room"] = 100
    log(run, 100, 150)
    assert not run.flush(LONG)
    assert not run.flush(LONG)
    assert run._pump.budget.used > 0
    full["room"] = None
    assert run.flush(LONG)
    assert run._pump.budget.used == 0
    log(run, 150, 200)
    run.finish()
    assert run.flush(LONG), "nothing was lost"
    assert points(tmp_path)["x"] == WHOLE
    assert warnings(caplog) == [f"{DISK} (up to 256 MiB wait in memory)"]


@both_ways
def test_a_disk_full_to_the_end_is_said_once_with_exact_numbers(tmp_path, full, caplog):  # noqa: F811
    run = rlvitals.start(tmp_path, strict=False)
    log(run, 0, 100)
    assert run.flush(LONG)
    full["room"] = 0
    log(run, 100, 350)
    run.log_text(100, "t", "text")
    assert not run.flush(LONG)
    run.finish()
    assert not run.flush(LONG)
    assert len(points(tmp_path)["x"]) == 100
    first, *_, last = warnings(caplog)
    assert first.startswith(DISK)
    assert "250 rows (the disk took none until the end)" in last
    assert "1 texts (the disk took none until the end)" in last
    assert sum("logged and not recorded" in text for text in warnings(caplog)) == 1


def test_texts_on_a_full_disk_are_bounded_and_no_number_is_lost(tmp_path, full, monkeypatch):  # noqa: F811
    monkeypatch.setattr(write_buffer, "MAX_PENDING_BYTES", 1_000_000)
    run = rlvitals.start(tmp_path, strict=False)
    full["room"] = 0
    for step in range(200):
        run.log(step, {"x": step})
        run.log_text(step, "answer", "x" * 20_000)
        run.log_table(step, "answers", {"text": ["y" * 10_000], "reward": [0.5]})
        run.log_histogram(step, "weights", np.arange(1000.0))
        if step % 5 == 0:
            assert not run.flush(LONG)
        assert run._pump.budget.used <= 1_000_000
    full["room"] = None
    run.finish()
    assert points(tmp_path)["x"] == WHOLE
    lost = notes(tmp_path)
    for kind in ("texts", "tables"):
        assert lost[f"{kind} lost: the disk was full for too long"] > 100


def test_a_burst_of_texts_waits_within_the_budget_too(tmp_path, monkeypatch):
    monkeypatch.setattr(write_buffer, "MAX_PENDING_BYTES", 1_000_000)
    gate, write = threading.Event(), write_buffer._write
    run = rlvitals.start(tmp_path, strict=False)
    monkeypatch.setattr(write_buffer, "_write", lambda *args: gate.wait() and write(*args))
    for step in range(1000):
        run.log_text(step, "answer", f"{step}" + "x" * 10_000)
        assert run._pump.budget.used <= 1_000_000
    log(run, 0, 200)
    gate.set()
    run.finish()
    assert points(tmp_path)["x"] == WHOLE
    assert sum(n for text, n in notes(tmp_path).items() if text.startswith("texts lost")) > 800


@both_ways
@pytest.mark.parametrize("durable", [False, True])
def test_a_removed_folder_is_made_again_with_all_that_this_process_wrote(tmp_path, caplog, durable):
    folder = tmp_path / "run"
    run = rlvitals.start(folder, strict=False, durable=durable, settings={"lr": 1})
    log(run, 0, 100)
    run.event("checkpoint", 7)
    assert run.flush(LONG)
    shutil.rmtree(folder)
    log(run, 100, 150)
    assert run.flush(LONG)
    log(run, 150, 200)
    run.event("checkpoint", 8)
    run.finish()
    assert points(folder)["x"] == WHOLE
    assert [event.step for event in happened(folder, "checkpoint")] == [7, 8]
    assert len(happened(folder, "finish")) == 1
    assert RunFolder.open(folder).about.settings == {"lr": 1}
    assert notes(folder) == {native.FILES_REMOVED: 1}
    assert warnings(caplog) == [f"{folder}: {native.FILES_REMOVED}"]


@both_ways
def test_a_renamed_folder_gets_everything_and_the_old_place_nothing(tmp_path, caplog):
    run = rlvitals.start(tmp_path / "run", strict=False)
    log(run, 0, 100)
    assert run.flush(LONG)
    (tmp_path / "run").rename(tmp_path / "other")
    log(run, 100, 200)
    run.event("checkpoint", 8)
    assert run.flush(LONG)
    run.finish("stopped")
    assert points(tmp_path / "other")["x"] == WHOLE
    assert [event.facts["status"] for event in happened(tmp_path / "other", "finish")] == [
        "stopped"
    ]
    assert happened(tmp_path / "other", "checkpoint")
    assert not (tmp_path / "run").exists()
    assert warnings(caplog) == []


def test_another_run_in_the_place_of_a_removed_one_is_left_alone(tmp_path, caplog):
    run = rlvitals.start(tmp_path / "run", strict=False)
    log(run, 0, 100)
    assert run.flush(LONG)
    shutil.rmtree(tmp_path / "run")
    with rlvitals.start(tmp_path / "run", strict=False) as second:
        second.log(1, {"second": 1.0})
        assert second.flush(LONG)
        log(run, 100, 200)
        assert not run.flush(LONG)
    run.finish()
    found = points(tmp_path / "run")
    assert found["second"] == [(1, 1.0)]
    assert "x" not in found
    assert any("another run lies in the folder's place" in text for text in warnings(caplog))
    assert "100 rows (the disk took none until the end)" in warnings(caplog)[-1]


def test_a_removed_folder_that_cannot_be_made_again_is_said(tmp_path, caplog):
    run = rlvitals.start(tmp_path / "run", strict=False)
    log(run, 0, 100)
    assert run.flush(LONG)
    shutil.rmtree(tmp_path / "run")
    (tmp_path / "run").write_text("a file in its place")
    assert not run.flush(LONG)
    log(run, 100, 200)
    assert not run.flush(LONG)
    (tmp_path / "run").unlink()
    assert run.flush(LONG), "what waited, and what was written, is there again"
    run.finish()
    assert points(tmp_path / "run")["x"] == WHOLE
    assert "the disk takes no rows: File exists" in warnings(caplog)[0]


def test_a_working_folder_that_changes_moves_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = rlvitals.start("run", strict=False)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    log(run, 0, 200)
    run.event("checkpoint", 8)
    run.finish()
    assert points(tmp_path / "run")["x"] == WHOLE
    assert len(happened(tmp_path / "run", "finish")) == 1
    assert not (tmp_path / "elsewhere" / "run").exists()


def test_events_that_a_full_disk_cuts_are_each_there_once(tmp_path, monkeypatch):
    log_file = events.Events(tmp_path / "events.jsonl")
    lines = [events.format_line(events.Event("e", 1.0, step, {})) for step in range(5)]
    room, write = [len(lines[0]) + len(lines[1]) + 3], os.write

    def limited(fd, data):
        if not room[0]:
            raise OSError(28, "No space left on device")
        done = write(fd, data[: room[0]])
        room[0] -= done
        return done

    waiting = events.deque(lines)
    monkeypatch.setattr(os, "write", limited)
    with pytest.raises(OSError, match="No space"):
        log_file.write(waiting)
    assert list(waiting) == lines[2:]
    room[0] = 10**6
    log_file.write(waiting)
    monkeypatch.undo()
    assert [event.step for event in events.read(log_file.path).events] == list(range(5))


def test_a_run_that_cannot_be_recorded_answers_flush_with_false(tmp_path):
    (tmp_path / "file").write_text("no folder")
    with pytest.warns(RuntimeWarning, match="nothing is recorded"):
        run = rlvitals.start(tmp_path / "file" / "run", strict=False)
    assert not run.flush(LONG)


def test_a_run_of_a_newer_format_is_a_warning_and_the_training_goes_on(tmp_path):
    rlvitals.start(tmp_path, strict=False).finish()
    for name in ("run.json", ".run.json.copy"):
        (tmp_path / name).write_text('{"format": 999}')
    with pytest.warns(RuntimeWarning, match="nothing is recorded: .*newer"):
        run = rlvitals.start(tmp_path, strict=False)
    run.log(1, {"x": 1.0})
    assert not run.flush(LONG)


def test_a_damaged_run_file_is_written_anew_and_the_run_is_recorded(tmp_path):
    rlvitals.start(tmp_path, strict=False).finish()
    for name in ("run.json", ".run.json.copy"):
        (tmp_path / name).write_text("{")
    run = rlvitals.start(tmp_path, strict=False)
    run.log(1, {"x": 1.0})
    assert run.flush(LONG)
    run.finish()
    assert values(tmp_path, "x") == [1.0]


def test_notes_with_a_counter_in_them_are_few(tmp_path):
    counted = Notes()
    for step in range(100_000):
        counted.add(f"step {step}: no reward")
    assert len(counted.counts) <= MAX_NOTE_PATTERNS + 1
    assert sum(counted.counts.values()) == 100_000
    assert counted.counts["step #: no reward"] > 99_000
    for step in range(10_000):
        counted.add("".join(chr(97 + int(digit)) for digit in str(step)))
    assert len(counted.counts) <= MAX_NOTE_PATTERNS + 1
    assert sum(counted.counts.values()) == 110_000
    with rlvitals.start(tmp_path, strict=False) as run:
        for step in range(20_000):
            run.log(step, {f"name {step}": None})
            run.note(f"{step} is odd")
    lines = (tmp_path / "events.jsonl").read_bytes().splitlines()
    assert len(lines) < 20 * MAX_NOTE_PATTERNS
    assert sum(notes(tmp_path).values()) == 40_000


def test_notes_of_many_threads_are_counted_exactly():
    counted, count = Notes(), 20_000

    def work():
        for i in range(count):
            counted.add("one")
            counted.add(f"one of {i % 7}")

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counted.counts["one"] == 8 * count
    assert sum(counted.counts.values()) == 16 * count


def test_events_at_each_step_are_thinned_and_late_ones_are_there(tmp_path, monkeypatch):
    monkeypatch.setattr(validation, "MAX_EVENTS_OF_KIND", 100)
    monkeypatch.setattr(validation, "MAX_EVENT_KINDS", 50)
    with rlvitals.start(tmp_path, strict=False) as run:
        for step in range(5000):
            run.event("episode", step)
            run.event(f"saved {step}", step)
            run.update_settings({"lr": step}, step=step)
            run.event("checkpoint", step) if step % 1000 == 0 else None
    steps = [event.step for event in happened(tmp_path, "episode")]
    assert steps[:100] == list(range(100))
    assert 180 < len(steps) < 280
    assert steps[-1] > 4800
    assert len(happened(tmp_path, "settings")) < 280
    assert len([e for e in happened(tmp_path) if e.kind.startswith("saved")]) < 400
    assert len(happened(tmp_path, "checkpoint")) == 5
    assert any(text.startswith("events left out") for text in notes(tmp_path))
    assert run.settings["lr"] == 4999
    assert len(run._thinning._counts) <= 52


@pytest.mark.soak
@both_ways
def test_sixteen_threads_flat_out_lose_nothing(tmp_path):
    run, count = rlvitals.start(tmp_path, strict=False), 20_000
    barrier = threading.Barrier(16)

    def work(number):
        barrier.wait()
        for step in range(count):
            run.log(step, {f"t{number}/a": step, f"t{number}/b": -step})

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    run.finish()
    found = points(tmp_path)
    for number in range(16):
        assert found[f"t{number}/a"] == [(step, float(step)) for step in range(count)]
    assert notes(tmp_path) == {}


def test_rows_logged_faster_than_they_can_be_laid_out_are_counted_by_that_name(
    tmp_path, monkeypatch, way
):
    assert way
    monkeypatch.setenv("RLVITALS_RECORDING_MACHINE_SECONDS", "0")
    monkeypatch.setattr(write_buffer, "MAX_PENDING_BYTES", 600_000)
    monkeypatch.setattr("rlvitals.tracking.writer_thread.MAX_CATCH_UP_SECONDS", 0.01)
    run = rlvitals.start(tmp_path, strict=False)
    gate, rows = threading.Event(), run._pump._batcher.rows
    run._pump._batcher.rows = lambda *args, **named: gate.wait() and rows(*args, **named)
    log(run, 0, 20_000)
    gate.set()
    run.finish()
    lost = notes(tmp_path)
    (text,) = lost
    assert text == "rows lost: they were logged faster than the recorder lays them out"
    assert len(values(tmp_path, "x")) + lost[text] == 20_000
    assert lost[text] > 5000
