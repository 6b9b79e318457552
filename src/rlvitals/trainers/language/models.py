"""The policy: a model of Hugging Face, from its hub or a folder, or a tiny one made here."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peft import LoraConfig

from rlvitals.trainers.language.config import ModelConfig
from rlvitals.trainers.language.tiny import base as tiny


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


def load(config: ModelConfig, *, seed: int, base: Path) -> Loaded:
    """Load the policy. A tiny one is made with `seed` and kept in the folder `base`."""
    recipe = tiny.Recipe(config.vlm_name, seed, config.warm_start_steps, config.warm_start_noise)
    model, processor = tiny.load(recipe, base)
    lora = _lora(config) if config.lora else None
    return Loaded(model, processor, vision=False, lora=lora, tiny=True)


def _lora(config: ModelConfig) -> LoraConfig:
    return LoraConfig(
        r=config.lora_r, lora_alpha=config.lora_alpha, lora_dropout=config.lora_dropout,
        target_modules=list(config.lora_targets), task_type="CAUSAL_LM",
    )  # fmt: skip
