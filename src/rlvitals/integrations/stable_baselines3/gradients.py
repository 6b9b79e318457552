"""Measure gradient norms before clipping, and find the first non-finite gradient."""

import math
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from torch import Tensor
from torch.nn import utils

from rlvitals.integrations.guard import Guard

Broken = Callable[[str, float], None]  # told the name of a tensor, and its value


class Gradients:
    """Observes the gradients of a model's optimisers without changing them.

    Algorithms with `max_grad_norm` measure the norm themselves and drop it: while they train,
    `torch.nn.utils.clip_grad_norm_` keeps it. Others are asked before a step of their optimisers.
    """

    def __init__(self, model: BaseAlgorithm, broken: Broken, guard: Guard) -> None:
        """Observe `model`; `broken` is called with the first tensor with a non-finite gradient.

        Raises RuntimeError for a torch that measures and clips in one function only.
        """
        if not hasattr(utils, "get_total_norm"):
            raise RuntimeError("gradient norms need torch 2.6 or newer")
        self.guard = guard
        self.norms: dict[str, list[float]] = defaultdict(list)
        self.clips = hasattr(model, "max_grad_norm")
        self.names = {id(p): name for name, p in model.policy.named_parameters()}
        self.broken = broken
        self.thread: int | None = None
        self.original: Callable[..., Tensor] = utils.clip_grad_norm_
        self.installed: Callable[..., Tensor] = self._clip
        self.steps: dict[str, int] = defaultdict(int)
        self.hooks: list[Any] = [] if self.clips else [*self._register_hooks(model)]

    def begin(self) -> None:
        """Start to observe an update on this thread."""
        if self.clips and self.thread is None:
            self.thread = threading.get_ident()
            self.original = utils.clip_grad_norm_
            utils.clip_grad_norm_ = self.installed

    def end(self) -> None:
        """Stop observing. If another patch wraps ours, ours only passes through."""
        self.thread = None
        if utils.clip_grad_norm_ is self.installed:
            utils.clip_grad_norm_ = self.original

    def close(self) -> None:
        """Remove all hooks."""
        self.end()
        for hook in self.hooks:
            hook.remove()
        self.hooks.clear()

    def take(self) -> dict[str, float]:
        """Return mean and maximum of the norms since the last call, and reset them."""
        numbers: dict[str, float] = {}
        for key, norms in self.norms.items():
            numbers[f"train/{key}"] = sum(norms) / len(norms)
            if key != "critic_grad_norm":
                # Of a NaN max() depends on its place: here the largest is then NaN.
                broken = any(map(math.isnan, norms))
                numbers[f"train/{key}_max"] = math.nan if broken else max(norms)
        self.norms.clear()
        return numbers

    def _clip(
        self,
        parameters: Tensor | Iterable[Tensor],
        max_norm: float,
        *args: Any,
        **kwargs: Any,
    ) -> Tensor:
        if threading.get_ident() != self.thread or args or kwargs:
            return self.original(parameters, max_norm, *args, **kwargs)
        # The two steps of torch's own function: between them the gradients are still whole.
        tensors = [parameters] if isinstance(parameters, Tensor) else list(parameters)
        total = utils.get_total_norm([p.grad for p in tensors if p.grad is not None])
        self.guard("gradients", lambda: self._saw("grad_norm", total, tensors))
        utils.clip_grads_with_norm_(tensors, max_norm, total)
        return total

    def _saw(self, key: str, norm: Tensor, parameters: Iterable[Tensor]) -> None:
        # The algorithm waits for the device at every gradient step too, to log its losses.
        value = norm.item()
        self.norms[key].append(value)
        if not math.isfinite(value):
            name, value = self._find_nonfinite(parameters)
            self.broken(name, value)

    def _find_nonfinite(self, parameters: Iterable[Tensor]) -> tuple[str, float]:
        for p in parameters:
            if p.grad is not None and not (finite := torch.isfinite(p.grad)).all():
                return f"gradient of {self.names.get(id(p), '?')}", p.grad[~finite][0].item()
        return "gradient norm", float("inf")  # every number finite, their squares' sum is not

    def _register_hooks(self, model: BaseAlgorithm) -> Iterable[Any]:
        optimisers = {
            "actor_grad_norm": getattr(getattr(model, "actor", None), "optimizer", None),
            "critic_grad_norm": getattr(getattr(model, "critic", None), "optimizer", None),
            "grad_norm": getattr(model.policy, "optimizer", None),
        }
        for key, optimiser in optimisers.items():
            if optimiser is not None:
                yield optimiser.register_step_pre_hook(self._make_hook(key))

    def _measure(self, key: str, optimiser: torch.optim.Optimizer) -> None:
        parameters = [p for group in optimiser.param_groups for p in group["params"]]
        if grads := [p.grad for p in parameters if p.grad is not None]:
            self._saw(key, utils.get_total_norm(grads), parameters)

    def _make_hook(self, key: str) -> Callable[..., None]:
        def hook(optimiser: torch.optim.Optimizer, *_: object) -> None:
            self.steps[key] += 1
            if self.steps[key] % 10 == 1:  # gradient steps: a norm costs about 30 us
                self.guard("gradients", lambda: self._measure(key, optimiser))

        return hook
