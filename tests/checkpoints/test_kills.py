"""Killed at any moment, a run goes on from a whole checkpoint, and to the same bits."""

import random

import numpy as np
import pytest
import torch
from effort import cases
from killing import heard, in_memory, killed, started

from rlvitals.checkpoints import manifest, naming
from rlvitals.checkpoints.manager import Checkpoints
from rlvitals.checkpoints.state.training_state import State

FURTHER = 5  # steps that both runs go on


class Training:
    """A small torch model on made data: its own dice, and the global streams of all three."""

    def __init__(self):
        torch.manual_seed(1)
        random.seed(2)
        np.random.seed(3)
        self.model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(),
                                         torch.nn.Dropout(0.2), torch.nn.Linear(32, 1))  # fmt: skip
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-2)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 5000)
        self.dice = np.random.default_rng(4)
        self.average = np.zeros(1)
        self.state = State(model=self.model, optimizer=self.optimizer, schedule=self.schedule,
                           dice=self.dice, average=self.average, step=0)  # fmt: skip

    def train(self):
        inputs = torch.as_tensor(self.dice.normal(size=(16, 8)), dtype=torch.float32)
        inputs += random.random() + np.random.rand()
        loss = (self.model(inputs) - inputs.sum(1, keepdim=True)).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.schedule.step()
        self.average += 0.1 * (loss.item() - self.average)
        self.state["step"] += 1

    def bits(self):
        parts = [one.detach().numpy().tobytes() for one in self.model.parameters()]
        moments = [self.optimizer.state[one] for one in self.model.parameters()]
        parts += [one.numpy().tobytes() for held in moments for one in held.values()]
        streams = [torch.rand(1).item(), random.random(), np.random.rand(), self.dice.random()]
        return [*parts, self.schedule.get_last_lr(), self.average.tobytes(), *streams]


def train_and_save(say, folder, background):
    """Train for ever from where the newest checkpoint stands; say each step that is committed."""
    training = Training()
    checkpoints = Checkpoints(folder, every=1, keep=1, background=background, tell=lambda _: None)
    checkpoints.restore_state(training.state)
    say(training.state["step"])
    while True:
        before = training.state["step"]
        training.train()
        checkpoints.save_state(training.state["step"], training.state)
        say(before if background else training.state["step"])


def kills(folder, times, *, background):
    last = 0
    for said in killed(train_and_save, folder, background, times=times, words=(2, 5), moment=0.01):
        assert said[0] >= last, "what was committed is gone"
        found = Checkpoints(folder, tell=lambda _: None).latest()
        last = found.step
        assert last >= max(said)
    assert not naming.find_unfinished(folder)
    assert not list(folder.glob("*.corrupt*"))
    same_as_uninterrupted(folder)


def same_as_uninterrupted(folder):
    resumed = Training()
    resumed.train()  # what a program does before it restores does not matter
    found = Checkpoints(folder, tell=lambda _: None).restore_state(resumed.state)
    # This process has loaded other files of tests than the one that saved.
    assert not [text for text in found.differs if not text.endswith((" is new", " are new"))]
    for _ in range(FURTHER):
        resumed.train()
    streams = resumed.bits()
    whole = Training()
    for _ in range(found.step + FURTHER):
        whole.train()
    assert streams == whole.bits()


@pytest.fixture(autouse=True)
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def folder(tmp_path):
    with in_memory(tmp_path) as found:
        yield found


@pytest.mark.parametrize("background", [False, True], ids=["waiting", "beside"])
def test_killed_at_random_moments_it_goes_on_to_the_same_bits(folder, background):
    kills(folder, cases(4, 20), background=background)


@pytest.mark.soak
@pytest.mark.parametrize("background", [False, True], ids=["waiting", "beside"])
def test_killed_three_hundred_times_it_goes_on_to_the_same_bits(folder, background):
    kills(folder, 300, background=background)


def save_one(say, folder, at):
    """Save a second checkpoint and die at one call of the system, counted from its beginning."""
    import os
    import signal
    import sys

    checkpoints = Checkpoints(folder, keep=1, tell=lambda _: None)
    training = Training()
    training.train()
    calls = 0

    def audit(event, _):
        nonlocal calls
        if event in {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "shutil.rmtree"}:
            calls += 1
            if calls == at:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(audit)
    checkpoints.save_state(2, training.state)
    say(calls)


def test_killed_before_each_of_its_calls_of_the_system(folder):
    """Not by chance: before every file that saving and pruning opens, renames or removes."""
    at, ended = 0, False
    while not ended:
        at += 1
        run = folder / str(at)
        first = Checkpoints(run, keep=1, tell=lambda _: None)
        first.save_state(1, Training().state)
        process, pipe = started(save_one, run, at)
        process.join()
        ended = process.exitcode == 0
        assert not ended or heard(pipe) < at
        pipe.close()
        found = Checkpoints(run, tell=lambda _: None).restore()
        assert found.step in {1, 2}
        assert manifest.verify(found.folder).step == found.step
        assert not naming.find_unfinished(run)
    assert found.step == 2
    assert at > 20, "the calls were not counted"
