"""Looks over the shoulder of a TRL trainer for its first updates, and changes nothing in it.

The trainer's own methods are called as they are; what goes in and comes out is kept. trl v1.16:
trl/trainer/grpo_trainer.py and rloo_trainer.py: _generate, _generate_and_score_completions,
_get_per_token_logps_and_entropies, _compute_loss.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from accelerate.utils import gather_object
from torch.nn.modules.module import register_module_forward_pre_hook

METHODS = (
    "_generate",
    "_generate_and_score_completions",
    "_get_per_token_logps_and_entropies",
    "_compute_loss",
)
ROW = "rlvitals_row"  # travels with a batch through TRL's shuffling: a sample's row as generated
ALONE_ROWS, ALONE_TOKENS = 2, 256  # of the forward pass that checks the loss's log-probabilities


def draws_samples(trainer: Any) -> bool:
    """Whether a trainer generates what it trains on, in the way that is read here."""
    return all(hasattr(trainer, name) for name in METHODS)


@dataclass(slots=True)
class Loss:
    """One call of the loss before the first update. Tensors [B, T] on the CPU."""

    inputs: dict[str, torch.Tensor]
    logps: torch.Tensor | None = None
    weight: torch.Tensor | None = None  # d loss / d logps; None until the backward pass
    alone: torch.Tensor | None = None  # the same by a plain forward pass, of the first rows


@dataclass(frozen=True, slots=True)
class Shared:
    """What the processes tell each other of the samples that each of them drew."""

    prompts: list[str]
    answers: list[str]
    advantages: list[float]


@dataclass(frozen=True, slots=True, eq=False)
class Local:
    """What one generation left on this process."""

    drawn: torch.Tensor  # bool [B, T]: whether the policy wrote the token
    exempt: torch.Tensor  # bool [B]: left out of the loss on purpose, as it was cut off
    weights: Mapping[str, float] | None  # of the model that drew, those that are watched
    shared: Shared


@dataclass(frozen=True, slots=True, eq=False)
class Generation:
    """What one generation left, on this process and on all of them in order."""

    local: Local
    shared: list[Shared]


@dataclass(slots=True)
class Tap:
    """What was seen. `watched` names the weights that are looked up in the sampler."""

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
        """Begin to look."""
        around = (self._generate, self._score, self._logps, self._loss)
        for name, watching in zip(METHODS, around, strict=True):
            if name in vars(self.trainer):
                self._own[name] = vars(self.trainer)[name]
            setattr(self.trainer, name, partial(watching, getattr(self.trainer, name)))

    def close(self) -> None:
        """Leave the trainer as it was found."""
        for name in METHODS:
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
        hook = register_module_forward_pre_hook(self._called)
        try:
            made = real(*args, **kwargs)
        finally:
            hook.remove()
        if self.trainer.model.training:
            self._generated = made
        return made

    def _called(self, module: torch.nn.Module, _: object) -> None:
        """Keep what runs while samples are drawn."""
        self._ran[id(module)] = module

    def _score(self, real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        batch = real(*args, **kwargs)
        if self.trainer.model.training:
            self.generations += 1
            self._fresh = True
            batch[ROW] = torch.arange(len(batch["completion_ids"]))
            self._keep(batch)
        return batch

    def _keep(self, batch: Mapping[str, torch.Tensor]) -> None:
        """Keep the first generation, and the first that draws after the weights have moved.

        Every process must come to the one message here, whatever it met before.
        """
        wanted = self.first is None or (self.second is None and bool(self.watched))
        if not wanted:
            return
        mine: list[Local | None] = [None]
        self._quietly(lambda: mine.__setitem__(0, self._local(batch)))
        everyone = gather_object(mine)
        if mine[0] is None or None in everyone:
            return
        found = Generation(mine[0], [part.shared for part in everyone])
        if self.first is None:
            self.first = found
        else:
            self.second = found

    def _local(self, batch: Mapping[str, torch.Tensor]) -> "Local":
        ids, completions, third, *rest = self._generated
        tools = third if rest else None  # GRPO's mask of what a tool wrote; RLOO has the texts here
        drawn = torch.zeros(batch["completion_ids"].shape, dtype=torch.bool)
        for row, tokens in enumerate(completions):
            drawn[row, : len(tokens)] = True if tools is None else torch.tensor(tools[row]).bool()
        decode = self.trainer.processing_class.batch_decode
        prompts, answers = decode(ids), decode(completions)
        advantages = batch["advantages"].detach().float().cpu()
        if advantages.ndim > 1:  # one for each token: a subclass's own
            advantages = advantages.mean(dim=1)
        cut = getattr(self.trainer, "mask_truncated_completions", False)
        ends = {*getattr(self.trainer, "eos_token_ids", ())}
        exempt = torch.tensor([cut and tokens[-1] not in ends for tokens in completions])
        return Local(drawn, exempt, self._weights(), Shared(prompts, answers, advantages.tolist()))

    def _weights(self) -> dict[str, float] | None:
        """Return the watched weights of the modules that drew; None where none was seen.

        Another model's come first: where one draws, the trainer's own has no say.
        """
        own = self.trainer.accelerator.unwrap_model(self.trainer.model)
        self.moved = self._named(own)
        models = [m for m in self._ran.values() if hasattr(m, "can_generate") and m.can_generate()]
        others = [self._named(m, ran=True) for m in models if m is not own]
        return next((found for found in (*others, self._named(own, ran=True)) if found), None)

    def _named(self, model: torch.nn.Module, *, ran: bool = False) -> dict[str, float]:
        """Return a model's watched weights: all of them, or of those modules of it that ran.

        A copy of a model may well call the original's modules, and leave its own alone.
        """
        modules = dict(model.named_modules())
        found = {}
        for name, index in self.watched.items():
            owner, _, tensor = name.rpartition(".")
            module = modules.get(owner)
            if hasattr(module, tensor) and (not ran or id(module) in self._ran):
                weight = local(getattr(module, tensor)).flatten()[index]
                found[f"{name}[{index}]"] = weight.item()
        return found

    def _logps(self, real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        found = real(*args, **kwargs)
        inside, logps = self._inside, found[0]
        if inside is not None and inside.logps is None:
            inside.logps = logps.detach().float().cpu()
            if logps.requires_grad:
                logps.register_hook(lambda grad: setattr(inside, "weight", grad.float().cpu()))
        return found

    def _loss(self, real: Callable[..., Any], model: Any, inputs: dict[str, Any]) -> Any:
        if not self.trainer.model.training or not (self._fresh or not self.updated):
            return real(model, inputs)
        kept = {key: v.detach().cpu() for key, v in inputs.items() if torch.is_tensor(v)}
        self._inside = Loss(kept)
        try:
            loss = real(model, inputs)
        finally:
            looked, self._inside = self._inside, None
        if not self.updated:
            if not self.losses:
                self._quietly(lambda: setattr(looked, "alone", self._alone(model, inputs)))
            self.losses.append(looked)
        if self._fresh:
            self._quietly(lambda: self._compare(looked))
        self._fresh = False
        return loss

    def _compare(self, loss: Loss) -> None:
        """Note the sampler's log-probabilities of `first` and of `second`, and of none between.

        Between them the weights have not moved: any sampler would agree.
        """
        sampled = loss.inputs.get("sampling_per_token_logps")
        wanted = self.generations == 1 or (self.second is not None and len(self.differences) == 1)
        if sampled is None or loss.logps is None or not wanted:
            return
        off = (sampled - loss.logps).abs()[loss.inputs["completion_mask"] > 0]
        self.differences.append(off[~off.isnan()].mean().item())

    def _alone(self, model: Any, inputs: Mapping[str, Any]) -> torch.Tensor | None:
        """Return log-probabilities [rows, tokens] of a plain forward pass without dropout."""
        if "pixel_values" in inputs:
            return None
        prompts = inputs["prompt_ids"][:ALONE_ROWS]
        answers = inputs["completion_ids"][:ALONE_ROWS, :ALONE_TOKENS]
        masks = inputs["prompt_mask"][:ALONE_ROWS], inputs["completion_mask"][:ALONE_ROWS]
        mask = torch.cat([masks[0], masks[1][:, :ALONE_TOKENS]], dim=1)
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
    """Return this process's part of a tensor that is sharded, else the tensor."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor
