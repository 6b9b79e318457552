"""Load a policy: a model of Hugging Face, a folder, or a generated tiny model."""

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
)
from transformers.pytorch_utils import Conv1D

from rlvitals import UsageError, VitalsError
from rlvitals.lab import nearest
from rlvitals.trainers.language import processors
from rlvitals.trainers.language.config import ModelConfig
from rlvitals.trainers.language.tiny import base as tiny
from rlvitals.trainers.language.tiny import tokens

# What guides call models by.
MODEL_ALIASES: Mapping[str, str] = MappingProxyType({
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
MODEL_SETTING = "model.vlm_name"
AUTO_DTYPE = "auto"  # as a model's type: its own
logger = logging.getLogger(__name__)
# What the layers of attention and MLP are called where they are not as the default targets are: in
# OPT, Phi, Phi-3, GPT-NeoX, Falcon, BLOOM and GPT-2.
OTHER_LORA_TARGETS = (
    "out_proj", "fc1", "fc2", "dense", "qkv_proj", "gate_up_proj", "query_key_value",
    "dense_h_to_4h", "dense_4h_to_h", "c_attn", "c_fc", "c_proj",
)  # fmt: skip
BASE_FOLDER = "base"  # in a run's folder: a tiny model before it is trained


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
    eos_token_id = getattr(model.generation_config, "eos_token_id", None)
    ids = [eos_token_id] if isinstance(eos_token_id, int) else list(eos_token_id or ())
    return sorted({tokenizer.eos_token_id, *ids})


def prepare(
    config: ModelConfig, *, seed: int, base: Path, tell: Callable[[str], None] = logger.info
) -> None:
    """Make a tiny policy with `seed` in the folder `base`, where it is not; others need nothing.

    `tell` gets a line about the warm start. For one process of several, before all of
    them load: that they do together, since ZeRO-3 shares the weights out as they are read.
    """
    if config.vlm_name in tiny.TINY_MODELS:
        tiny.make(_recipe(config, seed), base, tell)


def _recipe(config: ModelConfig, seed: int) -> tiny.Recipe:
    return tiny.Recipe(config.vlm_name, seed, config.warm_start_steps, config.warm_start_noise)


def load(
    config: ModelConfig, *, seed: int, base: Path, tell: Callable[[str], None] = logger.info
) -> Loaded:
    """Load the policy. A tiny one is made first, as `prepare` does, where it is not in `base`.

    `tell` gets notes about the model. Raises VitalsError, or UsageError for a
    setting, where the model is not to be had, is of no kind that is trained here, or needs a
    library that is not there.
    """
    small = config.vlm_name in tiny.TINY_MODELS
    if small:
        model, processor = tiny.load(_recipe(config, seed), base, tell)
        if config.dtype != AUTO_DTYPE:
            model = model.to(dtype(config))
    else:
        model, processor = _load_remote(config)
    # Completions can end and be padded, in the tokenizer and in generation alike.
    tokenizer = tokenizer_of(processor)
    tokenizer.padding_side = "left"
    if tokenizer.eos_token is None:
        raise VitalsError(
            "the tokenizer has no token that ends a text: no completion would end",
            where=MODEL_SETTING,
            hint="set eos_token in the model's tokenizer_config.json",
        )
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    generation = model.generation_config
    if generation.pad_token_id is None:
        generation.pad_token_id = tokenizer.pad_token_id
    if generation.eos_token_id is None:
        generation.eos_token_id = tokenizer.eos_token_id
    vision = tokenizer_of(processor) is not processor
    if vision:
        give_template(processor, tell)
    adapters = lora(config, model, tell) if config.lora else None
    return Loaded(model, processor, vision=vision, lora=adapters, tiny=small)


def _load_remote(config: ModelConfig) -> tuple[Any, Any]:
    """Load a model of Hugging Face and its processor, of the class in its configuration."""
    model_config, kind, vision = describe(config)
    name = model_config.name_or_path
    with _explain_errors(name):
        # The processor first: where it cannot be had, no weights are fetched.
        processor = processors.load(model_config, name, vision=vision)
        return kind.from_pretrained(name, config=model_config, dtype=dtype(config)), processor


def describe(config: ModelConfig) -> tuple[Any, Any, bool]:
    """Return a model's configuration, the class that loads it, and whether it reads images.

    Nothing but its config.json is fetched. Raises VitalsError, or UsageError for a name, where
    there is no such model, it is of no kind that is trained here, or it needs a package or a GPU
    that is not there.
    """
    name = MODEL_ALIASES.get(config.vlm_name, config.vlm_name)
    path = Path(name).expanduser()
    if path.is_dir():
        name = str(path)
    elif name.startswith((".", "/", "~")):
        raise UsageError("there is no such folder", where=f"{MODEL_SETTING}: {name}")
    elif "/" not in name and (suggestion := nearest(name, (*tiny.TINY_MODELS, *MODEL_ALIASES))):
        # The hub's own names without an owner are few, old, and spelt like none of these.
        raise UsageError(
            "there is no such model", where=f"{MODEL_SETTING}: {name}", hint=suggestion
        )
    with _explain_errors(name):
        model_config = AutoConfig.from_pretrained(name)
    # What loads the model, and whether it reads images.
    if type(model_config) in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING:
        kind, vision = AutoModelForImageTextToText, True
    elif type(model_config) in MODEL_FOR_CAUSAL_LM_MAPPING:
        kind, vision = AutoModelForCausalLM, False
    else:
        raise UsageError(
            f"{model_config.model_type} is neither a causal language model nor one of images and "
            "text",
            where=f"{MODEL_SETTING}: {name}",
        )
    processors.check(model_config, f"{MODEL_SETTING}: {name}", vision=vision)
    return model_config, kind, vision


def dtype(config: ModelConfig) -> Any:
    """Return the weights' type: by default their own under adapters, else float32.

    Weights of 16 bits that are trained themselves lose what small learning rates add.
    """
    if config.dtype != AUTO_DTYPE:
        return getattr(torch, config.dtype)
    return AUTO_DTYPE if config.lora else torch.float32


@contextmanager
def _explain_errors(name: str) -> Iterator[None]:
    """Raise VitalsError with what a model lacks, in a sentence."""
    location = f"{MODEL_SETTING}: {name}"
    try:
        yield
    except (ImportError, OSError, ValueError, KeyError) as error:
        message = str(error)
        if isinstance(error, ImportError) or "torchvision" in message:
            hint = "install it beside transformers; tiny-vlm needs nothing more"
            if "torchvision" in message.lower():
                hint = processors.install(processors.TORCHVISION)
            match = re.search(r"(\w+) requires the (\w+) library", message)
            raise VitalsError(
                f"its {match[1]} needs {match[2].lower()}, which is not installed"
                if match
                else _first(message),
                where=location,
                hint=hint,
            ) from error
        names = ", ".join((*tiny.TINY_MODELS, *MODEL_ALIASES))
        # What a message of the hub is about, and what helps.
        hints = (
            ("gated", "ask for access on its page, then: hf auth login"),
            ("connect", "name a folder, or fetch it where there is a network: hf download {name}"),
            ("", "a name of huggingface.co as org/name, a folder, or one of {known}"),
        )
        hint = next(text for key, text in hints if key in message)
        raise VitalsError(
            f"the model cannot be loaded: {_first(message)}",
            where=location,
            hint=nearest(name, (*tiny.TINY_MODELS, *MODEL_ALIASES))
            or hint.format(name=name, known=names),
        ) from error


def _first(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "no reason is given")


def give_template(processor: Any, tell: Callable[[str], None]) -> None:
    """See that a model that sees can be asked in conversations, as all data with images does."""
    if processor.chat_template is not None:
        return
    image = getattr(processor, "image_token", None)
    if image is None:
        raise VitalsError(
            f"its {type(processor).__name__} has no chat template, and no image token to make one",
            where=MODEL_SETTING,
            hint="put a chat_template.jinja beside the model",
        )
    processor.chat_template = tokens.CHAT_TEMPLATE.replace(tokens.IMAGE_TOKEN, image)
    tell("the model has no chat template: it reads an image, and then the question as it is")


def lora(config: ModelConfig, model: Any, tell: Callable[[str], None]) -> LoraConfig:
    """Return the adapters' configuration: on those of the layers asked for that the model has.

    The default names the layers of many families: a model that lacks some has them elsewhere, or
    under `OTHERS`. Each layer that a person names has to be there.
    """
    layers: dict[str, type] = {}
    head = model.get_output_embeddings()
    for name, module in model.named_modules():
        last = name.rpartition(".")[2]
        if (
            isinstance(module, torch.nn.Linear | Conv1D)
            and module is not head
            and not last.isdigit()
        ):
            layers[last] = Conv1D if isinstance(module, Conv1D) else torch.nn.Linear
    layers, targets = dict(sorted(layers.items())), config.lora_targets
    matches = [name for name in targets if name in layers]
    missing = [name for name in targets if name not in layers]
    if missing and targets == ModelConfig().lora_targets:
        matches += [name for name in OTHER_LORA_TARGETS if name in layers]
        missing = [] if matches else missing
    if missing or not matches:
        raise UsageError(
            f"the model has no linear layer {' or '.join(missing) or 'at all'}",
            where="model.lora_targets",
            hint=f"one of {', '.join(layers)}, or --lora false",
        )
    if set(matches) != set(targets):
        tell(f"Adapters on {', '.join(matches)}")
    return LoraConfig(
        r=config.lora_r, lora_alpha=config.lora_alpha, lora_dropout=config.lora_dropout,
        target_modules=matches, task_type="CAUSAL_LM",
        fan_in_fan_out=all(layers[name] is Conv1D for name in matches),
    )  # fmt: skip
