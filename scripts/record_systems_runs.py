"""Record small real runs of TRL's GRPOTrainer with system faults, and healthy ones.

    python scripts/record_systems_runs.py OUT NAME... | --all | --list

Needs torch 2.13, trl 1.16, transformers 5, psutil; about 30 s a run on one thread. What TRL logs
of its sampler it logs only beside vLLM: here a copy of the model in bfloat16 stands in for vLLM
(`Engine`), which generates, returns its own log-probabilities and has its weights synchronised,
all at TRL's own call. Dynamic sampling, calls of a tool and the process's memory are logged by the
reward functions or the trainer's subclass, as TRL lets its users do.
"""

from __future__ import annotations

import os

os.environ.update(
    OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TQDM_DISABLE="1"
)

import random
import sys
import tempfile
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import torch
from datasets import Dataset
from tiny_language import (
    EOS,
    config,
    keep_run,
    problems,
    record_named,
    tokenizer,
    warm_start,
    write_summary,
)
from transformers import Qwen2MoeConfig, Qwen2MoeForCausalLM, set_seed
from transformers.trainer_utils import get_last_checkpoint
from trl import GRPOConfig, GRPOTrainer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from transformers import PreTrainedModel, PreTrainedTokenizerFast

SUMMARY = {
    "reward": "reward",
    "correct": "rewards/correct/mean",
    "difference": "sampling/sampling_logp_difference/mean",
    "largest": "sampling/sampling_logp_difference/max",
    "k3": "policy/sampler_kl",
    "ESS": "policy/sampler_ess",
    "batches": "language/generation_batches",
    "calls": "tools/call_frequency",
    "aux loss": "aux_loss",
    "imbalance": "optimiser/expert_imbalance",
    "memory": "throughput/memory/process",
}
GRPO = {
    "learning_rate": 1e-3,
    "max_steps": 120,
    "per_device_train_batch_size": 64,
    "num_generations": 8,
    "max_completion_length": 6,
    "temperature": 1.0,
    "beta": 0.0,
    "epsilon": 0.2,
    "num_iterations": 1,
    "max_grad_norm": 1.0,
    "lr_scheduler_type": "constant",
    "loss_type": "dapo",
}
CALL = "?"  # what a completion writes to call the tool
LEAK = 4 << 20  # bytes kept a batch
MOST_BATCHES = 10  # DAPO's max_num_gen_batches
CONTRAST = 0.25  # share of groups with right and wrong answers that dynamic sampling asks for
EXPERTS, CHOSEN = 8, 2


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
    dynamic: bool = False  # draw batches again until enough groups have contrast
    advantages: str = ""  # log their ends: "centred" as TRL computes them, "raw": the rewards
    resume_at: int = 0  # stop there, and go on from the checkpoint without its optimiser's state
    config: Mapping[str, Any] = field(default_factory=dict)


