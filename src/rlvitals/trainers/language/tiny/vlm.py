"""A model that sees: it reads charts of 48 pixels and answers in the form that guides ask for.

Its weights before the warm start are shipped: `chart_reader.safetensors`, which
`scripts/make_chart_reader.py` makes from a seed by teaching right answers alone. The warm start of
a run then teaches wrong answers too, so that rewards have something to mend.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_model
from transformers import (
    Idefics3Config,
    Idefics3ForConditionalGeneration,
    Idefics3ImageProcessorPil,
    Idefics3Processor,
)

from rlvitals.trainers.language.data import chart_task, template
from rlvitals.trainers.language.tiny import tokens
from rlvitals.trainers.language.warm_start import Lesson, Lessons

NAME, TASK = "tiny-vlm", "charts of different values"
READER = Path(__file__).with_name("chart_reader.safetensors")
PIXELS, PATCH = 48, 8  # of an image's side, and of a patch's
SCALE = 2  # patches of a side of an image token: 36 patches are 9 tokens
# Standard deviation of the first weights. With the library's 0.02, which suits widths of thousands,
# the model takes three times as many steps until it reads.
INITIAL = 0.1
LONGEST = 1024  # tokens
LEARNING_RATE = 1e-3
LESSONS = 32  # of a step of the warm start
# Share of the charts whose wrong answer is right all the same, as the highest value is: of 20,000.
HARMLESS = 0.34

SPECIAL = (tokens.IMAGE, "<fake_token_around_image>", "<global-img>", "<end_of_utterance>")
TAGS = (
    "<think>", "</think>", "<type>", "</type>", "<table>", "</table>", "<answer>", "</answer>",
    "<step-1>: ", "<step-2>: ",
)  # fmt: skip
VALUES = tuple(dict.fromkeys((*range(-5, 11), *range(0, 110, 10))))  # of tiny charts
# What of the form is the same in all answers is one token, and so is each row of a table: a
# completion has 13 to 18 tokens. A name and its value in one token are found at once.
FORM = (
    "<think>\n<type>", '</type>\n<table>{"columns":["Name","', '"],"rows":[',
    "]}</table>\n<step-1>: ", ".\n<step-2>: ", ".</think>\n<answer>",
    *(f'["{name}",{value}]' for name in chart_task.LETTERS[:1] for value in VALUES),
    *(f',["{name}",{value}]' for name in chart_task.LETTERS[1:] for value in VALUES),
    *(f"{name} is at " for name in chart_task.LETTERS),
)  # fmt: skip
WORDS = (
    *template.CHART.split("{query}"), "bar", "line", "Value", "Percent",
    *map(str, VALUES), *(f"{value}%" for value in range(0, 110, 10)),
    "What is the value of ", "Which one is the ", "What is the ", "highest", "lowest", " value?",
    "Is ", " higher than ", "The ", " value is ", ", at ", "Yes", "No",
)  # fmt: skip


def make(seed: int) -> tuple[Any, Any]:
    """Make the model and its processor, with the weights that are shipped, whatever the seed."""
    model, processor = blank(seed)
    load_model(model, READER)
    return model, processor


def blank(seed: int) -> tuple[Any, Any]:
    """Make the model with random weights of this seed, and its processor."""
    processor = _processor()
    tokenizer = processor.tokenizer
    names = [f"{name}_token_id" for name in ("pad", "eos", "bos")]
    ends = {name: getattr(tokenizer, name) for name in names}
    config = Idefics3Config(
        image_token_id=tokenizer.convert_tokens_to_ids(tokens.IMAGE), scale_factor=SCALE,
        tie_word_embeddings=True, pad_token_id=tokenizer.pad_token_id,
        vision_config={
            "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
            "num_attention_heads": 4, "image_size": PIXELS, "patch_size": PATCH,
            "initializer_range": INITIAL,
        },
        text_config={
            "model_type": "llama", "vocab_size": len(tokenizer), "hidden_size": 64,
            "intermediate_size": 192, "num_hidden_layers": 2,
            "num_attention_heads": 4, "num_key_value_heads": 2,
            "max_position_embeddings": LONGEST,
            "initializer_range": INITIAL, **ends,
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
        image_seq_len=(PIXELS // PATCH // SCALE) ** 2,
    )  # fmt: skip


def _words() -> list[str]:
    return [word for word in dict.fromkeys((*TAGS, *FORM, *WORDS)) if len(word) > 1]


def lessons(processor: Any, *, noise: float, seed: int) -> Lessons:  # noqa: ARG001
    """Return what each step teaches: answers to charts, of which a share of `noise` is wrong.

    A wrong answer is about the bar after the one that is named: its table is right, its steps and
    its answer are not. The most noise is 1 - `HARMLESS`.
    """
    shift = min(noise / (1 - HARMLESS), 1.0)

    def at(step: int) -> Sequence[Lesson]:
        chance = np.random.default_rng([seed, step])
        places = range(step * LESSONS, (step + 1) * LESSONS)
        return [_lesson(seed, index, wrong=chance.random() < shift) for index in places]

    return at


def _lesson(seed: int, index: int, *, wrong: bool) -> Lesson:
    chart = chart_task.chart(f"warm start {seed}", index, pixels=PIXELS)
    content = (
        (chart.wrong_reasoning, chart.wrong_label) if wrong else (chart.reasoning, chart.label)
    )
    form = template.answered(chart.chart_type, chart.table, *content)
    return Lesson(tokens.IMAGE + template.asked(chart.query), form, chart.image)
