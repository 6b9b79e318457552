"""Measure the CPU time of a GRPO training compared with TRL's GRPOTrainer.

The same trainer, settings, data, model and rewards, so the weights come out the same to the bit,
with a checkpoint every 50 steps. Ours has its recorder, TensorBoard, the lines of console and
debug.log, and sealed checkpoints besides. In each round both train at once, each in a process of
its own, and take turns: a step here, then the same step there. Whatever else slows the machine
slows both, so each step of the training's thread is compared with its twin. What comes by the
clock comes twice as often as it would alone: that counts against ours. What other threads and
children take is counted whole. The summary that ends a training is left out: it is told once,
however long that was. The live diagnosis comes too seldom for that: what one takes at a training's
end counts as often as the default lets it come. The interval is a t interval of the mean over the
rounds.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import hashlib
import multiprocessing
import resource
import sys
import tempfile
import time
import warnings
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier, Semaphore
from pathlib import Path

import numpy as np
import torch
import transformers
from transformers import TrainerCallback, set_seed
from trl import GRPOTrainer

import rlvitals
from rlvitals.comparison.statistics import CONFIDENCE_LEVEL, welch
from rlvitals.trainers import health_monitor, schema
from rlvitals.trainers.language import data, factory, models, presets, rewards
from rlvitals.trainers.language.config import Config, MonitoringConfig
from rlvitals.trainers.language.program import Training

WANTED = 0.04  # the upper end of the interval, at most
ROUNDS, STEPS = 12, 250
MODEL = "tiny-lm"
PATIENCE = 300  # seconds for the other's step, before something is wrong


@dataclass(frozen=True)
class Spent:
    """CPU seconds of a training, and a hash of the weights it came to."""

    steps: np.ndarray  # [steps] of the training's thread
    others: float  # of other threads and of children
    diagnosis: float  # of one; 0: none
    weights: str

    @property
    def total(self) -> float:
        """CPU seconds of all but the diagnosis."""
        return float(self.steps.sum()) + self.others


def main() -> None:
    """Train in pairs, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--steps", type=int, default=STEPS)
    args = parser.parse_args()
    pairs = [paired(args.steps, ahead=i % 2) for i in range(args.rounds)]
    if any(plain.weights != full.weights for plain, full in pairs):
        sys.exit("the two did not come to the same weights")
    share_list = [shares(plain, full) for plain, full in pairs]
    mean_shares = {name: np.mean([share[name] for share in share_list]) for name in share_list[0]}
    total_interval = welch(
        [np.array([sum(share.values()) for share in share_list])], None, CONFIDENCE_LEVEL
    )
    each = [1e3 * np.mean([pair[i].total for pair in pairs]) / args.steps for i in (0, 1)]
    print(f"{args.rounds} rounds of {args.steps} steps; wanted: the upper end <= {WANTED:.0%}\n")
    heads = [
        "CPU ms a step, bare TRL",
        "ours",
        *mean_shares,
        "in all",
        f"{CONFIDENCE_LEVEL:.0%} interval",
    ]
    print("| " + " | ".join(heads) + " |\n" + "| --- " * len(heads) + "|")
    cells = [f"{share:.2f}" for share in each] + [f"{share:+.1%}" for share in mean_shares.values()]
    cells += [
        f"{total_interval.value:+.1%}",
        f"{total_interval.low:+.1%} to {total_interval.high:+.1%}",
    ]
    print("| " + " | ".join(cells) + " |")


def shares(plain: Spent, full: Spent) -> dict[str, float]:
    """Return how much more the second takes, part by part."""
    rests = max(MonitoringConfig().diagnose_seconds, full.diagnosis / health_monitor.MAX_TIME_SHARE)
    return {
        "in the thread": float((full.steps - plain.steps).sum()) / plain.total,
        "beside it": (full.others - plain.others) / plain.total,
        "live diagnosis": full.diagnosis / rests,
    }


def paired(steps: int, *, ahead: int) -> tuple[Spent, Spent]:
    """Train with TRL alone and with ours, step by step in turns; `ahead`: which begins."""
    context = multiprocessing.get_context("spawn")
    gate = context.Barrier(2)
    turns = [context.Semaphore(int(i == ahead)) for i in (0, 1)]
    queue: Queue[tuple[int, Spent]] = context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        processes = [
            context.Process(
                target=trained, args=(i, folder, steps, (gate, turns[i], turns[1 - i]), queue)
            )
            for i in (0, 1)
        ]
        for process in processes:
            process.start()
        spent_by_index = dict(queue.get(timeout=PATIENCE + steps) for _ in processes)
        for process in processes:
            process.join()
    return spent_by_index[0], spent_by_index[1]


