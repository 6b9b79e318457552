"""A run that is not recorded keeps its checkpoints: where they would lie, and nowhere else."""

import pytest
from moving_runs import quiet, recorded, save, whole

import rlvitals
from rlvitals.checkpoints import manifest

SETTINGS = {"lr": 0.1, "net": {"sizes": (64, 64)}}


@pytest.fixture(autouse=True)
def off(monkeypatch, tmp_path):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("RLVITALS_MODE", "off")


def kept(run):
    return rlvitals.Checkpoints(run, tell=quiet)


def test_checkpoints_lie_in_the_folder_that_was_named(tmp_path):
    run = rlvitals.start(tmp_path / "run")
    save(kept(run), 50)
    assert whole(tmp_path / "run") == [50]
    assert not (tmp_path / "run" / "run.json").exists()  # nothing is recorded
    assert list((tmp_path / "here").iterdir()) == []


def test_the_folder_of_the_environment_counts_as_named(tmp_path, monkeypatch):
    monkeypatch.setenv("RLVITALS_RECORDING_FOLDER", str(tmp_path / "run"))
    assert rlvitals.start().folder == tmp_path / "run"


def test_without_a_name_they_lie_where_the_run_would_have_been_recorded(tmp_path, monkeypatch):
    named, run = rlvitals.start(project="walks", name="one"), rlvitals.start()
    assert list((tmp_path / "here").iterdir()) == []  # a folder is made when something needs it
    save(kept(run), 50)
    assert [path.name for path in (tmp_path / "here").iterdir()] == ["runs"]
    monkeypatch.setenv("RLVITALS_MODE", "on")
    would = rlvitals.start(project="walks", name="one")
    would.finish()
    assert named.folder == would.folder
    again = rlvitals.start()
    again.finish()
    assert run.folder.parent == again.folder.parent


def test_a_recorded_run_goes_on_unrecorded_and_recorded_again(tmp_path, monkeypatch):
    said = []
    for step, mode in ((50, "on"), (100, "off"), (150, "on")):
        monkeypatch.setenv("RLVITALS_MODE", mode)
        run = rlvitals.start(tmp_path / "run", settings=SETTINGS)
        checkpoints = rlvitals.Checkpoints(run, tell=said.append)
        checkpoints.restore()
        save(checkpoints, step)
        run.finish()
    whose = [manifest.read(tmp_path / "run" / f"checkpoint-{one}").run_id for one in (50, 100, 150)]
    assert whose == [run.id, "", run.id]
    assert [text.split(":")[0] for text in said] == [
        "no checkpoint to resume from",
        "resumed at step 50 from checkpoint-50",
        "resumed at step 100 from checkpoint-100",
    ]
    assert all("bit-exact on this machine" in text for text in said[1:])


def test_it_is_backed_up_and_its_progress_kept(tmp_path):
    run = rlvitals.start(tmp_path / "run")
    rlvitals.lab.Keeper(run.folder, total_steps=100, tell=quiet).update(50)
    save(kept(run), 50)
    with rlvitals.Backup(run, tmp_path / "target", tell=quiet) as backup:
        pass
    assert backup.last.newest == "checkpoint-50"
    assert whole(tmp_path / "target") == [50]
    assert (tmp_path / "target" / "training_progress.json").exists()
    assert rlvitals.resume_from(run.folder, tell=quiet) == str(tmp_path / "run" / "checkpoint-50")


def test_what_lies_in_the_working_folder_is_not_taken_for_its_own(tmp_path, monkeypatch):
    here = recorded(tmp_path / "recorded")
    monkeypatch.chdir(here)
    run, said = rlvitals.start(), []
    assert kept(run).latest() is None
    with rlvitals.Backup(run, tmp_path / "target", tell=said.append):
        pass
    assert "nothing was backed up" in said[-1]
    assert not (tmp_path / "target").exists()


def test_of_several_processes_each_knows_which_it_is(tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    run = rlvitals.start(tmp_path / "run")
    assert (run.rank, run.world_size) == (1, 2)
    with pytest.raises(rlvitals.UsageError, match="process 1 saves for itself"):
        save(kept(run), 50)
    with rlvitals.Backup(run, tmp_path / "target", tell=quiet):
        pass
    assert not (tmp_path / "target").exists()  # the first process does that
    monkeypatch.setenv("RANK", "0")
    save(kept(rlvitals.start(tmp_path / "run")), 50)
    assert manifest.read(tmp_path / "run" / "checkpoint-50").world_size == 2


def test_a_folder_that_cannot_be_recorded_into_is_not_swapped_for_another(tmp_path, monkeypatch):
    monkeypatch.setenv("RLVITALS_MODE", "on")
    (tmp_path / "file").write_text("")
    with pytest.warns(RuntimeWarning, match="nothing is recorded"):
        run = rlvitals.start(tmp_path / "file" / "run", strict=False)
    with pytest.raises(rlvitals.UsageError, match="Not a directory"):
        kept(run)
    assert list((tmp_path / "here").iterdir()) == []
