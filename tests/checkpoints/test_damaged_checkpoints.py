"""Whatever is wrong with a file of a checkpoint: it is refused, and the older one is used."""

import os
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest
from effort import sampled

from rlvitals.checkpoints import catalog, manifest, naming, provenance, recovery
from rlvitals.checkpoints.manager import Checkpoints
from rlvitals.checkpoints.manifest import BadCheckpoint
from rlvitals.checkpoints.state.training_state import State
from rlvitals.errors import UsageError

STEPS = (50, 100, 150)


def state(step):
    torch = pytest.importorskip("torch")
    return State(model=torch.full((40,), float(step)), dice=np.random.default_rng(step),
                 average=np.full(7, step / 3), step=step)  # fmt: skip


def quiet(folder, said=None, **options):
    said = [] if said is None else said
    return Checkpoints(folder, tell=said.append, **options)


def two_ranks(folder):
    """Checkpoints with the files of two processes, as they would lie there."""
    one = quiet(folder)
    for step in STEPS:
        with one.save(step) as place:
            for rank in range(2):
                (place / f"rank-{rank}").mkdir()
                state(step + rank).save(place / f"rank-{rank}")


def alone(folder):
    one = quiet(folder, background=True)
    for step in STEPS:
        one.save_state(step, state(step))
    one.close()


