"""Saving beside the training: what is saved is what was, and nothing that goes wrong is lost."""

import errno
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from waiting import HANG_SECONDS

from rlvitals.checkpoints import manifest
from rlvitals.checkpoints.manager import Checkpoints
from rlvitals.checkpoints.state import hash_writer
from rlvitals.checkpoints.state.training_state import State


class Slow:
    """Lets a writer stand still, or fail."""

    def __init__(self, monkeypatch):
        self.begun, self.go, self.error = threading.Event(), threading.Event(), None
        true = hash_writer.write_arrays

        def write(path, parts):
            self.begun.set()
            assert self.go.wait(HANG_SECONDS)
            if self.error is not None:
                raise self.error
            return true(path, parts)

        monkeypatch.setattr(hash_writer, "write_arrays", write)


@pytest.fixture
def slow(monkeypatch):
    slow = Slow(monkeypatch)
    yield slow
    slow.go.set()


@pytest.fixture
def said():
    return []


@pytest.fixture
def beside(tmp_path, said):
    return Checkpoints(tmp_path, every=10, background=True, tell=said.append)


def weights(folder):
    state = State(w=np.zeros(1000), step=0)
    state.load(folder)
    return state["w"]


def test_training_that_goes_on_changes_nothing_of_what_is_saved(beside, slow):
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(30, 30)
    state = State(model=model, w=np.ones(1000), step=10)
    before = model.weight.detach().clone()
    beside.save_state(10, state)
    state["w"] += 1
    state["step"] = 11
    with torch.no_grad():
        model.weight += 1
    assert slow.begun.wait(HANG_SECONDS)
    slow.go.set()
    assert beside.wait(HANG_SECONDS)
    other = State(model=torch.nn.Linear(30, 30), w=np.zeros(1000), step=0)
    assert beside.restore_state(other).step == 10
    assert torch.equal(other["model"].weight, before)
    assert (other["w"] == 1).all()
    assert other["step"] == 10


def test_none_is_due_while_one_is_written_and_it_is_as_soon_as_that_is_done(beside, slow):
    state = State(w=np.ones(1000), step=10)
    assert beside.due(10)
    beside.save_state(10, state)
    assert not beside.due(11)
    assert not beside.due(20), "one at a time"
    slow.go.set()
    beside.wait()
    assert beside.due(23), "the one of step 20, late"
    beside.save_state(23, state)
    beside.close()
    assert [one.step for one in beside.all()] == [23, 10]
    assert not beside.due(29)
    assert beside.due(30)


def test_one_that_is_asked_for_waits_for_the_one_before(beside, slow):
    beside.save_state(10, State(w=np.full(1000, 10.0), step=10))
    threading.Timer(0.05, slow.go.set).start()
    beside.save_state(12, State(w=np.full(1000, 12.0), step=12))
    beside.close()
    assert [one.step for one in beside.all()] == [12, 10]
    assert [weights(one.folder)[0] for one in beside.all()] == [12.0, 10.0]


def test_memory_is_used_again(beside):
    state = State(w=np.ones(1000), v=np.ones(10), step=1)
    held = []
    for step in (10, 20):
        beside.save_state(step, state)
        beside.wait()
        held.append([id(one) for one in beside._buffers._memories])
    assert held[0] == held[1]
    assert len(held[0]) >= 2
    beside.save_state(30, State(w=np.ones(5), step=1))
    beside.save_state(40, State(w=np.full(7, 7.0), v=np.ones(3), step=1))
    beside.close()
    state = State(w=np.zeros(7), v=np.zeros(3), step=0)
    assert beside.restore_state(state).step == 40
    assert state["w"].tolist() == [7.0] * 7


@pytest.mark.parametrize("call", ["due", "save_state", "wait", "close", "restore", "save"])
def test_what_goes_wrong_beside_is_told_and_raised_at_the_next_call(beside, said, slow, call):
    slow.error = PermissionError(errno.EACCES, "not yours")
    slow.go.set()
    state = State(w=np.ones(3))
    beside.save_state(10, state)
    beside._writer.join()
    assert said == ["checkpoint 10 was not saved: PermissionError: [Errno 13] not yours"]
    calls = {
        "due": lambda: beside.due(20), "save_state": lambda: beside.save_state(20, state),
        "wait": beside.wait, "close": beside.close, "restore": beside.restore,
        "save": lambda: beside.save(20).__enter__(),
    }  # fmt: skip
    with pytest.raises(PermissionError, match="not yours"):
        calls[call]()
    assert beside.wait(), "it is raised once"
    assert not list(beside.folder.glob(".checkpoint-*"))


def test_a_full_disk_is_told_and_training_goes_on(beside, said, slow):
    slow.error = OSError(errno.ENOSPC, "No space left on device")
    slow.go.set()
    state = State(w=np.ones(3))
    beside.save_state(10, state)
    beside.close()
    assert said == ["checkpoint 10 was not saved, the disk is full: training goes on"]
    slow.error = None
    assert not beside.due(11)
    assert beside.due(20)
    beside.save_state(20, state)
    beside.close()
    assert beside.latest().step == 20


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 4 MB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", disk]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no file system may be mounted here")
    yield disk
    # Lazily: an error that is remembered holds torch's file open.
    subprocess.run(["umount", "--lazy", disk], check=True)


def test_a_disk_that_is_really_full(small_disk, said):
    one = Checkpoints(small_disk, every=10, background=True, keep=5, tell=said.append)
    state = State(w=np.ones(300_000))  # 2.4 MB: it does not fit a second time
    one.save_state(10, state)
    one.save_state(20, state)
    one.close()
    assert said == ["checkpoint 20 was not saved, the disk is full: training goes on"]
    assert one.latest().step == 10
    assert sorted(path.name for path in small_disk.iterdir()) == ["checkpoint-10", "latest"]
    assert not one.due(30), "its room is looked at first"
    assert "2 MB are free; training goes on" in said[1]


