"""A power cut at any moment: what was reported as saved is there, and whole."""

import json
import shutil

import numpy as np
import power_cut
import pytest
from killing import in_memory
from moving_runs import content, quiet

import rlvitals
from rlvitals.checkpoints import manifest, naming, progress
from rlvitals.checkpoints.huggingface_folder import FolderOwner, HuggingFaceCheckpoints
from rlvitals.checkpoints.manager import Checkpoints
from rlvitals.checkpoints.transfer.bundle import bundle
from rlvitals.checkpoints.transfer.filesystems import LocalFolder
from rlvitals.checkpoints.transfer.restore import restore
from rlvitals.checkpoints.transfer.sync import sync_run
from rlvitals.checkpoints.transfer.unbundle import unbundle
from rlvitals.errors import VitalsError
from rlvitals.storage.compact import compact
from rlvitals.storage.run_folder import About, RunFolder


@pytest.fixture
def disk(tmp_path):
    """A folder for what is recorded, and one for what a cut leaves."""
    with in_memory(tmp_path) as folder:
        (folder / "disk").mkdir()
        yield folder


def save(checkpoints, step, content):
    with checkpoints.save(step) as folder:
        (folder / "model.bin").write_text(content)
        (folder / "rng").mkdir()
        (folder / "rng" / "0.json").write_text(json.dumps({"step": step}))


def test_a_checkpoint_that_was_saved_is_there_and_whole(disk):
    run = disk / "disk" / "runs" / "one"
    with power_cut.recorded(disk / "disk") as tape:
        one = Checkpoints(run, keep=2, tell=quiet)
        for step in (10, 20, 30, 40):
            save(one, step, f"first {step}")
            tape.reported((step, f"first {step}"))
        again = Checkpoints(run, keep=2, tell=quiet)
        again.restore()
        save(again, 40, "second 40")
        tape.reported((40, "second 40"))
    count = 0
    for reported in power_cut.cuts(tape, disk / "left"):
        count += 1
        left = disk / "left" / "runs" / "one"
        found = Checkpoints(left, tell=quiet).restore() if left.exists() else None
        if found is None:
            assert not reported
            continue
        said = (found.folder / "model.bin").read_text()
        assert manifest.verify(found.folder).step == found.step
        assert said in {f"first {found.step}", "second 40"}
        if reported:
            step, newest = reported[-1]
            assert found.step >= step
            assert found.step > step or said in {newest, "second 40"}
    assert count > 60


@pytest.mark.soak
def test_a_checkpoint_that_a_trainer_wrote_and_we_sealed_is_there_and_whole(disk):
    run = disk / "disk" / "out"
    with power_cut.recorded(disk / "disk") as tape:
        one = HuggingFaceCheckpoints(FolderOwner(run), keep=2, tell=quiet)
        for number, step in enumerate((10, 20, 30, 30)):
            one.hide(step)
            folder = run / f"checkpoint-{step}"
            (folder / "inner").mkdir(parents=True)
            (folder / "model.safetensors").write_text(f"{number}")
            (folder / "inner" / "x").write_text("x")
            assert one.seal(step)
            tape.reported((step, f"{number}"))
    for reported in power_cut.cuts(tape, disk / "left"):
        left = disk / "left" / "out"
        found = Checkpoints(left, tell=quiet).restore() if left.exists() else None
        if reported:
            step, newest = reported[-1]
            assert found is not None
            assert found.step >= step
            assert found.step > step or (found.folder / "model.safetensors").read_text() >= newest


def test_progress_that_was_written_is_there(disk):
    run = disk / "disk" / "one"
    run.mkdir()
    with power_cut.recorded(disk / "disk") as tape:
        keeper = progress.Keeper(run, 100, tell=quiet)
        for step in (1, 2, 3):
            keeper.update(step, latest_checkpoint=f"checkpoint-{step}")
            tape.reported(step)
        keeper.finish("completed")
        tape.reported(4)
    for reported in power_cut.cuts(tape, disk / "left"):
        found = progress.read(disk / "left" / "one")
        if not reported:
            continue
        assert not found.damage
        assert (found.step if reported[-1] < 4 else found.status) in {
            *range(reported[-1], 5), "completed",
        }  # fmt: skip


def test_a_run_s_file_is_the_old_one_or_the_new_one(disk):
    run = disk / "disk" / "one"
    with power_cut.recorded(disk / "disk") as tape:
        folder = RunFolder.create(run, About(name="a"))
        folder, _, _ = folder.begin()
        tape.reported(0)
        for number in (1, 2, 3):
            folder = folder.update(notes=f"{number}")
            tape.reported(number)
    for reported in power_cut.cuts(tape, disk / "left"):
        if reported:
            about = RunFolder.open(disk / "left" / "one").about
            assert int(about.notes or 0) >= reported[-1]


def rows(folder):
    """Every number that was logged."""
    trace = rlvitals.trace(folder)
    return {name: (one.steps.tolist(), one.values.tolist()) for name, one in trace.series.items()}


