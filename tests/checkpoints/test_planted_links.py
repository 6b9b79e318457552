"""Links, pipes and hard links under names that can be foreseen: what they lead to is unchanged."""

import os
import shutil

import numpy as np
import pytest
from effort import sampled

import rlvitals
from rlvitals.checkpoints import naming
from rlvitals.checkpoints.manager import Checkpoints
from rlvitals.checkpoints.state.training_state import State
from rlvitals.checkpoints.transfer.backup import sync_once
from rlvitals.checkpoints.transfer.bundle import bundle
from rlvitals.checkpoints.transfer.filesystems import LocalFolder
from rlvitals.checkpoints.transfer.restore import restore
from rlvitals.checkpoints.transfer.unbundle import unbundle
from rlvitals.checkpoints.transfer.work_folder import MARK_FILE, open_work_folder
from rlvitals.cli import main
from rlvitals.storage import events
from rlvitals.storage.index import Index
from rlvitals.storage.run_folder import About, RunFolder

pytestmark = pytest.mark.skipif(os.name != "posix", reason="links and pipes")
PRECIOUS = b"precious\n"


@pytest.fixture
def victim(tmp_path):
    """A folder of somebody's files, which nothing may change."""
    folder = tmp_path / "victim"
    (folder / "inner").mkdir(parents=True)
    (folder / "file").write_bytes(PRECIOUS)
    (folder / "inner" / "file").write_bytes(PRECIOUS)
    before = contents(folder)
    yield folder
    assert contents(folder) == before


def contents(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def quiet(_):
    """Tell nobody."""


def saved(folder, *steps, **options):
    one = Checkpoints(folder, tell=quiet, **options)
    for step in steps:
        one.save_state(step, State(weights=np.full(3, float(step)), step=step))
    return one


# --- the folder in which a run is gathered ---


@pytest.fixture
def moved(tmp_path):
    """Return the ways in which a run comes into a folder: each takes the folder."""
    saved(tmp_path / "run", 10)
    bundle(tmp_path / "run", tmp_path / "run.zip")
    sync_once(tmp_path / "run", LocalFolder(tmp_path / "backup"), tell=quiet)
    return {
        "unbundling": lambda out: unbundle(tmp_path / "run.zip", out),
        "restoring": lambda out: restore(LocalFolder(tmp_path / "backup"), out),
    }


@pytest.mark.parametrize("what", ["unbundling", "restoring"])
def test_a_link_where_a_run_is_gathered(tmp_path, victim, moved, what):
    for name in (f".out.{what}", f".out.{what}-planted1"):
        (tmp_path / name).symlink_to(victim)
    moved[what](tmp_path / "out")
    assert (tmp_path / "out" / "checkpoint-10").is_dir()
    assert not (tmp_path / "out").is_symlink()
    assert (tmp_path / f".out.{what}-planted1").is_symlink()


@pytest.mark.parametrize("what", ["unbundling", "restoring"])
@pytest.mark.parametrize("mark", [True, False], ids=["marked", "not marked"])
def test_a_folder_that_another_could_have_made_is_left(tmp_path, moved, what, mark):
    planted = tmp_path / f".out.{what}-planted1"
    (planted / "run").mkdir(parents=True)
    (planted / "run" / "file").write_bytes(PRECIOUS)
    planted.chmod(0o770 if mark else 0o700)  # a marked one that others may enter
    if mark:
        (planted / MARK_FILE).write_text("out")
    before = contents(planted)
    moved[what](tmp_path / "out")
    assert contents(planted) == before
    assert not (tmp_path / "out" / "file").exists()


@pytest.mark.parametrize("what", ["unbundling", "restoring"])
def test_what_a_killed_process_left_is_cleared_away(tmp_path, moved, what):
    with open_work_folder(tmp_path / "out", what, go_on=True) as half:
        (half / "file").write_bytes(b"half")
    assert half.exists()
    moved[what](tmp_path / "out")
    assert not (tmp_path / "out" / "file").exists()
    assert not list(tmp_path.glob(".out.*"))


@pytest.mark.parametrize("what", ["unbundling", "restoring"])
def test_the_users_own_path_may_be_a_link(tmp_path, moved, what):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "elsewhere")
    moved[what](tmp_path / "out")
    assert (tmp_path / "out").is_symlink()
    assert (tmp_path / "elsewhere" / "checkpoint-10").is_dir()
    modes = {(tmp_path / name).stat().st_mode for name in ("elsewhere", "run")}
    assert len(modes) == 1, "not the private one of mkdtemp"


