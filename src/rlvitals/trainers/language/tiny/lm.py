"""A language model with a hundred thousand weights that computes sums."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from rlvitals.trainers.language.data import sums_task
from rlvitals.trainers.language.tiny import tokens
from rlvitals.trainers.language.warm_start import Lesson, Lessons

LM_NAME = "tiny-lm"
LM_LEARNING_RATE = 3e-3
MIN_LARGE_SUM, LARGE_SUM_SHARE = (
    16,
    0.6628,
)  # a sum from here on is large: such a share of all the sums is


def make(seed: int) -> tuple[Any, Any]:
    """Make the model and its tokenizer, with weights of this seed."""
    tokenizer = tokens.tokenizer()
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=64, intermediate_size=256,
        num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=256, tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id,
        bos_token_id=tokenizer.bos_token_id,
    )  # fmt: skip
    torch.manual_seed(seed)
    return LlamaForCausalLM(config), tokenizer


def lessons(processor: Any, *, noise: float, seed: int) -> Lessons:  # noqa: ARG001
    """Return what each step teaches: sums, of whose answers a share of `noise` is one too small.

    Sums from `LARGE` on are wrong more often than right, at a noise of half, and small ones seldom:
    what the model thinks likeliest is then wrong for those, and the right answer comes second.
    """

    def make_batch(step: int) -> Sequence[Lesson]:
        chance = np.random.default_rng([seed, step])
        questions = sums_task.questions(64, int(chance.integers(2**32)))
        return [_lesson(row, chance.random(), noise) for row in questions]

    return make_batch


def _lesson(row: Mapping[str, str], drawn: float, noise: float) -> Lesson:
    right = int(row["answer"])
    slips = drawn < slip(right, noise)
    return Lesson(row["prompt"], str(max(right - 1, 0) if slips else right))


def slip(right: int, noise: float) -> float:
    """Return how often a sum is taught one too small, where a share of `noise` of all sums is."""
    # A large sum is taught wrong more often: by 0.7 at a noise of a half.
    spread = 0.7 * 2 * min(noise, 1 - noise)
    return (
        noise + (1 - LARGE_SUM_SHARE) * spread
        if right >= MIN_LARGE_SUM
        else noise - LARGE_SUM_SHARE * spread
    )
