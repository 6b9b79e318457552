"""A read error is not damage, and a run is not started at step 0 over its checkpoints."""

import errno
import os
import resource
from contextlib import suppress
from multiprocessing import get_context

import numpy as np
import pytest
from waiting import HANG_SECONDS

import rlvitals
from rlvitals.checkpoints import inspect_run
from rlvitals.checkpoints.inspect_run import CheckpointState as LookState
from rlvitals.checkpoints.manager import Checkpoints
from rlvitals.checkpoints.manifest import CannotResume, UnreadableCheckpoint
from rlvitals.checkpoints.resume_huggingface import resume_from
from rlvitals.checkpoints.state.training_state import State

FORK = get_context("fork")
STEPS = (50, 100)


def state(step=0):
    return State(weights=np.full(4, float(step)), step=step)


def quiet(folder, **options):
    return Checkpoints(folder, tell=lambda _: None, **options)


@pytest.fixture
def saved(tmp_path):
    one = quiet(tmp_path)
    for step in STEPS:
        one.save_state(step, state(step))
    return tmp_path


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def failing(monkeypatch, number, *parts):
    """Let the system refuse to open paths with these parts, as a disk or a network mount does."""
    real = os.open

    def refuse(path, *rest, **more):
        if all(part in os.fspath(path) for part in parts):
            raise OSError(number, os.strerror(number), os.fspath(path))
        return real(path, *rest, **more)

    monkeypatch.setattr("os.open", refuse)
    monkeypatch.setattr("pathlib.Path.open", _opened(refuse))


def _opened(opener):
    def opened(path, mode="r", *rest, **more):
        return open(path, mode, *rest, opener=opener, **more)

    return opened


NUMBERS = [errno.EACCES, errno.EIO, errno.ESTALE, errno.ENOMEM, errno.EMFILE]


@pytest.mark.parametrize("file", ["manifest.json", "state.json", "arrays.safetensors"])
@pytest.mark.parametrize("number", NUMBERS, ids=errno.errorcode.get)
def test_what_cannot_be_read_stops_the_resume_and_stays(saved, monkeypatch, number, file):
    before = names(saved)
    for part in ("checkpoint-100", "checkpoint-"):  # the newest, all of them
        with monkeypatch.context() as patch:
            failing(patch, number, part, file)
            target = state()
            with pytest.raises(CannotResume, match="cannot be read") as caught:
                quiet(saved).restore_state(target)
        assert os.strerror(number) in str(caught.value), "what"
        assert f"checkpoint-100/{file}" in caught.value.where or part == "checkpoint-", "where"
        assert "run the same command again" in caught.value.hint, "what to try"
        assert target["step"] == 0
        assert names(saved) == before
    assert quiet(saved).restore_state(state()).step == 100


def test_a_run_folder_that_cannot_be_listed_is_said(saved, monkeypatch):
    def refuse(path):
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), os.fspath(path))

    one = quiet(saved)
    monkeypatch.setattr("os.scandir", refuse)
    with pytest.raises(UnreadableCheckpoint, match="Stale file handle") as caught:
        one.restore_state(state())
    assert "mount the network file system again" in caught.value.hint
    with pytest.raises(UnreadableCheckpoint):
        one.latest()


def restored_by(user, folder, pipe):
    """Restore as another user, and send what is said. Forked: all is loaded already."""
    os.setgid(user)
    os.setuid(user)
    try:
        found = quiet(folder).restore_state(state())
        pipe.send(f"restored {found}")
    except CannotResume as error:
        pipe.send(str(error))
    finally:
        pipe.close()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs a second user")
@pytest.mark.parametrize("path", ["checkpoint-100/manifest.json", "checkpoint-100/state.json",
                                  "checkpoint-100"])  # fmt: skip
def test_another_user_who_may_not_read_it(saved, path, tmp_path_factory):
    base = tmp_path_factory.getbasetemp()
    for folder in (saved, base, base.parent, base.parent.parent):  # pytest keeps them to itself
        folder.chmod(0o755)
    saved.chmod(0o777)
    (saved / path).chmod(0)
    before = names(saved)
    mine, theirs = FORK.Pipe(duplex=False)
    child = FORK.Process(target=restored_by, args=(65534, saved, theirs), daemon=True)
    child.start()
    assert mine.poll(HANG_SECONDS), "it says nothing"
    said = mine.recv()
    child.join(HANG_SECONDS)
    assert "cannot be read: Permission denied" in said
    assert f"/{path}" in said
    assert "chmod -R u+rX" in said
    assert names(saved) == before


def test_no_more_open_files(saved):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    one, before, taken = quiet(saved), names(saved), []
    resource.setrlimit(resource.RLIMIT_NOFILE, (128, hard))
    try:
        with suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        with pytest.raises(UnreadableCheckpoint, match="Too many open files") as caught:
            one.restore_state(state())
    finally:
        for descriptor in taken:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert "ulimit -n" in caught.value.hint
    assert names(saved) == before
    assert one.restore_state(state()).step == 100