def trained(
    index: int,
    folder: str,
    steps: int,
    turns: tuple[Barrier, Semaphore, Semaphore],
    queue: "Queue[tuple[int, Spent]]",
) -> None:
    """Train in a process of its own, silently, and tell what was spent."""
    warnings.simplefilter("ignore")
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    config = settings(Path(folder) / f"run-{index}", steps)
    with redirect_stdout(StringIO()):
        queue.put((index, (bare, ours)[index](config, Turns(*turns))))


def settings(folder: Path, steps: int) -> Config:
    """Return the settings of a training in a folder: what the tiny model starts from."""
    options = {
        "training.output_dir": str(folder), "training.max_steps": steps, "model.vlm_name": MODEL,
        "monitoring.diagnose_seconds": 0.0,  # it is timed by itself
    }  # fmt: skip
    return schema.load(Config, None, options, below=presets.preset(MODEL))


class Turns(TrainerCallback):
    """Takes turns with the other training, a step each, and counts the CPU seconds of its own."""

    def __init__(self, gate: Barrier, own_turn: Semaphore, other_turn: Semaphore) -> None:
        self.gate, self.own, self.other = gate, own_turn, other_turn
        self.steps: list[float] = []  # of the training's thread
        self.others = 0.0
        self.began = (0.0, 0.0)  # all the process's, and the thread's
        self.since = 0.0

    def on_step_begin(self, *_: object, **__: object) -> None:
        """End a step, and begin the next when it is its turn."""
        if self.since:
            self._end()
        else:
            self.gate.wait(PATIENCE)
            self.began = process(), time.thread_time()
        if not self.own.acquire(timeout=PATIENCE):
            sys.exit("the other training does not go on")
        self.since = time.thread_time()

    def _end(self) -> None:
        self.steps.append(time.thread_time() - self.since)
        self.other.release()

    def spent(self, trainer: GRPOTrainer, diagnosis: float = 0.0) -> Spent:
        """Return what the training took; the last step ends where `stop` was called."""
        digests = [parameter.detach().numpy().tobytes() for parameter in trainer.model.parameters()]
        digest = hashlib.sha256(b"".join(digests)).hexdigest()
        return Spent(np.array(self.steps), self.others, diagnosis, digest)

    def stop(self) -> None:
        """End the last step: all is written."""
        self._end()
        start, thread = self.began
        self.others = (process() - start) - (time.thread_time() - thread)


def process() -> float:
    """Return the CPU seconds of all threads, and of children that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def bare(config: Config, turns: Turns) -> Spent:
    """Train with TRL alone."""
    folder, seed = Path(config.training.output_dir), config.training.seed
    args = factory.arguments(config, folder)
    set_seed(seed)
    loaded = models.load(config.model, seed=seed, base=folder / models.BASE_FOLDER)
    task = data.load(config.data, vision=loaded.vision, seed=seed)
    paid = rewards.functions(config.rewards, task.rewards, failed=lambda _: None)
    args.reward_weights = rewards.weights(config.rewards, paid)
    trainer = GRPOTrainer(
        model=loaded.model, args=args, reward_funcs=paid, train_dataset=task.train,
        processing_class=loaded.processor, peft_config=loaded.lora, callbacks=[turns],
    )  # fmt: skip
    trainer.train()
    trainer.save_model()
    turns.stop()
    return turns.spent(trainer)


class Paced(Training):
    """The program, that takes turns."""

    def __init__(self, config: Config, turns: Turns) -> None:
        super().__init__(config)
        self.turns = turns

    def _trainer(self, *args: object) -> GRPOTrainer:
        self.trainer = super()._trainer(*args)
        self.trainer.add_callback(self.turns)
        return self.trainer

    def log_summary(self, status: str) -> None:
        self.turns.stop()  # all is written; how it went is told once
        super().log_summary(status)


def ours(config: Config, turns: Turns) -> Spent:
    """Train with the program, and diagnose once."""
    training = Paced(config, turns)
    training.run()
    start_time = time.process_time()
    rlvitals.diagnose(training.folder)
    return turns.spent(training.trainer, time.process_time() - start_time)


if __name__ == "__main__":
    main()
