"""A job that moves to another machine goes on from the newest checkpoint of its bucket."""

import json
import shutil
from contextlib import suppress

import pytest
from bucket_checks import fetch

import rlvitals
from rlvitals.bucket import mirror_process
from rlvitals.bucket.object_store import ObjectStore
from rlvitals.checkpoints.manifest import CannotResume
from rlvitals.checkpoints.transfer import newer_checkpoints
from rlvitals.checkpoints.transfer.copy_files import RetryPolicy
from rlvitals.errors import VitalsError
from rlvitals.tracking import spool


class Machine:
    """A machine with a disk of its own; the test is its uploading process."""

    def __init__(self, url, monkeypatch, cache):
        self.url, self.cache, self.patch = url, cache, monkeypatch
        self.said = []

    @property
    def folder(self):
        self.patch.setenv("XDG_CACHE_HOME", str(self.cache))
        return spool.spool_folder(self.url)

    def train(self, steps, status="killed", **resume):
        """Run the user's script: resume, train for some steps, save; return where it began."""
        self.patch.setenv("XDG_CACHE_HOME", str(self.cache))
        run = rlvitals.start(self.url)
        checkpoints = rlvitals.Checkpoints(run, every=10, keep=2, tell=self.said.append)
        begin = 0
        try:
            resumed = checkpoints.restore(**resume)
            begin = 0 if resumed is None else resumed.step
            for step in range(begin + 1, begin + steps + 1):
                run.log(step, {"reward": float(step)})
                if checkpoints.due(step):
                    with checkpoints.save(step) as path:
                        (path / "model.bin").write_bytes(self.content(step))
        finally:
            run.finish(status)
        return begin

    def content(self, step):
        return f"{self.cache.name} {step}".encode() * 20

    def upload(self):
        return mirror_process.mirror(self.folder, self.url, None, self.said.append)


@pytest.fixture
def machines(any_cloud, tmp_path, monkeypatch):
    """Three machines, whose uploads happen when the test says so."""
    monkeypatch.setattr(spool, "begin", lambda *_: None)
    monkeypatch.setattr(newer_checkpoints, "RetryPolicy", lambda: RetryPolicy(first=0.01))
    url = f"{any_cloud}/walk"
    return [Machine(url, monkeypatch, tmp_path / name) for name in ("a", "b", "c")]


def steps_of(url):
    """Return the steps of the bucket's sealed checkpoints."""
    store = ObjectStore(url)
    names = [name for name in store.list_folders() if name.startswith("checkpoint-")]
    return sorted(int(name[11:]) for name in names if store.read(f"{name}/manifest.json"))


def model(url, step):
    return ObjectStore(url).read(f"checkpoint-{step}/model.bin")


@pytest.mark.soak
def test_a_job_that_moves_resumes_from_the_bucket_and_goes_on_there(machines, tmp_path):
    first, second, _ = machines
    assert first.train(25) == 0
    first.upload()
    assert second.train(25) == 20  # the same script, and nothing by hand
    second.upload()
    assert first.train(15) == 40  # back again: what the other machine has saved is newer
    first.upload()
    assert steps_of(first.url) == [40, 50]
    assert model(first.url, 40) == second.content(40)
    rows = fetch(ObjectStore(first.url), tmp_path / "copy")
    # The machine's own numbers are rows as well, at the steps of others.
    assert {place: sorted(set(steps)) for place, steps in rows.items()} == {
        (1, 0): list(range(1, 26)), (2, 0): list(range(21, 46)), (3, 0): list(range(41, 56)),
    }  # fmt: skip
    about = json.loads((tmp_path / "copy" / "run.json").read_text())
    assert about["id"] == spool.run_id(first.url)
    assert any("checkpoint-20" in text and "fetched" in text for text in second.said)


@pytest.mark.soak
def test_a_finished_run_whose_spool_is_deleted_goes_on_on_the_same_machine(machines):
    first, *_ = machines
    first.train(25, status="finished")
    first.upload()
    assert not (first.folder / "checkpoint-20").exists()
    assert first.train(15) == 20


@pytest.mark.soak
def test_a_machine_that_is_behind_never_replaces_what_is_newer(machines):
    """The first is cut off after step 25, and returns when the second has gone on."""
    first, second, _ = machines
    first.train(15)
    first.upload()
    first.train(15)  # to step 25: 20 never arrives
    assert second.train(45) == 10
    second.upload()
    kept = {step: model(first.url, step) for step in steps_of(first.url)}
    assert list(kept) == [40, 50]
    with suppress(VitalsError):
        first.upload()  # its own 20 is added at most
    assert {step: model(first.url, step) for step in kept} == kept
    assert first.train(15) == 50
    first.upload()
    assert steps_of(first.url) == [50, 60]
    assert model(first.url, 50) == second.content(50)


