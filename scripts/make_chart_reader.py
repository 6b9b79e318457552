"""Train the initial weights of tiny-vlm: `make_chart_reader.py [FILE] [--steps N] [--seed N]`.

The model is taught right answers to charts that are never held out. One thread takes five CPU
minutes. The same seed, machine and version of torch give the same file.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_model
from tqdm import tqdm

from rlvitals.trainers.language import warm_start
from rlvitals.trainers.language.config import DataConfig
from rlvitals.trainers.language.data import task
from rlvitals.trainers.language.generate import Policy, greedy
from rlvitals.trainers.language.rewards import accuracy_reward
from rlvitals.trainers.language.rewards.reward import Sample
from rlvitals.trainers.language.tiny import vlm

SEED, STEPS, LEARNING_RATE = 7, 2000, 3e-3
LONGEST = 48  # tokens of an answer
HELD_OUT, TOGETHER = 1024, 256  # charts that are asked at the end, and at once


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, nargs="?", default=vlm.READER_WEIGHTS)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--seed", type=int, default=SEED)
    args = parser.parse_args()
    torch.set_num_threads(1)
    start_time = time.process_time()
    model, processor = vlm.blank(args.seed)
    lessons = vlm.lessons(processor, noise=0.0, seed=args.seed)
    with tqdm(total=args.steps, mininterval=5) as bar:

        def counted(step: int) -> Sequence[warm_start.Lesson]:
            bar.update()
            return lessons(step)

        losses = warm_start.teach(
            model, processor, counted, steps=args.steps, learning_rate=LEARNING_RATE
        )
    save_model(model, args.file)
    took = time.process_time() - start_time
    print(f"loss {losses[0]:.2f} -> {np.mean(losses[-50:]):.3f}, {took:.0f} s of one thread")
    print(f"{right(model, processor):.3f} of {HELD_OUT} held-out charts are answered right")
    print(f"{args.file}: {args.file.stat().st_size:,} bytes")


def right(model: Any, processor: Any) -> float:
    """Return the share of held-out charts whose likeliest answer is right."""
    questions = task.load(
        DataConfig(subset_size=1, held_out=HELD_OUT), vision=True, seed=0
    ).held_out
    policy, paid = Policy(model, processor, 1.0, LONGEST), []
    for start in range(0, len(questions), TOGETHER):
        rows = [
            questions[position] for position in range(start, min(start + TOGETHER, len(questions)))
        ]
        for row, answer in zip(rows, greedy(policy, rows).completions, strict=True):
            paid.append(accuracy_reward.score(Sample(answer[0]["content"], row)))
    return float(np.mean(paid))


if __name__ == "__main__":
    main()
