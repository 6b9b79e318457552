"""A run brought back, moved, packed and unpacked by any program: it goes on as if nothing was."""

import json
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from effort import sampled
from moving_runs import (
    QUICK,
    at_work,
    checkpoints,
    forks,
    moved,
    plain,
    quiet,
    recorded,
    save,
    whole,
)

from rlvitals.checkpoints.transfer.backup import sync_once
from rlvitals.checkpoints.transfer.backup_target import open_target
from rlvitals.checkpoints.transfer.copy_files import CopyStopped, RetryPolicy
from rlvitals.checkpoints.transfer.filesystems import LocalFolder
from rlvitals.checkpoints.transfer.restore import restore
from rlvitals.checkpoints.transfer.work_folder import open_work_folder
from rlvitals.cli import main
from rlvitals.errors import UnreadableLog, UsageError, VitalsError

PROGRAM = """
import os, sys
import numpy as np
import rlvitals

run = rlvitals.start(sys.argv[1], settings={"lr": 0.1}, seed=3)
checkpoints = rlvitals.Checkpoints(run, every=10, keep=3)
state = rlvitals.State(weights=np.zeros(64), dice=np.random.default_rng(1), step=0)
checkpoints.restore(state.load)
while state["step"] < int(sys.argv[2]):
    state["step"] += 1
    state["weights"] = state["weights"] * 0.9 + state["dice"].normal(size=64)
    run.log(state["step"], {"norm": float(np.abs(state["weights"]).sum())})
    if checkpoints.due(state["step"]):
        with checkpoints.save(state["step"]) as folder:
            state.save(folder)
print(state["weights"].tobytes().hex(), state["dice"].integers(1 << 60))
run.finish()
"""


def train(folder, steps, cwd=None):
    command = [sys.executable, "-c", PROGRAM, str(folder), str(steps)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=cwd)
    return done.stdout, done.stderr


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    """What the program ends with where nothing happens to it."""
    return train(tmp_path_factory.mktemp("straight") / "run", 45)[0]


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """A run of the first 25 steps: it goes on from step 20."""
    folder = tmp_path_factory.mktemp("begun") / "run"
    train(folder, 25)
    return folder


def by_backup(run, there):
    assert main(["backup", str(run), str(there / "target")]) == 0
    assert main(["restore", str(there / "target"), "-o", str(there / "new")]) == 0
    return there / "new"


def by_bundle(run, there):
    assert main(["bundle", str(run), "-o", str(there / "a.tar.zst")]) == 0
    assert main(["unbundle", str(there / "a.tar.zst"), "-o", str(there / "new")]) == 0
    return there / "new"


def by_zip(run, there):
    shutil.make_archive(str(there / "a"), "zip", run.parent, run.name)
    shutil.unpack_archive(there / "a.zip", there / "out")
    return there / "out" / run.name


def by_tar(run, there):
    subprocess.run(["tar", "-czf", there / "a.tar.gz", run.name], cwd=run.parent, check=True)
    (there / "out").mkdir()
    subprocess.run(["tar", "-xzf", there / "a.tar.gz"], cwd=there / "out", check=True)
    return there / "out" / run.name


def by_cp(run, there):
    subprocess.run(["cp", "-r", run, there / "copy"], check=True)
    return there / "copy"


def by_rename(run, there):
    shutil.copytree(run, there / "one")
    return (there / "one").rename(there / "other name")


def from_the_backup_itself(run, there):
    assert main(["backup", str(run), str(there / "target")]) == 0
    return there / "target"


WAYS = (by_backup, by_bundle, by_zip, by_tar, by_cp, by_rename, from_the_backup_itself)


@pytest.mark.parametrize("way", sampled(WAYS, 3), ids=lambda way: way.__name__)
def test_the_same_program_goes_on_bit_for_bit(tmp_path, begun, straight, way):
    elsewhere = way(begun, tmp_path)
    out, err = train(elsewhere, 45)
    assert "resumed at step 20 from checkpoint-20: bit-exact" in err
    assert out == straight


def backed(tmp_path, make=plain, **options):
    run = make(tmp_path / "run", **options)
    sync_once(run, LocalFolder(tmp_path / "target"))
    return run, LocalFolder(tmp_path / "target")


