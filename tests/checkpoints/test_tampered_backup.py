"""A backup that somebody changed: a restore refuses it or says what is not as it was."""

import json
import shutil

import pytest
from effort import cases
from moving_runs import checkpoints, content, moved, quiet, recorded, save, whole

from rlvitals.checkpoints.transfer.filesystems import LocalFolder
from rlvitals.checkpoints.transfer.restore import restore
from rlvitals.checkpoints.transfer.sync import sync_run
from rlvitals.errors import VitalsError
from rlvitals.storage.compact import compact

INDEX = "backup.json"


@pytest.fixture
def backup(tmp_path):
    """A run of two checkpoints, and its backup."""
    run = recorded(tmp_path / "run")
    sync_run(run, LocalFolder(tmp_path / "backup"))
    return tmp_path / "backup"


def restored(backup, name="back"):
    """Restore; return what was said and every file's hash."""
    done = restore(LocalFolder(backup), backup.parent / name, tell=quiet)
    own = {"latest", INDEX}
    files = {name: one for name, one in content(done.folder).items() if name not in own}
    return [*done.damaged, *done.left], files


def as_it_was(backup):
    return {name: one for name, one in content(backup.parent / "run").items() if name != "latest"}


def test_one_that_nobody_changed_comes_back_without_a_word(backup):
    said, files = restored(backup)
    assert said == []
    assert files == as_it_was(backup)


