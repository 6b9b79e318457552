"""A backup: whole checkpoints or none, what is new alone, verified, and never another's place."""

import contextlib
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from missing_packages import hide
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
from waiting import HANG_SECONDS

import rlvitals
from rlvitals.checkpoints import manifest
from rlvitals.checkpoints.transfer import copy_files, filesystems, sync
from rlvitals.checkpoints.transfer.backup import BackupIncomplete, repeat_until, sync_once
from rlvitals.checkpoints.transfer.backup_target import open_target
from rlvitals.checkpoints.transfer.copy_files import CopyStopped, RetryPolicy
from rlvitals.checkpoints.transfer.filesystems import LocalFolder
from rlvitals.checkpoints.transfer.restore import restore
from rlvitals.cli import main
from rlvitals.errors import UnreadableLog, UsageError, VitalsError


class Flaky(MemoryFileSystem):
    """A memory that loses its link now and then, and shows an object when its upload ends."""

    protocol = ("flaky", "s3")
    store: dict = {}  # noqa: RUF012 - fsspec's own way
    pseudo_dirs = [""]  # noqa: RUF012 - the same
    broken = iter(())
    count = 0

    @classmethod
    def breaks(cls, pattern):
        """For each call to come: True where the link breaks; whole after the last."""
        cls.broken = iter(pattern)

    def _link(self):
        type(self).count += 1
        if next(type(self).broken, False):
            raise ConnectionResetError("the link is down")

    def _open(self, path, mode="rb", **options):
        self._link()
        return super()._open(path, mode, **options)

    def rm_file(self, path):
        self._link()
        super().rm_file(path)

    @classmethod
    def _strip_protocol(cls, path):
        return super()._strip_protocol(path.replace("flaky://", "memory://"))


fsspec.register_implementation("flaky", Flaky)
names = (f"t{number}" for number in itertools.count())


@pytest.fixture(params=["folder", "memory", "flaky"])
def target(request, tmp_path):
    """A place of each kind: a folder, a file system with renames, an object store."""
    if request.param == "folder":
        return str(tmp_path / "target")
    return f"{request.param}://{next(names)}"


def place(target):
    return open_target(target)


def back_up(run, target, **options):
    return sync_once(run, place(target), patience=QUICK, **options)


def bring(target, folder, **options):
    return restore(place(target), folder, patience=QUICK, **options)


def names_of(target):
    return {name for name in place(target).sizes() if not name.startswith(".")}


def put(target, name, data):
    place(target).write(name, (data,))


def test_the_target_holds_what_the_run_holds(tmp_path, target):
    run = recorded(tmp_path / "run")
    done = back_up(run, target)
    assert done.checkpoints == ["checkpoint-100", "checkpoint-50"]
    assert not done.failed
    assert names_of(target) == {*moved(run), "backup.json"}
    assert done.sentence.startswith("✓ Backup complete: 2 checkpoints, ")
    assert done.sentence.endswith("and verified; newest: checkpoint-100")
    bring(target, tmp_path / "back")
    assert moved(tmp_path / "back") == moved(run)


def test_what_is_there_is_not_copied_again(tmp_path, target):
    run = recorded(tmp_path / "run", steps=(50,))
    back_up(run, target)
    again = back_up(run, target)
    assert (again.files, again.size, again.checkpoints) == (0, 0, [])
    assert again.sentence.startswith("✓ Backup complete: nothing new")
    save(checkpoints(run), 100)
    third = back_up(run, target)
    assert third.checkpoints == ["checkpoint-100"]
    assert third.files == 3  # two of the checkpoint and its seal


def test_the_last_checkpoint_is_named(tmp_path):
    run = recorded(tmp_path / "run")
    target = tmp_path / "target"
    back_up(run, target)
    assert (target / "latest").read_text() == "checkpoint-100\n"
    assert checkpoints(target).latest().step == 100


def test_a_backup_in_a_folder_is_a_run_that_can_be_read_and_resumed(tmp_path):
    run = recorded(tmp_path / "run")
    back_up(run, tmp_path / "target")
    assert rlvitals.read(tmp_path / "target")[0].series["loss"].steps.tolist() == [50, 100]


def test_checkpoints_that_the_run_deleted_go_and_the_newest_stays(tmp_path, target):
    run = tmp_path / "run"
    kept = checkpoints(run, keep=2)
    for step in (50, 100):
        save(kept, step)
    back_up(run, target)
    for step in (150, 200):
        save(kept, step)
    done = back_up(run, target)
    assert sorted(done.removed) == ["checkpoint-100", "checkpoint-50"]
    assert names_of(target) == {*moved(run), "backup.json"}
    for folder in run.glob("checkpoint-*"):
        shutil.rmtree(folder)
    (run / "blocks").mkdir()
    assert not back_up(run, target).removed  # the run has lost what lies there
    bring(target, tmp_path / "back")
    assert whole(tmp_path / "back") == [150, 200]


