"""Shuffle the prompts of each pass, and tokenize them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor


@dataclass(slots=True)
class Order:
    """Which of `count` rows come next: each of them once before any comes again."""

    count: int
    rng: np.random.Generator
    rest: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))

    def take(self, number: int) -> list[int]:
        """Return the next rows."""
        self.rest = self.rest[self.rest < self.count]  # a resume may have fewer than before
        while len(self.rest) < number:
            self.rest = np.concatenate((self.rest, self.rng.permutation(self.count)))
        rows, self.rest = self.rest[:number], self.rest[number:]
        numbers: list[int] = rows.tolist()
        return numbers


def texts(tokenizer: Any, prompts: Sequence[Any]) -> list[str]:
    """Return prompts as texts: a conversation by its tokenizer's template."""
    return [
        prompt
        if isinstance(prompt, str)
        else tokenizer.apply_chat_template(prompt, tokenize=False, add_generation_prompt=True)
        for prompt in prompts
    ]


def tokens(tokenizer: Any, prompts: Sequence[Any]) -> tuple[Tensor, Tensor]:
    """Return tokens and attention [b, q] of prompts, padded on the left.

    A conversation's template writes the special tokens itself: added again, it would begin twice.
    """
    encoded = tokenizer(
        texts(tokenizer, prompts), padding=True, padding_side="left", return_tensors="pt",
        add_special_tokens=all(isinstance(prompt, str) for prompt in prompts),
    )  # fmt: skip
    return encoded["input_ids"], encoded["attention_mask"]
