"""Record small real runs of TRL's GRPOTrainer with system faults, and healthy ones.

    python scripts/record_systems_runs.py OUT NAME... | --all | --list

Needs torch 2.13, trl 1.16, transformers 5, peft, psutil; about 30 s a run on one thread. What TRL
logs of its sampler it logs only beside vLLM: here a copy of the model in bfloat16 stands in for
vLLM (`Engine`), which generates, returns its own log-probabilities and has its weights
synchronised, all at TRL's own call. Dynamic sampling, calls of a tool and the process's memory are
logged by the reward functions or the trainer's subclass, as TRL lets its users do.
"""

from __future__ import annotations

import os

os.environ.update(
    OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TQDM_DISABLE="1"
)

import random
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from datasets import Dataset
from peft import LoraConfig
from systems_trainer import CALL, CHOSEN, EXPERTS, KEPT, REWARDS, Run, SystemTrainer
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
from transformers import Qwen2ForCausalLM, Qwen2MoeConfig, Qwen2MoeForCausalLM, set_seed
from transformers.trainer_utils import get_last_checkpoint
from trl import GRPOConfig

if TYPE_CHECKING:
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
SLOW = {"learning_rate": 1e-4, "beta": 0.01}

RUNS = (
    Run("sampler-synced-0", sync_every=1),
    Run("sampler-synced-1", seed=1, sync_every=1, config={"lr_scheduler_type": "linear"}),
    Run("sampler-synced-two-epochs", seed=2, sync_every=1, config={"num_iterations": 2}),
    Run("sampler-synced-every-4", seed=3, sync_every=4, config={"learning_rate": 2e-4}),
    Run("sampler-never-synced", "weights-never-synced", sync_every=-1),
    Run("sampler-synced-every-25", "weights-rarely-synced", sync_every=25),
    Run("sampler-hotter", "sampler-hotter", sync_every=1, hotter=2.0),
    Run("sampler-layer-missed", "weights-partly-synced", sync_every=1, engine="layer-missed"),
    Run("sampler-drifts", "sampler-drifts", sync_every=1, engine="drifting"),
    Run("sampler-top-2", "sampling-truncated", sync_every=1, engine="top-2"),
    Run("sampler-half-old", "versions-mixed", sync_every=1, engine="half-old"),
    Run("adapter-synced", sync_every=1, lora=True, config={"learning_rate": 5e-3}),
    Run("adapter-lost", "adapter-lost", sync_every=-1, lora=True, config={"learning_rate": 5e-3}),
    Run("weights-whole", config={"learning_rate": 1e-4, "beta": 0.01}),
    Run(
        "weights-halved", "updates-rounded", half=True, config={"learning_rate": 1e-4, "beta": 0.01}
    ),
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
    model: Any = str(base)
    if run.half:
        model = Qwen2ForCausalLM.from_pretrained(base, dtype=torch.bfloat16)
    return SystemTrainer(
        run,
        model=model,
        peft_config=LoraConfig(r=8, target_modules="all-linear") if run.lora else None,
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