def test_with_keep_all_nothing_goes(tmp_path, target):
    kept = checkpoints(tmp_path / "run", keep=1)
    for step in (50, 100, 150):
        save(kept, step)
        back_up(tmp_path / "run", target, keep_all=True)
    bring(target, tmp_path / "back")
    assert whole(tmp_path / "back") == [50, 100, 150]


def test_files_of_others_at_the_target_stay(tmp_path, target):
    kept = checkpoints(tmp_path / "run", keep=1)
    save(kept, 50)
    back_up(tmp_path / "run", target)
    put(target, "notes.txt", b"mine")
    put(target, "checkpoint-50/mine.txt", b"mine too")
    put(target, "checkpoint-7/manifest.json", b"of another program")
    save(kept, 100)
    back_up(tmp_path / "run", target)
    left = names_of(target)
    assert {"notes.txt", "checkpoint-50/mine.txt", "checkpoint-7/manifest.json"} <= left
    assert "checkpoint-50/model.bin" not in left


def test_one_saved_anew_at_the_same_step_takes_the_others_place(tmp_path, target):
    run = plain(tmp_path / "run", steps=(50,))
    back_up(run, target)
    shutil.rmtree(run / "checkpoint-50")
    kept = checkpoints(run)
    kept._sequence = 7
    with kept.save(50) as folder:
        (folder / "other.bin").write_bytes(b"another attempt")
    assert back_up(run, target).checkpoints == ["checkpoint-50"]
    assert names_of(target) == {*moved(run), "backup.json"}
    assert not [name for name in place(target).sizes() if name.startswith(".checkpoint")]


def test_a_pin_alone_is_brought_without_its_files(tmp_path, target):
    run = plain(tmp_path / "run", steps=(50,))
    back_up(run, target)
    checkpoints(run).pin(50)
    assert back_up(run, target).files == 1
    bring(target, tmp_path / "back")
    assert manifest.read(tmp_path / "back" / "checkpoint-50").pinned


def test_one_that_is_not_sealed_or_damaged_is_left_and_said(tmp_path, target):
    run = plain(tmp_path / "run", steps=(50, 100))
    (run / "checkpoint-150").mkdir()
    (run / "checkpoint-150" / "model.bin").write_bytes(b"being written")
    (run / "checkpoint-90.corrupt").mkdir()
    (run / "checkpoint-90.corrupt" / "model.bin").write_bytes(b"set aside")
    path = run / "checkpoint-100" / "model.bin"
    data = bytearray(path.read_bytes())
    data[1000] ^= 1
    path.write_bytes(data)
    done = back_up(run, target)
    assert done.left == ("checkpoint-150 is left: it was never sealed: no manifest",)
    assert "checkpoint-100 is damaged in the run, not copied" in done.failed[0]
    assert done.newest == "checkpoint-50"
    assert done.sentence.startswith("Backup not complete")
    assert not {name for name in names_of(target) if "150" in name or "90" in name}
    bring(target, tmp_path / "back")
    assert whole(tmp_path / "back") == [50]


def test_a_damaged_one_does_not_replace_the_good_one_there(tmp_path, target):
    run = plain(tmp_path / "run", steps=(50,))
    good = (run / "checkpoint-50" / "model.bin").read_bytes()
    back_up(run, target)
    (run / "checkpoint-50" / "model.bin").write_bytes(b"x" * len(good))
    back_up(run, target)
    bring(target, tmp_path / "back")
    assert (tmp_path / "back" / "checkpoint-50" / "model.bin").read_bytes() == good


# --- logs that grow ---


def grown(run, target, size, more):
    log = run / "logs" / "debug.log"
    log.parent.mkdir(exist_ok=True)
    log.write_bytes(os.urandom(size))
    back_up(run, target)
    with log.open("ab") as file:
        file.write(os.urandom(more))
    done = back_up(run, target)
    assert b"".join(place(target).read("logs/debug.log")) == log.read_bytes()
    return done.size


def test_of_a_log_that_grew_the_new_tail_alone_is_sent(tmp_path, target):
    sent = grown(plain(tmp_path / "run"), target, 3 << 20, 1000)
    assert sent == ((3 << 20) + 1000 if "flaky" in target else 1000)


