"""Data classes of an RLHF update: responses, their numbers, and the passes over them."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Self

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Responses:
    """Responses of `t` tokens at the most to `b` prompts of `q`, as the policy reads them."""

    tokens: Tensor  # int64 [b, q + t]: prompts padded on the left, responses on the right
    attention: Tensor  # int64 [b, q + t]: 0 at padding
    mask: Tensor  # float32 [b, t]: 1 at the tokens of a response, its end token among them
    finished: Tensor  # bool [b]: False where a response was cut off

    @property
    def queries(self) -> int:
        """Where the responses begin: q."""
        return int(self.tokens.shape[1] - self.mask.shape[1])

    def rows(self, index: Tensor) -> "Responses":
        """Return the responses at `index`."""
        return Responses(*(getattr(self, field.name)[index] for field in fields(self)))


@dataclass(frozen=True, slots=True)
class Batch:
    """The numbers of `b` responses of `t` tokens at the most; 0 where a mask is 0."""

    query_lengths: Tensor  # [b]
    mask: Tensor  # [b, t]: 1 at the tokens of a response
    finished: Tensor  # [b]: 1 where there is an end token
    raw_scores: Tensor  # [b]: the reward, NaN where there was none
    scores: Tensor  # [b]: the same, less the penalty for a missing end token
    logprobs: Tensor  # [b, t], of the policy that drew
    reference: Tensor  # [b, t]
    kl: Tensor  # [b, t], estimated
    values: Tensor  # [b, t], before the update
    advantages: Tensor  # [b, t], whitened
    returns: Tensor  # [b, t]

    @property
    def learned_mask(self) -> Tensor:
        """The tokens that are learned from, [b, t]: those of responses that have a score."""
        return self.mask * torch.isfinite(self.scores)[:, None]

    def rows(self, index: Tensor) -> "Batch":
        """Return the responses at `index`."""
        return Batch(*(getattr(self, field.name)[index] for field in fields(self)))

    def each(self, change: Callable[[Tensor], Tensor]) -> "Batch":
        """Return the batch with all its tensors changed in the same way."""
        return Batch(*(change(getattr(self, field.name)) for field in fields(self)))


@dataclass(frozen=True, slots=True)
class Pass:
    """The policy's outputs on a minibatch, before the step on it."""

    rows: Tensor  # int64 [m], of the batch
    logprobs: Tensor  # [m, t]
    values: Tensor  # [m, t]
    entropy: Tensor  # [m, t], of the softmax

    @classmethod
    def concatenate(cls, passes: list[Self]) -> Self:
        """Concatenate the passes over the chunks of a minibatch."""
        names = [field.name for field in fields(cls)]
        return cls(*(torch.cat([getattr(item, name) for item in passes]) for name in names))

    def each(self, change: Callable[[Tensor], Tensor]) -> "Pass":
        """Return it with all its tensors changed in the same way."""
        return Pass(*(change(getattr(self, field.name)) for field in fields(self)))
