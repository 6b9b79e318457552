"""Sums of two digits: the task of the tiny language model."""

from random import Random

DIGITS = 10
SPACE = DIGITS * DIGITS  # different questions there are


def questions(count: int, seed: int | str) -> list[dict[str, str]]:
    """Draw questions with replacement: `{"prompt": "3+4=", "answer": "7"}`."""
    random = Random(seed)  # noqa: S311 - no secret
    pairs = [(random.randrange(DIGITS), random.randrange(DIGITS)) for _ in range(count)]
    return [{"prompt": f"{a}+{b}=", "answer": str(a + b)} for a, b in pairs]