def test_one_that_was_rewritten_is_sent_whole(tmp_path, target):
    run = plain(tmp_path / "run")
    log = run / "big.log"
    log.write_bytes(os.urandom(2 << 20))
    back_up(run, target)
    log.write_bytes(os.urandom(3 << 20))
    back_up(run, target)
    assert b"".join(place(target).read("big.log")) == log.read_bytes()


def test_a_run_that_goes_on_while_it_is_copied_gives_a_whole_beginning(tmp_path, target):
    run = plain(tmp_path / "run")
    log, ending = run / "growing.log", threading.Event()

    def write():
        with log.open("ab", buffering=0) as file:
            while not ending.is_set():
                file.write(b"0123456789abcdef" * 4096)
                time.sleep(0.0005)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        while not log.exists() or log.stat().st_size < 4 << 20:
            time.sleep(0.001)
        done = [back_up(run, target) for _ in range(3)]
    finally:
        ending.set()
        thread.join()
    assert not any(one.failed for one in done)
    there = b"".join(place(target).read("growing.log"))
    assert len(there) >= 4 << 20
    assert log.read_bytes().startswith(there)


def test_a_block_file_that_was_packed_takes_the_place_of_the_one_that_grew(tmp_path):
    run = rlvitals.start(tmp_path / "run")
    for step in range(1, 200):
        run.log(step, {"loss": 1.0 / step})
    run.flush()
    back_up(tmp_path / "run", tmp_path / "target")
    for step in range(200, 400):
        run.log(step, {"loss": 1.0 / step})
    run.finish()
    assert main(["compact", str(tmp_path / "run")]) == 0
    back_up(tmp_path / "run", tmp_path / "target")
    assert {one.name for one in (tmp_path / "target" / "blocks").iterdir()} == {"1-0.packed.rlv"}
    found = rlvitals.read(tmp_path / "target")[0].series["loss"]
    assert found.steps.tolist() == list(range(1, 400))


def test_links_and_hidden_files_are_left(tmp_path):
    run = plain(tmp_path / "run")
    (tmp_path / "secret").write_text("not of the run")
    (run / "link").symlink_to(tmp_path / "secret")
    (run / "tree").symlink_to(tmp_path)
    (run / ".run.lock").write_text("")
    done = back_up(run, tmp_path / "target")
    assert "2 links are not followed" in done.left
    assert not {"link", "tree", ".run.lock"} & {one.name for one in (tmp_path / "target").iterdir()}


# --- links that break ---


def test_a_link_that_breaks_now_and_then_is_tried_again(tmp_path):
    run, target = recorded(tmp_path / "run"), f"flaky://{next(names)}"
    Flaky.breaks(itertools.islice(itertools.cycle([True, False, True, False]), 200))
    done = back_up(run, target)
    assert not done.failed
    Flaky.breaks([])
    bring(target, tmp_path / "back")
    assert moved(tmp_path / "back") == moved(run)


@pytest.mark.parametrize("calls", [0, 3, 8, 11, 14, 20, 25])
def test_a_link_that_stays_broken_ends_the_round_and_the_next_completes(tmp_path, calls):
    run, target = recorded(tmp_path / "run"), f"flaky://{next(names)}"
    Flaky.breaks([False] * calls + [True] * 6)
    with pytest.raises(BackupIncomplete, match="the link is down"):
        back_up(run, target)
    sealed = [name for name in names_of(target) if name.endswith("manifest.json")]
    for path in sealed:  # what has its seal is whole
        found = manifest.parse(b"".join(place(target).read(path)), path)
        for name, file in found.files.items():
            data = copy_files.hash_chunks(place(target).read(f"{Path(path).parent}/{name}"))
            assert data == file.xxh3_128
    back_up(run, target)
    bring(target, tmp_path / "back")
    assert moved(tmp_path / "back") == moved(run)


def test_files_that_got_there_before_the_link_broke_are_not_sent_again(tmp_path):
    run, target = plain(tmp_path / "run", steps=(50,)), f"flaky://{next(names)}"
    Flaky.breaks([False] * 4 + [True] * 6)
    with pytest.raises(BackupIncomplete):
        back_up(run, target)
    assert "checkpoint-50/model.bin" in names_of(target)
    assert back_up(run, target).files == 2


def test_a_connection_that_died_is_made_anew(tmp_path):
    """As SSH's does: once it is down, the object that held it is of no use."""

    class Dies(Flaky):
        protocol = "dies"
        down = False

        def _link(self):
            if next(Flaky.broken, False):
                self.down = True
            if self.down:
                raise ConnectionResetError("the link is down")

    fsspec.register_implementation("dies", Dies, clobber=True)
    run = plain(tmp_path / "run")
    Flaky.breaks([False] * 5 + [True] + [False] * 7 + [True])
    one = place("dies://t")
    assert sync_once(run, one, patience=QUICK).newest == "checkpoint-100"
    restore(one, tmp_path / "back", patience=QUICK)
    assert moved(tmp_path / "back") == moved(run)