def recorded_run(folder):
    run = rlvitals.start(folder, settings={"lr": 0.1})
    for step in range(200):
        run.log(step, {"train/loss": 1.0 / (step + 1), "rollout/ep_rew_mean": float(step % 7)})
        if step % 50 == 0:
            run.flush()
    kept = Checkpoints(run, tell=quiet)
    save(kept, 100, "first 100")
    save(kept, 200, "first 200")
    run.finish()
    return folder


def test_packing_loses_no_row(disk):
    run = recorded_run(disk / "disk" / "one")
    logged = rows(run)
    assert sum(len(steps) for steps, _ in logged.values()) >= 400
    with power_cut.recorded(disk / "disk") as tape:
        assert any(not one.why for one in compact(run))
        tape.reported("packed")
    for _ in power_cut.cuts(tape, disk / "left", dice=1):
        assert rows(disk / "left" / "one") == logged


@pytest.mark.soak
def test_a_backup_that_was_reported_as_complete_brings_the_run_back(disk, tmp_path):
    run = recorded_run(tmp_path / "one")
    target = disk / "disk" / "backups" / "one"
    states = []
    with power_cut.recorded(disk / "disk") as tape:
        for step in (300, 400):
            states.append(content(run))
            assert not sync_run(run, LocalFolder(target)).failed
            tape.reported(len(states) - 1)
            save(Checkpoints(run, keep=2, tell=quiet), step, f"first {step}")
            (run / "train.log").write_text(f"at {step}\n")
        states.append(content(run))
        sync_run(run, LocalFolder(target))
        tape.reported(2)
    back = disk / "back"
    for reported in power_cut.cuts(tape, disk / "left", dice=1):
        shutil.rmtree(back, ignore_errors=True)
        try:
            done = restore(LocalFolder(disk / "left" / "backups" / "one"), back)
        except VitalsError:
            assert not reported, "nothing to restore"
            continue
        steps = [manifest.verify(path).step for path in naming.find_checkpoints(back).values()]
        if reported:
            newest = {0: 200, 1: 300, 2: 400}[reported[-1]]
            assert max(steps) >= newest
            assert not done.damaged
        if reported and reported[-1] == 2:
            assert (
                content(back).items()
                >= {name: one for name, one in states[2].items() if name != "latest"}.items()
            )


def test_a_run_that_was_reported_as_restored_or_unpacked_is_there(disk, tmp_path):
    run = recorded_run(tmp_path / "one")
    sync_run(run, LocalFolder(tmp_path / "backup"))
    bundle(run, tmp_path / "one.tar.gz")
    for bring in (
        lambda to: restore(LocalFolder(tmp_path / "backup"), to),
        lambda to: unbundle(tmp_path / "one.tar.gz", to),
    ):
        target = disk / "disk" / "one"
        with power_cut.recorded(disk / "disk") as tape:
            bring(target)
            tape.reported("there")
        whole = content(target)
        for reported in power_cut.cuts(tape, disk / "left"):
            left = disk / "left" / "one"
            if reported or left.exists():
                assert content(left) == whole
        shutil.rmtree(target)


def test_a_restore_over_an_older_state_of_the_run_loses_nothing(disk, tmp_path):
    run = recorded_run(disk / "disk" / "one")
    older = content(run)
    ahead = tmp_path / "ahead"
    shutil.copytree(run, ahead)
    save(Checkpoints(ahead, tell=quiet), 300, "first 300")
    sync_run(ahead, LocalFolder(tmp_path / "backup"))
    with power_cut.recorded(disk / "disk") as tape:
        assert restore(LocalFolder(tmp_path / "backup"), run).aside is not None
        tape.reported("there")
    newer = content(run)
    for reported in power_cut.cuts(tape, disk / "left", dice=2):
        there = [content(disk / "left" / name) for name in ("one", "one.before")]
        assert older in there
        assert newer in there or not reported


def test_an_archive_that_was_reported_as_written_is_there_and_whole(disk, tmp_path):
    run = recorded_run(tmp_path / "one")
    archive = disk / "disk" / "one.tar.gz"
    with power_cut.recorded(disk / "disk") as tape:
        bundle(run, archive)
        tape.reported("written")
    whole = archive.read_bytes()
    for reported in power_cut.cuts(tape, disk / "left"):
        left = disk / "left" / "one.tar.gz"
        if reported or left.exists():
            assert left.read_bytes() == whole


def test_what_is_not_synced_is_lost(disk):
    """The harness itself: without a sync, a cut after the last call leaves nothing or half."""
    with power_cut.recorded(disk / "disk") as tape:
        (disk / "disk" / "a").write_text("12345678")
        (disk / "disk" / "a").rename(disk / "disk" / "b")
        tape.reported("done")
    left = set()
    for reported in power_cut.cuts(tape, disk / "left"):
        if reported:
            there = {one.name: one.read_text() for one in (disk / "left").iterdir()}
            left.add(tuple(there.items()))
    assert left >= {(), (("b", ""),), (("b", "1234"),), (("b", "12345678"),)}
    assert np.all([len(one) <= 1 for one in left]), "a rename is done or not"
