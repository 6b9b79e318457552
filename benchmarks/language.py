"""What our program costs a GRPO training: its CPU time beside bare TRL's.

The same trainer, settings, data, model and rewards, so the weights come out the same to the bit,
with a checkpoint every 50 steps. Ours has its recorder, TensorBoard, the lines of console and
debug.log, and sealed checkpoints besides. Both train in turns, ours first in every other round.
Of the training's thread each step counts with its median over the rounds, a checkpoint's as often
as it comes: what else runs on the machine only ever adds. What other threads and children take is
counted whole, and its median over the rounds taken. The summary that ends a training is left out:
it is told once, however long that was. The live diagnosis comes too seldom for that:
what one takes at a training's end counts as often as the default lets it come. The interval is a
bootstrap over the rounds.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import gc
import hashlib
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, fields, replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from transformers import TrainerCallback, set_seed
from trl import GRPOTrainer

import rlvitals
from rlvitals.trainers import judging, schema
from rlvitals.trainers.language import building, data, models, presets, rewards
from rlvitals.trainers.language.config import Config, MonitoringConfig
from rlvitals.trainers.language.program import Training

WANTED = 0.04  # the upper end of the interval, at most
ROUNDS, STEPS = 10, 200
RESAMPLES = 5000
MODEL = "tiny-lm"


def main() -> None:
    """Train in turns, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--steps", type=int, default=STEPS)
    args = parser.parse_args()
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    held: dict[Any, list[Spent]] = {bare: [], ours: []}
    for i in range(args.rounds):
        ends = set()
        for kind in (bare, ours) if i % 2 else (ours, bare):
            with tempfile.TemporaryDirectory() as folder, redirect_stdout(StringIO()):
                spent, weights = kind(settings(Path(folder) / "run", args.steps))
            ends.add(weights)
            held[kind].append(spent)
            gc.collect()
        if len(ends) > 1:
            sys.exit("the two did not come to the same weights")
    plain, full = Spent.stacked(held[bare]), Spent.stacked(held[ours])
    found = shares(plain, full)
    rng = np.random.default_rng(0)
    drawn = rng.integers(args.rounds, size=(RESAMPLES, args.rounds))
    sums = [sum(shares(plain.of(one), full.of(one)).values()) for one in drawn]
    low, high = np.quantile(sums, (0.025, 0.975))
    each = 1e3 * np.array([plain.total(), full.total()]) / args.steps
    print(f"{args.rounds} rounds of {args.steps} steps; wanted: the upper end <= {WANTED:.0%}\n")
    heads = ["CPU ms a step, bare TRL", "ours", *found, "in all", "95 % interval"]
    print("| " + " | ".join(heads) + " |\n" + "| --- " * len(heads) + "|")
    cells = [f"{one:.2f}" for one in each] + [f"{one:+.1%}" for one in found.values()]
    cells += [f"{sum(found.values()):+.1%}", f"{low:+.1%} to {high:+.1%}"]
    print("| " + " | ".join(cells) + " |")


@dataclass(frozen=True)
class Spent:
    """CPU seconds of trainings."""

    steps: np.ndarray  # [rounds, steps] of the training's thread
    others: np.ndarray  # [rounds] of other threads and of children
    diagnosis: np.ndarray  # [rounds] of one

    @classmethod
    def stacked(cls, each: Sequence["Spent"]) -> "Spent":
        """Put trainings together."""
        return cls(*(np.concatenate([getattr(one, f.name) for one in each]) for f in fields(cls)))

    def of(self, rounds: np.ndarray) -> "Spent":
        """Return some of the rounds."""
        return Spent(self.steps[rounds], self.others[rounds], self.diagnosis[rounds])

    def thread(self) -> float:
        """Return what the training's thread takes."""
        return float(np.median(self.steps, axis=0).sum())

    def total(self) -> float:
        """Return what a training takes, diagnoses left out."""
        return self.thread() + float(np.median(self.others))


def shares(plain: Spent, full: Spent) -> dict[str, float]:
    """Return how much more the second takes, part by part."""
    one = float(np.median(full.diagnosis))
    return {
        "in the thread": (full.thread() - plain.thread()) / plain.total(),
        "beside it": float(np.median(full.others) - np.median(plain.others)) / plain.total(),
        "live diagnosis": one / max(MonitoringConfig().diagnose_seconds, one / judging.SHARE),
    }


def settings(folder: Path, steps: int) -> Config:
    """Return the settings of a training in a folder: what the tiny model starts from."""
    said = {
        "training.output_dir": str(folder), "training.max_steps": steps, "model.vlm_name": MODEL,
        "monitoring.diagnose_seconds": 0.0,  # it is timed by itself
    }  # fmt: skip
    return schema.load(Config, None, said, below=presets.preset(MODEL))


class Marks(TrainerCallback):
    """Marks when each step begins, by CPU seconds."""

    def __init__(self) -> None:
        self.own: list[float] = []
        self.all: list[float] = []

    def add(self) -> None:
        """End a stretch."""
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.all.append(time.process_time() + children.ru_utime + children.ru_stime)
        self.own.append(time.thread_time())

    def on_step_begin(self, *_: object, **__: object) -> None:
        """End a step, and begin the next."""
        self.add()

    def spent(self) -> Spent:
        """Return what the training took, until now."""
        self.add()
        others = self.all[-1] - self.all[0] - (self.own[-1] - self.own[0])
        return Spent(np.diff(self.own)[None], np.array([others]), np.zeros(1))


def bare(config: Config) -> tuple[Spent, str]:
    """Train with TRL alone."""
    folder, seed, marks = Path(config.training.output_dir), config.training.seed, Marks()
    args = building.arguments(config, folder)
    set_seed(seed)
    loaded = models.load(config.model, seed=seed, base=folder / models.BASE)
    task = data.load(config.data, vision=loaded.vision, seed=seed)
    paid = rewards.functions(config.rewards, task.rewards, failed=lambda _: None)
    args.reward_weights = rewards.weights(config.rewards, paid)
    trainer = GRPOTrainer(
        model=loaded.model, args=args, reward_funcs=paid, train_dataset=task.train,
        processing_class=loaded.processor, peft_config=loaded.lora, callbacks=[marks],
    )  # fmt: skip
    trainer.train()
    trainer.save_model()
    return marks.spent(), digest(trainer)


class Marked(Training):
    """The program, with marks."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.marks = Marks()
        self.spent: Spent | None = None

    def _trainer(self, *args: object) -> GRPOTrainer:
        self.trainer = super()._trainer(*args)
        self.trainer.add_callback(self.marks)
        return self.trainer

    def sum_up(self, status: str) -> None:
        self.spent = self.marks.spent()  # all is written; how it went is told once
        super().sum_up(status)


def ours(config: Config) -> tuple[Spent, str]:
    """Train with the program, and diagnose once."""
    training = Marked(config)
    training.run()
    began = time.process_time()
    rlvitals.diagnose(training.folder)
    one = np.array([time.process_time() - began])
    return replace(training.spent, diagnosis=one), digest(training.trainer)


def digest(trainer: GRPOTrainer) -> str:
    """Return a hash of a trainer's weights."""
    held = [one.detach().numpy().tobytes() for one in trainer.model.parameters()]
    return hashlib.sha256(b"".join(held)).hexdigest()


if __name__ == "__main__":
    main()