def test_a_flipped_bit_in_any_file_is_said(backup):
    """Of each file one bit, at its beginning, in its middle, at its end."""
    silent = []
    for path in sorted(backup.rglob("*")):
        if not path.is_file() or path.name == "latest":
            continue
        whole = path.read_bytes()
        for at in {0, len(whole) // 2, len(whole) - 1} if whole else ():
            flipped = bytearray(whole)
            flipped[at] ^= 4
            path.write_bytes(flipped)
            shutil.rmtree(backup.parent / "back", ignore_errors=True)
            try:
                said, files = restored(backup)
            except VitalsError:
                continue
            wrong = {name for name, one in files.items() if one != as_it_was(backup).get(name)}
            assert not wrong, f"{path.name} at {at}: restored as if it were whole"
            if not said and files != as_it_was(backup):
                silent.append(f"{path.relative_to(backup)} at {at}")
        path.write_bytes(whole)
    assert not silent


def swap(one, other):
    middle = one.with_name("middle")
    one.rename(middle)
    other.rename(one)
    middle.rename(other)


def swapped_files(backup):
    swap(backup / "checkpoint-50" / "model.bin", backup / "checkpoint-100" / "model.bin")


def swapped_folders(backup):
    swap(backup / "checkpoint-50", backup / "checkpoint-100")


def renamed(backup):
    (backup / "checkpoint-100").rename(backup / "checkpoint-999")


def deleted(backup):
    shutil.rmtree(backup / "checkpoint-100")


def without_its_seal(backup):
    (backup / "checkpoint-100" / "manifest.json").write_text("{}")


def a_link_for_a_checkpoint(backup):
    (backup / "checkpoint-100").rename(backup.parent / "elsewhere")
    (backup / "checkpoint-100").symlink_to(backup.parent / "elsewhere")


def a_link_for_a_file(backup):
    path = backup / "checkpoint-100" / "model.bin"
    path.rename(backup.parent / "elsewhere")
    path.symlink_to(backup.parent / "elsewhere")


def a_link_for_the_logs(backup):
    (backup / "blocks").rename(backup.parent / "elsewhere")
    (backup / "blocks").symlink_to(backup.parent / "elsewhere")


def another_run_s(backup):
    other = recorded(backup.parent / "other", who=2)
    shutil.rmtree(backup / "checkpoint-100")
    shutil.copytree(other / "checkpoint-100", backup / "checkpoint-100")


TAMPERED = [
    swapped_files, swapped_folders, renamed, deleted, without_its_seal, a_link_for_a_checkpoint,
    a_link_for_a_file, a_link_for_the_logs, another_run_s,
]  # fmt: skip


@pytest.mark.parametrize("tamper", TAMPERED)
def test_what_was_changed_is_said_and_nothing_wrong_is_restored(backup, tamper):
    whole = as_it_was(backup)
    tamper(backup)
    said, files = restored(backup)
    assert said
    assert files.items() <= whole.items()
    assert not any(path.is_symlink() for path in (backup.parent / "back").rglob("*"))


def test_an_older_index_is_said(backup):
    run = backup.parent / "run"
    older = (backup / INDEX).read_bytes()
    save(checkpoints(run), 150)
    with next(run.rglob("*.csv")).open("a") as file:
        file.write("1,2,3\n")
    (run / "new.log").write_text("new\n")
    sync_run(run, LocalFolder(backup))
    (backup / INDEX).write_bytes(older)
    said, files = restored(backup)
    assert any("bytes of" in one and "the index ends before them" in one for one in said)
    assert any("does not name it: new.log" in one for one in said)
    assert "checkpoint-150/model.bin" in files, "its own seal speaks for it"


def test_files_that_were_put_there_are_left_and_said(backup):
    (backup / "put_there.py").write_text("raise SystemExit")
    (backup / "checkpoint-100" / "put_there.py").write_text("raise SystemExit")
    said, files = restored(backup)
    assert said == ["not restored, because the index does not name it: put_there.py"]
    assert files == as_it_was(backup)


@pytest.mark.parametrize("name", ["checkpoint-100/model.bin", ".hidden", "latest", INDEX])
def test_an_index_that_names_parts_of_a_checkpoint_is_refused(backup, name):
    said = json.loads((backup / INDEX).read_text())
    said["files"][name] = [[1, "0"]]
    (backup / INDEX).write_text(json.dumps(said))
    with pytest.raises(VitalsError, match="part of a checkpoint, or hidden"):
        restored(backup)
    assert not (backup.parent / "back").exists()


def test_a_round_that_was_broken_off_is_not_taken_for_tampering(tmp_path):
    run = recorded(tmp_path / "run")
    backup = tmp_path / "backup"
    sync_run(run, LocalFolder(backup))
    save(checkpoints(run), 150)
    sync_run(run, LocalFolder(backup))
    (backup / "checkpoint-150").rename(backup / ".checkpoint-150.partial")
    (backup / ".checkpoint-150.partial" / "manifest.json").unlink()
    said, _ = restored(backup)
    assert said == []


# --- a run that changes while it is backed up ---


class Busy(LocalFolder):
    """Something happens to the run before one of the writes."""

    def __init__(self, path, at, do):
        super().__init__(path)
        self._left, self._do = at, do

    def write(self, name, chunks):
        self._left -= 1
        if self._left == 0:
            self._do()
        super().write(name, chunks)


def save_and_prune(run):
    kept = checkpoints(run, keep=1)
    save(kept, 150)
    save(kept, 200)


def save_the_same_step_anew(run):
    one = checkpoints(run)
    one.restore()
    save(one, 100, size=3000)


def pack(run):
    compact(run)


@pytest.mark.parametrize("happen", [save_and_prune, save_the_same_step_anew, pack])
def test_what_happens_before_each_write_leaves_a_backup_that_is_whole(tmp_path, happen):
    at, reached = 0, False
    while not reached:
        at += cases(4, 1)
        run, backup = recorded(tmp_path / f"run-{at}"), tmp_path / f"backup-{at}"
        place = Busy(backup, at, lambda run=run: happen(run))
        sync_run(run, place)
        reached = place._left > 0
        back = tmp_path / f"back-{at}"
        done = restore(LocalFolder(backup), back, tell=quiet)
        assert not done.damaged
        assert whole(back), "no checkpoint came through"
        again = sync_run(run, LocalFolder(backup))
        assert not again.failed
        shutil.rmtree(back)
        done = restore(LocalFolder(backup), back, tell=quiet)
        assert [*done.damaged, *done.left] == []
        assert (
            moved(back).items()
            >= {
                name: one
                for name, one in moved(run).items()
                if name != "latest" and ".other/" not in name
            }.items()
        )
    assert at > 5
