"""Checkpoints: whole and sealed or not there, kept by a policy, verified before they are used."""

import errno
import json
import os
import random
import shutil
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

from rlvitals.checkpoints import disk, manifest, naming
from rlvitals.checkpoints.manager import Checkpoints
from rlvitals.checkpoints.manifest import BadCheckpoint, CannotResume
from rlvitals.checkpoints.retention import Best
from rlvitals.errors import UsageError


class Said(list):
    """What was told."""

    def __call__(self, text):
        self.append(text)

    def about(self, words):
        return [text for text in self if words in text]


@dataclass
class Run:
    """What is used of a recorded run."""

    folder: Path
    id: str
    attempt: int = 1
    world_size: int = 1
    settings: dict = field(default_factory=dict)
    note: Said = field(default_factory=Said)


def made(folder, said=None, **options):
    return Checkpoints(folder, tell=Said() if said is None else said, **options)


def save(checkpoints, step, content=None, **options):
    with checkpoints.save(step, **options) as folder:
        (folder / "model.bin").write_bytes(content or f"model {step} ".encode() * 100)
        (folder / "optimizer.bin").write_bytes(f"optimizer {step} ".encode() * 200)
        (folder / "rng").mkdir()
        (folder / "rng" / "0.json").write_text(json.dumps({"step": step}))


def there(folder):
    return sorted(naming.find_checkpoints(folder))


def test_a_saved_checkpoint_is_found_verified_and_named_by_latest(tmp_path):
    one = made(tmp_path)
    save(one, 50)
    found = one.latest()
    assert found.step == 50
    assert (tmp_path / "latest").read_text() == "checkpoint-50\n"
    assert set(found.manifest.files) == {"model.bin", "optimizer.bin", "rng/0.json"}
    assert not naming.find_unfinished(tmp_path)


def test_due_counts_steps_since_the_last_save_also_where_they_are_no_multiples(tmp_path):
    one = made(tmp_path, every=50)
    due = []
    for step in range(0, 400, 32):
        if one.due(step):
            save(one, step)
            due.append(step)
    assert due == [64, 128, 160, 224, 256, 320, 352]
    assert not one.due(352)


def test_the_same_program_started_again_goes_on_and_counts_from_there(tmp_path):
    save(made(tmp_path, every=50), 50)
    said = Said()
    again = made(tmp_path, said, every=50)
    resumed = again.restore(lambda folder: (folder / "model.bin").read_bytes())
    assert resumed.step == 50
    assert not again.due(60)
    assert again.due(100)
    assert said.about("resumed at step 50 from checkpoint-50")


def test_without_a_checkpoint_a_fresh_start_is_said_aloud(tmp_path):
    said = Said()
    assert made(tmp_path, said).restore() is None
    assert said == ["no checkpoint to resume from: this is a fresh start"]


def test_what_is_raised_while_saving_leaves_nothing_of_it(tmp_path):
    one = made(tmp_path)
    save(one, 50)
    mine = RuntimeError("mine")
    with pytest.raises(RuntimeError, match="mine"), one.save(100):
        raise mine
    assert there(tmp_path) == [50]
    assert not naming.find_unfinished(tmp_path)


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        RuntimeError(
            "[enforce fail at inline_container.cc:815] . PytorchStreamWriter failed writing file"
        ),
    ],
)
def test_a_full_disk_is_told_and_training_goes_on(tmp_path, error):
    said = Said()
    one = made(tmp_path, said, every=50)
    save(one, 50)
    with one.save(100) as folder:
        (folder / "model.bin").write_bytes(b"half")
        raise error
    assert there(tmp_path) == [50]
    assert not naming.find_unfinished(tmp_path)
    assert said.about("checkpoint 100 was not saved, the disk is full")
    assert not one.due(101)
    assert one.due(150)


