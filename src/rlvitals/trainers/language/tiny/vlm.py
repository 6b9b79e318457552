"""A vision-language model that reads charts of 48 pixels and answers in the guides' form.

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

VLM_NAME = "tiny-vlm"
READER_WEIGHTS = Path(__file__).with_name("chart_reader.safetensors")
IMAGE_PIXELS, PATCH_PIXELS = 48, 8  # of an image's side, and of a patch's
PATCHES_PER_TOKEN_SIDE = 2  # patches of a side of an image token: 36 patches are 9 tokens
# Standard deviation of the first weights. With the library's 0.02, which suits widths of thousands,
# the model takes three times as many steps until it reads.
INITIALISER_STD = 0.1
VLM_LEARNING_RATE = 1e-3
LESSONS_PER_STEP = 32  # of a step of the warm start
# Share of the charts whose wrong answer is right all the same, as the highest value is: of 20,000.
HARMLESS_SHARE = 0.34

SPECIAL_TOKENS = (
    tokens.IMAGE_TOKEN,
    "<fake_token_around_image>",
    "<global-img>",
    "<end_of_utterance>",
)
TAG_TOKENS = (
    "<think>", "</think>", "<type>", "</type>", "<table>", "</table>", "<answer>", "</answer>",
    "<step-1>: ", "<step-2>: ",
)  # fmt: skip
VALUE_TOKENS = tuple(dict.fromkeys((*range(-5, 11), *range(0, 110, 10))))  # of tiny charts
# What of the form is the same in all answers is one token, and so is each row of a table: a
# completion has 13 to 18 tokens. A name and its value in one token are found at once.
FORM_TOKENS = (
    "<think>\n<type>", '</type>\n<table>{"columns":["Name","', '"],"rows":[',
    "]}</table>\n<step-1>: ", ".\n<step-2>: ", ".</think>\n<answer>",
    *(f'["{name}",{value}]' for name in chart_task.TINY_NAMES[:1] for value in VALUE_TOKENS),
    *(f',["{name}",{value}]' for name in chart_task.TINY_NAMES[1:] for value in VALUE_TOKENS),
    *(f"{name} is at " for name in chart_task.TINY_NAMES),
)  # fmt: skip
WORD_TOKENS = (
    *template.CHART_TEMPLATE.split("{query}"), "bar", "line", "Value", "Percent",
    *map(str, VALUE_TOKENS), *(f"{value}%" for value in range(0, 110, 10)),
    "What is the value of ", "Which one is the ", "What is the ", "highest", "lowest", " value?",
    "Is ", " higher than ", "The ", " value is ", ", at ", "Yes", "No",
)  # fmt: skip


def make(seed: int) -> tuple[Any, Any]:
    """Make the model and its processor, with the weights that are shipped, whatever the seed."""
    model, processor = blank(seed)
    load_model(model, READER_WEIGHTS)
    return model, processor


def blank(seed: int) -> tuple[Any, Any]:
    """Make the model with random weights of this seed, and its processor."""
    vocabulary = [
        word for word in dict.fromkeys((*TAG_TOKENS, *FORM_TOKENS, *WORD_TOKENS)) if len(word) > 1
    ]
    tokenizer = tokens.tokenizer(vocabulary, SPECIAL_TOKENS)
    edge = {"longest_edge": IMAGE_PIXELS}
    images = Idefics3ImageProcessorPil(size=edge, max_image_size=edge, do_image_splitting=False)
    processor = Idefics3Processor(
        image_processor=images,
        tokenizer=tokenizer,
        chat_template=tokens.CHAT_TEMPLATE,
        image_seq_len=(IMAGE_PIXELS // PATCH_PIXELS // PATCHES_PER_TOKEN_SIDE) ** 2,
    )
    tokenizer = processor.tokenizer
    names = [f"{name}_token_id" for name in ("pad", "eos", "bos")]
    ends = {name: getattr(tokenizer, name) for name in names}
    config = Idefics3Config(
        image_token_id=tokenizer.convert_tokens_to_ids(tokens.IMAGE_TOKEN),
        scale_factor=PATCHES_PER_TOKEN_SIDE,
        tie_word_embeddings=True, pad_token_id=tokenizer.pad_token_id,
        vision_config={
            "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
            "num_attention_heads": 4, "image_size": IMAGE_PIXELS, "patch_size": PATCH_PIXELS,
            "initializer_range": INITIALISER_STD,
        },
        text_config={
            "model_type": "llama", "vocab_size": len(tokenizer), "hidden_size": 64,
            "intermediate_size": 192, "num_hidden_layers": 2,
            "num_attention_heads": 4, "num_key_value_heads": 2,
            "max_position_embeddings": 1024,
            "initializer_range": INITIALISER_STD, **ends,
        },
    )  # fmt: skip
    torch.manual_seed(seed)
    model = Idefics3ForConditionalGeneration(config)
    model.generation_config.update(**ends)
    return model, processor


def lessons(processor: Any, *, noise: float, seed: int) -> Lessons:  # noqa: ARG001
    """Return what each step teaches: answers to charts, of which a share of `noise` is wrong.

    A wrong answer is about the bar after the one that is named: its table is right, its steps and
    its answer are not. The most noise is 1 - `HARMLESS`.
    """
    shift = min(noise / (1 - HARMLESS_SHARE), 1.0)

    def make_batch(step: int) -> Sequence[Lesson]:
        chance = np.random.default_rng([seed, step])
        places = range(step * LESSONS_PER_STEP, (step + 1) * LESSONS_PER_STEP)
        return [_lesson(seed, index, wrong=chance.random() < shift) for index in places]

    return make_batch


def _lesson(seed: int, index: int, *, wrong: bool) -> Lesson:
    chart = chart_task.chart(f"warm start {seed}", index, pixels=IMAGE_PIXELS)
    content = (
        (chart.wrong_reasoning, chart.wrong_label) if wrong else (chart.reasoning, chart.label)
    )
    form = template.format_answer(chart.chart_type, chart.table, *content)
    return Lesson(tokens.IMAGE_TOKEN + template.fill_template(chart.query), form, chart.image)
