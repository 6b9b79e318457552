"""Build a model from its configuration with all layers and adapters, but no weights."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from accelerate import init_empty_weights
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from rlvitals.trainers.language import models
from rlvitals.trainers.language.config import ModelConfig
from rlvitals.trainers.language.rlhf.policy import add_adapters
from rlvitals.trainers.language.tiny import base as tiny


@dataclass(frozen=True, slots=True)
class Shell:
    """A model whose weights are fake tensors, and how many there are."""

    model: Any
    model_config: Any  # its configuration
    vision: bool
    tiny: bool
    parameters: int
    trainable: int
    adapters: str  # "rank 8 on k_proj, q_proj"; empty without
    notes: tuple[str, ...]  # what a person should know of the adapters

    def weights(self, *, trainable: bool = False, vision: bool = False) -> Iterator[nn.Parameter]:
        """Yield the weights: all, those that are trained, those of the image encoder."""
        for name, weight in self.model.named_parameters():
            in_vision = any(marker in name for marker in ("vision", "visual"))
            if (weight.requires_grad or not trainable) and (in_vision or not vision):
                yield weight


@contextmanager
def build_shell(config: ModelConfig, *, seed: int) -> Iterator[Shell]:
    """Give a model as it would be trained; under `with`, tensors that are made are fake.

    Its config.json is read, from a folder, the hub's cache or the hub. Raises as `models.load`.
    """
    notes: list[str] = []
    small = config.vlm_name in tiny.TINY_MODELS
    if small:
        model, processor = tiny.TINY_MODELS[config.vlm_name].make(seed)
        model = model.to(
            torch.float32 if config.dtype == models.AUTO_DTYPE else models.dtype(config)
        )
        model_config, vision = model.config, models.tokenizer_of(processor) is not processor
    else:
        model_config, kind, vision = models.describe(config)
        dtype = models.dtype(config)
        if dtype == models.AUTO_DTYPE:
            dtype = model_config.dtype or torch.float32
        with init_empty_weights(include_buffers=True):
            model = kind.from_config(model_config, dtype=dtype)
    adapters = ""
    if config.lora:
        lora = models.lora(config, model, notes.append)
        adapters = f"rank {lora.r} on {', '.join(sorted(lora.target_modules))}"
        with nullcontext() if small else init_empty_weights(include_buffers=True):
            model = add_adapters(model, lora)
    with FakeTensorMode():
        fake(model)
        weights = list(model.parameters())
        learned = sum(weight.numel() for weight in weights if weight.requires_grad)
        total = sum(weight.numel() for weight in weights)
        yield Shell(model, model_config, vision, small, total, learned, adapters, tuple(notes))


def fake(model: nn.Module) -> None:
    """Replace weights and buffers by fake ones; tied weights stay tied."""
    replaced: dict[int, Any] = {}
    for module in model.modules():
        for tensors in (module._parameters, module._buffers):  # noqa: SLF001 - setattr checks kinds
            for name, value in tensors.items():
                if value is None:
                    continue
                if id(value) not in replaced:
                    empty = torch.empty(value.shape, dtype=value.dtype)
                    learned = isinstance(value, nn.Parameter)
                    replaced[id(value)] = (
                        nn.Parameter(empty, requires_grad=value.requires_grad) if learned else empty
                    )
                tensors[name] = replaced[id(value)]
