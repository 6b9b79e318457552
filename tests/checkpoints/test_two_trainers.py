"""Two trainings in one folder: both are told, and neither destroys what the other saved."""

import os
import subprocess
import sys
from contextlib import contextmanager

import pytest
from killing import heard, processes, started

import rlvitals
from rlvitals.checkpoints import inspect_run, manifest, other_trainers
from rlvitals.checkpoints.huggingface_folder import FolderOwner, HuggingFaceCheckpoints
from rlvitals.checkpoints.manager import Checkpoints
from rlvitals.checkpoints.manifest import File, Manifest
from rlvitals.storage import events
from rlvitals.tracking import other_processes
from rlvitals.tracking.heartbeat import Beat, Writer


def obey(say, folder, commands):
    """Do what is asked: save a step, resume; answer with what was told meanwhile."""
    told = []
    checkpoints = Checkpoints(folder, keep=2, tell=told.append)
    while True:
        command, step = commands.recv()
        if command == "save":
            with checkpoints.save(step) as into:
                (into / "model").write_text(f"{os.getpid()} {step}")
        else:
            found = checkpoints.restore()
            told.append(0 if found is None else found.step)
        say((list(told), [one.step for one in checkpoints.all()]))
        told.clear()


class Training:
    """A process that saves when it is asked to."""

    def __init__(self, folder):
        theirs, self._ask = processes().Pipe(duplex=False)
        self._process, self._answers = started(obey, folder, theirs)
        self.pid = self._process.pid

    def __call__(self, command, step=0):
        self._ask.send((command, step))
        return heard(self._answers)

    def end(self):
        self._process.kill()
        self._process.join()


@contextmanager
def two(folder):
    """A training, and a function that starts another one."""
    running = [Training(folder)]

    def another():
        running.append(Training(folder))
        return running[-1]

    try:
        yield running[0], another
    finally:
        for one in running:
            one.end()


def about(told, pid):
    return [one for one in told if f"is of process {pid}," in str(one)]


def saved(folder, name):
    manifest.verify(folder / name)
    return (folder / name / "model").read_text()


def test_both_are_told_once_and_neither_deletes_or_replaces_what_the_other_saved(tmp_path):
    with two(tmp_path) as (first, another):
        first("save", 1)
        second = another()
        assert second("resume")[0][-1] == 1
        assert not about(second("save", 2)[0], first.pid), "nothing tells yet that it still trains"
        told, own = first("save", 2)
        assert len(about(told, second.pid)) == 1
        assert "checkpoint-2.other" in told[-1]
        assert saved(tmp_path, "checkpoint-2.other") == f"{second.pid} 2"
        assert saved(tmp_path, "checkpoint-2") == f"{first.pid} 2"
        assert own == [2, 1]
        told, own = second("save", 3)
        assert len(about(told, first.pid)) == 1
        assert own == [3]
        for step in (4, 6, 8):
            assert first("save", step)[0] == []
            assert second("save", step + 1)[0] == []
        assert first("save", 10)[1] == [10, 8]
        assert saved(tmp_path, "checkpoint-10") == f"{first.pid} 10"
        assert saved(tmp_path, "checkpoint-9") == f"{second.pid} 9", "each prunes its own"
    seen = inspect_run.inspect(tmp_path)
    assert len(seen.trainers) == 2
    assert Checkpoints(tmp_path, tell=lambda _: None).restore().step == 10, "the newest of both"


def test_a_training_that_resumes_another_that_ended_is_alone(tmp_path):
    with two(tmp_path) as (first, another):
        for step in (1, 2, 3):
            first("save", step)
        first.end()
        second = another()
        second("resume")
        for step in (3, 4, 5):
            assert second("save", step)[0] == []
        second.end()
        third = another()
        third("resume")
        assert third("save", 6)[0] == []
    assert inspect_run.inspect(tmp_path).trainers == ()


def test_a_hugging_face_trainer_does_not_write_over_the_other_s_checkpoint(tmp_path):
    with two(tmp_path) as (other, _):
        mine = HuggingFaceCheckpoints(FolderOwner(tmp_path), tell=lambda _: None)
        other("save", 5)
        mine.hide(5)
        (tmp_path / "checkpoint-5").mkdir()
        (tmp_path / "checkpoint-5" / "model").write_text("mine")
        assert mine.seal(5) is not None
        assert saved(tmp_path, "checkpoint-5") == "mine"
        assert saved(tmp_path, "checkpoint-5.other") == f"{other.pid} 5"


