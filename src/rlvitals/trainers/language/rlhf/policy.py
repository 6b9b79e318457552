"""A causal language model with a value head, and its frozen reference."""

import copy
import inspect
import warnings
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from rlvitals.trainers.language.rlhf import masked
from rlvitals.trainers.language.rlhf.batch import Responses


class ValueHead(nn.Module):
    """A linear reading of hidden states, in float32: at first the same for all of them.

    What is read has a mean square of 1. So, at a learning rate of r / width, one step of Adam
    moves a value by r at the most, however wide a model is and however large its hidden states.
    """

    def __init__(self, width: int) -> None:
        """Begin with nothing."""
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(width))
        self.bias = nn.Parameter(torch.zeros(()))

    def forward(self, hidden: Tensor) -> Tensor:
        """Return values [...] of hidden states [..., width]."""
        read = nn.functional.rms_norm(hidden.float(), self.weight.shape)
        return (read * self.weight).sum(-1) + self.bias


class Policy(nn.Module):
    """A language model, with a linear head on its last hidden state for the value of a prefix.

    Dropout is off for good: with it a policy that has not moved would differ from itself.
    """

    def __init__(self, lm: Any, lora: Any = None) -> None:
        """Wrap a model, with adapters if `lora` is given."""
        super().__init__()
        self._positions = "position_ids" in inspect.signature(lm.forward).parameters
        if lora is not None:
            lm = add_adapters(lm, lora)
        self.lm = lm
        self.value_head = ValueHead(lm.config.get_text_config().hidden_size)
        self.eval()

    @property
    def has_adapters(self) -> bool:
        """Whether adapters are trained, and not the weights themselves."""
        return hasattr(self.lm, "disable_adapter")

    def read(self, tokens: Tensor, attention: Tensor, **how: Any) -> Any:
        """Run the model; positions are counted from the first token that is no padding."""
        if self._positions:
            length = tokens.shape[1]
            how["position_ids"] = (attention.cumsum(1) - 1).clamp(min=0)[:, -length:]
        return self.lm(input_ids=tokens, attention_mask=attention, **how)

    def forward(self, drawn: Responses, temperature: float) -> tuple[Tensor, Tensor, Tensor]:
        """Return log-probabilities, entropies and values of the responses' tokens, [b, t] each.

        The value of a token is what was expected before it was drawn.
        """
        read = self.read(drawn.tokens, drawn.attention, use_cache=False, output_hidden_states=True)
        prediction_slice = slice(drawn.queries - 1, -1)
        logits = read.logits[:, prediction_slice].float() / temperature
        hidden = read.hidden_states[-1][:, prediction_slice]
        values = self.value_head(hidden)
        with torch.no_grad():
            entropy = masked.entropy(logits) * drawn.mask
        return token_logprobs(logits, drawn) * drawn.mask, entropy, values * drawn.mask


def add_adapters(lm: Any, lora: Any) -> Any:
    """Return a model with adapters, which alone are trained."""
    import peft

    with warnings.catch_warnings():  # peft asks for an attribute by a name that is going away
        warnings.simplefilter("ignore", FutureWarning)
        return peft.get_peft_model(lm, lora)


class Reference:
    """The policy as it was before any training: a copy, or the model without its adapters."""

    def __init__(self, policy: Policy) -> None:
        """Freeze a policy as it is now."""
        self._copy: Any = None
        if not policy.has_adapters:
            self._copy = copy.deepcopy(policy).requires_grad_(requires_grad=False)

    def to(self, device: torch.device) -> None:
        """Move the copy, where there is one."""
        if self._copy is not None:
            self._copy.to(device)

    def logprobs(self, policy: Policy, drawn: Responses, temperature: float) -> Tensor:
        """Return the log-probabilities [b, t] of the tokens that a policy drew."""
        model: Policy = policy if self._copy is None else self._copy
        as_it_was = policy.lm.disable_adapter() if policy.has_adapters else nullcontext()
        with torch.no_grad(), as_it_was:
            read = model.read(drawn.tokens, drawn.attention, use_cache=False)
        logits = read.logits[:, drawn.queries - 1 : -1].float() / temperature
        return token_logprobs(logits, drawn) * drawn.mask


def token_logprobs(logits: Tensor, drawn: Responses) -> Tensor:
    """Return the log-probabilities [b, t] of responses by logits [b, t, n]."""
    tokens = drawn.tokens[:, drawn.queries :, None]
    return torch.log_softmax(logits, -1).gather(-1, tokens).squeeze(-1)