def by_torch(tensor, folder):
    import torch

    torch.save(tensor, folder / "x.pt")


def by_safetensors(tensor, folder):
    from safetensors.torch import save_file

    save_file({"w": tensor}, folder / "x.safetensors")


def by_shards(tensor, folder):
    from torch.distributed import checkpoint as dcp

    dcp.save({"w": tensor}, checkpoint_id=folder / "x", no_dist=True)


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
@pytest.mark.parametrize("write", [by_torch, by_safetensors, by_shards])
def test_a_disk_that_is_full_is_known_by_what_each_library_says(small_disk, said, write):
    import torch

    one = Checkpoints(small_disk, tell=said.append)
    with one.save(10) as folder:
        write(torch.zeros(100), folder)
    with one.save(20) as folder:
        write(torch.zeros(2_000_000), folder)
    assert said == ["checkpoint 20 was not saved, the disk is full: training goes on"]
    assert one.latest().step == 10
    assert sorted(path.name for path in small_disk.iterdir()) == ["checkpoint-10", "latest"]


def test_the_block_of_a_with_waits_and_keeps_its_own_error(beside, slow, said):
    slow.error = PermissionError("mine")
    threading.Timer(0.05, slow.go.set).start()
    wrong = ValueError("the block's")
    beside.save_state(10, State(w=np.ones(3)))
    with pytest.raises(ValueError, match="the block's"), beside:
        raise wrong
    assert "PermissionError: mine" in said[0]


# --- how the process ends ---

SCRIPT = """
import os, signal, sys, threading, time
import numpy as np
import rlvitals
from rlvitals.checkpoints.state import hash_writer
true = hash_writer.write_arrays
def slowly(path, parts):
    time.sleep(0.3)
    return true(path, parts)
hash_writer.write_arrays = slowly
"""
SAVE = """
checkpoints = rlvitals.Checkpoints(sys.argv[1], background=True)
checkpoints.save_state(7, rlvitals.State(w=np.arange(50_000.0), step=7))
print("saving", flush=True)
"""


def script(folder, after, before=""):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        [sys.executable, "-c", SCRIPT + before + SAVE + after, folder],
        env=env, capture_output=True, text=True, check=False, timeout=HANG_SECONDS,
    )  # fmt: skip


def is_whole(folder):
    return manifest.verify(Path(folder) / "checkpoint-7").step == 7


@pytest.mark.parametrize(
    ("after", "code"), [("", 0), ("sys.exit(3)", 3), ("raise ValueError('x')", 1)]
)
def test_an_exit_waits_for_the_write(tmp_path, after, code):
    assert script(tmp_path, after).returncode == code
    assert is_whole(tmp_path)


def test_an_exit_does_not_wait_for_ever(tmp_path):
    before = (
        "from rlvitals.checkpoints import async_writer\nasync_writer.EXIT_WAIT_SECONDS = 0.05\n"
    )
    done = script(tmp_path, "", before)
    assert done.returncode == 0
    assert "a checkpoint was still being written: it is not kept" in done.stderr
    assert Checkpoints(tmp_path, tell=lambda _: None).restore() is None


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM to wait at")
def test_sigterm_waits_for_the_write_and_ends_the_process(tmp_path):
    done = script(tmp_path, "os.kill(os.getpid(), signal.SIGTERM)\nprint('went on')")
    assert done.returncode == -signal.SIGTERM
    assert "went on" not in done.stdout
    assert is_whole(tmp_path)


def test_sigterm_after_the_write_is_as_it_was(tmp_path):
    after = (
        "checkpoints.close()\nassert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL\n"
        "print('free')"
    )
    assert script(tmp_path, after).stdout == "saving\nfree\n"


def test_a_handler_of_ones_own_is_called_after_the_write(tmp_path):
    before = "signal.signal(signal.SIGTERM, lambda *_: print(sorted(os.listdir(sys.argv[1]))))\n"
    done = script(tmp_path, "os.kill(os.getpid(), signal.SIGTERM)\nprint('on')", before)
    assert done.stdout == "saving\n['checkpoint-7', 'latest']\non\n"
    assert done.returncode == 0


@pytest.mark.parametrize("order", ["before", "after"])
def test_the_end_of_a_recorded_run_by_sigterm_is_still_noted(tmp_path, order):
    from rlvitals.tracking import exit_reason

    start = "run = rlvitals.start(sys.argv[1] + '/run')\n"
    kill = "os.kill(os.getpid(), signal.SIGTERM)"
    done = script(tmp_path, start * (order == "after") + kill, start * (order == "before"))
    assert done.returncode == -signal.SIGTERM, done.stderr
    assert is_whole(tmp_path)
    assert exit_reason.read(tmp_path / "run", []).ending.signal == "SIGTERM"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_fork_has_nothing_to_wait_for(tmp_path):
    after = """
child = os.fork()
if not child:
    from rlvitals.checkpoints import async_writer
    async_writer.EXIT_WAIT_SECONDS = 1e9  # who waits here for the parent's write waits for ever
    checkpoints.close()
    sys.exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert script(tmp_path, after).stdout == "saving\n0\n"
    assert is_whole(tmp_path)


def test_another_thread_than_the_first_saves_too(beside, said):
    def save():
        beside.save_state(10, State(w=np.ones(1000), step=10))
        said.append("saved")

    thread = threading.Thread(target=save)
    thread.start()
    thread.join(HANG_SECONDS)
    assert beside.wait(HANG_SECONDS)
    assert said[-1] == "saved"
    assert (weights(beside.folder / "checkpoint-10") == 1).all()
