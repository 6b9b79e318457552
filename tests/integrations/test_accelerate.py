"""`accelerator.log` is recorded, by the tracker's name or with the tracker itself."""

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, GradientState, PartialState
from recorded import Recorded

from rlvitals.integrations import accelerate as vitals

pytestmark = pytest.mark.filterwarnings("ignore", "error:::rlvitals")


@pytest.fixture(autouse=True)
def fresh():
    yield
    for state in (AcceleratorState, GradientState, PartialState):
        state._reset_state()


def trained(accelerator, steps=3):
    """Fit a line with everything an accelerator wraps, and log each step."""
    torch.manual_seed(0)
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = accelerator.prepare(model, optimizer)
    losses = []
    for step in range(steps):
        x = torch.rand(8, 1)
        loss = torch.nn.functional.mse_loss(model(x), 2 * x)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        accelerator.log({"loss": loss.detach(), "lr": np.float32(0.1), "phase": "warm"}, step=step)
    accelerator.end_training()
    return losses


def test_it_is_found_by_its_name(tmp_path):
    vitals.register()
    accelerator = Accelerator(log_with="rlvitals", cpu=True)
    options = {"folder": tmp_path, "name": "line", "seed": 3}
    config = {"learning_rate": 0.1, "layers": [1, 1], "optimiser": torch.optim.SGD}
    accelerator.init_trackers("lines", config, {"rlvitals": options})
    assert accelerator.get_tracker("rlvitals", unwrap=True).folder == tmp_path
    losses = trained(accelerator)
    run = Recorded.read(tmp_path)
    assert run.series("loss") == list(enumerate(losses))
    assert run.series("lr")[0] == (0, pytest.approx(0.1))
    assert [text.text for text in run.texts("phase")] == ["warm"] * 3
    assert (run.about.project, run.about.name, run.about.seed) == ("lines", "line", 3)
    changed = run.of("settings")[0].facts["changed"]
    assert changed["learning_rate"]["to"] == 0.1
    assert run.of("finish")[0].facts["status"] == "finished"


def test_it_can_be_handed_over_and_counts_steps_that_nobody_gives(tmp_path):
    accelerator = Accelerator(log_with=[vitals.Tracker("lines", folder=tmp_path)], cpu=True)
    accelerator.init_trackers("lines")
    for value in (3.0, 2.0):
        accelerator.log({"loss": value})
    accelerator.end_training()
    assert Recorded.read(tmp_path).series("loss") == [(0, 3.0), (1, 2.0)]


def test_registering_twice_is_registering_once(recwarn):
    vitals.register()
    vitals.register()
    assert not [w for w in recwarn if "already registered" in str(w.message)]
