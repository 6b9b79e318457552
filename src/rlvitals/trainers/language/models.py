"""The policy: a model of Hugging Face, from its hub or a folder, or a tiny one made here."""

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from peft import LoraConfig
from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING,
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    AutoProcessor,
    AutoTokenizer,
)
from transformers.pytorch_utils import Conv1D

from rlvitals import UsageError, VitalsError, nearest
from rlvitals.trainers.language.config import ModelConfig
from rlvitals.trainers.language.tiny import base as tiny

# What guides call models by.
ALIASES: Mapping[str, str] = MappingProxyType({
    "qwen2-5-3b": "Qwen/Qwen2.5-VL-3B-Instruct",
    "qwen2-5-7b": "Qwen/Qwen2.5-VL-7B-Instruct",
    "qwen-2b": "Qwen/Qwen2-VL-2B-Instruct",
    "qwen-7b": "Qwen/Qwen2-VL-7B-Instruct",
    "llava-1.6": "llava-hf/llava-v1.6-mistral-7b-hf",
    "pali": "google/paligemma2-3b-mix-448",
    "intern": "OpenGVLab/InternVL3-2B-hf",
    "idefics3": "HuggingFaceM4/Idefics3-8B-Llama3",
    "smolvlm": "HuggingFaceTB/SmolVLM-Instruct",
})  # fmt: skip
WHERE = "model.vlm_name"
AUTO = "auto"  # as a model's type: its own
LOG = logging.getLogger(__name__)
LEFT_OUT = ("lm_head", "embed_tokens")  # linear layers over the vocabulary, no target by default
# What a message of the hub is about, and what helps.
HUB = (
    ("gated", "ask for access on its page, then: hf auth login"),
    ("connect", "name a folder, or fetch it where there is a network: hf download {name}"),
    ("", "a name of huggingface.co as org/name, a folder, or one of {known}"),
)
BASE = "base"  # in a run's folder: a tiny model before it is trained


@dataclass(frozen=True, slots=True)
class Loaded:
    """A policy, and what it reads and writes with."""

    model: Any
    processor: Any  # a tokenizer, or the processor of a model that sees; pads on the left
    vision: bool
    lora: LoraConfig | None  # None: the weights themselves are trained
    tiny: bool  # made here: one thread is fastest


def tokenizer_of(processor: Any) -> Any:
    """Return a processor's tokenizer, which it may be itself."""
    return getattr(processor, "tokenizer", processor)


def ends(model: Any, tokenizer: Any) -> list[int]:
    """Return the tokens that end a completion: the tokenizer's, and those the model names."""
    named = getattr(model.generation_config, "eos_token_id", None)
    ids = [named] if isinstance(named, int) else list(named or ())
    return sorted({tokenizer.eos_token_id, *ids})


def load(
    config: ModelConfig, *, seed: int, base: Path, tell: Callable[[str], None] = LOG.info
) -> Loaded:
    """Load the policy. A tiny one is made with `seed` and kept in the folder `base`.

    `tell` hears, in one line, how its warm start went.

    Raises VitalsError, or UsageError for a setting, where the model is not to be had, is of no
    kind that is trained here, or needs a library that is not there.
    """
    small = config.vlm_name in tiny.KINDS
    if small:
        recipe = tiny.Recipe(
            config.vlm_name, seed, config.warm_start_steps, config.warm_start_noise
        )
        model, processor = tiny.load(recipe, base, tell)
        if config.dtype != AUTO:
            model = model.to(_dtype(config))
    else:
        model, processor = _fetched(config)
    _end(model, processor)
    lora = _lora(config, model) if config.lora else None
    vision = tokenizer_of(processor) is not processor
    return Loaded(model, processor, vision=vision, lora=lora, tiny=small)


def _fetched(config: ModelConfig) -> tuple[Any, Any]:
    """Load a model of Hugging Face and its processor, by what its configuration says it is."""
    name = ALIASES.get(config.vlm_name, config.vlm_name)
    path = Path(name).expanduser()
    if path.is_dir():
        name = str(path)
    elif name.startswith((".", "/", "~")):
        raise UsageError("there is no such folder", where=f"{WHERE}: {name}")
    elif "/" not in name and (meant := nearest(name, (*tiny.KINDS, *ALIASES))):
        # The hub's own names without an owner are few, old, and spelt like none of these.
        raise UsageError("there is no such model", where=f"{WHERE}: {name}", hint=meant)
    with _explained(name):
        about = AutoConfig.from_pretrained(name)
        model, processor = _classes(about, name)
        # The processor first: where it cannot be had, no weights are fetched.
        made = processor.from_pretrained(name, padding_side="left")
        return model.from_pretrained(name, config=about, dtype=_dtype(config)), made