# --- a run's folder ---


def record(folder, steps=3):
    with rlvitals.start(folder, strict=True, sinks=["csv", "jsonl"]) as run:
        for step in range(steps):
            run.log(step, {"loss": 1.0})
    return run


NAMES = ["events.jsonl", "life/1-0.beat", "life/1-0.crash", "run.json", ".run.json.copy", "latest",
         "training_progress.json", ".training_progress.previous.json", "metrics/log.jsonl",
         "metrics/metrics-1.csv", "blocks/1-0.rlv", ".run.lock"]  # fmt: skip
PLANTS = {
    "link": lambda path, victim: path.symlink_to(victim / "file"),
    "hard link": lambda path, victim: os.link(victim / "file", path),
    "pipe": lambda path, _: os.mkfifo(path),
    "dangling": lambda path, victim: path.symlink_to(victim / "new"),
}


@pytest.mark.parametrize("how", PLANTS)
@pytest.mark.parametrize("name", sampled(NAMES, 3))
def test_a_name_of_the_run_folder_is_not_written_through(tmp_path, victim, name, how):
    folder = tmp_path / "run"
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    PLANTS[how](path, victim)
    problem = path.name
    try:
        record(folder)
        keeper = rlvitals.lab.Keeper(folder, 100, tell=quiet)
        keeper.update(1)
        keeper.finish("completed")
        saved(folder, 10, 20, keep=1)
    except (rlvitals.VitalsError, OSError) as error:
        problem = str(error)
    assert path.name in problem, "a refusal names what is in the way"


@pytest.mark.parametrize("name", ["life", "metrics", "blocks", "tensorboard", ".ranks"])
def test_a_folder_of_the_run_folder_is_not_entered_through_a_link(tmp_path, victim, name):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / name).symlink_to(victim)
    try:
        with rlvitals.start(folder, strict=True, sinks=["csv", "tensorboard"]) as run:
            run.log(0, {"loss": 1.0})
        Checkpoints(folder, world_size=2, together=True, patience=0.1, tell=quiet)
    except (rlvitals.VitalsError, OSError):
        pass


def test_a_run_folder_that_is_a_link_works(tmp_path):
    (tmp_path / "big").mkdir()
    (tmp_path / "run").symlink_to(tmp_path / "big")
    record(tmp_path / "run")
    saved(tmp_path / "run", 10, 20, keep=1)
    assert (tmp_path / "run").is_symlink()
    assert rlvitals.trace(tmp_path / "run")["optimiser/loss"].values.tolist() == [1.0] * 3
    assert Checkpoints(tmp_path / "run", tell=quiet).restore().step == 20
    for name in ("run.json", "events.jsonl", "checkpoint-20", "latest", "life", "metrics"):
        assert (tmp_path / "big" / name).exists(), name


def test_events_appended_to_one_of_two_hard_links_reach_that_one_alone(tmp_path):
    events.append(tmp_path / "events.jsonl", "start")
    os.link(tmp_path / "events.jsonl", tmp_path / "snapshot")
    before = (tmp_path / "snapshot").read_bytes()
    events.append(tmp_path / "events.jsonl", "finish")
    assert (tmp_path / "snapshot").read_bytes() == before
    assert [one.kind for one in events.read(tmp_path / "events.jsonl").events] == [
        "start", "finish",
    ]  # fmt: skip


def test_the_index_of_a_root_is_not_made_in_a_file_elsewhere(tmp_path, victim):
    RunFolder.create(tmp_path / "runs" / "one", About())
    for plant in ("link", "hard link"):
        path = tmp_path / "runs" / ".rlvitals.index"
        PLANTS[plant](path, victim)
        with Index(tmp_path / "runs") as index:
            index.refresh()
            assert len(index) == 1
        path.unlink()


# --- checkpoints ---