def test_pruning_goes_on_without_what_cannot_be_read(saved, monkeypatch):
    told = []
    one = Checkpoints(saved, keep=1, tell=told.append)
    one.restore_state(state())
    with monkeypatch.context() as patch:
        failing(patch, errno.EIO, "checkpoint-50", "manifest.json")
        one.save_state(150, state(150))
    assert [name for name in names(saved) if name.startswith("checkpoint")] == [
        "checkpoint-100", "checkpoint-150", "checkpoint-50",
    ]  # fmt: skip
    assert any("no older checkpoint is deleted" in text for text in told)


def test_the_look_says_what_cannot_be_read(saved, monkeypatch):
    failing(monkeypatch, errno.EIO, "checkpoint-50", "manifest.json")
    found = inspect_run.inspect(saved)
    (bad,) = found.some(LookState.UNREADABLE)
    assert bad.folder.name == "checkpoint-50"
    assert bad.why == "manifest.json cannot be read: Input/output error"
    assert found.taken is None
    assert found.why == "a resume stops: checkpoint-50 cannot be read"


# --- a start at step 0 ---


def spoil(folder, *steps):
    for step in steps:
        path = folder / f"checkpoint-{step}" / "arrays.safetensors"
        path.write_bytes(path.read_bytes()[:-1])


def test_where_all_are_damaged_the_run_is_not_started_over(saved):
    spoil(saved, *STEPS)
    before = names(saved)
    for _ in range(2):  # a job that is started again finds the same
        with pytest.raises(CannotResume, match="not started at step 0") as caught:
            quiet(saved).restore_state(state())
        assert "checkpoint-50: arrays.safetensors has" in caught.value.problem
        assert "--fresh" in caught.value.hint
        assert names(saved) == before


def test_fresh_sets_aside_and_deletes_nothing(saved):
    before = {path: path.read_bytes() for path in saved.rglob("*.safetensors")}
    one = quiet(saved)
    assert one.restore_state(state(), fresh=True) is None
    one.save_state(50, state(7))
    assert one.latest().step == 50
    aside = saved / "checkpoint-50.before-fresh", saved / "checkpoint-100.before-fresh"
    assert all(path.is_dir() for path in aside)
    now = [path.read_bytes() for folder in aside for path in folder.rglob("*.safetensors")]
    assert sorted(now) == sorted(before.values())
    assert quiet(saved).restore_state(state()).step == 50
    assert [one.why for one in inspect_run.inspect(saved).some(LookState.ASIDE)] == [
        "set aside whole, for a fresh start"
    ] * 2


def test_a_required_resume_never_starts_over(tmp_path, saved):
    empty = tmp_path / "empty"
    with pytest.raises(CannotResume, match="a resume is required"):
        quiet(empty).restore_state(state(), require_resume=True)
    assert quiet(empty).restore_state(state()) is None
    assert quiet(saved).restore_state(state(), require_resume=True).step == 100
    with pytest.raises(rlvitals.UsageError, match="required to resume"):
        quiet(saved).restore_state(state(), fresh=True, require_resume=True)


def test_checkpoints_of_another_run_are_not_started_over(saved, tmp_path):
    run = rlvitals.start(tmp_path / "new", strict=True)
    for step in STEPS:
        (saved / f"checkpoint-{step}").rename(run.folder / f"checkpoint-{step}")
    other = Checkpoints(run, tell=lambda _: None)
    run.finish()
    assert other.restore_state(state()).step == 100, "saved without a run: anybody's"
    other.save_state(150, state(150))
    second = rlvitals.start(tmp_path / "second", strict=True)
    (run.folder / "checkpoint-150").rename(second.folder / "checkpoint-150")
    with pytest.raises(CannotResume, match="checkpoint-150: of another run"):
        Checkpoints(second, tell=lambda _: None).restore_state(state())
    assert (second.folder / "checkpoint-150").is_dir()
    second.finish()


# --- a Hugging Face trainer ---


def test_resume_from_stops_at_what_cannot_be_read(saved, monkeypatch):
    before = names(saved)
    with monkeypatch.context() as patch:
        failing(patch, errno.ESTALE, "checkpoint-100", "state.json")
        with pytest.raises(CannotResume, match="Stale file handle"):
            resume_from(saved, tell=lambda _: None)
    assert names(saved) == before
    assert resume_from(saved, tell=lambda _: None).endswith("checkpoint-100")


def test_resume_from_is_fresh_or_required(saved, tmp_path):
    with pytest.raises(CannotResume, match="a resume is required"):
        resume_from(tmp_path / "none", tell=lambda _: None, require_resume=True)
    spoil(saved, *STEPS)
    with pytest.raises(CannotResume, match="not started at step 0"):
        resume_from(saved, tell=lambda _: None)
    (saved / "checkpoint-120").mkdir()  # not sealed: the trainer would write into it
    assert resume_from(saved, tell=lambda _: None, fresh=True) is None
    assert [name for name in names(saved) if name.startswith("checkpoint")] == [
        "checkpoint-100.before-fresh", "checkpoint-120.before-fresh", "checkpoint-50.before-fresh",
    ]  # fmt: skip
