"""Hooks that observe the first updates of a TRL trainer without changing it.

The trainer's methods are wrapped; their inputs and outputs are stored. Read from trl 1.16:
trl/trainer/grpo_trainer.py and rloo_trainer.py: _generate, _generate_and_score_completions,
_get_per_token_logps_and_entropies, _compute_loss.
"""

from collections.abc import Callable, Mapping
from dataclasses import field
from functools import partial
from typing import Any

import torch
from accelerate.utils import gather_object
from torch.nn.modules.module import register_module_forward_pre_hook

from rlvitals.startup.fast_dataclass import dataclass

HOOKED_METHODS = (
    "_generate",
    "_generate_and_score_completions",
    "_get_per_token_logps_and_entropies",
    "_compute_loss",
)
ROW_KEY = (
    "rlvitals_row"  # travels with a batch through TRL's shuffling: a sample's row as generated
)
MAX_PLAIN_ROWS, MAX_PLAIN_TOKENS = (
    2,
    256,
)  # of the forward pass that checks the loss's log-probabilities


def draws_samples(trainer: Any) -> bool:
    """Return whether a trainer generates its samples with the hooked methods."""
    return all(hasattr(trainer, name) for name in HOOKED_METHODS)


@dataclass(slots=True)
class Loss:
    """One call of the loss before the first update. Tensors [B, T] on the CPU."""

    inputs: dict[str, torch.Tensor]
    logps: torch.Tensor | None = None
    weight: torch.Tensor | None = None  # d loss / d logps; None until the backward pass
    plain_logps: torch.Tensor | None = None  # by a plain forward pass, of the first rows


@dataclass(frozen=True, slots=True)
class Shared:
    """The samples of one process, gathered on all processes."""

    prompts: list[str]
    answers: list[str]
    advantages: list[float]


@dataclass(frozen=True, slots=True, eq=False)
class Local:
    """The samples of one generation on this process."""

    drawn: torch.Tensor  # bool [B, T]: the policy generated the token
    exempt: torch.Tensor  # bool [B]: truncated, and excluded from the loss
    weights: Mapping[str, float] | None  # watched weights of the sampling model
    shared: Shared


@dataclass(frozen=True, slots=True, eq=False)
class Generation:
    """The samples of one generation, on this process and on all in order of rank."""

    local: Local
    shared: list[Shared]


