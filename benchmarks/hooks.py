"""Measure the CPU time that a hook adds to a training.

A training is the same bit for bit with and without, so its stretches can be compared one by one:
of each the least CPU time of the training's thread over the rounds counts, as what else runs on
the machine only ever adds. What the recorder's own threads took is counted whole, from the first
stretch on; what starting costs is `recording.py`'s. Beside us is what the frameworks themselves
write to TensorBoard, which keeps their logger's keys alone.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import transformers
from datasets import Dataset
from stable_baselines3 import A2C, PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from transformers import Trainer, TrainerCallback, TrainingArguments

import rlvitals
from rlvitals.integrations import transformers as hugging_face
from rlvitals.integrations.stable_baselines3 import Record

sys.path.append(str(Path(__file__).resolve().parents[1] / "scripts"))
import tiny_language

ROUNDS, WANTED = 8, 0.03  # rounds of each; a share of the CPU time, at most
STRETCH = 50  # steps of an environment
SETTLED = 2.0  # seconds in which what a start reads on a thread is read
KINDS = ("none", "rlvitals", "tensorboard")
TITLES = (
    "| training | CPU ms an update | rlvitals | its threads | with TensorBoard |",
    "| --- | --- | --- | --- | --- |",
    f"| wanted | | < {WANTED:.0%} in all | | |",
)

Train = Callable[[str, Path, "Marks"], None]  # with one of the kinds, into a folder


class Marks:
    """When each stretch ended, by CPU seconds: of this thread, and of the process's others."""

    def __init__(self) -> None:
        self.own: list[float] = []
        self.others: list[float] = []

    def add(self) -> None:
        """End a stretch."""
        thread_seconds = time.thread_time()
        self.own.append(thread_seconds)
        self.others.append(time.process_time() - thread_seconds)


def main() -> list[str]:
    """Time every training and return the table's rows."""
    torch.set_num_threads(1)
    transformers.utils.logging.set_verbosity_error()
    print(f"the least of {ROUNDS} rounds, stretch by stretch")
    print(*TITLES, sep="\n")
    rows = []
    for name, (train, updates) in TRAININGS.items():
        rows.append(measured(name, train, updates))
        print(rows[-1], flush=True)
    return rows


def measured(name: str, train: Train, updates: int) -> str:
    """Train in turns with each kind of recording."""
    marks_by_kind: dict[str, list[Marks]] = {kind: [] for kind in KINDS}
    for _ in range(ROUNDS):
        for kind in KINDS:
            marks = Marks()
            with tempfile.TemporaryDirectory() as folder:
                train(kind, Path(folder), marks)
            marks_by_kind[kind].append(marks)
    own_seconds = {
        kind: _least([mark.own for mark in marks]) for kind, marks in marks_by_kind.items()
    }
    other_seconds = {
        kind: float(np.median([mark.others[-1] - mark.others[0] for mark in marks]))
        for kind, marks in marks_by_kind.items()
    }
    plain = own_seconds["none"]
    ours, theirs = (own_seconds[kind] / plain - 1 for kind in KINDS[1:])
    threads = (other_seconds["rlvitals"] - other_seconds["none"]) / plain
    peer = theirs + (other_seconds["tensorboard"] - other_seconds["none"]) / plain
    each = 1e3 * plain / updates
    return f"| {name} | {each:.2f} | {ours + threads:+.1%} | {threads:+.1%} | {peer:+.1%} |"


def _least(rounds: list[list[float]]) -> float:
    """Return the sum of the stretches, each as short as it ever was."""
    return float(np.diff(np.array(rounds), axis=1).min(axis=0).sum())


class Marking(BaseCallback):
    """Marks so many steps that Stable-Baselines3 collects, and each that its optimiser makes."""

    def __init__(self, marks: Marks, every: int) -> None:
        super().__init__()
        self.marks, self.every = marks, every

    def _on_training_start(self) -> None:
        self.model.policy.optimizer.register_step_post_hook(lambda *_: self.marks.add())

    def _on_step(self) -> bool:
        if self.num_timesteps % self.every == 0:
            self.marks.add()
        return True


def baselines(algorithm: type[OnPolicyAlgorithm], steps: int) -> Train:
    """Train an agent of Stable-Baselines3 on CartPole."""

    def train(kind: str, folder: Path, marks: Marks) -> None:
        logs = str(folder / "logs") if kind == "tensorboard" else None
        model = algorithm("MlpPolicy", "CartPole-v1", seed=1, device="cpu", tensorboard_log=logs)
        callbacks: list[BaseCallback] = [Marking(marks, STRETCH)]
        run = None
        if kind == "rlvitals":
            run = rlvitals.start(folder / "run")
            time.sleep(SETTLED)
            callbacks.insert(0, Record(run))
        model.learn(steps, callback=callbacks)
        if run is not None:
            run.finish()

    return train


class Stepping(TrainerCallback):
    """Marks every step of a Trainer."""

    def __init__(self, marks: Marks) -> None:
        self.marks = marks

    def on_step_begin(self, *_: object, **__: object) -> None:
        self.marks.add()


def language(steps: int) -> Train:
    """Train a language model of 130,000 weights with a Trainer that logs each step."""
    tokens = torch.randint(0, 10, (256, 32), generator=torch.Generator().manual_seed(0)).tolist()
    data = Dataset.from_dict({"input_ids": tokens, "labels": tokens})

    def train(kind: str, folder: Path, marks: Marks) -> None:
        arguments = TrainingArguments(
            str(folder),
            max_steps=steps,
            logging_steps=1,
            per_device_train_batch_size=4,
            save_strategy="no",
            disable_tqdm=True,
            use_cpu=True,
            report_to="tensorboard" if kind == "tensorboard" else "none",
        )
        callbacks: list[TrainerCallback] = [Stepping(marks)]
        run = None
        if kind == "rlvitals":
            run = rlvitals.start(folder / "run")
            time.sleep(SETTLED)
            callbacks.insert(0, hugging_face.Record(run=run))
        model = tiny_language.untrained(tiny_language.tokenizer())
        trainer = Trainer(model, arguments, train_dataset=data, callbacks=callbacks)
        trainer.pop_callback(transformers.PrinterCallback)
        trainer.train()
        if run is not None:
            run.finish()

    return train


TRAININGS: dict[str, tuple[Train, int]] = {  # with the updates that each makes
    "SB3 PPO, an update every 2,048 steps": (baselines(PPO, 4 * 2048), 4),
    "SB3 A2C, an update every 5 steps": (baselines(A2C, 5000), 1000),
    "Trainer, a row logged every step": (language(100), 100),
}

if __name__ == "__main__":
    sys.exit(not main())
