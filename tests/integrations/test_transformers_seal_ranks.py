"""Two processes write one checkpoint: it is sealed when both are done, and resumed by both."""

import os
import shutil
import time

import forked
import hf_twins as twins
import pytest

import rlvitals
from rlvitals.checkpoints import manifest

pytestmark = [
    pytest.mark.filterwarnings("ignore", "error:::rlvitals"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
]
STATE = ("model.safetensors", "optimizer.pt", "scheduler.pt", "rng_state_0.pth", "rng_state_1.pth")
MORE = {"per_device_train_batch_size": 2, "max_steps": 12}


def state(checkpoint):
    return {name: (checkpoint / name).read_bytes() for name in STATE}


def go(rank, out):
    """Train; the second process is slow to write its random state."""
    trainer = twins.plain(out, **MORE)
    if rank == 1:
        write = trainer._save_rng_state

        def late(folder):
            time.sleep(0.3)
            write(folder)

        trainer._save_rng_state = late
    return twins.go(trainer)


def refuses(_, out):
    """See what each process is told of a folder that nothing may be begun over."""
    try:
        rlvitals.resume_from(twins.plain(out, **MORE))
    except rlvitals.UsageError as error:
        return error.problem
    return None


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    out = tmp_path_factory.mktemp("ranks") / "out"
    assert forked.ranks(go, out) == [None, None]
    return out


def test_it_is_sealed_when_both_have_written(straight):
    for step in (4, 8, 12):
        sealed = manifest.verify(straight / f"checkpoint-{step}")
        assert set(STATE) <= set(sealed.files)
        assert sealed.world_size == 2


def test_both_go_on_from_the_newest_whole_one_and_end_the_same(straight, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(straight, out)
    (out / "checkpoint-12" / "rng_state_1.pth").unlink()
    assert forked.ranks(go, out) == [str(out / "checkpoint-8")] * 2
    assert (out / "checkpoint-12.corrupt").is_dir()
    assert state(out / "checkpoint-12") == state(straight / "checkpoint-12")


def test_one_process_alone_is_told_what_is_lost(straight, tmp_path, capsys):
    out = tmp_path / "out"
    shutil.copytree(straight, out)
    assert rlvitals.resume_from(twins.plain(out)) == str(out / "checkpoint-12")
    said = capsys.readouterr().err
    assert "it was saved by 2 processes, 1 goes on" in said
    assert "the data order changes, and the random streams of process 1 are lost" in said


def test_both_are_told_that_nothing_is_begun_over(straight, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(straight / "checkpoint-12", out / "checkpoint-12")
    (out / "checkpoint-12" / "manifest.json").unlink()
    first, second = forked.ranks(refuses, out)
    assert first == second
    assert "checkpoint-12 looks whole" in first


def test_several_processes_hand_over_their_arguments(tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    with pytest.raises(rlvitals.UsageError, match="cannot agree on a folder alone"):
        rlvitals.resume_from(tmp_path)