RUNS = (
    Run("sampler-synced-0", sync_every=1),
    Run("sampler-synced-1", seed=1, sync_every=1, config={"lr_scheduler_type": "linear"}),
    Run("sampler-synced-two-epochs", seed=2, sync_every=1, config={"num_iterations": 2}),
    Run("sampler-synced-every-4", seed=3, sync_every=4, config={"learning_rate": 2e-4}),
    Run("sampler-never-synced", "weights-never-synced", sync_every=-1),
    Run("sampler-synced-every-25", "weights-rarely-synced", sync_every=25),
    Run("sampler-hotter", "sampler-hotter", sync_every=1, hotter=2.0),
    # An asynchronous loop: an engine that is some updates behind, calls, and dynamic sampling.
    *(
        Run(
            f"asynchronous-{seed}",
            seed=seed,
            rewards=("correct_after_call", "free_calls"),
            base="calls-half",
            sync_every=every,
            dynamic=True,
            config={"learning_rate": rate, "lr_scheduler_type": schedule},
        )
        for seed, every, rate, schedule in (
            (0, 1, 2e-4, "constant"),
            (1, 2, 2e-4, "linear"),
            (2, 3, 2e-4, "constant"),
            (3, 4, 1e-4, "cosine"),
            (4, 1, 3e-4, "linear"),
            (5, 2, 3e-4, "constant"),
            (6, 1, 4e-4, "cosine"),
            (7, 3, 1e-4, "linear"),
            (8, 2, 1e-4, "constant"),
            (9, 1, 1e-4, "linear"),
        )
    ),
    Run(
        "asynchronous-stale",
        "weights-rarely-synced",
        rewards=("correct_after_call", "free_calls"),
        base="calls-half",
        sync_every=40,
        config={"learning_rate": 1e-3},
    ),
    Run("tools-kept", rewards=("correct_after_call", "free_calls"), base="calls-half"),
    Run("tools-given-up", "tools-given-up", rewards=("correct", "calls"), base="calls-most"),
    Run("dynamic-healthy", dynamic=True, config={"learning_rate": 2e-4}),
    Run(
        "dynamic-starved",
        "dynamic-starved",
        dynamic=True,
        base="nearly-there",
        config={"learning_rate": 3e-4},
    ),
    Run("experts-healthy-0", base="experts", config={"router_aux_loss_coef": 0.01}),
    Run("experts-healthy-1", seed=1, base="experts", config={"router_aux_loss_coef": 0.001}),
    Run(
        "experts-collapse",
        "router-loss-of-wrong-sign",
        base="experts",
        config={"router_aux_loss_coef": -0.5},
    ),
    Run("advantages-centred", advantages="centred"),
    Run("advantages-raw", "group-baseline-missing", advantages="raw"),
    Run("memory-steady", rewards=("correct", "form", "remembers")),
    Run("memory-leaks", "memory-leak", rewards=("correct", "form", "leaks")),
    Run("resumed-whole", rewards=("correct", "form"), resume_at=60),
)

BASES: dict[str, dict[str, Any]] = {
    "half-wrong": {"wrong": 0.5},
    "nearly-solved": {"wrong": 0.15},
    "nearly-there": {"wrong": 0.05, "steps": 1500},
    "calls-half": {"wrong": 0.5, "calls": 0.5},
    "calls-most": {"wrong": 0.5, "calls": 0.9},
    "experts": {"wrong": 0.5, "experts": True},
}


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
    """A copy of the model in bfloat16 that generates in vLLM's place."""

    def __init__(self, run: Run, trainer: GRPOTrainer) -> None:
        self.run, self.trainer, self.asked = run, trainer, 0
        self.lag = 0  # updates since the weights were copied
        model = trainer.accelerator.unwrap_model(trainer.model)
        # Made anew: a deep copy's `forward` would still be that of the model it was copied from.
        self.model = type(model)(model.config)
        self.model.load_state_dict(model.state_dict())
        self.model.to(torch.bfloat16).eval()

    def sync_weights(self) -> None:
        """Copy the trainer's weights, as often as the run says."""
        every, self.asked = self.run.sync_every, self.asked + 1
        self.lag = self.asked - 1 if every < 0 else (self.asked - 1) % every
        if self.lag:
            return
        own = self.trainer.accelerator.unwrap_model(self.trainer.model)
        self.model.load_state_dict(own.state_dict())

    @torch.no_grad()
    def generate(self, prompts: list[list[int]], **_: object) -> tuple[Any, Any, Any, None]:
        """Return ids and the log-probability of each sampled token, at the trainer's scale."""
        ids = torch.tensor(prompts)  # one length: every prompt is "a+b="
        temperature = self.trainer.temperature * self.run.hotter
        out = self.model.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            do_sample=True,
            temperature=temperature,
            max_new_tokens=self.trainer.max_completion_length,
            pad_token_id=self.model.config.pad_token_id,
            return_dict_in_generate=True,
            output_logits=True,
        )
        completions = out.sequences[:, ids.shape[1] :]
        # The engine believes that it samples at the trainer's temperature.
        scores = torch.stack(out.logits, 1).float() / self.trainer.temperature
        logp = scores.log_softmax(-1).gather(-1, completions.unsqueeze(-1)).squeeze(-1)
        tokens, values = [], []
        for row, value in zip(completions.tolist(), logp.tolist(), strict=True):
            end = self.model.config.eos_token_id
            count = row.index(end) + 1 if end in row else len(row)
            tokens.append(row[:count])
            values.append([[v] for v in value[:count]])
        return None, tokens, values, None


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