def test_a_folder_of_the_same_run_at_an_older_step_is_set_aside(tmp_path):
    run, target = backed(tmp_path, recorded, steps=(50,))
    shutil.copytree(run, tmp_path / "old")
    with checkpoints(run).save(100) as folder:
        (folder / "model.bin").write_bytes(b"new")
    sync_once(run, target)
    done = restore(target, tmp_path / "old")
    assert done.aside == tmp_path / "old.before"
    assert (whole(tmp_path / "old"), whole(done.aside)) == ([50, 100], [50])


def test_one_that_is_as_new_or_holds_something_else_is_left_unless_told(tmp_path, capsys):
    run, target = backed(tmp_path, recorded)
    recorded(tmp_path / "other", who=2)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    (tmp_path / "file").write_text("")
    for folder, words in (
        (run, "as new as the backup: step 100 there, step 100 in the backup"),
        (tmp_path / "other", "holds another run"),
        (tmp_path / "mine", "is not empty, and holds no run"),
        (tmp_path / "file", "this is a file"),
    ):
        with pytest.raises(UsageError, match=words):
            restore(target, folder)
    assert (tmp_path / "mine" / "thesis.tex").exists()
    command = ["restore", str(target.path), "-o", str(tmp_path / "mine"), "--force"]
    assert main(command) == 0
    assert f"lies in {tmp_path / 'mine.before'}" in capsys.readouterr().out
    assert (tmp_path / "mine.before" / "thesis.tex").read_text() == "years of work"
    assert main(command) == 0
    assert whole(tmp_path / "mine.before-1") == [50, 100]


def test_an_empty_folder_is_used_and_the_name_is_remembered(tmp_path, monkeypatch):
    _, target = backed(tmp_path)
    (tmp_path / "here" / "run").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    assert main(["restore", str(target.path)]) == 0
    assert whole(Path("run")) == [50, 100]


def test_what_is_damaged_in_the_backup_is_named_and_the_older_one_is_back(tmp_path, capsys):
    _, target = backed(tmp_path)
    path = target.path / "checkpoint-100" / "model.bin"
    data = bytearray(path.read_bytes())
    data[7] ^= 1
    path.write_bytes(data)
    assert main(["restore", str(target.path), "-o", str(tmp_path / "new")]) == 1
    out, err = capsys.readouterr()
    assert "checkpoint-100 is damaged in the backup, not restored" in err
    assert "Restored in part" in out
    assert whole(tmp_path / "new") == [50]
    assert (tmp_path / "new" / "latest").read_text() == "checkpoint-50\n"


def test_a_log_that_is_damaged_or_gone_in_the_backup_is_named(tmp_path):
    run = plain(tmp_path / "run")
    (run / "a.log").write_text("one")
    (run / "b.log").write_text("two")
    target = LocalFolder(tmp_path / "target")
    sync_once(run, target)
    (target.path / "a.log").write_text("eno")
    (target.path / "b.log").unlink()
    done = restore(target, tmp_path / "new")
    assert done.damaged == [
        "a.log is damaged in the backup, not restored",
        "b.log is missing in the backup",
    ]


def test_a_tail_that_was_torn_off_a_log_is_left_behind(tmp_path):
    """Killed while it appended: what was verified before is brought back."""
    run = plain(tmp_path / "run")
    (run / "a.log").write_bytes(b"x" * (2 << 20))
    target = LocalFolder(tmp_path / "target")
    sync_once(run, target)
    with (target.path / "a.log").open("ab") as file:
        file.write(b"half a li")
    done = restore(target, tmp_path / "new")
    assert not done.damaged
    assert (tmp_path / "new" / "a.log").read_bytes() == b"x" * (2 << 20)


def test_places_without_a_backup(tmp_path):
    plain(tmp_path / "run")
    (tmp_path / "empty").mkdir()
    for folder, words in (
        ("run", "no backup is here"), ("empty", "nothing is here"), ("no", "nothing is here"),
    ):  # fmt: skip
        with pytest.raises(UnreadableLog, match=words):
            restore(open_target(tmp_path / folder), tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x", "a\\b"])
def test_a_backup_that_names_files_elsewhere_is_refused(tmp_path, name):
    _, target = backed(tmp_path)
    path = target.path / "backup.json"
    said = json.loads(path.read_text())
    said["files"][name] = [[1, "0"]]
    path.write_text(json.dumps(said))
    with pytest.raises(UnreadableLog, match="the backup names"):
        restore(target, tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("name", ["..", "/etc", "a/b", ""])
def test_a_backup_that_names_a_folder_elsewhere_is_refused(tmp_path, monkeypatch, name):
    _, target = backed(tmp_path)
    path = target.path / "backup.json"
    path.write_text(path.read_text().replace('"name": "run"', f'"name": "{name}"'))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(UsageError, match="names no folder"):
        restore(target)


def test_no_room_is_said_before_anything_is_brought(tmp_path, monkeypatch):
    _, target = backed(tmp_path)
    monkeypatch.setattr(LocalFolder, "room", lambda _: 100)
    with pytest.raises(VitalsError, match="no room"):
        restore(target, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_broken_off_it_goes_on_with_what_is_there(tmp_path, monkeypatch):
    _, target = backed(tmp_path)
    patience, real = RetryPolicy(), LocalFolder.write
    written = []

    def write(place, name, chunks):
        if len(written) == 3:
            patience.stop.set()
        written.append(name)
        real(place, name, chunks)

    monkeypatch.setattr(LocalFolder, "write", write)
    with pytest.raises(CopyStopped):
        restore(target, tmp_path / "new", patience=patience)
    assert not (tmp_path / "new").exists()
    begun = list(written)
    restore(target, tmp_path / "new", patience=QUICK)
    assert whole(tmp_path / "new") == [50, 100]
    assert begun[0] not in written[len(begun) :]


def test_what_an_earlier_try_gathered_of_another_state_does_not_stay(tmp_path):
    run, target = backed(tmp_path)
    with open_work_folder(tmp_path / "new", "restoring", go_on=True) as half:
        (half / "checkpoint-7").mkdir(parents=True)
        (half / "checkpoint-7" / "model.bin").write_bytes(b"half")
        (half / "old.log").write_text("gone since")
    assert (half / "old.log").exists(), "what the next try goes on with"
    restore(target, tmp_path / "new")
    assert moved(tmp_path / "new") == moved(run)
    assert not list(tmp_path.glob(".new.*"))


# --- kills ---


def killed(folder, count, seed=0, enough=None):
    """Kill a restore at random moments; `enough`: how many kills that met one at work suffice."""
    chance = random.Random(seed)
    kept = checkpoints(folder / "run")
    for step in (1, 2, 3):
        save(kept, step, size=6 << 20)
    sync_once(folder / "run", LocalFolder(folder / "target"), tell=quiet)
    half = 0
    for number in range(count):
        if enough and half >= enough:
            break
        out = folder / f"out-{number}"
        for delay in (0.1, 0.15, None):  # killed twice, then let be
            process = at_work(restore, LocalFolder(folder / "target"), out)
            if delay is not None:
                time.sleep(chance.uniform(0, delay))
                process.kill()
            process.join()
            half += bool(list(folder.glob(f".{out.name}.restoring-*")))
            if out.exists():
                break
        assert moved(out) == moved(folder / "run")
        shutil.rmtree(out)
    return half


@pytest.mark.soak
@forks
def test_killed_at_random_moments_the_folder_is_whole_or_not_there(tmp_path):
    assert killed(tmp_path, 150, enough=6) >= 6


@forks
@pytest.mark.soak
def test_restoring_killed_three_hundred_times(tmp_path):
    assert killed(tmp_path, 150, seed=1) >= 30


# --- what lies beside ---


def test_a_seal_that_is_damaged_hides_no_other_checkpoint(tmp_path):
    _, target = backed(tmp_path)
    for seal in (tmp_path / "target").glob("checkpoint-100/*manifest*.json"):
        seal.write_text("{")
    restore(target, tmp_path / "new", patience=QUICK)
    assert whole(tmp_path / "new") == [50]


def test_a_folder_that_was_killed_before_its_mark_hides_no_earlier_try(tmp_path):
    run, target = backed(tmp_path)
    with open_work_folder(tmp_path / "new", "restoring", go_on=True) as half:
        (half / "old.log").write_text("half")
    blank = tmp_path / ".new.restoring-"  # before all that have a random end
    blank.mkdir(mode=0o700)
    restore(target, tmp_path / "new")
    assert moved(tmp_path / "new") == moved(run)
    assert not list(tmp_path.glob(".new.*"))


def test_logs_need_room_as_well(tmp_path, monkeypatch):
    run = plain(tmp_path / "run")
    (run / "big.log").write_bytes(b"x" * 500_000)
    sync_once(run, LocalFolder(tmp_path / "target"))
    monkeypatch.setattr(LocalFolder, "room", lambda _: 400_000)  # the checkpoints fit
    with pytest.raises(VitalsError, match="no room"):
        restore(LocalFolder(tmp_path / "target"), tmp_path / "new")