def test_a_real_full_disk(tmp_path):
    """The file size limit of a process stands for the disk: writes fail half-way."""
    script = tmp_path / "full.py"
    script.write_text(
        "import resource, signal, sys\n"
        "from rlvitals.checkpoints.manager import Checkpoints\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "one = Checkpoints(sys.argv[1])\n"
        "with one.save(1) as f: (f / 'a').write_bytes(b'x' * 1000)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))\n"
        "with one.save(2) as f: (f / 'a').write_bytes(b'x' * 9000)\n"
        "print('went on', one.latest().step)\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, script, tmp_path / "run"], env=env, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.stdout == "went on 1\n", done.stderr
    assert "checkpoint 2 was not saved" in done.stderr
    assert there(tmp_path / "run") == [1]


def test_too_little_room_is_seen_before_and_told_once(tmp_path, monkeypatch):
    said = Said()
    one = made(tmp_path, said, every=10)
    save(one, 10)
    monkeypatch.setattr(disk, "count_free_bytes", lambda _: 100)
    assert not one.due(20)
    assert not one.due(30)
    assert len(said.about("no checkpoint at step")) == 1
    monkeypatch.setattr(disk, "count_free_bytes", lambda _: 10**9)
    assert one.due(31)


# --- what is kept ---


def test_the_newest_are_kept_and_the_multiples_the_pinned_the_best_and_the_healthy(tmp_path):
    health = {30: "healthy"}.get
    one = made(
        tmp_path, every=10, keep=2, keep_best=Best("return"), keep_every=50,
        health=lambda step: health(step, "return-collapse"),
    )  # fmt: skip
    for step in range(10, 130, 10):
        save(one, step, metrics={"return": -abs(step - 70)}, pinned=step == 20)
    assert there(tmp_path) == [20, 30, 50, 70, 100, 110, 120]


def test_the_first_after_each_multiple_is_kept_where_none_is_saved_at_it(tmp_path):
    one = made(tmp_path, keep=1, keep_every=100)
    for step in (0, 60, 90, 110, 170, 199, 200, 240, 430, 460, 490):
        save(one, step)
    assert there(tmp_path) == [0, 110, 200, 430, 490]


def test_one_that_is_pinned_later_stays(tmp_path):
    one = made(tmp_path, keep=1)
    save(one, 10)
    one.pin(10)
    save(one, 20)
    save(one, 30)
    assert there(tmp_path) == [10, 30]
    with pytest.raises(BadCheckpoint, match="no such checkpoint"):
        one.pin(20)


def test_the_best_by_a_loss_and_nan_is_never_best(tmp_path):
    one = made(tmp_path, keep=1, keep_best=Best("loss", "min"))
    for step, loss in enumerate([3.0, 1.0, float("nan"), 2.0], start=1):
        save(one, step, metrics={"loss": loss})
    assert there(tmp_path) == [2, 4]


@pytest.mark.parametrize("better", ["lower", "MAX", "minimum", "", None, True])
def test_a_direction_that_is_neither_max_nor_min_is_refused(better):
    with pytest.raises(UsageError, match="better cannot be ") as error:
        Best("loss", better)
    assert all(word in error.value.hint for word in ('"max"', '"min"'))
    assert ("did you mean max?" in error.value.hint) is (better == "MAX")
    assert ("did you mean min?" in error.value.hint) is (better == "minimum")
    assert error.value.where == "Best('loss')"


def test_the_best_is_found_by_whoever_asks_and_passed_over_where_it_is_damaged(tmp_path):
    one = made(tmp_path, keep=5, keep_best=Best("loss", "min"))
    assert one.best() is None
    for step, loss in enumerate([3.0, 1.0, 2.0], start=1):
        save(one, step, metrics={"loss": loss})
    assert one.best().step == 2
    reader = Checkpoints(tmp_path, tell=lambda _: None)  # knows by what it was saved
    assert reader.best().step == 2
    files = (path for path in one.at(2).folder.iterdir() if path.is_file())
    next(path for path in files if path.suffix != ".json").write_bytes(b"?")
    assert reader.best().step == 3
    assert made(tmp_path, keep=5, keep_best="return").best() is None


def test_retention_goes_on_across_restarts(tmp_path):
    for step in (10, 20, 30, 40):
        one = made(tmp_path, keep=2)
        one.restore()
        save(one, step)
    assert there(tmp_path) == [30, 40]


def test_checkpoints_of_another_run_are_left_alone(tmp_path):
    other = made(Run(tmp_path, "other"), keep=1)
    save(other, 500)
    one = made(Run(tmp_path, "own"), keep=1)
    with pytest.raises(CannotResume, match="checkpoint-500: of another run"):
        one.restore()
    save(one, 10)
    save(one, 20)
    assert there(tmp_path) == [20, 500]
    assert one.latest().step == 20


def test_stale_higher_steps_are_neither_the_newest_nor_deleted(tmp_path):
    first = made(tmp_path, keep=5)
    for step in (100, 150):
        save(first, step)
    damage(tmp_path / "checkpoint-150" / "model.bin")
    shutil.copytree(tmp_path / "checkpoint-150", tmp_path / "kept")
    said = Said()
    second = made(tmp_path, said, keep=1)
    assert second.restore().step == 100
    (tmp_path / "kept").rename(tmp_path / "checkpoint-150")  # someone puts it back
    save(second, 110)
    assert there(tmp_path) == [110, 150]
    third = made(tmp_path, said, keep=1)
    assert third.restore().step == 110, "saved later, though its step is lower"
    assert said.about("checkpoint-150 is of a later step")
    save(third, 120)
    assert there(tmp_path) == [120, 150]


def test_folders_of_other_programs_stay(tmp_path):
    (tmp_path / "checkpoint-7").mkdir()
    (tmp_path / "checkpoint-7" / "weights").write_text("not ours")
    (tmp_path / "checkpoint-best").mkdir()
    one = made(tmp_path, keep=1)
    for step in (1, 2, 3):
        save(one, step)
    assert there(tmp_path) == [3, 7]
    assert (tmp_path / "checkpoint-best").is_dir()


# --- what is refused ---


def damage(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def truncate(path):
    path.write_bytes(path.read_bytes()[:-1])


def swap(path):
    older = path.parent.parent / "checkpoint-100" / path.name
    shutil.copy(older, path)


DAMAGE = {"bit": damage, "short": truncate, "gone": Path.unlink, "swapped": swap}


@pytest.mark.parametrize("how", DAMAGE.values(), ids=DAMAGE)
@pytest.mark.parametrize("name", ["model.bin", "optimizer.bin", "manifest.json"])
def test_one_that_is_not_what_was_sealed_is_refused_and_the_older_one_used(tmp_path, name, how):
    one = made(tmp_path, keep=5)
    for step in (50, 100, 150):
        save(one, step)
    before = {
        p.relative_to(tmp_path): p.read_bytes() for p in tmp_path.glob("checkpoint-*00/*.bin")
    }
    how(tmp_path / "checkpoint-150" / name)
    said = Said()
    resumed = made(tmp_path, said).restore()
    assert resumed.step == 100
    assert said.about("checkpoint-150 is not used")
    if name != "manifest.json":
        assert name in said.about("checkpoint-150 is not used")[0]
        assert (tmp_path / "checkpoint-150.corrupt" / "why.txt").exists()
    assert before == {
        p.relative_to(tmp_path): p.read_bytes() for p in tmp_path.glob("checkpoint-*00/*.bin")
    }


def test_every_bit_of_a_small_checkpoint_is_guarded(tmp_path):
    one = made(tmp_path)
    with one.save(1) as folder:
        (folder / "w").write_bytes(b"\x00\xff weights")
    path = tmp_path / "checkpoint-1" / "w"
    whole = path.read_bytes()
    for bit in range(8 * len(whole)):
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        with pytest.raises(BadCheckpoint, match="w is not what was sealed"):
            manifest.verify(path.parent)
    path.write_bytes(whole)
    assert manifest.verify(path.parent).step == 1


def test_no_random_damage_to_a_manifest_lets_a_damaged_checkpoint_pass(tmp_path):
    one = made(tmp_path)
    save(one, 5)
    folder = tmp_path / "checkpoint-5"
    damage(folder / "model.bin")
    whole, dice = (folder / "manifest.json").read_bytes(), random.Random(0)
    for _ in range(2000):
        data = bytearray(whole)
        for _ in range(dice.randint(1, 4)):
            data[dice.randrange(len(data))] = dice.randrange(256)
        (folder / "manifest.json").write_bytes(data[: dice.randint(0, len(data))] or data)
        with pytest.raises(BadCheckpoint):
            manifest.verify(folder)


def test_a_missing_optimizer_or_random_stream_is_refused_when_asked_for(tmp_path):
    one = made(tmp_path, holds=("model*", "optimizer*", "rng/*"))
    save(one, 1)
    with pytest.raises(BadCheckpoint, match=r"holds no optimizer\*"), one.save(2) as folder:
        (folder / "model.bin").write_bytes(b"m")
    assert there(tmp_path) == [1]


def test_what_load_raises_is_raised_and_nothing_is_set_aside(tmp_path):
    one = made(tmp_path)
    save(one, 10)
    save(one, 20)

    def load(_):
        raise ValueError("shape (3, 4) does not fit (4, 4)")

    with pytest.raises(ValueError, match="does not fit"):
        made(tmp_path).restore(load)
    assert there(tmp_path) == [10, 20]


def test_a_newer_format_is_refused_by_name(tmp_path):
    one = made(tmp_path)
    save(one, 10)
    path = tmp_path / "checkpoint-10" / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 99}))
    with pytest.raises(BadCheckpoint, match="format 99, written by a newer rlvitals"):
        manifest.read(path.parent)


@pytest.mark.parametrize("name", ["/etc/passwd", "../other", "a/../../b", "a\\..\\b", ""])
def test_a_manifest_cannot_lead_out_of_its_folder(tmp_path, name):
    one = made(tmp_path)
    save(one, 10)
    sealed = manifest.read(tmp_path / "checkpoint-10")
    led = replace(sealed, files={name: sealed.files["model.bin"]})
    manifest.write(tmp_path / "checkpoint-10", led)
    with pytest.raises(BadCheckpoint, match="lies outside"):
        manifest.read(tmp_path / "checkpoint-10")


def test_a_link_is_not_sealed(tmp_path):
    (tmp_path / "outside").write_text("x")
    with pytest.raises(BadCheckpoint, match="is a link"), made(tmp_path).save(1) as folder:
        (folder / "model").symlink_to(tmp_path / "outside")


def test_nothing_saved_is_no_checkpoint(tmp_path):
    with pytest.raises(BadCheckpoint, match="nothing was saved"), made(tmp_path).save(1):
        pass
    assert there(tmp_path) == []


def test_a_folder_that_is_a_file(tmp_path):
    (tmp_path / "run").write_text("x")
    with pytest.raises(UsageError, match="is a file"):
        made(tmp_path / "run")


@pytest.mark.parametrize("wrong", [{"every": 0}, {"keep": 0}, {"keep_every": 0}])
def test_numbers_that_keep_nothing_are_refused(tmp_path, wrong):
    with pytest.raises(UsageError):
        made(tmp_path, **wrong)