@pytest.mark.soak
def test_a_checkpoint_of_the_same_step_stays_where_it_is_as_late(machines):
    first, second, _ = machines
    first.train(15)
    first.upload()
    first.train(10)  # saves 20, as does the second: neither has seen the other's
    assert second.train(10) == 10
    second.upload()
    with pytest.raises(VitalsError, match="checkpoint-20 is not copied: another machine"):
        first.upload()
    assert model(first.url, 20) == second.content(20)
    assert steps_of(first.url) == [10, 20]


@pytest.mark.soak
def test_a_script_that_only_saves_replaces_nothing(machines):
    first, second, _ = machines
    first.train(25)
    first.upload()
    second.patch.setenv("XDG_CACHE_HOME", str(second.cache))
    run = rlvitals.start(second.url)
    checkpoints = rlvitals.Checkpoints(run, tell=second.said.append)
    with checkpoints.save(10) as path:
        (path / "model.bin").write_bytes(b"another beginning")
    run.finish("killed")
    with pytest.raises(VitalsError, match="checkpoint-10 is not copied: another machine"):
        second.upload()
    assert steps_of(first.url) == [10, 20]
    assert model(first.url, 10) == first.content(10)


@pytest.mark.soak
def test_a_start_at_step_0_does_not_delete_the_buckets_checkpoints(machines):
    first, second, _ = machines
    first.train(25)
    first.upload()
    with pytest.raises(CannotResume, match="a start at step 0 would replace"):
        second.train(25, fresh=True)
    assert first.train(15, fresh=True) == 0  # they lie aside on this machine
    first.upload()
    assert steps_of(first.url) == [10]


def test_without_the_bucket_a_machine_uses_its_own_checkpoints_or_stops(machines, monkeypatch):
    first, second, _ = machines
    first.train(25)
    first.upload()

    def refuse(*_):
        raise OSError("503 SlowDown")

    monkeypatch.setattr(newer_checkpoints, "open_url", refuse)
    assert first.train(5) == 20
    assert any("503 SlowDown" in text for text in first.said)
    with pytest.raises(CannotResume, match="not used: 503 SlowDown"):
        second.train(5)
    assert second.train(5, fresh=True) == 0


@pytest.mark.soak
def test_a_fetch_that_is_cut_goes_on_and_deletes_nothing(machines, monkeypatch):
    """The connection breaks at each file in turn; between the tries the machine uploads."""
    first, second, _ = machines
    first.train(25)
    first.upload()
    real, left = newer_checkpoints.copy_files.copy_piece, [0]

    def cut(*arguments):
        if not left[0]:
            raise ConnectionError("cut")
        left[0] -= 1
        return real(*arguments)

    for files in range(2):
        monkeypatch.setattr(newer_checkpoints.copy_files, "copy_piece", cut)
        left[0] = files
        with pytest.raises(CannotResume, match="newer checkpoint that is not fetched: cut"):
            second.train(5)
        monkeypatch.setattr(newer_checkpoints.copy_files, "copy_piece", real)
        second.upload()
        assert steps_of(first.url) == [10, 20]
        assert not [path for path in second.folder.iterdir() if path.name.startswith(".checkpoint")]
    assert second.train(5) == 20


@pytest.mark.soak
def test_damage_in_the_bucket_falls_back_to_the_checkpoint_before(machines):
    first, second, _ = machines
    first.train(25)
    first.upload()
    ObjectStore(first.url).write("checkpoint-20/model.bin", b"x" * len(first.content(20)))
    assert second.train(15) == 10
    assert any("damaged there" in text for text in second.said)
    second.upload()
    assert model(first.url, 20) == second.content(20)


@pytest.mark.soak
def test_checkpoints_of_another_run_are_named_and_not_used(machines, monkeypatch):
    first, second, _ = machines
    with monkeypatch.context() as context:
        context.setattr(spool, "run_id", lambda _: "an id of its own")  # as older versions
        first.train(15)
        first.upload()
    with pytest.raises(CannotResume, match="another run's") as raised:
        second.train(5)
    assert "rlvitals restore" in raised.value.hint
    shutil.rmtree(first.folder)
