"""A plain Trainer of a small net with dropout, and what its checkpoints hold."""

import os
import signal
import socket
import time
from multiprocessing import get_context

import torch
from accelerate.state import AcceleratorState, GradientState, PartialState
from datasets import Dataset
from recorded import Recorded
from transformers import Trainer, TrainerCallback, TrainingArguments

import rlvitals
from rlvitals.integrations import transformers as vitals
from rlvitals.recording.control import ask

FORK = get_context("fork")
SECONDS = 120  # the longest that a child may take
STATE = ("model.safetensors", "optimizer.pt", "scheduler.pt", "rng_state.pth")


class Net(torch.nn.Module):
    """Twelve inputs, one output, dropout between: each step draws random numbers."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.first, self.last = torch.nn.Linear(12, 16), torch.nn.Linear(16, 1)

    def forward(self, x, labels):
        hidden = torch.nn.functional.dropout(self.first(x).relu(), 0.2, self.training)
        loss = (self.last(hidden).squeeze(-1) - labels).square().mean()
        return {"loss": loss, "logits": hidden}


def rows(count=40):
    dice = torch.Generator().manual_seed(5)
    x = torch.randn(count, 12, generator=dice)
    return Dataset.from_dict({"x": x.tolist(), "labels": x.sum(1).tolist()})


def plain(out, *callbacks, model=None, **options):
    """Return a Trainer: ten steps are an epoch, 24 steps a training."""
    vitals.register()
    said = {
        "output_dir": str(out),
        "per_device_train_batch_size": 4,
        "max_steps": 24,
        "save_steps": 4,
        "logging_steps": 2,
        "learning_rate": 0.01,
        "report_to": "rlvitals",
        "use_cpu": True,
        "disable_tqdm": True,
        **options,
    }
    return Trainer(
        model=model or Net(),
        args=TrainingArguments(**said),
        train_dataset=rows(),
        eval_dataset=rows(8),
        callbacks=list(callbacks),
    )


def go(trainer):
    """Run a training as its program does each time: from where it can go on."""
    path = rlvitals.resume_from(trainer)
    trainer.train(resume_from_checkpoint=path)
    return path


def state(checkpoint):
    """The bytes that a continued training must have in common with an uninterrupted one."""
    return {name: (checkpoint / name).read_bytes() for name in STATE}


class Asks(TrainerCallback):
    """Someone outside, during a step, who waits until the run has seen it."""

    def __init__(self, folder, *asked, during=2):
        self.folder, self.asked, self.during = folder, asked, during

    def on_step_begin(self, _, told, *__, **___):
        if told.global_step + 1 != self.during:
            return
        for kind in self.asked:
            ask(self.folder, kind)
        for _ in range(1000):
            if len(Recorded.read(self.folder).of("asked")) == len(self.asked):
                return
            time.sleep(0.01)


class Dies(TrainerCallback):
    """The process is killed after a step."""

    def __init__(self, step):
        self.step = step

    def on_step_end(self, _, told, *__, **___):
        if told.global_step == self.step:
            os.kill(os.getpid(), signal.SIGKILL)


def apart(do, *args):
    """Call a function in a forked process, and return how that ended."""
    child = FORK.Process(target=do, args=args, daemon=True)
    child.start()
    child.join(SECONDS)
    assert child.exitcode is not None, "the child hangs"
    return child.exitcode


def ranks(do, *args):
    """Call `do(rank, *args)` in two processes that train together; what each returns, in order."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    said = FORK.Queue()
    two = [
        FORK.Process(target=_as_rank, args=(rank, port, said, do, args), daemon=True)
        for rank in (0, 1)
    ]
    for process in two:
        process.start()
    try:
        answers = dict(said.get(timeout=SECONDS) for _ in two)
        return [answers[rank] for rank in (0, 1)]
    finally:
        for process in two:
            process.join(5)
            process.kill()


def _as_rank(rank, port, said, do, args):
    os.environ.update(
        RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
    )  # fmt: skip
    for state in (AcceleratorState, GradientState, PartialState):
        state._reset_state()
    said.put((rank, do(rank, *args)))
    said.close()
    said.join_thread()
    torch.distributed.destroy_process_group()
    os._exit(0)  # what pytest would do at the end is this process's parent's