@dataclass(slots=True)
class Tap:
    """The observations. `watched` names the weights to look up in the sampler."""

    trainer: Any
    losses: list[Loss] = field(default_factory=list)
    first: Generation | None = None
    second: Generation | None = None
    generations: int = 0
    updated: bool = False
    watched: Mapping[str, int] = field(default_factory=dict)  # tensor: index
    moved: Mapping[str, float] = field(default_factory=dict)  # the trainer's, at `second`
    differences: list[float] = field(default_factory=list)  # sampler's log-probability, trainer's
    problems: list[str] = field(default_factory=list)
    _generated: tuple[Any, ...] = ()
    _ran: dict[int, torch.nn.Module] = field(default_factory=dict)
    _inside: Loss | None = None
    _fresh: bool = False
    _own: dict[str, Any] = field(default_factory=dict)

    def open(self) -> None:
        """Install the hooks."""
        around = (self._generate, self._score, self._logps, self._loss)
        for name, watching in zip(HOOKED_METHODS, around, strict=True):
            if name in vars(self.trainer):
                self._own[name] = vars(self.trainer)[name]
            setattr(self.trainer, name, partial(watching, getattr(self.trainer, name)))

    def close(self) -> None:
        """Remove the hooks."""
        for name in HOOKED_METHODS:
            if isinstance(vars(self.trainer).get(name), partial):
                delattr(self.trainer, name)
        for name, method in self._own.items():
            setattr(self.trainer, name, method)

    def _quietly(self, look: Callable[[], None]) -> None:
        try:
            look()
        except Exception as error:  # noqa: BLE001 - looking must never end a training
            self.problems.append(f"{type(error).__name__}: {error}")

    def _generate(self, real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self._ran.clear()
        hook = register_module_forward_pre_hook(self._track_module)
        try:
            samples = real(*args, **kwargs)
        finally:
            hook.remove()
        if self.trainer.model.training:
            self._generated = samples
        return samples

    def _track_module(self, module: torch.nn.Module, _: object) -> None:
        """Store a module that runs during generation."""
        self._ran[id(module)] = module

    def _score(self, real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        batch = real(*args, **kwargs)
        if not self.trainer.model.training:
            return batch
        self.generations += 1
        self._fresh = True
        batch[ROW_KEY] = torch.arange(len(batch["completion_ids"]))
        is_needed = self.first is None or (self.second is None and bool(self.watched))
        if is_needed:
            # Every process must reach the gather here, whatever failed before.
            local_samples: list[Local | None] = [None]
            self._quietly(lambda: local_samples.__setitem__(0, self._local(batch)))
            all_samples = gather_object(local_samples)
            if local_samples[0] is not None and None not in all_samples:
                generation = Generation(
                    local_samples[0], [samples.shared for samples in all_samples]
                )
                if self.first is None:
                    self.first = generation
                else:
                    self.second = generation
        return batch

    def _local(self, batch: Mapping[str, torch.Tensor]) -> "Local":
        ids, completions, third, *extra = self._generated
        tools = (
            third if extra else None
        )  # GRPO's mask of what a tool wrote; RLOO has the texts here
        drawn = torch.zeros(batch["completion_ids"].shape, dtype=torch.bool)
        for row, tokens in enumerate(completions):
            drawn[row, : len(tokens)] = True if tools is None else torch.tensor(tools[row]).bool()
        decode = self.trainer.processing_class.batch_decode
        prompts, answers = decode(ids), decode(completions)
        advantages = batch["advantages"].detach().float().cpu()
        if advantages.ndim > 1:  # one for each token: a subclass's own
            advantages = advantages.mean(dim=1)
        masks_truncated = getattr(self.trainer, "mask_truncated_completions", False)
        ends = {*getattr(self.trainer, "eos_token_ids", ())}
        exempt = torch.tensor(
            [masks_truncated and tokens[-1] not in ends for tokens in completions]
        )
        return Local(drawn, exempt, self._weights(), Shared(prompts, answers, advantages.tolist()))

    def _weights(self) -> dict[str, float] | None:
        """Return the watched weights of the modules that generated; None for no module.

        Another model's weights take precedence over the trainer's.
        """
        trained_model = self.trainer.accelerator.unwrap_model(self.trainer.model)
        self.moved = self._watched_weights(trained_model)
        models = [m for m in self._ran.values() if hasattr(m, "can_generate") and m.can_generate()]
        other_weights = [
            self._watched_weights(m, ran=True) for m in models if m is not trained_model
        ]
        return next(
            (
                weights
                for weights in (*other_weights, self._watched_weights(trained_model, ran=True))
                if weights
            ),
            None,
        )

    def _watched_weights(self, model: torch.nn.Module, *, ran: bool = False) -> dict[str, float]:
        """Return a model's watched weights: all of them, or those of modules that ran.

        A copy of a model may call the original's modules instead of its own.
        """
        modules = dict(model.named_modules())
        weights = {}
        for name, index in self.watched.items():
            owner, _, tensor = name.rpartition(".")
            module = modules.get(owner)
            if hasattr(module, tensor) and (not ran or id(module) in self._ran):
                weight = local(getattr(module, tensor)).flatten()[index]
                weights[f"{name}[{index}]"] = weight.item()
        return weights

    def _logps(self, real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        result = real(*args, **kwargs)
        current, logps = self._inside, result[0]
        if current is not None and current.logps is None:
            current.logps = logps.detach().float().cpu()
            if logps.requires_grad:
                logps.register_hook(lambda grad: setattr(current, "weight", grad.float().cpu()))
        return result

    def _loss(self, real: Callable[..., Any], model: Any, inputs: dict[str, Any]) -> Any:
        if not self.trainer.model.training or not (self._fresh or not self.updated):
            return real(model, inputs)
        tensors = {key: v.detach().cpu() for key, v in inputs.items() if torch.is_tensor(v)}
        self._inside = Loss(tensors)
        try:
            loss = real(model, inputs)
        finally:
            seen_loss, self._inside = self._inside, None
        if not self.updated:
            if not self.losses:
                self._quietly(
                    lambda: setattr(seen_loss, "plain_logps", self._plain_logps(model, inputs))
                )
            self.losses.append(seen_loss)
        if self._fresh:
            self._quietly(lambda: self._compare(seen_loss))
        self._fresh = False
        return loss

    def _compare(self, loss: Loss) -> None:
        """Compare the sampler's log-probabilities at `first` and at `second` only.

        In between the weights are unchanged: any sampler would agree.
        """
        sampled = loss.inputs.get("sampling_per_token_logps")
        is_needed = self.generations == 1 or (
            self.second is not None and len(self.differences) == 1
        )
        if sampled is None or loss.logps is None or not is_needed:
            return
        difference = (sampled - loss.logps).abs()[loss.inputs["completion_mask"] > 0]
        self.differences.append(difference[~difference.isnan()].mean().item())

    def _plain_logps(self, model: Any, inputs: Mapping[str, Any]) -> torch.Tensor | None:
        """Return log-probabilities [rows, tokens] of a plain forward pass without dropout."""
        if "pixel_values" in inputs:
            return None
        prompts = inputs["prompt_ids"][:MAX_PLAIN_ROWS]
        answers = inputs["completion_ids"][:MAX_PLAIN_ROWS, :MAX_PLAIN_TOKENS]
        masks = inputs["prompt_mask"][:MAX_PLAIN_ROWS], inputs["completion_mask"][:MAX_PLAIN_ROWS]
        mask = torch.cat([masks[0], masks[1][:, :MAX_PLAIN_TOKENS]], dim=1)
        modes = [(module, module.training) for module in model.modules()]
        model.eval()
        try:
            with torch.no_grad(), self.trainer.accelerator.autocast():
                ids = torch.cat([prompts, answers], dim=1)
                logits = model(input_ids=ids, attention_mask=mask).logits
        finally:
            for module, mode in modes:
                module.training = mode
        logits = logits[:, prompts.shape[1] - 1 : -1].float() / self.trainer.temperature
        logps = logits.log_softmax(dim=-1).gather(2, answers.unsqueeze(2)).squeeze(2)
        return torch.as_tensor(logps).cpu()


def local(tensor: Any) -> Any:
    """Return this process's shard of a sharded tensor, else the tensor."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor
