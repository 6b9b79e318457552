"""A training that goes on under other settings, in another place, or is refused."""

import shutil

import pytest
from test_language_program import row, said
from trained import SAID, train

import rlvitals
from rlvitals.trainers.language import sharded_models

pytestmark = pytest.mark.filterwarnings("ignore", "error:::rlvitals")
FEW = {**SAID, "training__max_steps": 2, "checkpointing__save_steps": 2}
RATE = 5e-4  # of the preset


@pytest.fixture(scope="module")
def short_run(tmp_path_factory, tiny):
    """A training of two steps with the settings FEW."""
    folder = tmp_path_factory.mktemp("short") / "run"
    train(folder, "nsr", tiny, **FEW)
    return folder


@pytest.fixture
def run(short_run, tmp_path):
    """A copy of the short run, at another place."""
    return shutil.copytree(short_run, tmp_path / "run")


def test_a_longer_schedule_begins_where_it_has_the_next_step(run):
    """The old one ended at a learning rate of 0, which the next step would have had."""
    assert row(run, "learning_rate") == [RATE, RATE / 2]
    train(run, "nsr", **{**FEW, "training__max_steps": 4})
    assert row(run, "learning_rate") == [RATE, RATE / 2, RATE / 2, RATE / 4]
    assert (
        "[checkpoint] the schedule is that of 4 steps now: step 3 has a learning rate of 0.00025, "
        "and would have had 0"
    ) in said(run)


def test_another_learning_rate_is_that_of_the_steps_that_come(tmp_path, tiny):
    way = {**FEW, "training__lr_scheduler_type": "constant"}
    train(tmp_path, "nsr", tiny, **way)
    train(tmp_path, "nsr", **{**way, "training__max_steps": 4, "training__learning_rate": 1e-4})
    assert row(tmp_path, "learning_rate") == [RATE, RATE, 1e-4, 1e-4]


def test_the_same_schedule_is_not_told(tmp_path, tiny):
    train(tmp_path, "nsr", tiny, **{**SAID, "training__max_steps": 4})
    (tmp_path / "checkpoint-4" / "optimizer.pt").write_bytes(b"")
    train(tmp_path, "nsr", **{**SAID, "training__max_steps": 4})
    told = "\n".join(said(tmp_path))
    assert "resumed at step 3" in told
    assert "the schedule is" not in told


def test_a_moved_run_has_no_other_settings(run):
    train(run, "nsr", **FEW)
    told = "\n".join(said(run))
    assert "resumed at step 2" in told
    assert "settings changed" not in told


def test_nothing_is_resumed_that_is_refused(run, monkeypatch):
    before = (run / "training_config.json").read_text()

    def refused(_, checkpoint):
        raise rlvitals.VitalsError("it was saved by DeepSpeed", where=str(checkpoint))

    monkeypatch.setattr(sharded_models, "check_resume", refused)
    with pytest.raises(rlvitals.VitalsError, match="saved by DeepSpeed"):
        train(run, "nsr", **{**FEW, "training__max_steps": 4})
    assert not any("resumed at step" in line for line in said(run))
    assert (run / "training_config.json").read_text() == before
    monkeypatch.undo()
    for _ in range(2):  # what was refused is refused again
        with pytest.raises(rlvitals.UsageError, match="other weights"):
            train(run, "nsr", **{**FEW, "model__lora": True})
    assert not any("resumed at step" in line for line in said(run))
