"""`run.json` and its copy: one flipped bit, a loss or a crash between the two harms nothing."""

import json
import random
import shutil

import numpy as np
import pytest
from effort import cases

import rlvitals
from rlvitals import storage
from rlvitals.cli import main
from rlvitals.errors import UnreadableLog
from rlvitals.storage.run_folder import RUN_COPY, RUN_FILE, About, LostRun, RunFolder, read_both
from rlvitals.storage.verify import verify

ABOUT = About(name="x", seed=3, settings={"lr": 1e-3, "env": "CartPole-v1"}, tags=("a",))


@pytest.fixture
def run(tmp_path):
    with rlvitals.start(tmp_path / "run", seed=3, settings={"lr": 1e-3}, strict=True) as made:
        for step in range(5):
            made.log(step, {"loss": float(step)})
    return tmp_path / "run"


def flip(path, bit):
    data = bytearray(path.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)


def test_both_hold_the_same_bytes(tmp_path):
    folder = RunFolder.create(tmp_path, ABOUT)
    folder.update(notes="hm")
    assert (tmp_path / RUN_FILE).read_bytes() == (tmp_path / RUN_COPY).read_bytes()
    assert json.loads((tmp_path / RUN_FILE).read_bytes())["notes"] == "hm"


@pytest.mark.parametrize("name", [RUN_FILE, RUN_COPY])
def test_a_flipped_bit_of_any_byte_is_survived(tmp_path, name):
    about = RunFolder.create(tmp_path, ABOUT).about
    path = tmp_path / name
    whole = path.read_bytes()
    for bit in (8 * at + at % 8 for at in range(0, len(whole), cases(5, 1))):
        path.write_bytes(whole)
        flip(path, bit)
        stored = read_both(tmp_path / RUN_FILE)
        assert stored.about == about, bit
        # Without the word "checksum" it looks like that of an older version; nothing else differs.
        mark = b',\n "checksum": "' in path.read_bytes()
        assert stored.damage or (name == RUN_FILE and not mark), bit


def test_what_is_damaged_is_said_set_aside_and_repaired(run, capsys):
    flip(run / RUN_FILE, 8 * 60)
    spoilt = (run / RUN_FILE).read_bytes()
    assert storage.open(run).folder.about.seed == 3
    assert main(["verify", str(run)]) == 1
    assert "its copy .run.json.copy is used" in capsys.readouterr().out
    assert main(["doctor", str(run)]) in {0, 1}
    assert "run.json" in capsys.readouterr().out
    rlvitals.start(run, strict=True).finish()
    assert (run / "run.json.corrupt").read_bytes() == spoilt
    assert read_both(run / RUN_FILE).damage == ""
    assert read_both(run / RUN_FILE).about.seed == 3
    assert all(one.is_intact for one in verify(run))


def test_a_damaged_copy_is_said_and_repaired(run):
    flip(run / RUN_COPY, 8 * 60)
    assert read_both(run / RUN_FILE).damage == ".run.json.copy is damaged"
    rlvitals.start(run, strict=True).finish()
    assert read_both(run / RUN_FILE).damage == ""


def test_a_missing_run_json_is_made_again_of_its_copy(run):
    about = read_both(run / RUN_FILE).about
    (run / RUN_FILE).unlink()
    assert "run.json is missing" in read_both(run / RUN_FILE).damage
    assert rlvitals.trace(run)["optimiser/loss"].values.tolist() == [0, 1, 2, 3, 4]
    again = rlvitals.start(run, strict=True)
    again.finish()
    assert again.id == about.id
    assert read_both(run / RUN_FILE).damage == ""


def test_an_old_folder_without_a_copy_goes_on_and_gets_one(run):
    (run / RUN_COPY).unlink()
    said = json.loads((run / RUN_FILE).read_bytes())
    del said["checksum"]
    (run / RUN_FILE).write_text(json.dumps(said, indent=1))
    assert read_both(run / RUN_FILE).damage == ""
    assert all(one.is_intact for one in verify(run))
    rlvitals.start(run, strict=True).finish()
    assert (run / RUN_FILE).read_bytes() == (run / RUN_COPY).read_bytes()


def test_a_copy_that_an_older_version_left_behind_does_not_count(tmp_path):
    folder = RunFolder.create(tmp_path, ABOUT)
    said = json.loads((tmp_path / RUN_FILE).read_bytes())
    del said["checksum"]
    (tmp_path / RUN_FILE).write_text(json.dumps({**said, "notes": "newer"}, indent=1))
    assert RunFolder.open(tmp_path).about.notes == "newer"
    assert folder.about.notes == ""


def test_a_crash_between_the_two_leaves_the_newer_one(tmp_path):
    folder = RunFolder.create(tmp_path, ABOUT)
    before = (tmp_path / RUN_COPY).read_bytes()
    folder.update(notes="newer")
    (tmp_path / RUN_COPY).write_bytes(before)
    assert read_both(tmp_path / RUN_FILE).about.notes == "newer"
    assert read_both(tmp_path / RUN_FILE).damage == ""


@pytest.mark.parametrize("how", ["gone", "damaged"])
def test_without_both_the_numbers_are_read_and_the_checkpoints_stay_its_own(tmp_path, how):
    state = rlvitals.State(weights=np.zeros(3), step=0)
    with rlvitals.start(tmp_path / "run", strict=True) as run:
        run.log(0, {"loss": 1.0})
        rlvitals.Checkpoints(run, tell=lambda _: None).save_state(10, state)
    for name in (RUN_FILE, RUN_COPY):
        path = run.folder / name
        path.unlink() if how == "gone" else path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(LostRun):
        RunFolder.open(run.folder)
    assert rlvitals.trace(run.folder)["optimiser/loss"].values.tolist() == [1.0]
    assert storage.open(run.folder).series("loss").values.tolist() == [1.0]
    with rlvitals.start(run.folder, strict=True) as again:
        assert again.id == run.id, "the checkpoints say it"
        found = rlvitals.Checkpoints(again, tell=lambda _: None)
        assert found.restore_state(state).step == 10
        assert not list(run.folder.glob("checkpoint-*.*"))


def test_another_programs_run_json_is_left_alone(tmp_path):
    (tmp_path / RUN_FILE).write_text('{"mine": 1}')
    with pytest.raises(UnreadableLog, match=r"no run\.json of rlvitals"):
        RunFolder.create(tmp_path, ABOUT)
    assert (tmp_path / RUN_FILE).read_text() == '{"mine": 1}'


def test_random_damage_to_both_never_gives_a_wrong_number(run, tmp_path):
    true = rlvitals.trace(run)["optimiser/loss"].values.tolist()
    chance = random.Random(5)
    for number in range(10):
        copy = tmp_path / f"copy-{number}"
        shutil.copytree(run, copy)
        for name in (RUN_FILE, RUN_COPY):
            flip(copy / name, chance.randrange(8 * (copy / name).stat().st_size))
        assert rlvitals.trace(copy)["optimiser/loss"].values.tolist() == true
