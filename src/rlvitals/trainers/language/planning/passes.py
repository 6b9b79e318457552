"""Trace the passes of a model on fake tensors: time and memory of each."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import peft
import torch
from accelerate import init_empty_weights
from torch import Tensor
from torch._subclasses.fake_tensor import unset_fake_temporarily
from transformers import SiglipVisionConfig
from transformers.models.siglip.modeling_siglip import SiglipEncoder

from rlvitals import UsageError
from rlvitals.trainers.language.config import ModelConfig
from rlvitals.trainers.language.planning.device import Rates
from rlvitals.trainers.language.planning.meter import Meter
from rlvitals.trainers.language.planning.shell import Shell, fake

CHECKPOINTING_OPTIONS = {"use_reentrant": False, "preserve_rng_state": False}


@dataclass(frozen=True, slots=True)
class Pass:
    """A pass of a model. Bytes exclude the weights."""

    seconds: float = 0.0
    flops: float = 0.0
    peak: int = 0
    retained: int = 0  # at the end of its forward pass: the KV cache, or the activations

    def __add__(self, other: "Pass") -> "Pass":
        """Return two passes in sequence: the memory that `other` retains adds to this peak."""
        return Pass(
            self.seconds + other.seconds, self.flops + other.flops,
            max(self.peak + other.retained, other.peak), self.retained + other.retained,
        )  # fmt: skip

    def times(self, count: float) -> "Pass":
        """Return it repeated; its memory is needed once."""
        return Pass(self.seconds * count, self.flops * count, self.peak, self.retained)


def trace_pass(model: Any, rates: Rates, work: Callable[[], object]) -> Pass:
    """Trace `work`: its result is what the pass keeps."""
    meter = Meter(rates)
    weights = meter.track((*model.parameters(), *model.buffers()))
    try:
        with meter:
            result = work()
    except (RuntimeError, NotImplementedError) as error:
        line = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        raise UsageError(
            f"its memory and time cannot be estimated: {line}", where="model.vlm_name"
        ) from error
    traced_pass = Pass(
        meter.seconds, meter.flops, meter.bytes_peak - weights, meter.bytes_now - weights
    )
    del result
    return traced_pass


def prefill(shell: Shell, rates: Rates, rows: int, tokens: int, *, all_logits: bool) -> Pass:
    """Read prompts, and keep the KV cache."""

    def work() -> object:
        return _read(shell, rows, tokens, all_logits=all_logits).past_key_values

    with torch.no_grad():
        return trace_pass(shell.model, rates, work)


def decode(shell: Shell, rates: Rates, rows: int, tokens: int) -> Pass:
    """Draw the next token after `tokens`: its peak has the KV cache in it."""
    with torch.no_grad():
        cache = _read(shell, rows, tokens, all_logits=False).past_key_values

        def work() -> object:
            output = shell.model(
                input_ids=torch.zeros(rows, 1, dtype=torch.long),
                attention_mask=torch.ones(rows, tokens + 1, dtype=torch.long),
                past_key_values=cache, use_cache=True,
            )  # fmt: skip
            torch.multinomial(torch.softmax(output.logits[:, -1].float(), -1), 1)
            return output.past_key_values

        return trace_pass(shell.model, rates, work)


def _read(shell: Shell, rows: int, tokens: int, *, all_logits: bool) -> Any:
    read = torch.zeros(rows, tokens, dtype=torch.long)
    return shell.model(
        input_ids=read, attention_mask=torch.ones_like(read), use_cache=True,
        **({} if all_logits else {"logits_to_keep": 1}),
    )  # fmt: skip


def forward(model: Any, rates: Rates, score: Callable[[], Iterable[Tensor]]) -> Pass:
    """Score completions without a gradient."""
    with torch.no_grad():
        return trace_pass(model, rates, lambda: list(score()))


def learn(model: Any, rates: Rates, score: Callable[[], Iterable[Tensor]], *, bf16: bool) -> Pass:
    """Score completions, and take the gradient: `kept` is what the backward pass needs."""
    meter = Meter(rates)
    weights = meter.track((*model.parameters(), *model.buffers()))
    cast: AbstractContextManager[Any] = (
        torch.autocast("cpu", torch.bfloat16) if bf16 else nullcontext()
    )
    with meter:
        with cast:
            scored = list(score())
        retained = meter.bytes_now - weights
        torch.stack([tensor.sum() for tensor in scored]).sum().backward()
    model.zero_grad(set_to_none=True)
    return Pass(meter.seconds, meter.flops, meter.bytes_peak - weights, retained)


def layers(vision_config: Any) -> int:
    """Return how many layers an image encoder has, by its configuration."""
    return int(getattr(vision_config, "depth", None) or vision_config.num_hidden_layers)


def encoder(shell: Shell, config: ModelConfig, rates: Rates, images: int, patches: int) -> Any:
    """Return the passes of an image encoder, without and with a gradient.

    It stands for the model's own: SigLIP's layers of the same width, depth and heads, which attend
    to all patches of an image.
    """
    vision_config = shell.model_config.vision_config
    width = getattr(vision_config, "embed_dim", None) or vision_config.hidden_size
    inner = getattr(vision_config, "intermediate_size", None) or int(
        vision_config.mlp_ratio * width
    )
    heads = getattr(vision_config, "num_heads", None) or vision_config.num_attention_heads
    siglip = SiglipVisionConfig(
        hidden_size=width, intermediate_size=inner, num_hidden_layers=layers(vision_config),
        num_attention_heads=heads, attn_implementation="sdpa",
    )  # fmt: skip
    dtype = next(shell.weights(vision=True)).dtype
    learned = any(True for _ in shell.weights(vision=True, trainable=True))
    adapters = peft.LoraConfig(
        r=config.lora_r,
        lora_dropout=config.lora_dropout,
        target_modules=["q_proj", "k_proj", "v_proj"],
    )
    with unset_fake_temporarily(), init_empty_weights(include_buffers=True):
        model: Any = SiglipEncoder(siglip).to(dtype).requires_grad_(not config.lora)
        if config.lora and learned:
            peft.inject_adapter_in_model(adapters, model)
    fake(model)
    patch_states = torch.zeros(images, patches, width, dtype=dtype)

    def score() -> list[Tensor]:
        return [model(inputs_embeds=patch_states).last_hidden_state]

    without = forward(model, rates, score)
    return without, learn(model, rates, score, bf16=False) if learned else without