# --- going on elsewhere, and after a kill ---


def test_a_run_that_was_moved_or_copied_goes_on(tmp_path):
    save(made(tmp_path / "here"), 10)
    archive = shutil.make_archive(str(tmp_path / "run"), "zip", tmp_path / "here")
    shutil.unpack_archive(archive, tmp_path / "there")
    assert made(tmp_path / "there").restore().step == 10


def test_a_clock_set_back_changes_nothing(tmp_path, monkeypatch):
    from rlvitals.checkpoints import manager as module

    one = made(tmp_path)
    save(one, 10)
    monkeypatch.setattr(module.clock, "time", lambda: 1.0)
    save(one, 20)
    again = made(tmp_path)
    assert again.restore().step == 20


def test_the_promise_is_kept_only_where_it_can_be(tmp_path):
    one = made(tmp_path, settings={"lr": 1e-3})
    save(one, 10)
    assert made(tmp_path, settings={"lr": 1e-3}).restore().differs == ()
    other = made(tmp_path, settings={"lr": 2e-3}, world_size=4).restore()
    assert "the settings are others" in other.differs
    assert any("saved by 1 process, 4 go on" in why for why in other.differs)
    assert "continues, not bit-exact because" in other.sentence
    sealed = manifest.read(tmp_path / "checkpoint-10")
    older = {**sealed.versions, "numpy": "1.0"}
    manifest.write(tmp_path / "checkpoint-10", replace(sealed, versions=older))
    assert f"numpy is {np.__version__}, it was 1.0" in made(tmp_path).restore().differs


def test_state_that_was_not_saved_breaks_the_promise(tmp_path):
    one = made(tmp_path)
    save(one, 10, facts={"not_saved": ["the state of the environments"]})
    assert made(tmp_path).restore().differs == ("the state of the environments was not saved",)


def test_one_that_was_killed_before_its_rename_gets_its_name(tmp_path):
    save(made(tmp_path), 10)
    folder = tmp_path / "checkpoint-10"
    folder.rename(tmp_path / f".checkpoint-10.{naming.host_id()}-999999999-0123abcd")
    said = Said()
    assert made(tmp_path, said).restore().step == 10
    assert said.about("was whole but for its name")


def test_an_unfinished_folder_of_a_living_process_is_left(tmp_path):
    living = tmp_path / f".checkpoint-10.{naming.host_id()}-{os.getppid()}-0123abcd"
    living.mkdir()
    one = made(tmp_path)
    assert living.exists()
    with one.save(1) as folder:
        (folder / "x").write_text("x")
        made(tmp_path)
        assert folder.exists(), "a second look must not clear what this process is writing"
