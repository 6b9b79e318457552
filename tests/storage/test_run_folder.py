"""A run's folder and its events."""

import json
import os
import shutil
import signal

import forked
import pytest

from rlvitals.errors import UnreadableLog
from rlvitals.storage import events
from rlvitals.storage.run_folder import About, RunFolder
from rlvitals.storage.safe_files import atomic_write


def test_a_folder_keeps_who_and_what_it_is(tmp_path):
    about = About(name="x", project="p", seed=3, settings={"lr": 1e-3}, tags=("a", "b"))
    made = RunFolder.create(tmp_path / "run", about)
    assert made.about.id
    again = RunFolder.create(tmp_path / "run", About(name="other"))
    assert again.about == made.about
    made.update(notes="hm", settings={"lr": 2e-3})
    shutil.move(tmp_path / "run", tmp_path / "moved")
    moved = RunFolder.open(tmp_path / "moved")
    assert (moved.about.notes, moved.about.settings) == ("hm", {"lr": 2e-3})
    assert str(tmp_path) not in (tmp_path / "moved/run.json").read_text()


def test_two_processes_on_one_folder_are_two_attempts(tmp_path):
    one = RunFolder.create(tmp_path, About())
    two = RunFolder.create(tmp_path, About())
    _, first, path = one.begin()
    after, second, other = two.begin()
    assert (first, second) == (1, 2)
    assert path != other
    assert [attempt.number for attempt in after.about.attempts] == [1, 2]


def test_ranks_of_one_launch_are_one_attempt(tmp_path):
    run = RunFolder.create(tmp_path, About())
    assert [run.begin(rank, launch="a")[1] for rank in (1, 0, 2)] == [1, 1, 1]
    assert [run.begin(rank, launch="b")[1] for rank in (0, 1, 2)] == [2, 2, 2]
    assert [(one.attempt, one.rank) for one in run.block_files()] == [
        (1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2),
    ]  # fmt: skip


def test_a_newer_folder_is_refused_by_name(tmp_path):
    RunFolder.create(tmp_path, About())
    said = json.loads((tmp_path / "run.json").read_text())
    (tmp_path / "run.json").write_text(json.dumps({**said, "format": 2}))
    with pytest.raises(UnreadableLog, match="format 2, written by a newer rlvitals"):
        RunFolder.open(tmp_path)


def test_a_torn_event_is_skipped_and_one_in_the_making_waits(tmp_path):
    path = tmp_path / "events.jsonl"
    events.append(path, "start", attempt=1)
    with path.open("a") as file:
        file.write('{"event": "heartb')
    first = events.read(path)
    assert [event.kind for event in first.events] == ["start"]
    events.append(path, "exit", 7, code=1)
    second = events.read(path, first.cursor)
    assert [(e.kind, e.step, e.facts) for e in second.events] == [("exit", 7, {"code": 1})]
    assert second.skipped == 1


def test_what_a_killed_process_left_half_written_goes_at_the_next_start(tmp_path):
    """Ours alone, and nothing that somebody is writing."""
    run = RunFolder.create(tmp_path, About())
    left = [".training_progress.json.0123456789ab", ".run.json.ba9876543210"]
    kept = [".run.json.backup", ".mine.json", "run.json.0123456789ab", ".a.json.0123456789ab/"]
    for name in (*left, *kept):
        path = tmp_path / name
        if name.endswith("/"):
            path.mkdir()
        else:
            path.write_text("{")
        os.utime(path, (1, 1))
    young = tmp_path / ".run.json.cccccccccccc"
    young.write_text("{")
    with atomic_write(tmp_path / "slow.json") as file:
        os.utime(file.name, (1, 1))
        run.begin()
        file.write(b"whole")
    there = {path.name for path in tmp_path.iterdir()}
    assert not there & set(left)
    assert there >= {*(name.rstrip("/") for name in kept), young.name}
    assert (tmp_path / "slow.json").read_bytes() == b"whole"


def test_a_process_killed_in_the_middle_of_a_write_leaves_nothing_for_ever(tmp_path):
    run = RunFolder.create(tmp_path, About())

    def dies():
        with atomic_write(tmp_path / "training_progress.json"):
            os.kill(os.getpid(), signal.SIGKILL)

    forked.apart(dies)
    (left,) = tmp_path.glob(".training_progress.json.*")
    run.begin()
    assert left.exists()  # too young to be told from one that is just being made
    os.utime(left, (1, 1))
    run.begin()
    assert not left.exists()
