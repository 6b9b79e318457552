"""Sums of four digits: the task of the tiny language model."""

from collections.abc import Sequence
from functools import cache
from itertools import combinations_with_replacement, product
from random import Random

ADDEND_DIGITS, ADDEND_COUNT = range(10), 4

Question = dict[str, str]


def questions(count: int, seed: int | str) -> list[Question]:
    """Draw questions with replacement: `{"prompt": "3+4+1+9=", "answer": "17"}`.

    None of them, in whatever order of its digits, is ever held out.
    """
    random = Random(seed)  # noqa: S311 - no secret
    return [_question(digits) for digits in random.choices(_split_questions()[0], k=count)]


def held_out(limit: int) -> list[Question]:
    """Return up to `most` different questions that no training asks: the same in all."""
    return [_question(digits) for digits in _split_questions()[1][:limit]]


def _question(digits: Sequence[int]) -> Question:
    return {"prompt": f"{'+'.join(map(str, digits))}=", "answer": str(sum(digits))}


@cache
def _split_questions() -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Return training and held-out questions; all orders of the same digits are in one of them."""
    random = Random("held out")  # noqa: S311 - no secret
    sets = list(combinations_with_replacement(ADDEND_DIGITS, ADDEND_COUNT))
    # A fifth of the sets of digits is held out.
    held_out_sets = {*random.sample(sets, round(0.2 * len(sets)))}
    every = list(product(ADDEND_DIGITS, repeat=ADDEND_COUNT))
    random.shuffle(every)
    return (
        [digits for digits in every if tuple(sorted(digits)) not in held_out_sets],
        [digits for digits in every if tuple(sorted(digits)) in held_out_sets],
    )