def test_what_reads_back_otherwise_is_written_again_and_then_refused(tmp_path, monkeypatch):
    run = plain(tmp_path / "run", steps=(50,))
    folder = filesystems.LocalFolder(tmp_path / "target")
    real, bad = folder.write, [1, 3]

    def write(name, chunks):
        real(name, chunks)
        if name.endswith("model.bin") and bad:
            path, position = folder.path / name, bad.pop()
            data = bytearray(path.read_bytes())
            data[position] ^= 1
            path.write_bytes(data)

    monkeypatch.setattr(folder, "write", write)
    assert sync_once(run, folder, patience=QUICK).newest == "checkpoint-50"
    assert whole(tmp_path / "target") == [50]
    bad.extend(range(20))
    save(checkpoints(run), 100)
    with pytest.raises(BackupIncomplete, match="reads back otherwise"):
        sync_once(run, folder, patience=QUICK)
    assert whole(tmp_path / "target") == [50]


def test_waits_are_bounded_grow_and_end_when_someone_asks():
    waits = []

    class Waiting(threading.Event):
        def wait(self, timeout=None):
            waits.append(timeout)
            return False

    def broken():
        raise ConnectionError

    with pytest.raises(ConnectionError):
        RetryPolicy(Waiting()).call(broken)
    assert len(waits) == 5
    assert all(0.75 * 2**n <= wait <= 1.25 * 2**n for n, wait in enumerate(waits))
    stopped = RetryPolicy()
    stopped.stop.set()
    with pytest.raises(CopyStopped):
        stopped.call(broken)


def test_what_another_try_does_not_mend_is_raised_at_once():
    for error in (PermissionError(13, "no"), OSError(28, "full"), ValueError("no"), CopyStopped()):
        tries = []

        def action(error=error, tries=tries):
            tries.append(1)
            raise error

        with pytest.raises(type(error)):
            RetryPolicy().call(action)
        assert len(tries) == 1


# --- links that hang ---


class Hangs(Flaky):
    """A store whose uploads, from some call on, neither end nor raise, until the test is over."""

    protocol = ("hangs", "s3")
    calls = iter(())  # True where one hangs
    over = threading.Event()

    def pipe_file(self, path, value, **options):
        if next(type(self).calls, False):
            type(self).over.wait(HANG_SECONDS)
            raise ConnectionError
        super().pipe_file(path, value, **options)

    @classmethod
    def _strip_protocol(cls, path):
        return super()._strip_protocol(path.replace("hangs://", "memory://"))


fsspec.register_implementation("hangs", Hangs)


@pytest.fixture
def hanging():
    Hangs.over.clear()
    yield Hangs
    Hangs.over.set()
    Hangs.calls = iter(())


@pytest.mark.parametrize("calls", [0, 1, 3, 6, 8])
def test_a_link_that_hangs_ends_the_round_and_the_next_completes(tmp_path, hanging, calls):
    run, target = recorded(tmp_path / "run"), f"hangs://{next(names)}"
    one = open_target(target, stall=0.5)
    hanging.calls = iter([False] * calls + [True])
    with pytest.raises(BackupIncomplete, match="the link hangs: a call has not returned"):
        sync_once(run, one, patience=QUICK)
    sync_once(run, one, patience=QUICK)
    bring(target, tmp_path / "back")
    assert moved(tmp_path / "back") == moved(run)


def test_a_training_ends_though_its_backup_hangs_and_is_told_what_is_not_there(tmp_path, hanging):
    kept, said, target = checkpoints(tmp_path / "run"), [], f"hangs://{next(names)}"
    save(kept, 50)
    with rlvitals.Backup(tmp_path / "run", target, stall=0.5, tell=said.append) as backup:
        patience = time.monotonic() + HANG_SECONDS
        while backup.last is None:
            assert time.monotonic() < patience
            time.sleep(0.005)
        hanging.calls = itertools.repeat(True)
        save(kept, 100)
    assert "hangs" in said[-1]  # the link, or the round that waits for it: which is first is chance
    assert said[-1].endswith("not backed up: checkpoint-100")
    patience = time.monotonic() + HANG_SECONDS
    while "rlvitals-backup" in {thread.name for thread in threading.enumerate()}:
        assert time.monotonic() < patience  # it ends by itself once the link is given up
        time.sleep(0.005)
    hanging.calls = iter(())
    with rlvitals.Backup(tmp_path / "run", target, tell=said.append):
        pass
    assert said[-1].endswith("newest: checkpoint-100")


