"""Estimate pass@k: the probability that one of k samples is right."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

import rlvitals

Array = NDArray[np.float64]
INTERVAL_CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class PassAtK:
    """The mean over questions, and where it lies with 95 % confidence."""

    k: int
    value: float
    low: float
    high: float


def powers(limit: int) -> tuple[int, ...]:
    """Return 1, 2, 4 and so on up to `most`."""
    return tuple(1 << i for i in range(limit.bit_length()))


def chances(n: int, k: int) -> Array:
    """Return pass@k [n + 1] of a question with 0, 1, ... n right samples of n, 0 < k <= n.

    The share of the ways to take k of the n samples that take a right one: unbiased, where
    1 - (1 - c/n)^k is too small. As a sum of logarithms: the binomials themselves overflow.
    Source: Chen et al. 2021, "Evaluating Large Language Models Trained on Code", section 2.1.
    """
    if not 0 < k <= n:
        raise rlvitals.UsageError(f"pass@{k} cannot be told from {n} samples", hint="0 < k <= n")
    missed = np.minimum(k / np.arange(n, 0, -1.0), 1.0)  # by the next sample, all before it wrong
    with np.errstate(divide="ignore"):  # the logarithm of 0: k samples cannot all be wrong
        wrong = np.cumsum(np.log1p(-missed))
    return np.concatenate([[0.0], -np.expm1(wrong)])


def of_questions(right: ArrayLike, n: int, ks: Sequence[int]) -> Array:
    """Return pass@k [questions, ks] of the number of right samples of n of each question."""
    counts = np.asarray(right, np.int64)
    if ((counts < 0) | (counts > n)).any():
        raise rlvitals.UsageError(f"a question has more right samples than {n}, or fewer than 0")
    return np.stack([chances(n, k)[counts] for k in ks], axis=1)


def estimate(right: ArrayLike, n: int, ks: Sequence[int], *, seed: int = 0) -> tuple[PassAtK, ...]:
    """Return pass@k of a set of questions for each k, with a bootstrap interval over questions.

    `right`: how many of the n samples of each question are right, [questions].
    """
    each = of_questions(right, n, ks)
    if not len(each):
        raise rlvitals.UsageError("there is no question to tell pass@k from")
    share = np.full(len(each), 1 / len(each))
    drawn = np.random.default_rng(seed).multinomial(len(each), share, 2000)
    tails = (0.5 - INTERVAL_CONFIDENCE / 2, 0.5 + INTERVAL_CONFIDENCE / 2)
    low, high = np.quantile(drawn @ each / len(each), tails, axis=0)
    means = each.mean(axis=0)
    return tuple(
        PassAtK(k, float(value), float(at_least), float(at_most))
        for k, value, at_least, at_most in zip(ks, means, low, high, strict=True)
    )