def _classes(about: Any, name: str) -> tuple[Any, Any]:
    if type(about) in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING:
        return AutoModelForImageTextToText, AutoProcessor
    if type(about) in MODEL_FOR_CAUSAL_LM_MAPPING:
        return AutoModelForCausalLM, AutoTokenizer
    raise UsageError(
        f"{about.model_type} is neither a causal language model nor one of images and text",
        where=f"{WHERE}: {name}",
    )


def _dtype(config: ModelConfig) -> Any:
    """Return the weights' type: by default their own under adapters, else float32.

    Weights of 16 bits that are trained themselves lose what small learning rates add.
    """
    if config.dtype != AUTO:
        return getattr(torch, config.dtype)
    return AUTO if config.lora else torch.float32


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Say in a sentence what of a model, or beside it, is missing."""
    where = f"{WHERE}: {name}"
    try:
        yield
    except ImportError as error:
        raise VitalsError(_needs(str(error)), where=where, hint=_install(str(error))) from error
    except (OSError, ValueError, KeyError) as error:
        said = _first(str(error))
        known = ", ".join((*tiny.KINDS, *ALIASES))
        hint = next(text for word, text in HUB if word in str(error))
        raise VitalsError(
            f"the model cannot be loaded: {said}",
            where=where,
            hint=nearest(name, (*tiny.KINDS, *ALIASES)) or hint.format(name=name, known=known),
        ) from error


def _first(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "no reason is given")


def _needs(text: str) -> str:
    found = re.search(r"(\w+) requires the (\w+) library", text)
    return (
        f"its {found[1]} needs {found[2].lower()}, which is not installed"
        if found
        else _first(text)
    )


def _install(text: str) -> str:
    if "torchvision" not in text.lower():
        return "install it beside transformers; tiny-vlm needs nothing more"
    own = torch.__version__.partition("+")[2] or "cpu"
    return (
        f"pip install torchvision --index-url https://download.pytorch.org/whl/{own} (that of this "
        "torch: another one breaks transformers), or --vlm-name tiny-vlm"
    )


def _end(model: Any, processor: Any) -> None:
    """See that completions can end and be padded, in the tokenizer and in generation alike."""
    tokenizer = tokenizer_of(processor)
    tokenizer.padding_side = "left"
    if tokenizer.eos_token is None:
        raise VitalsError(
            "the tokenizer has no token that ends a text: no completion would end",
            where=WHERE,
            hint="set eos_token in the model's tokenizer_config.json",
        )
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    told = model.generation_config
    if told.pad_token_id is None:
        told.pad_token_id = tokenizer.pad_token_id
    if told.eos_token_id is None:
        told.eos_token_id = tokenizer.eos_token_id


def _lora(config: ModelConfig, model: Any) -> LoraConfig:
    """Return the adapters' configuration: on those of the layers asked for that the model has.

    The default names the layers of many families, and one of them is enough; each that a person
    names has to be there.
    """
    there = _linear(model)
    asked = config.lora_targets
    found = [name for name in asked if name in there]
    missing = [name for name in asked if name not in there]
    if not found or (missing and asked != ModelConfig().lora_targets):
        raise UsageError(
            f"the model has no linear layer {' or '.join(missing) or 'at all'}",
            where="model.lora_targets",
            hint=f"one of {', '.join(there)}, or --lora false",
        )
    return LoraConfig(
        r=config.lora_r, lora_alpha=config.lora_alpha, lora_dropout=config.lora_dropout,
        target_modules=found, task_type="CAUSAL_LM",
    )  # fmt: skip


def _linear(model: Any) -> list[str]:
    """Return the last names of a model's linear layers, without those over the vocabulary."""
    kinds = (torch.nn.Linear, Conv1D)
    layers = [name for name, part in model.named_modules() if isinstance(part, kinds)]
    found = {name.rpartition(".")[2] for name in layers}
    return sorted(name for name in found if name not in LEFT_OUT and not name.isdigit())
