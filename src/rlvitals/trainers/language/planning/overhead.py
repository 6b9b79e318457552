"""Measure the fixed cost of an operation: Python, the library and the dispatcher."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from transformers import LlamaConfig, LlamaForCausalLM

from rlvitals.trainers.language.planning.device import Rates, seconds
from rlvitals.trainers.language.planning.meter import Meter

NEW_TOKENS = 16
CPU = torch.device("cpu")
COUNTING_RATES = Rates(1.0, 1.0, 0.0, 0, "", "")  # any: operations are counted alone


@dataclass(frozen=True, slots=True)
class Overheads:
    """Seconds of an operation."""

    learning: float  # forward and backward
    generating: float  # a token of `generate`


@cache
def measure() -> Overheads:
    """Time a small Llama on this machine in one thread, and divide by its operations."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _time_llama()
    finally:
        torch.set_num_threads(threads)


def _time_llama() -> Overheads:
    # So small that arithmetic takes no time.
    config = LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=4,
        num_attention_heads=4, eos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    with torch.random.fork_rng():
        model = LlamaForCausalLM(config)
        tokens = torch.ones(2, 8, dtype=torch.long)
        learning = seconds(lambda: _learn(model, tokens), CPU)
        generating = seconds(lambda: model.generate(tokens, max_new_tokens=NEW_TOKENS), CPU)
    with FakeTensorMode():
        model = LlamaForCausalLM(config)
        tokens = torch.ones(2, 8, dtype=torch.long)
        with Meter(COUNTING_RATES) as learned:
            _learn(model, tokens)
        with torch.no_grad():
            cache = model(tokens, use_cache=True).past_key_values
            with Meter(COUNTING_RATES) as decoded:
                model(tokens[:, :1], past_key_values=cache, use_cache=True)
    return Overheads(learning / learned.operations, generating / NEW_TOKENS / decoded.operations)


def _learn(model: Any, tokens: Any) -> None:
    model(input_ids=tokens, labels=tokens).loss.backward()