def test_a_checkpoint_that_lies_elsewhere_is_used_and_only_its_link_pruned(tmp_path):
    saved(tmp_path / "run", 10)
    elsewhere = tmp_path / "disk" / "checkpoint-10"
    elsewhere.parent.mkdir()
    (tmp_path / "run" / "checkpoint-10").rename(elsewhere)
    (tmp_path / "run" / "checkpoint-10").symlink_to(elsewhere)
    before = contents(elsewhere)
    one = Checkpoints(tmp_path / "run", keep=1, tell=quiet)
    assert one.restore().step == 10
    one.save_state(20, State(weights=np.zeros(3), step=20))
    assert [path.name for path in naming.find_checkpoints(tmp_path / "run").values()] == [
        "checkpoint-20"
    ]
    assert contents(elsewhere) == before
    assert not list((tmp_path / "run").glob(".checkpoint*"))


def test_one_that_lies_elsewhere_is_set_aside_without_a_word_into_it(tmp_path):
    saved(tmp_path / "run", 10, 20)
    elsewhere = tmp_path / "checkpoint"
    (tmp_path / "run" / "checkpoint-20").rename(elsewhere)
    (tmp_path / "run" / "checkpoint-20").symlink_to(elsewhere)
    (elsewhere / "arrays.safetensors").write_bytes(b"damaged")
    before = contents(elsewhere)
    assert Checkpoints(tmp_path / "run", tell=quiet).restore().step == 10
    assert (tmp_path / "run" / "checkpoint-20.corrupt").is_symlink()
    assert contents(elsewhere) == before


def test_why_it_was_set_aside_is_not_written_through_a_link(tmp_path, victim):
    saved(tmp_path / "run", 10, 20)
    (tmp_path / "run" / "checkpoint-20" / "arrays.safetensors").write_bytes(b"damaged")
    (tmp_path / "run" / "checkpoint-20" / "why.txt").symlink_to(victim / "file")
    assert Checkpoints(tmp_path / "run", tell=quiet).restore().step == 10
    aside = tmp_path / "run" / "checkpoint-20.corrupt" / "why.txt"
    assert "not used" in aside.read_text()
    assert not aside.is_symlink()


def test_an_unfinished_one_that_is_a_link_is_not_cleared_away(tmp_path, victim):
    (tmp_path / "run").mkdir()
    (victim / "manifest.json").write_bytes(b"theirs")
    planted = tmp_path / "run" / f".checkpoint-10.{naming.host_id()}-4194304-0123abcd"
    planted.symlink_to(victim)
    saved(tmp_path / "run", 20)
    assert planted.is_symlink()
    assert (victim / "manifest.json").read_bytes() == b"theirs"
    (victim / "manifest.json").unlink()


@pytest.mark.parametrize("name", [".checkpoint-10.partial", ".checkpoint-10.gone", "blocks"])
def test_a_backup_does_not_write_through_a_link_at_its_target(tmp_path, victim, name):
    record(tmp_path / "run")
    saved(tmp_path / "run", 10)
    for inner in ("manifest.json", "1-0.rlv", "state.json"):
        (victim / inner).write_bytes(b"theirs")
    before = contents(victim)
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / name).symlink_to(victim)
    try:
        sync_once(tmp_path / "run", LocalFolder(tmp_path / "target"), tell=quiet)
        saved(tmp_path / "run", 20, keep=1)
        sync_once(tmp_path / "run", LocalFolder(tmp_path / "target"), tell=quiet)
    except (rlvitals.VitalsError, OSError):
        pass
    assert contents(victim) == before
    for inner in ("manifest.json", "1-0.rlv", "state.json"):
        (victim / inner).unlink()


def test_pictures_and_their_summary_are_not_written_through_links(tmp_path, victim):
    record(tmp_path / "run", steps=30)
    (tmp_path / "plots").mkdir()
    assert main(["plot", str(tmp_path / "run"), "--output-dir", str(tmp_path / "first"),
                 "--format", "json"]) == 0  # fmt: skip
    for path in (tmp_path / "first").iterdir():
        (tmp_path / "plots" / path.name).symlink_to(victim / "file")
    assert main(["plot", str(tmp_path / "run"), "--output-dir", str(tmp_path / "plots"),
                 "--format", "json"]) == 0  # fmt: skip
    assert not any(path.is_symlink() for path in (tmp_path / "plots").iterdir())
    shutil.rmtree(tmp_path / "first")