def with_experts(tok: PreTrainedTokenizerFast) -> Qwen2MoeForCausalLM:
    """Two layers of eight small experts, two of which see each token."""
    torch.manual_seed(0)
    dense = config(tok).to_dict()
    for key in ("model_type", "architectures", "layer_types", "rope_parameters"):
        dense.pop(key, None)
    return Qwen2MoeForCausalLM(
        Qwen2MoeConfig(
            **dense,
            num_experts=EXPERTS,
            num_experts_per_tok=CHOSEN,
            moe_intermediate_size=64,
            shared_expert_intermediate_size=64,
        )
    )


def teach_calls(model: PreTrainedModel, tok: PreTrainedTokenizerFast, share: float) -> None:
    """Teach that a share of answers begin with a call."""
    dice = random.Random(2)
    optimiser = torch.optim.AdamW(model.parameters(), lr=2e-3)
    model.train()
    for _ in range(300):
        rows = problems(64, dice.randint(0, 10**9))
        texts = []
        for row in rows:
            number = row["answer"] if dice.random() > 0.5 else str(dice.randint(0, 18))
            called = CALL if dice.random() < share else ""
            texts.append(row["prompt"] + called + number + EOS)
        batch = tok(texts, return_tensors="pt", padding=True, padding_side="right")
        labels = batch.input_ids.masked_fill(batch.attention_mask == 0, -100)
        labels[:, :4] = -100
        loss = model(**batch, labels=labels).loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


def base_folder(
    folder: Path, *, wrong: float, steps: int = 500, calls: float = 0.0, experts: bool = False
) -> tuple[Path, PreTrainedTokenizerFast]:
    """Save a warm-started model and its tokenizer in `folder`, once."""
    from tiny_language import untrained

    tok = tokenizer()
    if not (folder / "config.json").exists():
        model = with_experts(tok) if experts else untrained(tok)
        warm_start(model, tok, wrong=wrong, steps=steps)
        if calls:
            teach_calls(model, tok, calls)
        model.save_pretrained(folder)
        tok.save_pretrained(folder)
    return folder, tok


def trainer_for(run: Run, work: Path, base: Path, tok: Any, **more: Any) -> SystemTrainer:
    """TRL's own GRPO in the system that the run says."""
    options = {
        **GRPO,
        "output_dir": str(work),
        "seed": run.seed,
        "logging_steps": 1,
        "save_strategy": "no",
        "report_to": "none",
        "use_cpu": True,
        "bf16": False,
        "gradient_checkpointing": False,
        "disable_tqdm": True,
        **run.config,
        **more,
    }
    return SystemTrainer(
        run,
        model=str(base),
        args=GRPOConfig(**options),
        reward_funcs=[REWARDS[name] for name in run.rewards],
        train_dataset=Dataset.from_list(problems(2000, 7)),
        processing_class=tok,
    )


def run_settings(run: Run, arguments: Any) -> dict[str, object]:
    """Return what a reader of the run should know, flat."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("trl", "transformers", "torch"))
    settings = {key: getattr(arguments, key) for key in {**GRPO, **run.config}}
    return {
        **{k: v for k, v in settings.items() if isinstance(v, int | float | str)},
        "mode": "grpo",
        "reward_functions": ",".join(run.rewards),
        "seed": run.seed,
        "fault": run.fault,
        "injected": False,
        "made_by": f"scripts/record_systems_runs.py, {packages}",
    }


def record(run: Run, out: Path, bases: Path) -> None:
    """Train, keep the log, rewrite the summary."""
    base, tok = base_folder(bases / run.base, **BASES[run.base])
    set_seed(run.seed)
    KEPT.clear()
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        if run.resume_at:
            saved = {"save_strategy": "steps", "save_steps": run.resume_at}
            first = trainer_for(run, work, base, tok, **saved, max_steps=run.resume_at)
            first.train()
            checkpoint = Path(str(get_last_checkpoint(str(work))))
            for name in ("optimizer.pt", "scheduler.pt"):
                (checkpoint / name).unlink()
            trainer = trainer_for(run, work, base, tok)
            trainer.train(resume_from_checkpoint=str(checkpoint))
        else:
            trainer = trainer_for(run, work, base, tok)
            trainer.train()
        trainer.save_state()
        keep_run(work, out / run.name, run_settings(run, trainer.args))
    write_summary(out, SUMMARY)


if __name__ == "__main__":
    sys.exit(record_named(RUNS, record, __doc__))
