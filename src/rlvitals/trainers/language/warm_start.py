"""Supervised warm start: teach the form of an answer before training with rewards."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True, slots=True)
class Lesson:
    """A question and an answer to it, which need not be right."""

    prompt: str  # as it is put to the model: an image is its token
    answer: str
    image: Any = None


Lessons = Callable[[int], Sequence[Lesson]]  # the lessons of a step


def teach(
    model: Any,
    processor: Any,
    lessons: Lessons,
    *,
    steps: int,
    learning_rate: float,
) -> list[float]:
    """Raise the likelihood of the lessons' answers, and of the end after each, for some steps.

    The learning rate falls to nearly nothing, so that models of all seeds end equally far. Returns
    the loss of each step: nats a token of the answers. The model is left in evaluation.
    """
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
    slower = torch.optim.lr_scheduler.LinearLR(
        optimizer, 1.0, 1.0 / max(steps, 1), max(steps - 1, 1)
    )
    losses = []
    model.train()
    for step in range(steps):
        loss = model(**encode(processor, lessons(step))).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        slower.step()
        losses.append(float(loss.detach()))
    model.eval()
    return losses


def encode(processor: Any, lessons: Sequence[Lesson]) -> dict[str, Any]:
    """Return a model's inputs for lessons, padded on the left as they are in generation."""
    tokenizer = getattr(processor, "tokenizer", processor)
    texts = [lesson.prompt + lesson.answer + tokenizer.eos_token for lesson in lessons]
    images = [[lesson.image] for lesson in lessons if lesson.image is not None]
    inputs = dict(
        processor(
            text=texts, return_tensors="pt", padding=True, **({"images": images} if images else {})
        )
    )
    inputs.pop("token_type_ids", None)
    # The loss ignores the label -100.
    labels = torch.full_like(inputs["input_ids"], -100)
    for row, lesson in enumerate(lessons):
        answered = len(tokenizer(lesson.answer, add_special_tokens=False).input_ids) + 1
        labels[row, -answered:] = inputs["input_ids"][row, -answered:]
    return {**inputs, "labels": labels}
