"""Each way to die: what the diagnosis says of it, and that nothing of it was changed."""

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from effort import sampled
from waiting import HANG_SECONDS

import rlvitals
from rlvitals.diagnosis import load
from rlvitals.metrics.canonicalize import Given
from rlvitals.storage import events

SCRIPT = Path(__file__).parent / "dying.py"
ENDS = {  # how: exit code of the process, the verdict's word, what it says
    "exception": (1, "failed", "ValueError: no such key: --api-key [redacted], at step 39"),
    "exit-3": (3, "failed", "exit code 3, at step 39"),
    "raise-4": (4, "failed", "exit code 4, at step 39"),
    "exit-words": (1, "failed", "exit code 1, at step 39"),
    "exit-256": (10, "failed", "exit code 10, at step 39"),
    "term": (-15, "failed", "ended from outside by SIGTERM, in <module> (dying.py:"),
    "term-in-c": (-15, "failed", "ended from outside by SIGTERM"),
    "hup": (-1, "failed", "ended from outside by SIGHUP"),
    "kill": (-9, "failed", "killed or lost: no end was recorded, at step 39"),
    "segv": (-11, "failed", "SIGSEGV, in string_at (__init__.py:"),
    "segv-sent": (-11, "failed", "SIGSEGV, in <module> (dying.py:"),
    "abort": (-6, "failed", "SIGABRT, in <module> (dying.py:"),
    "os-exit": (5, "failed", "killed or lost: no end was recorded, at step 39"),
    "with-exit-6": (6, "failed", "exit code 6, at step 39"),
    "with-exception": (1, "failed", "ValueError: no such key: --api-key [redacted], at step 39"),
    "hook-before": (1, "failed", "ValueError: no such key: --api-key [redacted], at step 39"),
    # Here somebody else is told of the signal, as they wished.
    "segv-told-before": (-11, "failed", "killed or lost: no end was recorded, at step 39"),
    "ctrl-c": (-2, "learning", ""),
    "thread": (0, "learning", "ended: exit code 0, at step 39"),
    "term-handled-before": (0, "learning", "ended: exit code 0 after SIGTERM, at step 39"),
    "term-handled-after": (0, "learning", "ended: exit code 0, at step 39"),
    "hup-ignored": (0, "learning", "ended: exit code 0, at step 39"),
    "forks": (0, "learning", "ended: exit code 0, at step 39"),
    "end": (0, "learning", "ended: exit code 0, at step 39"),
    "finish": (0, "learning", "ended: finished, at step 39"),
    "finish-then-fail": (1, "learning", "ended: finished, at step 39"),
    "stopped": (0, "learning", "ended: stopped early, at step 39"),
}


@dataclass(frozen=True)
class Died:
    folder: Path
    code: int
    errors: str


def died(root, mode="on", *, ways=tuple(ENDS), **more):
    """Let a process end in each way: by name, what became of it."""
    root.mkdir()
    environ = {**os.environ, "RLVITALS_MODE": mode, "OPENBLAS_NUM_THREADS": "1", **more}
    environ.pop("PYTHONFAULTHANDLER", None)
    subprocess.run(
        [sys.executable, SCRIPT, root, *ways], env=environ, check=True, timeout=HANG_SECONDS
    )
    codes = json.loads((root / "codes.json").read_text())
    return {how: Died(root / how, codes[how], (root / f"{how}.err").read_text()) for how in ways}


@pytest.fixture(scope="module")
def deaths(tmp_path_factory, request):
    """Every death once with the recorder; without it those that this session compares."""
    root = tmp_path_factory.mktemp("deaths")
    compared = {
        item.callspec.params["how"]
        for item in request.session.items
        if item.originalname == test_the_program_ends_as_it_would_have.__name__
    }
    ways = [how for how in ENDS if how in compared]
    return {"on": died(root / "on"), "off": died(root / "off", "off", ways=ways)}


@pytest.mark.parametrize("how", sampled(ENDS, 3))
def test_the_program_ends_as_it_would_have(deaths, how):
    with_us, without = deaths["on"][how], deaths["off"][how]
    assert with_us.code == without.code == ENDS[how][0]
    if how == "segv-told-before":  # our threads stand in the list of threads
        assert "Segmentation fault" in with_us.errors
    else:
        assert with_us.errors == without.errors


@pytest.mark.parametrize("how", ENDS)
def test_the_diagnosis_says_what_ended_the_run(deaths, how):
    found = rlvitals.diagnose(deaths["on"][how].folder)
    _, word, said = ENDS[how]
    assert found.verdict.word == word
    if word == "failed":
        assert found.verdict.why.startswith(said)
        assert found.verdict.why.endswith(", at step 39")
    elif said:
        assert said in found.trace.notes
    assert found.trace.lifecycle.over


def test_a_hand_that_stops_a_run_fails_nothing(deaths):
    found = rlvitals.diagnose(deaths["on"]["ctrl-c"].folder)
    assert any("stopped by hand" in note for note in found.trace.notes)
    assert not found.trace.lifecycle.failed