def test_a_last_round_is_done_though_the_one_before_it_hangs(tmp_path, hanging):
    kept, said, target = checkpoints(tmp_path / "run"), [], f"hangs://{next(names)}"
    save(kept, 50)
    hanging.calls = iter([True])
    with rlvitals.Backup(tmp_path / "run", target, stall=1.0, tell=said.append):
        save(kept, 100)
    assert "the link hangs" in said[0]
    assert "newest: checkpoint-100" in said[-1]


def test_a_disk_that_hangs_is_left_behind(tmp_path, monkeypatch):
    """A mount that is gone blocks whoever asks it, and nothing can end that call."""
    over, said = threading.Event(), []
    monkeypatch.setattr(filesystems.LocalFolder, "write", lambda *_: over.wait(HANG_SECONDS))
    backup = rlvitals.Backup(
        plain(tmp_path / "run"), tmp_path / "target", stall=0.05, tell=said.append
    ).start()
    backup.stop()
    assert "the backup hangs: nothing has moved for" in said[-1]
    assert said[-1].endswith("not backed up: checkpoint-100, checkpoint-50")
    assert [t.daemon for t in threading.enumerate() if t.name == "rlvitals-backup"] == [True]
    backup.stop()  # once more waits for nothing
    assert len(said) == 1
    over.set()


def test_a_link_that_is_slow_and_moves_is_waited_for(tmp_path, monkeypatch):
    """As long as bytes go through, the end of a training waits: a checkpoint is worth it."""
    real = filesystems.LocalFolder.write

    waits = []

    def slow(self, name, chunks):
        waits.append(0.2)
        time.sleep(waits[-1])
        real(self, name, chunks)

    monkeypatch.setattr(filesystems.LocalFolder, "write", slow)
    with rlvitals.Backup(plain(tmp_path / "run"), tmp_path / "target", stall=1.0, tell=quiet):
        pass
    assert sum(waits) > 1.0, "as a whole it takes longer than a link may stand still"
    assert whole(tmp_path / "target") == [50, 100]


def test_a_file_system_that_hangs_while_it_connects(tmp_path, hanging):
    class Silent(Flaky):
        protocol = "silent"

        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            hanging.over.wait(HANG_SECONDS)

    fsspec.register_implementation("silent", Silent, clobber=True)
    with pytest.raises(VitalsError, match="cannot be reached: the link hangs"):
        rlvitals.Backup(plain(tmp_path / "run"), "silent://t", stall=0.05)
    with pytest.raises(UsageError, match="stall cannot be 0"):
        rlvitals.Backup(tmp_path / "run", tmp_path / "x", stall=0)


# --- bad input ---


def test_neither_may_lie_in_the_other(tmp_path):
    run = plain(tmp_path / "a" / "run")
    for target, words in (
        (run / "backup", "target lies in the run"),
        (tmp_path, "run lies in the target"),
        (tmp_path / "a", "run lies in the target"),
        (run, "the same folder"),
        (tmp_path / "a" / "x" / ".." / "run" / "y", "target lies in the run"),
    ):
        with pytest.raises(UsageError, match=words):
            back_up(run, target)
    (tmp_path / "link").symlink_to(run)
    with pytest.raises(UsageError, match="target lies in the run"):
        back_up(run, tmp_path / "link" / "backup")


def test_a_place_of_another_run_is_refused(tmp_path, target):
    back_up(recorded(tmp_path / "run"), target)
    before = names_of(target)
    with pytest.raises(UsageError, match="a backup of another run: run"):
        back_up(recorded(tmp_path / "other", who=2), target)
    with pytest.raises(UsageError, match="another run"):
        back_up(plain(tmp_path / "plain"), target)
    assert names_of(target) == before


def test_folders_of_checkpoints_alone_are_told_apart_by_where_they_lie(tmp_path, target):
    back_up(plain(tmp_path / "a" / "run"), target)
    with pytest.raises(UsageError, match="another run"):
        back_up(plain(tmp_path / "b" / "run"), target)


def test_a_place_with_something_else_is_refused(tmp_path, target):
    put(target, "thesis.tex", b"years of work")
    with pytest.raises(UsageError, match=r"holds no backup of this run: thesis\.tex"):
        back_up(recorded(tmp_path / "run"), target)
    assert names_of(target) == {"thesis.tex"}


