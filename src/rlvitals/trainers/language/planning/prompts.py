"""Measure the prompts of a training, and the size of their images, on some of its rows."""

from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

from rlvitals import VitalsError
from rlvitals.trainers.language import data, generate, models, processors
from rlvitals.trainers.language.config import DataConfig, ModelConfig
from rlvitals.trainers.language.tiny import base as tiny

ASSUMED_PROMPT_TOKENS = 512  # of a prompt where nothing is known of it


@dataclass(frozen=True, slots=True)
class Prompts:
    """The questions of an update, as the model reads them."""

    tokens: int  # of the longest, those of its images among them
    images: int  # of a question, or tiles of one image, as the image encoder reads them; 0: none
    patches: int  # of each
    source: str  # how these are known


def read(model: ModelConfig, config: DataConfig, *, seed: int, tokens: int) -> Prompts:
    """Return what some prompts come to, without a download.

    `tokens`: a stated length (0: not stated). It is assumed where the processor's files or the
    data are neither here nor in the hub's cache. Raises as `models.described` and `data.load`.
    """
    processor, model_config, vision = _processor(model, seed)
    is_local = config.dataset_name in ("charts", "sums") or Path(config.dataset_name).exists()
    if tokens or processor is None or not is_local:
        images, patches = (
            _assumed_image(model_config, tokens or ASSUMED_PROMPT_TOKENS) if vision else (0, 0)
        )
        return Prompts(
            tokens or ASSUMED_PROMPT_TOKENS, images, patches,
            "as stated" if tokens else "assumed: the processor or the data are not here yet",
        )  # fmt: skip
    sample_config = replace(config, subset_size=8, held_out=0)  # the longest prompt counts
    rows = data.load(sample_config, vision=vision, seed=seed).train
    length = images = patches = 0
    for row in rows:
        image_list = [row["image"]] if row.get("image") is not None else None
        inputs = generate.inputs(processor, [row["prompt"]], image_list)
        length = max(length, int(inputs["input_ids"].shape[1]))
        if image_list:
            images, patches = max((images, patches), _image(inputs, model_config), key=prod)
    return Prompts(length, images, patches, f"the longest of {len(rows)} rows of the data")


def _processor(model: ModelConfig, seed: int) -> tuple[Any, Any, bool]:
    """Return the processor (None if its files are not local), configuration and vision flag."""
    if model.vlm_name in tiny.TINY_MODELS:
        tiny_model, processor = tiny.TINY_MODELS[model.vlm_name].make(seed)
        return processor, tiny_model.config, models.tokenizer_of(processor) is not processor
    model_config, _, vision = models.describe(model)
    try:
        processor = processors.load(
            model_config, model_config.name_or_path, vision=vision, local_files_only=True
        )
    except (OSError, ValueError, VitalsError):
        return None, model_config, vision
    tokenizer = models.tokenizer_of(processor)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    if vision:
        models.give_template(processor, lambda _: None)
    return processor, model_config, vision


def _patch(model_config: Any) -> int:
    size = model_config.vision_config.patch_size
    return int(size if isinstance(size, int) else size[0])


def _image(inputs: Any, model_config: Any) -> tuple[int, int]:
    """Return the images that the encoder reads of a question, and the patches of each."""
    grid = inputs.get("image_grid_thw")
    if grid is not None:
        return len(grid), int(grid.prod(-1).max())
    *rows, _, height, width = inputs["pixel_values"].shape
    return prod(rows), (height // _patch(model_config)) * (width // _patch(model_config))


def _assumed_image(model_config: Any, tokens: int) -> tuple[int, int]:
    """Return one image as large as the encoder takes it, else of as many tokens as the prompt."""
    side = getattr(model_config.vision_config, "image_size", None)
    if side is None:
        return 1, tokens * getattr(model_config.vision_config, "spatial_merge_size", 1) ** 2
    side = side if isinstance(side, int) else side[0]
    return 1, (side // _patch(model_config)) ** 2
