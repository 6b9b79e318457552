"""Whether a process that recorded no end is still there, and what is said where it is not."""

import os
import socket
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from waiting import HANG_SECONDS

import rlvitals
from rlvitals.tracking import heartbeat, liveness
from rlvitals.tracking.heartbeat import Beat, Writer
from rlvitals.tracking.liveness import check_processes
from rlvitals.types import Lifecycle, Process, Series, Trace

NOW = 1_700_000_000.0


def process(**changes):
    here = Process(
        pid=os.getpid(),
        beat=NOW - 5,
        step=12,
        host=socket.gethostname(),
        boot=heartbeat.boot(),
        namespace=heartbeat.namespace(),
        born=heartbeat.start_time(os.getpid()),
    )
    return replace(here, **changes)


@pytest.fixture
def dead():
    """A number that no process has any more."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def test_this_process_lives_however_long_it_is_silent():
    assert check_processes([process()], NOW).alive
    found = check_processes([process(beat=NOW - 9999)], NOW)
    assert found.alive
    assert found.beat_age == 9999
    assert check_processes([], NOW).alive is None


def test_a_heartbeat_from_the_future_is_none():
    far = process(boot="another", host="far", beat=NOW + 9999)
    assert check_processes([far], NOW).alive is None
    assert check_processes([replace(far, beat=NOW + 100)], NOW).alive


def test_a_dead_process_is_lost(dead):
    found = check_processes([process(pid=dead)], NOW)
    assert found.alive is False
    assert found.lost == "killed or lost: no end was recorded"
    assert found.step == 12


def test_a_zombie_is_dead():
    child = subprocess.Popen([sys.executable, "-c", ""])
    until = time.monotonic() + HANG_SECONDS
    while heartbeat.start_time(child.pid) and time.monotonic() < until:
        time.sleep(0.01)
    assert check_processes([process(pid=child.pid, born="")], NOW).alive is False
    child.wait()


def test_a_number_that_is_used_again_is_another_process():
    assert check_processes([process(born="1")], NOW).alive is False


def test_a_machine_that_was_started_again_has_lost_its_processes():
    found = check_processes([process(boot="another")], NOW)
    assert found.lost.endswith("; the machine has been started again since")


def test_elsewhere_a_process_is_told_by_its_beats():
    far = process(boot="another", host="far")
    assert check_processes([far], NOW).alive
    assert check_processes([replace(far, beat=NOW - 200)], NOW).alive is None
    said = "killed or lost: no end was recorded; last heartbeat from far at 2023-11-14 22:13:20 UTC"
    far = replace(far, beat=NOW)
    for later in (301.0, 7300.0, 4e7):
        assert check_processes([far], NOW + later).lost == said
    container = process(namespace="pid:[1]", beat=NOW - 400)
    assert check_processes([container], NOW).lost.endswith("at 2023-11-14 22:06:40 UTC")


def test_an_old_heartbeat_is_held_against_the_rows_that_came_with_it():
    far = process(boot="another", host="far", beat=NOW)
    assert check_processes([far], NOW + 4e7, NOW - 10).lost.endswith("22:13:20 UTC")
    assert check_processes([far], NOW + 4e7, NOW - 7200).lost.endswith(
        "UTC, 120 min after the last row"
    )
    # Rows that are newer by far: the file of heartbeats is older than the log beside it.
    assert check_processes([far], NOW + 4e7, NOW + 7200) == liveness.Presence()


def test_a_person_knows_that_an_old_heartbeat_is_that_of_a_copy(dead):
    far = process(boot="another", host="far", beat=NOW)
    assert check_processes([far], NOW + 4e7, live=True) == liveness.Presence()
    assert check_processes([process(pid=dead)], NOW, live=True).lost


def test_of_several_processes_the_first_that_is_gone_is_named(dead):
    gone = [process(pid=dead, rank=2, beat=NOW - 60, step=7), process(pid=dead, rank=3)]
    found = check_processes([process(), process(rank=1), *gone], NOW)
    assert found.alive is False
    assert found.lost.startswith("rank 2 killed or lost")
    assert found.step == 7


def test_a_kill_for_want_of_memory_is_told_by_the_group_s_count(tmp_path, dead):
    (tmp_path / "memory.events").write_text("oom_kill 2\n")
    gone = process(pid=dead, cgroup=str(tmp_path), kills=1)
    assert (
        check_processes([gone], NOW).lost
        == "killed for want of memory: its group's limit was reached"
    )
    assert check_processes([replace(gone, kills=2)], NOW).lost == liveness.NO_END_REASON


def test_a_kill_for_want_of_memory_is_told_by_the_kernel_s_log(tmp_path, dead, monkeypatch):
    now = time.time()
    since = liveness._since_boot(now)
    log = tmp_path / "kmsg"
    line = f"6,1,{{at:.0f}},-;Out of memory: Killed process {dead} (python) total-vm:1kB\n"
    log.write_text("6,0,1,-;booted\n" + line.format(at=(since + 1) * 1e6))
    monkeypatch.setattr(liveness, "KERNEL_LOG", log)
    gone = process(pid=dead, beat=now)
    assert check_processes([gone], NOW).lost == "killed for want of memory, says the kernel's log"
    assert check_processes([replace(gone, pid=dead + 1)], NOW).lost == liveness.NO_END_REASON
    log.write_text(line.format(at=(since - 9999) * 1e6))  # another process of that number
    assert check_processes([gone], NOW).lost == liveness.NO_END_REASON
    monkeypatch.setattr(liveness, "KERNEL_LOG", tmp_path / "absent")
    assert check_processes([gone], NOW).lost == liveness.NO_END_REASON


def test_memory_that_was_full_is_said_beside_a_loss():
    steps = np.arange(50)
    full = Series(steps, NOW + steps, np.linspace(50, 97, 50))
    lost = Lifecycle(lost=liveness.NO_END_REASON, alive=False)
    found = rlvitals.diagnose(Trace({"throughput/machine/ram": full}, {}, lifecycle=lost))
    assert found.verdict.why == (
        "killed or lost: no end was recorded; 97 % of the memory was in use shortly before, "
        "at step 49"
    )


@pytest.mark.parametrize("cut", [0, 10, heartbeat.BEAT_LINE_BYTES, heartbeat.BEAT_LINE_BYTES + 20])
def test_a_torn_file_of_beats_is_none(tmp_path, cut):
    path = tmp_path / "3-1.beat"
    whole = heartbeat.file_content(Writer(5, "here", "b", "n", "1", ""), 12, None)
    path.write_bytes(whole[:cut])
    assert heartbeat.read(path) is None
    path.write_bytes(whole)
    (tmp_path / "x.beat").write_bytes(whole)
    assert heartbeat.read(tmp_path / "x.beat") is None
    found = heartbeat.read(path)
    assert found == Beat(3, 1, found.time, 12, None, Writer(5, "here", "b", "n", "1", ""))
    path.write_bytes(whole + b"\x07")
    assert heartbeat.read(path).exit_code == 7


def test_a_beat_is_written_over_in_its_own_length():
    lengths = {
        len(heartbeat.first_line(step, kills)) for step in (None, 0, 10**18) for kills in (None, 7)
    }
    assert lengths == {heartbeat.BEAT_LINE_BYTES}
