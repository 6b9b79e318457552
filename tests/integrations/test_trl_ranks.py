"""Two processes train together, forked from this one: they meet at every message or hang."""

import os
import time

import pytest
import trl_twins as twins
from forked import ranks
from recorded import Recorded
from transformers import TrainerCallback, set_seed

from rlvitals.integrations.trl import Preflight, Record
from rlvitals.tracking.requests import ask

pytestmark = [
    pytest.mark.filterwarnings("ignore", "error:::rlvitals"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
]


class OneSeed(twins.GRPOTrainer):
    """Every process draws with the same seed."""

    def _generate(self, prompts):
        set_seed(0)
        return super()._generate(prompts)


class Asks(TrainerCallback):
    """Someone outside wants to stop; only the first process can see it."""

    def __init__(self, record):
        self.record = record

    def on_step_begin(self, _, state, *__, **___):
        if state.global_step == 2 and self.record.run is not None:
            ask(self.record.run.folder, "stop")
            while not self.record.run._control._stops:
                time.sleep(0.01)


def train(rank, base, out, kind):
    """Train as one of two processes, and say how it went."""
    options = {"per_device_train_batch_size": 4, "num_generations": 8, "max_steps": 20}
    trainer = twins.trainer(base, out, kind, **options)
    preflight, record = Preflight(trainer, quiet=True), Record(trainer, flush_seconds=0.01)
    for callback in (record, preflight, Asks(record)):
        trainer.add_callback(callback)
    trainer.train()
    checks = [(check.name, str(check)) for check in preflight.report.failed]
    passed = [check.name for check in preflight.report.passed]
    return rank, trainer.state.global_step, checks, passed


@pytest.fixture
def together(base, tmp_path):
    return lambda kind: ranks(train, base, tmp_path, kind)


def test_two_healthy_processes_record_one_run_and_stop_together(together, tmp_path):
    (_, steps, failed, passed), other = together(twins.GRPOTrainer)
    assert failed == []
    assert {"ranks-differ", "group-advantages-centred", "sampler-has-weights"} <= set(passed)
    assert other[1:] == (steps, failed, passed)
    assert steps == 3  # asked during the third step
    run = Recorded.read(tmp_path)
    assert len(run.scans) == 1
    assert [step for step, _ in run.series("reward")] == [1, 2, 3]
    assert [len(table) for table in run.tables("completions")] == [8, 8, 8]
    assert run.about.settings["world_size"] == 2


def test_one_seed_for_two_processes_is_caught_on_both(together):
    for _, _, failed, _ in together(OneSeed):
        assert [name for name, _ in failed] == ["ranks-differ"]
        assert "the same as process 0's" in failed[0][1]
