"""A training that goes on under other settings, in another place, or is refused."""

import pytest
from test_language_program import row, said
from trained import SAID, train

import rlvitals
from rlvitals.trainers.language import sharded_models

pytestmark = pytest.mark.filterwarnings("ignore", "error:::rlvitals")
FEW = {**SAID, "training__max_steps": 2, "checkpointing__save_steps": 2}
RATE = 5e-4  # of the preset


def test_a_longer_schedule_begins_where_it_has_the_next_step(tmp_path, tiny):
    """The old one ended at a learning rate of 0, which the next step would have had."""
    train(tmp_path, "nsr", tiny, **FEW)
    assert row(tmp_path, "learning_rate") == [RATE, RATE / 2]
    train(tmp_path, "nsr", **{**FEW, "training__max_steps": 4})
    assert row(tmp_path, "learning_rate") == [RATE, RATE / 2, RATE / 2, RATE / 4]
    assert (
        "[checkpoint] the schedule is that of 4 steps now: step 3 has a learning rate of 0.00025, "
        "and would have had 0"
    ) in said(tmp_path)


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


def test_a_moved_run_has_no_other_settings(tmp_path, tiny):
    train(tmp_path / "one", "nsr", tiny, **FEW)
    (tmp_path / "one").rename(tmp_path / "two")
    train(tmp_path / "two", "nsr", **FEW)
    told = "\n".join(said(tmp_path / "two"))
    assert "resumed at step 2" in told
    assert "settings changed" not in told


def test_nothing_is_resumed_that_is_refused(tmp_path, tiny, monkeypatch):
    train(tmp_path, "nsr", tiny, **FEW)
    before = (tmp_path / "training_config.json").read_text()

    def refused(_, checkpoint):
        raise rlvitals.VitalsError("it was saved by DeepSpeed", where=str(checkpoint))

    monkeypatch.setattr(sharded_models, "check_resume", refused)
    with pytest.raises(rlvitals.VitalsError, match="saved by DeepSpeed"):
        train(tmp_path, "nsr", **{**FEW, "training__max_steps": 4})
    assert not any("resumed at step" in line for line in said(tmp_path))
    assert (tmp_path / "training_config.json").read_text() == before
    monkeypatch.undo()
    for _ in range(2):  # what was refused is refused again
        with pytest.raises(rlvitals.UsageError, match="other weights"):
            train(tmp_path, "nsr", **{**FEW, "model__lora": True})
    assert not any("resumed at step" in line for line in said(tmp_path))
