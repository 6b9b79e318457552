"""Record small real runs of TRL's GRPOTrainer and SFTTrainer, healthy and with one fault each.

    python scripts/record_language_runs.py OUT NAME... | --all | --list

Needs torch 2.13, trl 1.16, transformers 5; about 20 s a run on one thread. Each run leaves
`OUT/<name>/trainer_state.json` as the trainer wrote it (or one a checkpoint), `settings.json`,
and a line in `OUT/SUMMARY.md`.
"""

from __future__ import annotations

import os

os.environ.update(
    OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TQDM_DISABLE="1"
)

import sys
import tempfile
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from datasets import Dataset
from language_rewards import REWARDS
from tiny_language import EOS, keep_run, problems, record_named, warm_folder, write_summary
from transformers import set_seed
from trl import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from transformers import PreTrainedTokenizerFast

# Weight of a sample at or above, and of one below, the reward threshold, by mode. The sign of the
# second is turned: a sample below is always pushed down.
LAMBDA_PSR = 0.1
SIDES = {"psr": (1.0, 0.0), "nsr": (0.0, 1.0), "w-reinforce": (LAMBDA_PSR, 1.0)}

SUMMARY = {
    "reward": "reward",
    "correct": "rewards/correct/mean",
    "entropy": "entropy",
    "loss": "loss",
    "KL": "kl",
    "length": "completions/mean_length",
    "clipped": "completions/clipped_ratio",
    "zero-std groups": "frac_reward_zero_std",
    "grad norm": "grad_norm",
    "lr": "learning_rate",
}


@dataclass(frozen=True, slots=True)
class Run:
    """One run: `fault` is `none` or what is wrong with it; `config` overrides the trainer's."""

    name: str
    fault: str = "none"
    mode: str = "grpo"
    seed: int = 0
    rewards: tuple[str, ...] = ("correct", "form")
    reward_threshold: float = 0.5
    offset: int = 0
    base: str = "half-wrong"
    schedule_for: int = 0  # steps the scheduler believes in, where that is not max_steps
    config: Mapping[str, Any] = field(default_factory=dict)


LINEAR = {"lr_scheduler_type": "linear"}
UNCLIPPED = {"max_grad_norm": 1e9}
SGD_WARMUP = {
    "optim": "sgd",
    "lr_scheduler_type": "constant_with_warmup",
    "warmup_steps": 200,
}
FOUR = {"per_device_train_batch_size": 4, "num_generations": 4, "learning_rate": 1e-4}

