"""Norms of gradients before they are clipped, and the tensor that is no number first."""

import math
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from torch import Tensor
from torch.nn import utils

from rlvitals.integrations.guard import Careful

EVERY = 10  # gradient steps of an optimiser that does not clip: a norm costs some 30 us

Broken = Callable[[str, float], None]  # told the name of a tensor, and its value


class Gradients:
    """Watches what a model's optimisers are about to apply, changing no bit of it.

    Algorithms with `max_grad_norm` measure the norm themselves and drop it: while they train,
    `torch.nn.utils.clip_grad_norm_` keeps it. Others are asked before a step of their optimisers.
    """

    def __init__(self, model: BaseAlgorithm, broken: Broken, careful: Careful) -> None:
        """Watch `model`; `broken` is told of the first tensor whose gradient is not finite.

        Raises RuntimeError for a torch that measures and clips in one function only.
        """
        if not hasattr(utils, "get_total_norm"):
            raise RuntimeError("gradient norms need torch 2.6 or newer")
        self.careful = careful
        self.norms: dict[str, list[float]] = defaultdict(list)
        self.clips = hasattr(model, "max_grad_norm")
        self.names = {id(p): name for name, p in model.policy.named_parameters()}
        self.broken = broken
        self.thread: int | None = None
        self.original: Callable[..., Tensor] = utils.clip_grad_norm_
        self.installed: Callable[..., Tensor] = self._clip
        self.steps: dict[str, int] = defaultdict(int)
        self.hooks: list[Any] = [] if self.clips else [*self._hooked(model)]

    def begin(self) -> None:
        """Watch the update that starts now, on this thread."""
        if self.clips and self.thread is None:
            self.thread = threading.get_ident()
            self.original = utils.clip_grad_norm_
            utils.clip_grad_norm_ = self.installed

    def end(self) -> None:
        """Stop watching. Where something else was put over ours, ours only passes through."""
        self.thread = None
        if utils.clip_grad_norm_ is self.installed:
            utils.clip_grad_norm_ = self.original

    def close(self) -> None:
        """Leave nothing behind."""
        self.end()
        for hook in self.hooks:
            hook.remove()
        self.hooks.clear()

    def take(self) -> dict[str, float]:
        """Return mean and maximum of the norms since the last call, and forget them."""
        found: dict[str, float] = {}
        for key, norms in self.norms.items():
            found[f"train/{key}"] = sum(norms) / len(norms)
            if key != "critic_grad_norm":
                # Of a NaN max() depends on its place: here the largest is then NaN.
                broken = any(map(math.isnan, norms))
                found[f"train/{key}_max"] = math.nan if broken else max(norms)
        self.norms.clear()
        return found

    def _clip(
        self,
        parameters: Tensor | Iterable[Tensor],
        max_norm: float,
        *args: Any,
        **named: Any,
    ) -> Tensor:
        if threading.get_ident() != self.thread or args or named:
            return self.original(parameters, max_norm, *args, **named)
        # The two steps of torch's own function: between them the gradients are still whole.
        own = [parameters] if isinstance(parameters, Tensor) else list(parameters)
        total = utils.get_total_norm([p.grad for p in own if p.grad is not None])
        self.careful("gradients", lambda: self._saw("grad_norm", total, own))
        utils.clip_grads_with_norm_(own, max_norm, total)
        return total

    def _saw(self, key: str, norm: Tensor, parameters: Iterable[Tensor]) -> None:
        # The algorithm waits for the device at every gradient step too, to log its losses.
        value = norm.item()
        self.norms[key].append(value)
        if not math.isfinite(value):
            name, value = self._first_broken(parameters)
            self.broken(name, value)

    def _first_broken(self, parameters: Iterable[Tensor]) -> tuple[str, float]:
        for p in parameters:
            if p.grad is not None and not (finite := torch.isfinite(p.grad)).all():
                return f"gradient of {self.names.get(id(p), '?')}", p.grad[~finite][0].item()
        return "gradient norm", float("inf")  # every number finite, their squares' sum is not

    def _hooked(self, model: BaseAlgorithm) -> Iterable[Any]:
        found = {
            "actor_grad_norm": getattr(getattr(model, "actor", None), "optimizer", None),
            "critic_grad_norm": getattr(getattr(model, "critic", None), "optimizer", None),
            "grad_norm": getattr(model.policy, "optimizer", None),
        }
        for key, optimiser in found.items():
            if optimiser is not None:
                yield optimiser.register_step_pre_hook(self._before(key))

    def _measure(self, key: str, optimiser: torch.optim.Optimizer) -> None:
        own = [p for group in optimiser.param_groups for p in group["params"]]
        if grads := [p.grad for p in own if p.grad is not None]:
            self._saw(key, utils.get_total_norm(grads), own)

    def _before(self, key: str) -> Callable[..., None]:
        def hook(optimiser: torch.optim.Optimizer, *_: object) -> None:
            self.steps[key] += 1
            if self.steps[key] % EVERY == 1:
                self.careful("gradients", lambda: self._measure(key, optimiser))

        return hook