def test_a_ctrl_c_within_the_block_of_a_run_is_a_stop_by_hand(tmp_path):
    with suppress(KeyboardInterrupt), rlvitals.start(tmp_path / "a") as run:
        for _ in range(20):
            run.log({"loss": 1.0, "policy/approx_kl": 0.01})
        raise KeyboardInterrupt
    found = rlvitals.diagnose(tmp_path / "a")
    assert found.trace.lifecycle.stopped_by_hand
    assert not found.trace.lifecycle.failed
    assert found.verdict.word.value == "unknown"
    assert found.verdict.why.startswith("stopped by hand, at step 19; whether the outcome improves")


def test_a_thread_s_exception_is_noted_and_ends_nothing(deaths):
    folder = deaths["on"]["thread"].folder
    (raised,) = [
        e for e in events.read(folder / "events.jsonl").events if e.kind == "thread_exception"
    ]
    assert raised.facts["thread"] == "worker"
    assert raised.step == 39
    assert raised.facts["traceback"].endswith("ValueError: no such key: --api-key [redacted]\n")


def test_a_crash_leaves_what_every_thread_did(deaths):
    said = (deaths["on"]["segv"].folder / "life" / "1-0.crash").read_text()
    assert said.startswith("Fatal Python error: Segmentation fault")
    assert "string_at" in said
    assert not (deaths["on"]["end"].folder / "life" / "1-0.crash").read_text()
    assert not (deaths["on"]["finish"].folder / "life" / "1-0.crash").exists()


def test_no_secret_is_in_the_folder(deaths):
    for one in deaths["on"].values():
        for path in one.folder.rglob("*"):
            held = path.read_bytes() if path.is_file() else b""
            assert b"hunter2" not in held, path
            assert b"abc123def456" not in held, path


def test_a_process_that_lives_is_no_failure_until_it_hangs(tmp_path):
    died(tmp_path / "all", ways=("kill",))
    tmp_path = tmp_path / "all" / "kill"
    living = subprocess.Popen([sys.executable, "-c", HANGS, tmp_path], stdout=subprocess.PIPE)
    try:
        assert living.stdout.readline() == b"ready\n"
        (run,) = load.runs(tmp_path)
        soon = rlvitals.diagnose(tmp_path)
        assert soon.verdict.word == "learning"
        assert soon.trace.lifecycle.alive
        assert soon.trace.lifecycle.attempts == 2
        later = load.load(run, Given(), time.time() + 7200)
        hung = rlvitals.diagnose(later)
        assert hung.verdict.word == "hung"
        assert hung.verdict.why == "no new row for 2 h, and the process is still there"
    finally:
        living.kill()
        living.communicate()
    lost = rlvitals.diagnose(tmp_path)
    assert lost.verdict.word == "failed"
    assert lost.verdict.why == "killed or lost: no end was recorded, at step 79"


HANGS = """
import sys, time, rlvitals
run = rlvitals.start(sys.argv[1])
for step in range(40, 80):
    run.log(step, {"reward_mean": float(step)})
run.flush()
print("ready", flush=True)
time.sleep(60)
"""


def test_many_runs_in_one_process_leave_nothing_behind(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", MANY, tmp_path], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.stdout.split() == ["0", "True", "True", "True"]


MANY = """
import os, signal, sys, threading, faulthandler, rlvitals
hooks = sys.excepthook, threading.excepthook
def files(): return len(os.listdir("/proc/self/fd"))
for i in range(12):
    run = rlvitals.start(f"{sys.argv[1]}/{i}")
    run.log(0, {"a": 1.0})
    run.finish()
    if i == 1: before = files()
print(files() - before, hooks == (sys.excepthook, threading.excepthook))
print(not faulthandler.is_enabled(), signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)
"""


def test_two_runs_at_once_each_learn_of_the_end(tmp_path):
    done = subprocess.run([sys.executable, "-c", TWO, tmp_path], check=False)
    assert done.returncode == 9
    for name in ("a", "b"):
        found = rlvitals.diagnose(tmp_path / name)
        assert found.verdict.why == "exit code 9, at step 3", name


TWO = """
import sys, rlvitals
runs = [rlvitals.start(f"{sys.argv[1]}/{name}") for name in "ab"]
for step in range(4):
    for run in runs: run.log(step, {"reward_mean": 1.0})
raise SystemExit(9)
"""


def test_of_several_ranks_the_one_that_failed_is_named(tmp_path):
    both = {"WORLD_SIZE": "2", "MASTER_ADDR": "here", "MASTER_PORT": "1"}
    both["RUN_FOLDER"] = str(tmp_path / "run")
    for rank, how in (("0", "end"), ("1", "exit-3")):
        died(tmp_path / rank, ways=(how,), RANK=rank, **both)
    found = rlvitals.diagnose(tmp_path / "run")
    assert found.verdict.word == "failed"
    assert found.verdict.why == "rank 1: exit code 3, at step 39"