def test_a_copy_of_the_run_becomes_its_backup(tmp_path):
    run = recorded(tmp_path / "run")
    shutil.copytree(run, tmp_path / "copy")
    assert not back_up(run, tmp_path / "copy").checkpoints
    assert moved(tmp_path / "copy") == moved(run)


def test_folders_that_hold_nothing_say_what_to_name(tmp_path):
    recorded(tmp_path / "runs" / "walk")
    with pytest.raises(UnreadableLog) as caught:
        back_up(tmp_path / "runs", tmp_path / "target")
    assert caught.value.hint == f"name one run: {tmp_path / 'runs' / 'walk'}"
    (tmp_path / "hf" / "checkpoint-10").mkdir(parents=True)
    with pytest.raises(UnreadableLog, match="checkpoint-10 is left: it was never sealed"):
        back_up(tmp_path / "hf", tmp_path / "target")
    for bad in (tmp_path / "nothing", tmp_path / "runs" / "walk" / "run.json"):
        with pytest.raises(UnreadableLog):
            back_up(bad, tmp_path / "target")
    assert not (tmp_path / "target").exists()


def test_targets_that_cannot_be_written(tmp_path, capsys):
    run = plain(tmp_path / "run")
    (tmp_path / "file").write_text("")
    assert main(["backup", str(run), str(tmp_path / "file")]) == 2
    assert main(["backup", str(run), str(tmp_path / "file" / "below")]) == 1
    assert main(["backup", str(run), "/proc/rlvitals"]) == 1
    said = capsys.readouterr().err
    assert "this is a file, a folder is needed" in said
    assert said.count("the backup is not complete: ") == 2
    assert "Traceback" not in said


def test_schemes_that_nothing_knows_and_packages_that_lack(tmp_path, monkeypatch):
    with pytest.raises(UsageError) as caught:
        place("memry://x")
    assert "did you mean memory?" in caught.value.hint
    for scheme, package in (("s3", "s3fs"), ("gs", "gcsfs"), ("sftp", "paramiko")):
        hide(monkeypatch, package)
        with pytest.raises(VitalsError) as missing:
            place(f"{scheme}://host/folder")
        assert missing.value.hint == f"pip install {package}"
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(VitalsError) as without:
        place("memory://x")
    assert without.value.hint == 'pip install "rlvitals[remote]"'
    assert place(f"file://{tmp_path}/x").path == tmp_path / "x"


def test_secrets_of_a_url_are_not_shown():
    assert "hunter2" not in place("memory://me:hunter2@host/x").name


def test_no_room_at_the_target_is_said_before_anything_is_copied(tmp_path, monkeypatch):
    run = plain(tmp_path / "run")
    folder = filesystems.LocalFolder(tmp_path / "target")
    monkeypatch.setattr(folder, "room", lambda: 100)
    with pytest.raises(VitalsError, match="no room"):
        sync_once(run, folder)
    assert whole(tmp_path / "target") == []


def test_an_index_of_a_newer_version_is_refused(tmp_path, target):
    run = recorded(tmp_path / "run")
    said = {"format": 99, "written_by": "rlvitals"}
    put(target, "backup.json", json.dumps(said).encode())
    with pytest.raises(VitalsError, match="newer rlvitals"):
        back_up(run, target)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"written_by": "rlvitals", "format": 1}'])
def test_a_damaged_index_is_made_anew_where_the_run_is_the_same(tmp_path, target, data):
    run = recorded(tmp_path / "run")
    back_up(run, target)
    put(target, "backup.json", data)
    back_up(run, target)
    bring(target, tmp_path / "back")
    assert moved(tmp_path / "back") == moved(run)


# --- beside a training ---


def test_a_thread_backs_up_at_once_each_time_and_at_the_end(tmp_path):
    run = tmp_path / "run"
    kept, said = checkpoints(run, keep=1), []
    with rlvitals.Backup(run, tmp_path / "target", every=0.02, tell=said.append) as backup:
        save(kept, 50)
        patience = time.monotonic() + HANG_SECONDS
        while not (tmp_path / "target" / "checkpoint-50").exists():
            assert time.monotonic() < patience
            time.sleep(0.005)
        save(kept, 100)
    assert whole(tmp_path / "target") == [100]
    assert backup.last.newest == "checkpoint-100"
    assert said[-1].startswith("✓ Backup complete")
    assert "rlvitals-backup" not in {thread.name for thread in threading.enumerate()}


