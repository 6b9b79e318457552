"""The trainer of `record_systems_runs.py`: rewards, sampling engine, GRPO with a fault."""

from __future__ import annotations

import copy
import os
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import psutil
import torch
from trl import GRPOTrainer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

CALL = "?"  # what a completion writes to call the tool
LEAK = 4 << 20  # bytes kept a batch
MOST_BATCHES = 10  # DAPO's max_num_gen_batches
CONTRAST = 0.25  # share of groups with right and wrong answers that dynamic sampling asks for
EXPERTS, CHOSEN = 8, 2
OLD = 30  # updates
DRIFT = 1e-3  # relative error of the engine's weights, an update


@dataclass(frozen=True, slots=True)
class Run:
    """One run: `fault` is `none` or what is wrong with it; `config` overrides the trainer's."""

    name: str
    fault: str = "none"
    seed: int = 0
    rewards: tuple[str, ...] = ("correct", "form")
    base: str = "half-wrong"
    sync_every: int = 0  # updates between two copies of the weights; 0: no engine; -1: never
    hotter: float = 1.0  # temperature of the engine over the trainer's
    engine: str = ""  # what is wrong with the engine: a name in `Engine`
    lora: bool = False  # train an adapter; an engine that is synchronised gets the merged weights
    half: bool = False  # keep the trained weights in bfloat16, without a copy in float32
    dynamic: bool = False  # draw batches again until enough groups have contrast
    advantages: str = ""  # log their ends: "centred" as TRL computes them, "raw": the rewards
    resume_at: int = 0  # stop there, and go on from the checkpoint without its optimiser's state
    config: Mapping[str, Any] = field(default_factory=dict)


def correct(completions: list[str], answer: list[str], **_: object) -> list[float]:
    """1 for the right sum, with or without a call before it."""
    return [float(c.strip(CALL) == a) for c, a in zip(completions, answer, strict=True)]


def correct_after_call(completions: list[str], answer: list[str], **_: object) -> list[float]:
    """1 for the right sum after a call of the tool."""
    return [float(c == CALL + a) for c, a in zip(completions, answer, strict=True)]


def form(completions: list[str], **_: object) -> list[float]:
    """-1 for what is no number."""
    return [0.0 if c.strip().isdigit() else -1.0 for c in completions]


def calls(completions: list[str], log_metric: Callable[[str, float], None], **_: object) -> Any:
    """Charge 1 for each call of the tool, and log how often it is called."""
    count = [c.count(CALL) for c in completions]
    log_metric("tools/call_frequency", sum(count) / len(count))
    return [-1.0 * n for n in count]


def free_calls(completions: list[str], **columns: Any) -> Any:
    """`calls` without the charge."""
    return [0.0 * n for n in calls(completions, **columns)]


KEPT: list[bytearray] = []


def remembers(completions: list[str], log_metric: Callable[[str, float], None], **_: object) -> Any:
    """Log the process's resident memory."""
    log_metric("throughput/memory/process", psutil.Process().memory_info().rss / 2**30)
    return [0.0] * len(completions)


def leaks(completions: list[str], **columns: Any) -> Any:
    """`remembers`, and keep a little of every batch."""
    KEPT.append(bytearray(os.urandom(LEAK)))
    return remembers(completions, **columns)


REWARDS = {rule.__name__: rule for rule in (
    correct, correct_after_call, form, calls, free_calls, remembers, leaks
)}  # fmt: skip


class Engine:
    """A copy of the model in bfloat16 that generates in vLLM's place.

    `Run.engine`: "layer-missed" never copies the first layer, "drifting" adds an error to the
    weights that grows with the updates, "top-2" samples the two likeliest tokens alone,
    "half-old" answers every second prompt with the weights of `OLD` updates before.
    """

    def __init__(self, run: Run, trainer: GRPOTrainer) -> None:
        self.run, self.trainer, self.asked = run, trainer, 0
        self.lag = 0  # updates since the weights were copied
        model = trainer.accelerator.unwrap_model(trainer.model)
        if run.lora:
            model = model.get_base_model()
        # Made anew: a deep copy's `forward` would still be that of the model it was copied from.
        self.model = type(model)(model.config)
        self.model.load_state_dict(self._trained())
        self.model.to(torch.bfloat16).eval()
        self.history: list[dict[str, torch.Tensor]] = []  # of "half-old"

    def _trained(self) -> dict[str, torch.Tensor]:
        """Return the trainer's weights, an adapter merged into them."""
        own = self.trainer.accelerator.unwrap_model(self.trainer.model)
        if self.run.lora:
            own = copy.deepcopy(own).merge_and_unload()
        return dict(own.state_dict())

    def sync_weights(self) -> None:
        """Copy the trainer's weights, as often as the run says."""
        every, self.asked = self.run.sync_every, self.asked + 1
        self.lag = self.asked - 1 if every < 0 else (self.asked - 1) % every
        if self.lag:
            return
        weights = self._trained()
        if self.run.engine == "layer-missed":
            weights = {key: w for key, w in weights.items() if ".layers.0." not in key}
        if self.run.engine == "drifting":
            error = DRIFT * self.asked
            weights = {k: w * (1 + error * torch.randn_like(w)) for k, w in weights.items()}
        if self.run.engine == "half-old":
            self.history = [*self.history[-OLD:], {k: w.clone() for k, w in weights.items()}]
        self.model.load_state_dict(weights, strict=False)

    def generate(self, prompts: list[list[int]], **_: object) -> tuple[Any, Any, Any, None]:
        """Return ids and the log-probability of each sampled token, at the trainer's scale."""
        if self.run.engine != "half-old":
            return (None, *self._answers(prompts), None)
        tokens, values = self._answers(prompts[::2])
        self.model.load_state_dict(self.history[0])
        old_tokens, old_values = self._answers(prompts[1::2])
        self.model.load_state_dict(self.history[-1])
        mixed = [
            [row for pair in zip(new, old, strict=True) for row in pair]
            for new, old in ((tokens, old_tokens), (values, old_values))
        ]
        return None, mixed[0], mixed[1], None

    @torch.no_grad()
    def _answers(self, prompts: list[list[int]]) -> tuple[Any, Any]:
        ids = torch.tensor(prompts)  # one length: every prompt is "a+b="
        temperature = self.trainer.temperature * self.run.hotter
        out = self.model.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            do_sample=True,
            temperature=temperature,
            top_k=2 if self.run.engine == "top-2" else 0,
            max_new_tokens=self.trainer.max_completion_length,
            pad_token_id=self.model.config.pad_token_id,
            return_dict_in_generate=True,
            output_logits=True,
        )
        completions = out.sequences[:, ids.shape[1] :]
        # The engine believes that it samples at the trainer's temperature.
        scores = torch.stack(out.logits, 1).float() / self.trainer.temperature
        if self.run.engine == "top-2":  # and reports what it sampled from
            floor = scores.topk(2, -1).values[..., -1:]
            scores = scores.masked_fill(scores < floor, float("-inf"))
        logp = scores.log_softmax(-1).gather(-1, completions.unsqueeze(-1)).squeeze(-1)
        tokens, values = [], []
        for row, value in zip(completions.tolist(), logp.tolist(), strict=True):
            end = self.model.config.eos_token_id
            count = row.index(end) + 1 if end in row else len(row)
            tokens.append(row[:count])
            values.append([[v] for v in value[:count]])
        return tokens, values


