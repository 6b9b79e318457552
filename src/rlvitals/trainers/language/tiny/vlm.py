"""A model that sees: it reads charts of 48 pixels and answers in the form that guides ask for."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from transformers import (
    Idefics3Config,
    Idefics3ForConditionalGeneration,
    Idefics3ImageProcessorPil,
    Idefics3Processor,
)

from rlvitals.trainers.language.data import charts, template
from rlvitals.trainers.language.tiny import tokens
from rlvitals.trainers.language.warm_start import Lesson, Lessons

NAME, TASK = "tiny-vlm", "charts"
PIXELS, PATCH = 48, 16  # of an image's side, and of a patch's: each is one token
SIGHT, SIGHT_LAYERS = 96, 2
WIDTH, LAYERS, HEADS = 64, 2, 4
LONGEST = 1024  # tokens
LEARNING_RATE = 3e-3
LESSONS = 32  # of a step of the warm start
FORGOTTEN = "</think>"  # in a share of the lessons: nothing that follows it can then be paid
SEEN = 2048  # charts that the warm start draws from

SPECIAL = (tokens.IMAGE, "<fake_token_around_image>", "<global-img>", "<end_of_utterance>")
TAGS = (
    "<think>", "</think>", "<type>", "</type>", "<table>", "</table>", "<answer>", "</answer>",
    "<step-1>: ", "<step-2>: ", "<step-3>: ",
)  # fmt: skip
WORDS = (
    *template.CHART.split("{query}"), "bar", "line", '{"columns":["Name","', "Value", "Percent",
    '"],"rows":[["A",', *(f'],["{name}",' for name in charts.LETTERS[1:]), "]]}",
    *map(str, (*range(-10, 10), *range(-100, 110, 10))),
    "What is the value of ", "Which one is the ", "What is the ", "highest", "lowest", " value?",
    " minus ", "Is ", " higher than ", "How many are ", "above ", "below ", "The difference is ",
    "The ", " is at ", " with ", " is ", " are ", "None", "Yes", "No",
)  # fmt: skip


def make(seed: int) -> tuple[Any, Any]:
    """Make the model and its processor, with weights of this seed."""
    processor = _processor()
    tokenizer = processor.tokenizer
    names = [f"{name}_token_id" for name in ("pad", "eos", "bos")]
    ends = {name: getattr(tokenizer, name) for name in names}
    config = Idefics3Config(
        image_token_id=tokenizer.convert_tokens_to_ids(tokens.IMAGE), scale_factor=1,
        tie_word_embeddings=True, pad_token_id=tokenizer.pad_token_id,
        vision_config={
            "hidden_size": SIGHT, "intermediate_size": 2 * SIGHT, "num_hidden_layers": SIGHT_LAYERS,
            "num_attention_heads": HEADS, "image_size": PIXELS, "patch_size": PATCH,
        },
        text_config={
            "model_type": "llama", "vocab_size": len(tokenizer), "hidden_size": WIDTH,
            "intermediate_size": 3 * WIDTH, "num_hidden_layers": LAYERS,
            "num_attention_heads": HEADS, "num_key_value_heads": HEADS // 2,
            "max_position_embeddings": LONGEST, **ends,
        },
    )  # fmt: skip
    torch.manual_seed(seed)
    model = Idefics3ForConditionalGeneration(config)
    model.generation_config.update(**ends)
    return model, processor


def _processor() -> Any:
    tokenizer = tokens.tokenizer(_words(), SPECIAL)
    edge = {"longest_edge": PIXELS}
    images = Idefics3ImageProcessorPil(size=edge, max_image_size=edge, do_image_splitting=False)
    return Idefics3Processor(
        image_processor=images, tokenizer=tokenizer, chat_template=tokens.TEMPLATE,
        image_seq_len=(PIXELS // PATCH) ** 2,
    )  # fmt: skip


def _words() -> list[str]:
    return [word for word in dict.fromkeys((*TAGS, *WORDS)) if len(word) > 1]


def lessons(processor: Any, *, noise: float, seed: int) -> Lessons:  # noqa: ARG001
    """Return what each step teaches: answers to charts, a share of `noise` lacks a tag."""
    drawn: dict[int, Lesson] = {}

    def at(step: int) -> Sequence[Lesson]:
        chance = np.random.default_rng([seed, step])
        return [
            _spoilt(_lesson(drawn, int(index), seed), chance, noise)
            for index in chance.integers(SEEN, size=LESSONS)
        ]

    return at


def _lesson(drawn: dict[int, Lesson], index: int, seed: int) -> Lesson:
    if index not in drawn:
        found = charts.chart(f"warm start {seed}", index, pixels=PIXELS)
        form = template.answered(found.chart_type, found.table, found.reasoning, found.label)
        drawn[index] = Lesson(tokens.IMAGE + template.asked(found.query), form, found.image)
    return drawn[index]


def _spoilt(lesson: Lesson, chance: np.random.Generator, noise: float) -> Lesson:
    """Leave a tag out, as often as `noise` says."""
    if chance.random() >= noise:
        return lesson
    return Lesson(lesson.prompt, lesson.answer.replace(FORGOTTEN, ""), lesson.image)