def flipped(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 0x10
    path.write_bytes(data)


def longer(path):
    path.write_bytes(path.read_bytes() + b"\0")


def swapped(path):
    """With another step's: each is whole in itself."""
    other = path.parents[len(path.parts) - 1 - path.parts.index("checkpoint-150")]
    older = other / "checkpoint-100" / path.relative_to(other / "checkpoint-150")
    here, there = path.read_bytes(), older.read_bytes()
    assert here != there
    path.write_bytes(there)


def a_folder(path):
    path.unlink()
    path.mkdir()


def a_link(path):
    shutil.copy(path, path.parents[2] / "elsewhere")
    path.unlink()
    path.symlink_to(path.parents[2] / "elsewhere")


HOW = {
    "flipped": flipped, "truncated": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "emptied": lambda path: path.write_bytes(b""), "longer": longer,
    "missing": lambda path: path.unlink(), "swapped": swapped, "folder": a_folder, "link": a_link,
}  # fmt: skip
FILES = ["state.json", "arrays.safetensors", "tensors.safetensors"]
CASES = [(alone, name) for name in [*FILES, "manifest.json"]]
CASES += [(two_ranks, f"rank-{rank}/{name}") for rank in range(2) for name in FILES]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Checkpoints of both kinds, to be copied."""
    root = tmp_path_factory.mktemp("saved")
    for make in (alone, two_ranks):
        make(root / make.__name__)
    return root


def test_the_cases_are_all_the_files(saved):
    for make in (alone, two_ranks):
        folder = saved / make.__name__
        there = {
            path.relative_to(folder / "checkpoint-150").as_posix()
            for path in (folder / "checkpoint-150").rglob("*") if path.is_file()
        }  # fmt: skip
        assert there - {"manifest.json"} == {
            name for case, name in CASES if case is make and name != "manifest.json"
        }


# A manifest that is a link is right: what it says is what was sealed, wherever it lies.
WRONG = [
    pytest.param(make, name, how, id=f"{name}-{word}")
    for make, name in CASES
    for word, how in HOW.items()
    if (name, word) != ("manifest.json", "link")
]


@pytest.mark.parametrize(("make", "name", "how"), sampled(WRONG, 4))
def test_a_checkpoint_with_one_wrong_file_is_refused(saved, tmp_path, make, name, how):
    shutil.copytree(saved / make.__name__, tmp_path, dirs_exist_ok=True)
    older = contents(tmp_path / "checkpoint-100"), contents(tmp_path / "checkpoint-50")
    count = len(list(tmp_path.rglob("*")))
    path = tmp_path / "checkpoint-150" / name
    how(path)
    assert quiet(tmp_path).latest().step == 100, "and looking changes nothing"
    said = []
    resumed = quiet(tmp_path, said).restore()
    assert resumed.step == 100
    assert any("checkpoint-150 is not used" in one for one in said)
    if name == "manifest.json" and how is HOW["missing"]:
        assert (tmp_path / "checkpoint-150").is_dir(), "no checkpoint of ours: it is left"
    else:
        assert (tmp_path / "checkpoint-150.corrupt").is_dir()
        assert name in resumed.refused[0] or name == "manifest.json"
    assert older == (contents(tmp_path / "checkpoint-100"), contents(tmp_path / "checkpoint-50"))
    assert len(list(tmp_path.rglob("*"))) >= count - 1, "nothing is deleted"


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# --- what cannot be a target ---


@pytest.mark.parametrize("below", ["file/run", "file/a/run"])
def test_a_folder_that_cannot_be_made(tmp_path, below):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be made: Not a directory"):
        quiet(tmp_path / below)


def test_a_target_that_is_not_writable(tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda *_: False)  # root may write everywhere
    one = quiet(tmp_path)
    assert one.latest() is None, "it may be looked at"
    with pytest.raises(UsageError, match="cannot be written to"):
        one.save_state(1, state(1))


def test_a_checkpoint_folder_that_is_a_file(tmp_path):
    (tmp_path / "checkpoint-50").write_text("mine")
    with pytest.raises(UsageError, match="checkpoint-50 is a file: its name is taken"):
        quiet(tmp_path)
    assert (tmp_path / "checkpoint-50").read_text() == "mine"


def test_latest_that_is_a_folder(tmp_path):
    (tmp_path / "latest").mkdir()
    with pytest.raises(UsageError, match="latest is a folder"):
        quiet(tmp_path)


def test_what_another_program_put_where_a_checkpoint_goes_is_kept(tmp_path):
    other = tmp_path / "checkpoint-50"
    other.mkdir()
    (other / "weights").write_text("not ours")
    said = []
    one = quiet(tmp_path, said, keep=1)
    one.save_state(50, state(50))
    one.save_state(60, state(60))
    assert (tmp_path / "checkpoint-50.other" / "weights").read_text() == "not ours"
    assert said == ["checkpoint-50 was not of this run: it lies in checkpoint-50.other now"]
    assert one.latest().step == 60


def test_a_newer_manifest_is_left_alone_and_the_older_one_used(tmp_path):
    alone(tmp_path)
    path = tmp_path / "checkpoint-150" / "manifest.json"
    newer = path.read_text().replace('"format": 1', '"format": 2')
    path.write_text(newer)
    said = []
    assert quiet(tmp_path, said).restore().step == 100
    assert "checkpoint-150 is not used, and left as it is" in said[0]
    assert "written by a newer rlvitals" in said[0]
    assert path.read_text() == newer


def test_a_file_that_is_changed_before_its_seal_is_seen(tmp_path, monkeypatch):
    """Between the writing, which hashed it, and the seal."""
    from rlvitals.checkpoints.state.training_state import StateCopy

    true = StateCopy.save

    def save(self, folder):
        files = true(self, folder)
        with (folder / "arrays.safetensors").open("ab") as file:
            file.write(b"more")
        return files

    monkeypatch.setattr(StateCopy, "save", save)
    one = quiet(tmp_path)
    with pytest.raises(BadCheckpoint, match="were written"):
        one.save_state(1, state(1))
    assert one.all() == ()
    assert not list(tmp_path.glob(".checkpoint-*"))


def test_the_seal_of_a_hash_made_while_writing_is_that_of_the_file(tmp_path):
    alone(tmp_path)
    folder = tmp_path / "checkpoint-150"
    for name, file in manifest.read(folder).files.items():
        assert manifest.describe_file(folder, name) == file


def test_a_link_as_long_as_its_file_is_no_file_of_the_checkpoint(tmp_path):
    """Its size is the length of the path it leads to, which may be that of the file."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"x" * len(str(elsewhere)))
    with quiet(tmp_path / "run").save(1) as folder:
        shutil.copy(elsewhere, folder / "model.bin")
    saved = tmp_path / "run" / "checkpoint-1"
    manifest.verify(saved)
    (saved / "model.bin").unlink()
    (saved / "model.bin").symlink_to(elsewhere)
    with pytest.raises(BadCheckpoint):
        manifest.verify(saved)


def test_a_file_of_another_size_is_told_by_its_sizes(tmp_path):
    with quiet(tmp_path / "run").save(1) as folder:
        (folder / "model.bin").write_bytes(b"x" * 1000)
    (tmp_path / "run" / "checkpoint-1" / "model.bin").write_bytes(b"x" * 10)
    with pytest.raises(BadCheckpoint, match="has 10 bytes, 1,000 were sealed"):
        manifest.verify(tmp_path / "run" / "checkpoint-1")


def test_refused_ones_are_counted_up(tmp_path):
    names = []
    for _ in range(3):
        free = naming.set_aside_path(tmp_path, 50)
        free.mkdir()
        names.append(free.name)
    assert names == ["checkpoint-50.corrupt", "checkpoint-50.corrupt-1", "checkpoint-50.corrupt-2"]


@pytest.mark.parametrize(
    ("then", "now", "end"),
    [
        (2, 1, "the random streams of process 1 are lost"),
        (4, 1, "the random streams of processes 1 to 3 are lost"),
        (1, 3, "processes 1 to 2 had no random streams"),
    ],
)
def test_which_processes_lost_their_random_streams(then, now, end):
    assert provenance._describe_world_sizes(then, now).endswith(end)


def test_folders_of_other_programs_hide_no_sealed_one(tmp_path):
    checkpoints = quiet(tmp_path)
    for step in (20, 30):
        with checkpoints.save(step) as folder:
            State(step=step).save(folder)
    for step in (10, 25):
        (tmp_path / f"checkpoint-{step}").mkdir()
    (tmp_path / "checkpoint-30" / "manifest.json").write_text("{")
    found = catalog.Catalog(tmp_path, "", print).sealed_folders()
    assert [path.name for path in found] == ["checkpoint-20", "checkpoint-30"]


def test_a_folder_that_is_being_written_keeps_none_from_being_removed(tmp_path, monkeypatch):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    active, left = set(), set()
    for step in range(8):
        path = naming.unfinished_path(tmp_path, step)
        active.add(path)
        left.add(path.with_name(path.name.replace(f"-{os.getpid()}-", f"-{ended.pid}-")))
    for path in active | left:
        path.mkdir()
    monkeypatch.setattr(recovery, "writing", active)
    assert len(list(recovery.recover(tmp_path))) == len(left)
    assert set(tmp_path.iterdir()) == active


def test_another_machine_s_folder_is_written_while_any_of_its_files_is_new(tmp_path):
    path = naming.unfinished_path(tmp_path, 7)
    path = path.with_name(path.name.replace(naming.host_id(), "0" * len(naming.host_id())))
    path.mkdir()
    for name, age in (("old.bin", 10 * recovery.ABANDONED_SECONDS), ("new.bin", 0)):
        (path / name).write_bytes(b"x")
        moment = time.time() - age
        os.utime(path / name, (moment, moment))
    assert not list(recovery.recover(tmp_path))
    assert path.exists()
    moment = time.time() - 10 * recovery.ABANDONED_SECONDS
    for old in (path / "new.bin", path):
        os.utime(old, (moment, moment))
    assert list(recovery.recover(tmp_path))
