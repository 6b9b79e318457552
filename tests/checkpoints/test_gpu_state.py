"""The state of a training on a GPU: saved as it was, put back to the bit."""

import numpy as np
import pytest
import torch

from rlvitals.checkpoints.manager import Checkpoints
from rlvitals.checkpoints.state.training_state import State

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")


class Training:
    """A small training with all that a GPU keeps: moments, a scaler, a schedule, dropout."""

    def __init__(self, seed=0):
        torch.manual_seed(seed)
        self.model = torch.nn.Sequential(
            torch.nn.Linear(32, 256),
            torch.nn.Dropout(0.2),
            torch.nn.ReLU(),
            torch.nn.Linear(256, 1),
        ).cuda()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), 1e-3)
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 3, 0.5)
        self.scaler = torch.amp.GradScaler("cuda")
        self.state = State(
            model=self.model, optimizer=self.optimizer, schedule=self.schedule, scaler=self.scaler
        )

    def step(self, count=1):
        for _ in range(count):
            batch = torch.randn(64, 32, device="cuda")
            with torch.autocast("cuda", torch.float16):
                loss = (self.model(batch) - batch.sum(1, keepdim=True)).square().mean()
            self.optimizer.zero_grad()
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.schedule.step()

    def bits(self):
        return [p.detach().cpu().numpy().tobytes() for p in self.model.parameters()]


@pytest.mark.filterwarnings("ignore:Detected call of")  # a scaler's first step is left out
def test_a_resume_gives_the_same_bits(tmp_path):
    training = Training()
    training.step(7)
    training.state.save(tmp_path)
    training.step(9)
    resumed = Training(seed=5)
    resumed.step(2)
    resumed.state.load(tmp_path)
    resumed.step(9)
    assert resumed.bits() == training.bits()


@pytest.mark.parametrize("aside", [False, True], ids=["stream", "side stream"])
def test_a_save_beside_the_training_is_of_its_moment(tmp_path, aside):
    weights = torch.zeros(1 << 26, device="cuda")  # 256 MiB
    checkpoints = Checkpoints(tmp_path, every=1, keep=20, background=True, tell=lambda _: None)
    with torch.cuda.stream(torch.cuda.Stream() if aside else torch.cuda.current_stream()):
        for step in range(1, 6):
            torch.cuda._sleep(100_000_000)
            weights += 1
            checkpoints.save_state(step, State(weights=weights))
            weights += 100
            weights -= 100
    checkpoints.close()
    for step in range(1, 6):
        state = State(weights=torch.zeros(1 << 26))
        state.load(tmp_path / f"checkpoint-{step}")
        assert state["weights"].unique().tolist() == [float(step)]


@pytest.mark.parametrize(
    "dtype",
    [torch.bfloat16, torch.float16, torch.float8_e4m3fn, torch.int64, torch.bool, torch.complex64],
)
def test_kinds_of_numbers(tmp_path, dtype):
    value = torch.arange(24, device="cuda").reshape(4, 6).to(dtype)
    State(value=value[:, ::2], host=np.ones(2)).save(tmp_path)
    state = State(value=torch.zeros(4, 3, dtype=dtype, device="cuda"), host=np.zeros(2))
    state.load(tmp_path)
    assert state["value"].device.type == "cuda"
    assert torch.equal(
        state["value"].cpu().view(torch.uint8), value[:, ::2].cpu().contiguous().view(torch.uint8)
    )
