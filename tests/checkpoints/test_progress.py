"""`training_progress.json`: whole at every moment, never begun anew, honest about the time."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from rlvitals.checkpoints import progress, progress_file
from rlvitals.checkpoints.progress import Keeper
from rlvitals.errors import UsageError

FILE = progress_file.PROGRESS_FILE


class Clock:
    """Time that a test moves: what a person may set, and what nobody can."""

    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(progress, "clock", made)
    return made


@pytest.fixture
def said():
    return []


def keeper(folder, *args, said=None, **facts):
    return Keeper(folder, *args, tell=([] if said is None else said).append, **facts)


def held(folder):
    return json.loads((folder / FILE).read_text())


def test_a_run_without_the_file_has_no_progress(tmp_path):
    assert progress.read(tmp_path) is None
    assert progress.read(tmp_path / "nowhere") is None


def test_steps_speed_and_time_left(tmp_path, clock):
    one = keeper(tmp_path, 500)
    clock.now += 60  # loading a model is no training
    one.update(0)
    for step in range(1, 51):
        clock.now += 2
        one.update(step)
    one.update(50, latest_checkpoint=tmp_path / "checkpoint-50")
    found = progress.read(tmp_path)
    assert (found.status, found.step, found.total_steps) == ("running", 50, 500)
    assert found.fraction == pytest.approx(0.1)
    assert found.trained == pytest.approx(100)
    assert found.eta == pytest.approx(900)
    assert found.latest_checkpoint == "checkpoint-50"
    assert found.said["output_dir"] == tmp_path.name


def test_attempts_are_summed_and_the_gap_between_them_does_not_count(tmp_path, clock):
    first = keeper(tmp_path, 100)
    first.update(0)
    clock.now += 40
    first.update(40)
    clock.now += 86_400  # a night
    second = keeper(tmp_path, 100)
    second.update(30)  # the last checkpoint
    clock.now += 10
    second.update(40)
    found = progress.read(tmp_path)
    assert found.attempts == 2
    assert found.trained == pytest.approx(50)
    assert found.eta == pytest.approx(60)  # a second a step


def test_a_clock_that_is_set_back_changes_neither_the_time_trained_nor_what_is_left(
    tmp_path, clock, monkeypatch
):
    one = keeper(tmp_path, 100)
    one.update(0)
    clock.now += 30
    monkeypatch.setattr(progress, "_timestamp", lambda: "2001-01-01T00:00:00+00:00")
    one.update(10, note="set back by years")
    found = progress.read(tmp_path)
    assert found.updated < found.started
    assert found.trained == pytest.approx(30)
    assert found.eta == pytest.approx(270)


def test_ending_is_told_once_and_an_ended_run_that_goes_on_is_running_again(tmp_path):
    one = keeper(tmp_path, 10)
    one.update(10)
    one.finish("failed", "CUDA out of memory")
    before = (tmp_path / FILE).read_bytes()
    one.finish("failed", "CUDA out of memory")
    assert (tmp_path / FILE).read_bytes() == before
    found = progress.read(tmp_path)
    assert (found.status, found.error) == ("failed", "CUDA out of memory")
    assert "end_time" in held(tmp_path)
    assert found.eta is None
    keeper(tmp_path)
    again = progress.read(tmp_path)
    assert (again.status, again.error, again.total_steps) == ("running", "", 10)
    assert "end_time" not in held(tmp_path)
    assert again.started == found.started


def test_a_run_cannot_end_as_anything(tmp_path):
    one = keeper(tmp_path)
    with pytest.raises(UsageError, match="cannot end as 'done'"):
        one.finish("done")


DAMAGED = {
    "empty": b"",
    "of zeros": bytes(200),
    "torn": b'{"status": "running", "step": 4',
    "of another kind": b"[1, 2, 3]",
    "without a status": b'{"step": 3}',
    "no text": b"\xff\xfe\x00\x01",
    "deep": b"[" * 100_000,
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_set_aside_and_the_copy_before_it_used(tmp_path, said, name):
    one = keeper(tmp_path, 100)
    one.update(40, latest_checkpoint="checkpoint-40")
    one.update(41, latest_checkpoint="checkpoint-41")
    (tmp_path / FILE).write_bytes(DAMAGED[name])
    found = progress.read(tmp_path)
    assert (found.step, found.total_steps) == (40, 100)
    assert "the copy before it is used" in found.damage
    assert (tmp_path / FILE).read_bytes() == DAMAGED[name]  # reading changes nothing
    keeper(tmp_path, said=said).update(41)
    assert (tmp_path / f"{FILE}.corrupt").read_bytes() == DAMAGED[name]
    assert len([text for text in said if "never begun anew" in text]) == 1
    found = progress.read(tmp_path)
    assert (found.step, found.total_steps, found.damage, found.attempts) == (41, 100, "", 2)


def test_the_process_that_wrote_it_knows_more_than_the_copy(tmp_path, said):
    one = keeper(tmp_path, 100, said=said)
    one.chunk(1, status="completed", requests=5000)
    one.chunk(2, status="running")
    (tmp_path / FILE).write_bytes(b"")
    one.update(9, latest_checkpoint="checkpoint-9")
    assert [chunk.status for chunk in progress.read(tmp_path).chunks] == ["completed", "running"]


def test_where_no_good_copy_is_left_the_damaged_ones_are_kept_and_it_is_told(tmp_path, said):
    (tmp_path / FILE).write_bytes(b"{")
    assert "no good copy" in progress.read(tmp_path).damage
    assert progress.read(tmp_path).status == ""
    keeper(tmp_path, 7, said=said)
    (tmp_path / FILE).write_bytes(b"}")
    keeper(tmp_path, 7, said=said)
    assert (tmp_path / f"{FILE}.corrupt").read_bytes() == b"{"
    assert (tmp_path / f"{FILE}.corrupt-1").read_bytes() == b"}"
    assert len(said) == 2


def test_a_file_that_was_deleted_is_brought_back_from_its_copy(tmp_path):
    one = keeper(tmp_path, 100)
    one.update(40, latest_checkpoint="checkpoint-40")
    one.update(41, latest_checkpoint="checkpoint-41")
    (tmp_path / FILE).unlink()
    assert progress.read(tmp_path).step == 40
    assert "missing" in progress.read(tmp_path).damage


def test_a_chunk_told_twice_counts_once(tmp_path, clock):
    one = keeper(tmp_path, total_requests=20_000, chunk_size=5000, total_chunks=4)
    for _ in range(2):
        one.chunk(1, status="running")
        clock.now += 50
        one.chunk(
            1,
            status="completed",
            requests=5000,
            checkpoint=tmp_path / "checkpoints" / "latest.pt",
            log_file=str(tmp_path / "chunk_1.log"),
        )
    said = held(tmp_path)
    assert (said["completed_chunks"], said["requests_done"], len(said["chunks"])) == (1, 5000, 1)
    assert said["chunks"][0]["checkpoint"] == "checkpoints/latest.pt"
    assert said["chunks"][0]["log_file"] == "chunk_1.log"
    found = progress.read(tmp_path)
    assert one.progress == found
    assert found.fraction == pytest.approx(0.25)
    assert found.eta == pytest.approx(300)  # 100 s for a quarter


def test_no_path_of_this_machine_is_stored(tmp_path):
    folder = tmp_path / "a run"
    one = keeper(folder, config_file="/home/ann/configs/ppo.json", more={"actor": folder / "a.pt"})
    one.update(3, latest_checkpoint=str(folder / "checkpoint-3"), data=r"C:\data\set.csv")
    text = (folder / FILE).read_text()
    assert str(tmp_path) not in text
    assert "/home" not in text
    said = held(folder)
    assert (said["config_file"], said["more"]["actor"]) == ("ppo.json", "a.pt")
    assert said["data"] == "set.csv"


def test_a_moved_run_goes_on_under_its_new_name(tmp_path):
    keeper(tmp_path / "old", 10).update(4)
    shutil.move(tmp_path / "old", tmp_path / "new")
    keeper(tmp_path / "new").update(5)
    assert held(tmp_path / "new")["output_dir"] == "new"
    assert progress.read(tmp_path / "new").total_steps == 10


def test_what_a_newer_writer_or_another_process_wrote_is_kept(tmp_path):
    one = keeper(tmp_path, 100)
    said = held(tmp_path)
    said |= {"of_tomorrow": {"deep": [1, 2]}, "nothing": None, "qps": 3.5}
    said["attempts"][0]["gpu"] = "H100"
    (tmp_path / FILE).write_text(json.dumps(said).replace("3.5", "NaN"))
    one.update(5, latest_checkpoint="checkpoint-5")
    now = held(tmp_path)
    assert now["of_tomorrow"] == {"deep": [1, 2]}
    assert now["attempts"][0]["gpu"] == "H100"
    assert (now["step"], now["qps"]) == (5, None)


def test_numbers_of_numpy_and_what_is_no_number(tmp_path):
    one = keeper(tmp_path, np.int64(100), mean=np.float32(0.5), bad=float("nan"))
    one.update(np.int64(7), best=np.float64("inf"), shape=(2, np.int32(3)))
    one.finish("stopped")
    said = json.loads((tmp_path / FILE).read_text(), parse_constant=pytest.fail)
    assert (said["step"], said["mean"], said["bad"], said["best"]) == (7, 0.5, None, None)
    assert said["shape"] == [2, 3]


def test_what_another_program_wrote_is_read_and_kept(tmp_path):
    said = {
        "total_chunks": 4, "chunk_size": 5000, "total_requests": 20000, "completed_chunks": 1,
        "requests_done": 5000, "latest_checkpoint": "checkpoints/latest.pt", "num_replicas": 4,
        "start_time": "2025-09-18T23:30:15", "last_update": "2025-09-19T01:00:00",
        "status": "running", "output_dir": "outputs", "qps": 3.5,
        "chunks": [{"chunk_id": 1, "status": "completed", "requests": 5000, "checkpoint": "a.pt",
                    "log_file": "chunk_1.log", "timestamp": "2025-09-19T01:00:00"}],
    }  # fmt: skip
    (tmp_path / FILE).write_text(json.dumps(said))
    found = progress.read(tmp_path)
    assert found.fraction == pytest.approx(0.25)
    assert found.updated - found.started == pytest.approx(5385)
    assert found.eta is None  # nobody counted the time trained
    keeper(tmp_path).chunk(2, status="running")
    now = held(tmp_path)
    assert (now["completed_chunks"], now["requests_done"], now["qps"]) == (1, 5000, 3.5)


@pytest.mark.parametrize("value", ["x", None, [], {}, True, 1e400, 10**400, -5, "1e9"])
def test_values_of_the_wrong_kind_break_nothing(tmp_path, value):
    keys = [
        "step", "total_steps", "chunks", "attempts", "start_time", "trained_seconds",
        "total_chunks", "requests_done", "latest_checkpoint", "eta_seconds",
    ]  # fmt: skip
    (tmp_path / FILE).write_text(json.dumps({"status": "running", **dict.fromkeys(keys, value)}))
    found = progress.read(tmp_path)
    assert found.fraction is None or 0 <= found.fraction <= 1
    keeper(tmp_path, 10).update(2)
    keeper(tmp_path, 10).finish("stopped")
    assert progress.read(tmp_path).total_steps == 10


def test_steps_in_quick_succession_are_not_each_written(tmp_path, clock, monkeypatch):
    one = keeper(tmp_path, 10_000)
    written = []
    save = progress_file.save
    monkeypatch.setattr(progress_file, "save", lambda *args: (written.append(1), save(*args)))
    for step in range(1000):
        clock.now += 0.01
        one.update(step)
    assert 4 <= len(written) <= 6
    one.finish()
    assert progress.read(tmp_path).step == 999


def test_a_folder_that_cannot_be_written_is_told_once_and_training_goes_on(tmp_path, said):
    if os.geteuid() == 0:
        folder = tmp_path / "run"
        one = keeper(folder, said=said)
        shutil.rmtree(folder)
        folder.write_text("a file is where the folder was")
    else:
        folder = tmp_path
        one = keeper(folder, said=said)
        folder.chmod(0o500)
    for step in range(5):
        one.update(step, latest_checkpoint=f"checkpoint-{step}")
    assert len(said) == 1
    assert "training goes on" in said[0]
    folder.chmod(0o700)


def test_a_folder_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "run").write_text("")
    with pytest.raises(UsageError, match="is a file"):
        keeper(tmp_path / "run")


WRITER = """
import sys
from rlvitals.checkpoints.progress import Keeper
one = Keeper(sys.argv[1], 10**9)
print("up", flush=True)
step = 0
while True:
    step += 1
    one.update(step, latest_checkpoint=f"checkpoint-{step}")
"""


def test_killed_at_any_moment_the_file_is_whole_and_never_goes_back(tmp_path):
    last = 0
    random = np.random.default_rng(6)
    for _ in range(6):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE
        )
        process.stdout.readline()
        time.sleep(random.uniform(0.01, 0.1))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        found = progress.read(tmp_path)
        assert found.damage == ""
        assert found.latest_checkpoint == f"checkpoint-{found.step}" or found.step is None
        assert found.attempts == last + 1
        last = found.attempts
    assert progress_file._parse(tmp_path / progress_file.PREVIOUS_PROGRESS_FILE)[0]


def test_a_slow_disk_is_written_to_a_share_of_the_time(tmp_path, clock, monkeypatch):
    kept = keeper(tmp_path)
    writes, write = [], kept._write

    def slowly():
        writes.append(clock.now)
        clock.now += 10.0
        write()

    monkeypatch.setattr(kept, "_write", slowly)
    clock.now += 100.0
    kept.update(1)
    clock.now += 10.0 / 0.02 - 1.0
    kept.update(2)
    assert len(writes) == 1
    clock.now += 2.0
    kept.update(3)
    assert len(writes) == 2