def test_nothing_is_raised_into_the_training(tmp_path):
    said = []
    (tmp_path / "file").write_text("")
    with rlvitals.Backup(plain(tmp_path / "run"), tmp_path / "file" / "x", tell=said.append):
        pass
    assert any("the backup is not complete" in text for text in said)

    def broken(_):
        raise RuntimeError("closed")

    with rlvitals.Backup(tmp_path / "run", tmp_path / "target", tell=broken):
        pass
    assert whole(tmp_path / "target") == [50, 100]


def test_a_target_that_makes_no_sense_is_told_before_the_training_begins(tmp_path):
    with pytest.raises(UsageError, match="target lies in the run"):
        rlvitals.Backup(tmp_path / "run", tmp_path / "run" / "x")
    with pytest.raises(UsageError, match="every cannot be 0"):
        rlvitals.Backup(tmp_path / "run", tmp_path / "x", every=0)


def test_only_rank_0_of_a_run_backs_up(tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    run = rlvitals.start(tmp_path / "run")
    with rlvitals.Backup(run, tmp_path / "target", tell=quiet):
        pass
    run.finish()
    assert not (tmp_path / "target").exists()


def test_rounds_come_each_time_until_the_run_is_over_and_then_one_more():
    rounds, over = [], iter([False] * 7 + [True] * 9)
    repeat_until(
        lambda: rounds.append(1),
        every=0.003,
        ending=threading.Event(),
        is_over=lambda: next(over),
        look=0.001,
    )
    assert len(rounds) == 3


def test_a_program_that_ends_without_a_word_is_backed_up_to_its_end(tmp_path):
    script = (
        "import sys, time, rlvitals\n"
        "rlvitals.Backup(sys.argv[1], sys.argv[2]).start()\n"
        "time.sleep(.2)\n"
        "with rlvitals.Checkpoints(sys.argv[1]).save(50) as folder:\n"
        "    (folder / 'a').write_text('a')\n"
    )
    command = [sys.executable, "-c", script, tmp_path / "run", tmp_path / "target"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert whole(tmp_path / "target") == [50]
    assert "✓ Backup complete" in done.stderr


def command(*words):
    return subprocess.Popen(
        [sys.executable, "-m", "rlvitals", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_gets_a_last_round(tmp_path, number):
    kept = checkpoints(tmp_path / "run")
    save(kept, 50)
    process = command("backup", tmp_path / "run", tmp_path / "target", "--every", "1h")
    assert "checkpoint-50" in process.stdout.readline()
    assert "Backup complete" in process.stdout.readline()
    save(kept, 100)
    process.send_signal(number)
    out, err = process.communicate(timeout=HANG_SECONDS)
    assert (process.returncode, err) == (0, "")
    assert "a last round" in out
    assert whole(tmp_path / "target") == [50, 100]


def test_with_every_it_ends_with_the_run(tmp_path):
    run = recorded(tmp_path / "run")
    process = command("backup", run, tmp_path / "target", "--every", "1h")
    out, _ = process.communicate(timeout=HANG_SECONDS)
    assert process.returncode == 0
    assert out.count("Backup complete") == 1


def test_times_are_read_as_a_person_writes_them(tmp_path, capsys):
    from rlvitals.cli.flags import seconds

    assert [seconds(said) for said in ("90", "90s", "30m", "1h", "1.5h", "1d")] == [
        90, 90, 1800, 3600, 5400, 86_400,
    ]  # fmt: skip
    for bad in ("soon", "0", "-1h", "1w"):
        assert main(["backup", "a", "b", f"--every={bad}"]) == 2
    assert "is not a time: 90s, 30m, 1h, 1d" in capsys.readouterr().err
    assert tmp_path.exists()


# --- kills ---


class Ends(Exception):  # noqa: N818 - as a kill does
    """Where a round is cut off."""


def ending(one, count):
    """Make a place whose calls that change something end after so many."""
    left = itertools.count(count, -1)

    def cut(real):
        def call(*args, **options):
            if next(left) <= 0:
                raise Ends
            return real(*args, **options)

        return call

    for name in ("write", "append", "remove", "settle", "drop"):
        setattr(one, name, cut(getattr(one, name)))
    return one


def killed(folder, count, seed=0, enough=None):
    """Kill `backup` at random moments while a run saves and prunes; then look at the target.

    `enough`: how many kills that met a round at work suffice.
    """
    chance = random.Random(seed)
    run, target = folder / "run", folder / "target"
    kept = checkpoints(run, keep=2)
    save(kept, 1, size=1 << 20)

    def rounds():
        while True:
            main(["backup", str(run), str(target)])

    broken, had = 0, False
    for round_ in range(count):
        if broken == enough:
            break
        process = at_work(rounds)
        for step in range(2 + 4 * round_, 2 + 4 * round_ + chance.randint(1, 4)):
            save(kept, step, size=chance.choice((1000, 1 << 20, 6 << 20)))
            if chance.random() < 0.3:
                shutil.rmtree(run / f"checkpoint-{step}", ignore_errors=True)
                save(kept, step, size=1 << 18)
        time.sleep(chance.uniform(0, 0.05))
        process.kill()
        process.join()
        steps = whole(target)
        broken += steps != whole(run)
        assert steps or not had
        had = bool(steps)
    done = sync_once(run, open_target(target))
    assert done.newest == f"checkpoint-{max(whole(run))}"
    assert moved(target) == moved(run)
    return broken


@pytest.mark.soak
@forks
def test_killed_at_random_moments_the_target_has_whole_checkpoints_alone(tmp_path):
    assert killed(tmp_path, 300, enough=4) == 4


@forks
@pytest.mark.soak
def test_killed_three_hundred_times(tmp_path):
    assert killed(tmp_path, 300, seed=1) >= 30


def test_what_a_kill_left_in_hidden_folders_is_in_nobodys_way(tmp_path):
    run, target = tmp_path / "run", tmp_path / "target"
    kept = checkpoints(run, keep=1)
    save(kept, 50)
    back_up(run, target)
    (target / ".checkpoint-50.gone" / "rng").mkdir(parents=True)
    (target / ".checkpoint-50.partial").mkdir()
    (target / ".checkpoint-50.partial" / ".model.bin.0123456789ab").write_bytes(b"half")
    save(kept, 100)
    assert back_up(run, target).removed == ["checkpoint-50"]
    assert not [one.name for one in target.iterdir() if one.name.startswith(".")]


@pytest.mark.parametrize("rounds", [12, pytest.param(60, marks=pytest.mark.soak)])
def test_many_crashed_rounds_in_a_row_lose_nothing(tmp_path, target, rounds):
    """Each round ends at a random call; between them the run goes on, and files are rewritten."""
    chance, run = random.Random(target[:4]), tmp_path / "run"
    kept = checkpoints(run, keep=2)
    save(kept, 1)
    back_up(run, target)
    for number in range(2, 2 + rounds):
        for name in ("a.json", "b.json"):
            (run / name).write_text(str(chance.random()) * chance.randrange(1, 9))
        if chance.random() < 0.4:
            save(kept, number)
        with contextlib.suppress(Ends):
            sync.sync_run(run, ending(place(target), chance.randrange(14)), patience=QUICK)
        found = restore(place(target), tmp_path / "back")
        assert found.checkpoints
        assert not found.damaged
        shutil.rmtree(tmp_path / "back")
    back_up(run, target)
    bring(target, tmp_path / "back")
    assert moved(tmp_path / "back") == moved(run)


def test_every_crash_point_of_a_round_leaves_whole_checkpoints(tmp_path, target):
    """A round that ends at its n-th call of the place, for each n: what has a name is whole."""
    run = tmp_path / "run"
    kept = checkpoints(run, keep=1)
    save(kept, 50)
    back_up(run, target)
    (run / "events.log").write_text("more")
    shutil.rmtree(run / "checkpoint-50")
    kept._sequence = 3
    with kept.save(50) as folder:
        (folder / "other.bin").write_bytes(b"another attempt")
    save(kept, 100)

    first = place(target)
    before = {name: b"".join(first.read(name)) for name in first.sizes()}
    for count in itertools.count():
        start = f"{target}-{count}"
        for name, data in before.items():
            put(start, name, data)
        try:
            sync.sync_run(run, ending(place(start), count), patience=RetryPolicy(tries=1))
        except Ends:
            found = restore(place(start), tmp_path / f"back-{count}")
            assert found.checkpoints
            assert not found.damaged
            sync_once(run, place(start))
            bring(start, tmp_path / f"after-{count}")
            assert moved(tmp_path / f"after-{count}") == moved(run)
        else:
            break
    assert count > 10


def test_a_checkpoint_that_is_replaced_while_it_is_copied_is_followed(tmp_path, monkeypatch):
    run = plain(tmp_path / "run")
    write, replaced = LocalFolder.write, []

    def meddle(self, name, pieces):
        if "checkpoint-100" in name and not replaced:
            replaced.append(name)
            shutil.rmtree(run / "checkpoint-100")
            save(checkpoints(run), 150)
        return write(self, name, pieces)

    monkeypatch.setattr(LocalFolder, "write", meddle)
    done = sync_once(run, LocalFolder(tmp_path / "target"), patience=QUICK)
    assert replaced
    assert done.newest == "checkpoint-150"
    assert whole(tmp_path / "target") == [50, 150]
