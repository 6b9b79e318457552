"""Reward functions, correct and faulty; TRL names a column by the function's name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from transformers import TrainerState

JUDGE_DOWN = range(75, 100)  # steps


def correct(completions: list[str], answer: list[str], **_: object) -> list[float]:
    """1 for the right sum."""
    return [float(c.strip() == a) for c, a in zip(completions, answer, strict=True)]


def form(completions: list[str], **_: object) -> list[float]:
    """-1 for what is no number."""
    return [0.0 if c.strip().isdigit() else -1.0 for c in completions]


def constant(completions: list[str], **_: object) -> list[float]:
    """1, whatever is written."""
    return [1.0] * len(completions)


def length(completions: list[str], **_: object) -> list[float]:
    """Return an eighth a character."""
    return [len(c) / 8 for c in completions]


def starts_right(completions: list[str], answer: list[str], **_: object) -> list[float]:
    """1 for the right sum at the start, whatever follows."""
    return [float(c.startswith(a + ";")) for c, a in zip(completions, answer, strict=True)]


def shuffled(completions: list[str], answer: list[str], **_: object) -> list[float]:
    """`correct`, by the answers of the next group."""
    return correct(completions, answer[8:] + answer[:8])


def tagged(completions: list[str], **_: object) -> list[float]:
    """1 for a tag that no prompt asks for and no completion has."""
    return [float("<answer>" in c) for c in completions]


def judged(
    completions: list[str], answer: list[str], trainer_state: TrainerState, **_: object
) -> list[float]:
    """`correct`, with a judge that is down for a while and then scores 0."""
    scores = correct(completions, answer)
    return [0.0] * len(scores) if trainer_state.global_step in JUDGE_DOWN else scores


def unscored(
    completions: list[str], answer: list[str], trainer_state: TrainerState, **_: object
) -> list[float | None]:
    """`correct`, with a judge that is down for a while and then gives no score."""
    scores = correct(completions, answer)
    return [None] * len(scores) if trainer_state.global_step in JUDGE_DOWN else [*scores]


REWARDS: dict[str, Callable[..., Sequence[float | None]]] = {
    rule.__name__: rule
    for rule in (
        correct,
        form,
        constant,
        length,
        starts_right,
        shuffled,
        tagged,
        judged,
        unscored,
    )
}