# Warm starts: steps, share of wrong labels, what follows an answer.
BASES: dict[str, dict[str, Any]] = {
    "untrained": {"steps": 0},
    "half-wrong": {"wrong": 0.5},
    "nearly-solved": {"wrong": 0.15},
    "solved": {"wrong": 0.0, "steps": 1500},
    "endless": {"wrong": 0.5, "ending": ";" * 12},
}
GRPO = {
    "learning_rate": 1e-3,
    "max_steps": 150,
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
SFT = {
    "learning_rate": 2e-3,
    "max_steps": 200,
    "per_device_train_batch_size": 64,
    "max_grad_norm": 1.0,
    "lr_scheduler_type": "constant",
}

RUNS = (
    Run("grpo-healthy-0"),
    Run("grpo-healthy-1", seed=1, config={"save_strategy": "steps", "save_steps": 50}),
    Run("grpo-healthy-2", seed=2, config={**LINEAR, "warmup_steps": 10, "learning_rate": 2e-3}),
    Run(
        "grpo-healthy-large",
        config={**LINEAR, "per_device_train_batch_size": 256, "num_generations": 16},
    ),
    Run("grpo-healthy-beta", config={"beta": 0.04}),
    Run("grpo-healthy-two-epochs", config={"num_iterations": 2}),
    *(Run(f"grpo-healthy-{seed}", seed=seed) for seed in range(3, 7)),
    Run("grpo-healthy-beta-1", seed=1, config={"beta": 0.04}),
    Run("psr-healthy", mode="psr"),
    *(Run(f"psr-healthy-{seed}", mode="psr", seed=seed) for seed in (1, 2)),
    Run("psr-healthy-four", mode="psr", config={**FOUR, "learning_rate": 3e-4}),
    Run("nsr-healthy", mode="nsr"),
    Run("nsr-healthy-1", mode="nsr", seed=1, config={**LINEAR, "learning_rate": 5e-4}),
    Run("nsr-healthy-2", mode="nsr", seed=2),
    Run("nsr-healthy-four", mode="nsr", base="nearly-solved", config=FOUR),
    Run("w-reinforce-healthy", mode="w-reinforce"),
    Run("w-reinforce-healthy-1", mode="w-reinforce", seed=1, config=LINEAR),
    Run("w-reinforce-healthy-2", mode="w-reinforce", seed=2),
    *(Run(f"sft-healthy-{s}", mode="sft", base="untrained", seed=s) for s in range(1, 13)),
    Run("sft-healthy", mode="sft", base="untrained"),
    # No signal.
    Run("grpo-constant-reward", fault="constant-reward", rewards=("constant",)),
    Run("grpo-all-easy", fault="all-easy", base="solved", config={"learning_rate": 1e-5}),
    Run("grpo-all-impossible", fault="all-impossible", offset=100, rewards=("correct",)),
    Run("grpo-two-generations", fault="two-generations", config={"num_generations": 2}),
    Run("grpo-shuffled-answers", fault="shuffled-answers", rewards=("shuffled", "form")),
    Run("nsr-threshold-low", fault="nsr-threshold-low", mode="nsr", reward_threshold=-1.5),
    Run("nsr-threshold-high", fault="nsr-threshold-high", mode="nsr", reward_threshold=5.0),
    Run("psr-threshold-high", fault="psr-threshold-high", mode="psr", reward_threshold=5.0),
    Run("psr-threshold-low", fault="psr-threshold-low", mode="psr", reward_threshold=-1.5),
    # Rewards that mislead or break.
    Run(
        "grpo-length-reward",
        fault="length-reward",
        rewards=("correct", "length"),
        config={"max_completion_length": 32},
    ),
    Run("grpo-dead-component", fault="dead-component", rewards=("correct", "tagged")),
    Run("grpo-judge-scores-zero", fault="judge-scores-zero", rewards=("judged", "form")),
    Run("grpo-judge-silent", fault="judge-silent", rewards=("unscored",)),
    # Text that does not end.
    Run("grpo-no-eos", fault="no-eos", base="endless", rewards=("starts_right",)),
    Run("grpo-cap-too-short", fault="cap-too-short", config={"max_completion_length": 1}),
    # Updates that are too large, too small, or too late.
    Run(
        "grpo-lr-x50",
        fault="lr-x50",
        config={"learning_rate": 5e-2, "save_strategy": "steps", "save_steps": 50},
    ),
    Run(
        "grpo-lr-x20-four-epochs",
        fault="lr-x20",
        config={"learning_rate": 2e-2, "max_grad_norm": 1e9, "num_iterations": 4, "beta": 0.04},
    ),
    Run("grpo-solved-collapses", fault="lr-high-for-solved", base="solved"),
    Run("nsr-unlearns", fault="lr-high", mode="nsr", seed=1, config=LINEAR),
    Run("grpo-lr-low", fault="lr-low", config={"learning_rate": 1e-8}),
    Run("grpo-beta-10", fault="beta-10", config={"beta": 10.0}),
    Run("grpo-stale", fault="stale-16", config={"steps_per_generation": 16}),
    Run("grpo-temperature-low", fault="temperature-low", config={"temperature": 0.1}),
    Run("grpo-entropy-bonus", fault="entropy-bonus-high", config={"entropy_coef": 0.5}),
    Run("grpo-lr-ends-early", fault="lr-ends-early", schedule_for=35),
    Run(
        "grpo-lr-restarts",
        fault="lr-restarts",
        config={
            "lr_scheduler_type": "cosine_with_restarts",
            "lr_scheduler_kwargs": {"num_cycles": 3},
        },
    ),
    Run(
        "sft-loss-zigzag",
        fault="loss-oscillates",
        mode="sft",
        base="untrained",
        config={"learning_rate": 0.5, "optim": "sgd"},
    ),
    Run(
        "sft-loss-spikes",
        fault="lr-high",
        mode="sft",
        base="untrained",
        config={"learning_rate": 0.03, "adam_beta2": 0.5},
    ),
    Run(
        "sft-lr-low",
        fault="lr-low",
        mode="sft",
        base="untrained",
        config={"learning_rate": 1e-7},
    ),
    Run(
        "sft-gradient-explosion",
        fault="gradient-explosion",
        mode="sft",
        base="untrained",
        config={"learning_rate": 0.03, "adam_beta2": 0.5, **UNCLIPPED},
    ),
    Run(
        "sft-infinite-gradient",
        fault="infinite-gradient",
        mode="sft",
        base="untrained",
        config={"learning_rate": 6.0, **SGD_WARMUP, **UNCLIPPED},
    ),
    # The gradient is NaN; transformers then logs the loss as 0.
    Run(
        "sft-nan-gradient",
        fault="nan-gradient",
        mode="sft",
        base="untrained",
        config={"learning_rate": 3.0, **SGD_WARMUP, **UNCLIPPED},
    ),
)


class SidedTrainer(GRPOTrainer):
    """GRPO whose advantages are replaced by the weight of a sample's side of the threshold.

    PSR learns from samples at or above it, NSR from those below, W-REINFORCE from both. Filtered
    samples stay in the loss with weight zero. Zhu et al. 2025, arXiv 2506.01347.
    """

    def __init__(self, *args: Any, mode: str, reward_threshold: float, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._sides = SIDES[mode]
        self._prefix = mode.replace("-", "_")
        self._threshold = reward_threshold
        self._scored = torch.empty(0)

    def _calculate_rewards(self, *args: Any) -> torch.Tensor:
        self._scored = super()._calculate_rewards(*args)
        return self._scored

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        batch: dict[str, Any] = super()._generate_and_score_completions(inputs)
        scorable = ~torch.isnan(self._scored).all(dim=1)
        reward = (self._scored * self.reward_weights).nansum(dim=1)
        positive = (reward >= self._threshold) & scorable
        negative = (reward < self._threshold) & scorable
        up, down = self._sides
        mine = slice(
            self.accelerator.process_index * len(inputs),
            (self.accelerator.process_index + 1) * len(inputs),
        )
        batch["advantages"] = (up * positive.float() - down * negative.float())[mine]
        self._note_sides(reward[scorable], int(positive.sum()), int(negative.sum()))
        return batch

    def _note_sides(self, reward: torch.Tensor, positive: int, negative: int) -> None:
        """Log the counts under the names that the mode's users know."""
        values = {"avg_reward": reward.mean().item()}
        if self._sides[0]:
            values["positive_samples"] = positive
        if self._sides[1]:
            values["negative_samples"] = negative
        if self._prefix == "psr":
            values["positive_ratio"] = positive / len(reward)
        elif self._prefix == "nsr":
            values["negative_ratio"] = negative / len(reward)
        else:
            values["pos_neg_ratio"] = positive / max(negative, 1)
        for key, value in values.items():
            self._metrics["train"][f"{self._prefix}/{key}"].append(float(value))


def trainer_settings(run: Run, work: Path) -> dict[str, Any]:
    """Return the keyword arguments of the run's TRL configuration."""
    return {
        **(SFT if run.mode == "sft" else GRPO),
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
    }


def sft_trainer(run: Run, work: Path, base: Path, tok: PreTrainedTokenizerFast) -> SFTTrainer:
    """Supervised training on right answers."""
    rows = [
        {"prompt": row["prompt"], "completion": row["answer"] + EOS} for row in problems(2000, 7)
    ]
    return SFTTrainer(
        model=str(base),
        args=SFTConfig(**trainer_settings(run, work)),
        train_dataset=Dataset.from_list(rows),
        processing_class=tok,
    )


def grpo_trainer(run: Run, work: Path, base: Path, tok: PreTrainedTokenizerFast) -> GRPOTrainer:
    """TRL's own GRPO, or one of the three sided modes."""
    arguments = GRPOConfig(**trainer_settings(run, work))
    trainer_options: dict[str, Any] = {
        "model": str(base),
        "args": arguments,
        "reward_funcs": [REWARDS[name] for name in run.rewards],
        "train_dataset": Dataset.from_list(problems(2000, 7, run.offset)),
        "processing_class": tok,
    }
    if run.mode != "grpo":
        return SidedTrainer(**trainer_options, mode=run.mode, reward_threshold=run.reward_threshold)
    trainer = GRPOTrainer(**trainer_options)
    if run.schedule_for:
        optimiser = trainer.create_optimizer()
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimiser, lambda step: max(0.0, 1 - step / run.schedule_for)
        )
        trainer.lr_scheduler = schedule
    return trainer


def run_settings(run: Run, arguments: Any) -> dict[str, object]:
    """Return what a reader of the run should know, flat."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("trl", "transformers", "torch"))
    keys = {**(SFT if run.mode == "sft" else GRPO), **run.config}
    settings: dict[str, object] = {
        key: getattr(arguments, key)
        for key in keys
        if isinstance(getattr(arguments, key), int | float | str)
    }
    if run.mode != "sft":
        settings["reward_functions"] = ",".join(run.rewards)
    if run.mode in SIDES:
        settings["reward_threshold"] = run.reward_threshold
    if run.mode == "w-reinforce":
        settings["lambda_psr"] = LAMBDA_PSR
    return {
        **settings,
        "mode": run.mode,
        "seed": run.seed,
        "fault": run.fault,
        "injected": False,
        "made_by": f"scripts/record_language_runs.py, {packages}",
    }


def record(run: Run, out: Path, bases: Path) -> None:
    """Train, keep the log, rewrite the summary."""
    base, tok = warm_folder(bases / run.base, **BASES[run.base])
    set_seed(run.seed)
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        make = sft_trainer if run.mode == "sft" else grpo_trainer
        trainer = make(run, work, base, tok)
        trainer.train()
        if trainer.args.save_strategy == "no":
            trainer.save_state()
        keep_run(work, out / run.name, run_settings(run, trainer.args))
    write_summary(out, SUMMARY)


if __name__ == "__main__":
    sys.exit(record_named(RUNS, record, __doc__))