class SystemTrainer(GRPOTrainer):
    """GRPO with an engine of its own, dynamic sampling, or a look at its router."""

    def __init__(self, run: Run, **options: Any) -> None:
        super().__init__(**options)
        self.run = run
        self._dice = random.Random(run.seed)
        if run.sync_every:
            self.use_vllm = True
            self.vllm_generation = Engine(run, self)
            self._last_loaded_step = -1  # as with vLLM: the weights are copied before step 0

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        batch: dict[str, Any] = super()._generate_and_score_completions(inputs)
        if self.run.dynamic:
            batch = self._until_contrast(batch)
        if self.run.sync_every:
            self._note_sampler(batch)
        if self.aux_loss_enabled:
            self._note_experts(batch)
        if self.run.advantages:
            self._note_advantages(batch)
        return batch

    def _note(self, key: str, value: float) -> None:
        self._metrics["train"][key].append(float(value))

    def _until_contrast(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Draw other prompts until enough groups hold right and wrong answers."""
        count, rows = 1, self.args.per_device_train_batch_size // self.num_generations
        flat = "frac_reward_zero_std"
        while 1 - self._metrics["train"][flat][-1] < CONTRAST and count < MOST_BATCHES:
            picked = [self.train_dataset[self._dice.randrange(2000)] for _ in range(rows)]
            examples = [row for row in picked for _ in range(self.num_generations)]
            batch = super()._generate_and_score_completions(examples)
            count += 1
        self._note("language/generation_batches", count)
        return batch

    def _note_sampler(self, batch: dict[str, Any]) -> None:
        """k3 KL, effective sample size and lag, as verl and prime-rl log them beside TRL's own."""
        mask = batch["completion_mask"].bool()
        gap = (batch["old_per_token_logps"] - batch["sampling_per_token_logps"])[mask]
        weight = gap.exp()
        self._note("policy/sampler_kl", (weight - gap - 1).mean())
        self._note("policy/sampler_ess", weight.mean() ** 2 / (weight**2).mean())
        self._note("optimiser/policy_lag", self.vllm_generation.lag)
        if self.run.engine == "half-old":
            self._note("policy/sampler_mixed_versions", 0.5)

    def _note_advantages(self, batch: dict[str, Any]) -> None:
        """Ends of rewards and advantages, as verl logs them; raw: groups of one response."""
        count = len(batch["advantages"])
        parts = [list(kept)[-count:] for kept in self._logs["rewards"].values()]
        rewards = torch.tensor(parts).sum(0)
        if self.run.advantages == "raw":
            batch["advantages"] = rewards
        for key, values in (("reward", rewards), ("policy/advantage", batch["advantages"])):
            joint = "/" if key == "reward" else "_"
            self._note(f"{key}{joint}max", values.max())
            self._note(f"{key}{joint}min", values.min())

    @torch.no_grad()
    def _note_experts(self, batch: dict[str, Any]) -> None:
        """Load of the busiest expert over its fair share, less 1, mean over layers."""
        ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], 1)
        mask = torch.cat([batch["prompt_mask"], batch["completion_mask"]], 1).bool()
        out = self.model(ids, attention_mask=mask.long(), output_router_logits=True)
        worst = []
        for logits in out.router_logits:
            rows = logits.reshape(-1, EXPERTS)[mask.flatten()]
            load = torch.bincount(rows.topk(CHOSEN).indices.flatten(), minlength=EXPERTS).float()
            worst.append(load.max() / load.mean() - 1)
        self._note("optimiser/expert_imbalance", torch.stack(worst).mean())
