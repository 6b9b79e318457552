"""A plain Trainer of a small net with dropout, and what its checkpoints hold."""

import os
import signal
import time

import torch
from datasets import Dataset
from recorded import Recorded
from transformers import Trainer, TrainerCallback, TrainingArguments

import rlvitals
from rlvitals.integrations import transformers as vitals
from rlvitals.tracking.requests import ask


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


class Asks(TrainerCallback):
    """Someone outside, during a step, who waits until the run has seen it."""

    def __init__(self, folder, *asked, during=2, **facts):
        self.folder, self.asked, self.during, self.facts = folder, asked, during, facts

    def on_step_begin(self, _, told, *__, **___):
        if told.global_step + 1 != self.during:
            return
        for kind in self.asked:
            ask(self.folder, kind, **self.facts)
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
