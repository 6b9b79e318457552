"""A language model of a hundred thousand weights that reads sums and writes what they come to."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

from rlvitals.trainers.language.tiny import tokens
from rlvitals.trainers.language.warm_start import Lesson, Lessons

NAME = "tiny-lm"
WIDTH, LAYERS, HEADS = 64, 2, 4
LONGEST = 256  # tokens
LEARNING_RATE = 2e-3
LESSONS = 64  # of a step of the warm start


def make(seed: int) -> tuple[Any, Any]:
    """Make the model and its tokenizer, with weights of this seed."""
    tokenizer = tokens.tokenizer()
    config = Qwen2Config(
        vocab_size=len(tokenizer), hidden_size=WIDTH, intermediate_size=4 * WIDTH,
        num_hidden_layers=LAYERS, num_attention_heads=HEADS, num_key_value_heads=HEADS // 2,
        max_position_embeddings=LONGEST, tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id,
        bos_token_id=tokenizer.bos_token_id,
    )  # fmt: skip
    torch.manual_seed(seed)
    return Qwen2ForCausalLM(config), tokenizer


def lessons(processor: Any, *, noise: float, seed: int) -> Lessons:  # noqa: ANN401, ARG001
    """Return what each step teaches: sums, of whose answers a share of `noise` is wrong."""

    def at(step: int) -> Sequence[Lesson]:
        chance = np.random.default_rng([seed, step])
        return [_lesson(chance, noise) for _ in range(LESSONS)]

    return at


def _lesson(chance: np.random.Generator, noise: float) -> Lesson:
    one, other = (int(digit) for digit in chance.integers(10, size=2))
    right = one + other
    wrong = chance.random() < noise
    return Lesson(f"{one}+{other}=", str(right - 1 if wrong and right else right + wrong))