def made(process, sequence, **more):
    return Manifest(sequence, sequence, {"x": File(0, "")}, process=process, **more)


@pytest.mark.parametrize(
    ("saved", "found"),
    [
        ("aaabbb", ""),
        ("aabab", "ab"),
        ("aab", ""),
        ("a", ""),
        ("abcabc", "abc"),
        ("aabbcb", "bc"),
    ],
)
def test_sequences_tell_who_saved_at_the_same_time(saved, found):
    manifests = [made(process, i) for i, process in enumerate(saved)]
    assert other_trainers.overlapping(manifests) == sorted(found)
    unnamed = [made("", i) for i in range(len(saved))]
    assert other_trainers.overlapping(unnamed) == []


def test_of_two_that_began_together_the_sequences_are_equal():
    first = [made("a", sequence) for sequence in (1, 2, 3)]
    assert other_trainers.overlapping([*first, made("b", 2)]) == ["a", "b"]
    after = [made("b", sequence) for sequence in (3, 4)]  # of 3 one was damaged, and set aside
    assert other_trainers.overlapping([*first, *after]) == []


# --- recorded runs ---

RECORD = """
import sys
from rlvitals.tracking import lifecycle
lifecycle.BEAT_SECONDS = 0.05
import rlvitals
run = rlvitals.start(sys.argv[1])
run.log(1, {"loss": 1.0})
print(run.attempt, flush=True)
sys.stdin.readline()
run.finish()
"""


def recorder(folder):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-c", RECORD, folder], env=env, text=True, stdin=pipe, stdout=pipe,
        stderr=pipe,
    )  # fmt: skip


def test_two_recorders_are_both_told_and_both_are_shown(tmp_path, capsys):
    folder = tmp_path / "run"
    first = recorder(folder)
    assert first.stdout.readline() == "1\n"
    second = recorder(folder)
    assert second.stdout.readline() == "2\n"
    for one, other in ((first, second), (second, first)):
        line = one.stderr.readline()  # comes, or the test hangs
        assert line.startswith("rlvitals: another process records into this run's folder too: ")
        assert f"process {other.pid} on " in line
    assert len(inspect_run.inspect(folder).trainers) == 2
    from rlvitals.cli import main

    main(["status", str(folder)])
    said = capsys.readouterr().out
    assert "two in one folder: process" in said
    main(["doctor", str(folder)])
    assert "two trainings in one folder" in capsys.readouterr().out
    for one in (first, second):
        one.stdin.write("\n")
        _, rest = one.communicate()
        assert "records into this run's folder" not in rest, "each is told once"
    noted = [e for e in events.read(folder / "events.jsonl").events if e.kind == "other_process"]
    assert sorted(one.facts["other_attempt"] for one in noted) == [1, 2]


def beat(folder, attempt, time, pid=4_000_000):
    said = Beat(attempt, 0, time, None, None, Writer(pid, "elsewhere", "boot", "space", "born"))
    path = folder / "life" / f"{attempt}-0.beat"
    path.parent.mkdir(exist_ok=True)
    head = f"{time:.3f} - -".ljust(63).encode() + b"\n"
    import json
    from dataclasses import asdict

    path.write_bytes(head + json.dumps(asdict(said.writer)).encode() + b"\n")


def test_one_more_beat_may_be_the_last_of_a_process_that_ends(tmp_path):
    watch = other_processes.OtherProcesses(tmp_path, 2)
    beat(tmp_path, 1, 100.0)
    assert watch.look() == []
    assert watch.look() == [], "it is silent"
    beat(tmp_path, 1, 110.0)
    assert watch.look() == []
    beat(tmp_path, 1, 120.0)
    assert [one.attempt for one in watch.look()] == [1]
    beat(tmp_path, 1, 130.0)
    assert watch.look() == [], "once"


def test_a_second_run_of_this_very_process_is_no_other(tmp_path):
    first = rlvitals.start(tmp_path / "run")
    second = rlvitals.start(tmp_path / "run")
    watch = other_processes.OtherProcesses(tmp_path / "run", second.attempt)
    for _ in range(4):
        first._pump  # noqa: B018 - it lives
        assert watch.look() == []
    first.finish()
    second.finish()
