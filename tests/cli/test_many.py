"""Many runs: the same answers from one process as from several, whatever happens to those."""

import json
import os
import shutil
import signal
import subprocess
import sys

import pytest
from small_logs import write
from waiting import HANG_SECONDS

from rlvitals import settings
from rlvitals.cli import main
from rlvitals.diagnosis import batch, load
from rlvitals.errors import UnreadableLog
from rlvitals.views import diagnosis_json

RUNS = 9


@pytest.fixture
def folder(tmp_path):
    for n in range(RUNS):
        write(tmp_path / f"run_{n}", rises=n % 3 != 0, kl=0.1 if n % 3 == 0 else 0.01, rows=60 - n)
    return tmp_path


@pytest.fixture
def asked(folder):
    """Every run, one of which is gone since it was found."""
    requests = [(run, settings.Settings()) for run in load.runs(folder)]
    shutil.rmtree(folder / "run_4")
    return requests


def told(answers):
    names = [f"run_{n}" for n in range(RUNS)]
    return json.loads(diagnosis_json.diagnoses(list(zip(names, answers, strict=True))))


def test_processes_answer_what_one_answers_in_the_same_order(asked):
    expected = list(batch.diagnose(asked, 1))
    helped = list(batch.diagnose(asked, 2, patience=0))
    assert told(helped) == told(expected)
    assert [isinstance(result, UnreadableLog) for result in helped] == [n == 4 for n in range(RUNS)]
    assert helped[4].where == expected[4].where
    assert helped[4].hint == expected[4].hint


def test_no_process_starts_for_a_few_runs(asked, monkeypatch):
    def refuse(*_):
        raise AssertionError("a process was started")

    monkeypatch.setattr(batch, "_by_processes", refuse)
    assert len(list(batch.diagnose(asked, 4, patience=60))) == RUNS
    assert len(list(batch.diagnose(asked, 1, patience=0))) == RUNS


class Killer:
    """Stands for a run that its process does not survive; here it reads as any other."""

    def __init__(self, run):
        self.run, self.here = run, os.getpid()

    def __getattr__(self, name):
        if name in ("run", "here"):  # not there yet: it is being unpacked
            raise AttributeError(name)
        if os.getpid() != self.here:
            os.kill(os.getpid(), signal.SIGKILL)
        return getattr(self.run, name)


def test_runs_are_judged_here_when_a_process_dies(asked):
    expected = told(batch.diagnose(asked, 1))
    deadly = [*asked[:6], (Killer(asked[6][0]), settings.Settings()), *asked[7:]]
    assert told(batch.diagnose(deadly, 2, patience=0)) == expected


def test_what_fails_in_a_process_is_raised_here(asked):
    broken = [*asked[:3], (None, settings.Settings())]
    answers = batch.diagnose(broken, 2, patience=0)
    with pytest.raises(AttributeError, match="NoneType"):
        list(answers)


def test_cores_are_those_this_process_may_use():
    assert 1 <= batch.cores() <= (os.cpu_count() or 1)


ODD = f"""
from pathlib import Path
from rlvitals import settings
from rlvitals.cli import main
from rlvitals.diagnosis import batch, load

asked = [(run, settings.Settings()) for run in load.runs(Path("."))]
print(len(list(batch.diagnose(asked, 2, patience=0))), "of {RUNS}")
"""


@pytest.mark.parametrize("how", ["stdin", "-c"])
def test_a_program_without_a_file_can_ask(folder, how):
    argv, text = ([], ODD) if how == "stdin" else (["-c", ODD], None)
    process = subprocess.run(
        [sys.executable, *argv], input=text, cwd=folder,
        capture_output=True, text=True, check=False, timeout=HANG_SECONDS,
    )  # fmt: skip
    assert (process.stdout, process.stderr) == (f"{RUNS} of {RUNS}\n", "")


ENDLESS = """
import sys
from pathlib import Path
from rlvitals import settings
from rlvitals.cli import main
from rlvitals.diagnosis import batch, load

asked = 1_000 * [(run, settings.Settings()) for run in load.runs(Path("."))]
try:
    for _ in batch.diagnose(asked, 2, patience=0):
        print("one", flush=True)
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_ctrl_c_ends_it_at_once_and_quietly(folder):
    """A terminal sends SIGINT to every process of the group."""
    started = subprocess.Popen(
        [sys.executable, "-c", ENDLESS], cwd=folder, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert started.stdout.readline() == "one\n"
    os.killpg(started.pid, signal.SIGINT)
    _, errors = started.communicate(timeout=HANG_SECONDS)
    assert (started.returncode, errors) == (130, "")


def test_a_folder_of_runs_is_told_alike_by_one_process_and_by_two(call, folder, monkeypatch):
    expected = call("diagnose", folder, "--jobs", "1")
    monkeypatch.setitem(batch.diagnose.__kwdefaults__, "patience", 0)
    assert call("diagnose", folder, "--jobs", "2") == expected
    assert call("diagnose", *sorted(folder.iterdir()), "--jobs", "2") == expected


@pytest.mark.parametrize("jobs", ["-1", "two", "1.5", "true"])
def test_jobs_is_a_count(call, folder, jobs):
    code, _, errors = call("diagnose", folder, "--jobs", jobs)
    assert code == 2
    assert "is not a count" in errors
    assert "--jobs 4" in errors


STOPPED_IN_A_CALLBACK = """
import weakref
from rlvitals.diagnosis import batch

class Thing: pass

thing = Thing()
batch._stop_on_interrupt()
batch._Work.judging = True
reference = weakref.ref(thing, lambda _: batch._Work.stop(2, None))
del thing
print(batch._judge_all([None]))
"""


def test_a_stop_that_arrives_in_a_callback_is_quiet_and_not_lost():
    done = subprocess.run(
        [sys.executable, "-c", STOPPED_IN_A_CALLBACK], capture_output=True, text=True, check=False,
        timeout=HANG_SECONDS,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_a_run_below_one_of_several_folders_is_named_with_it(tmp_path, monkeypatch, capsys):
    """W&B's folder layout: `runs/l19yputp` says nothing of the training beside `r1`."""
    write(tmp_path / "r1")
    write(tmp_path / "r2" / "runs" / "l19yputp")
    write(tmp_path / "r2" / "runs" / "k2aah1zz")
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()
    main(["diagnose", "r1", "r2"])
    out = capsys.readouterr().out

    words = set(out.split())
    assert {"r1", "r2/runs/l19yputp", "r2/runs/k2aah1zz"} <= words
