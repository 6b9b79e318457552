"""Record small real runs of TRL that are evaluated on held-out problems: GRPO and preferences.

    python scripts/record_evaluated_runs.py OUT NAME... | --all | --list

Needs torch 2.13, trl 1.16, transformers 5; about 30 s a run on one thread. Each run leaves
`OUT/<name>/trainer_state.json` as the trainer wrote it, `settings.json`, and a line in
`OUT/SUMMARY.md`. Evaluation asks every sum or difference of two digits that
training never shows. Preference training is DPO, ORPO and KTO.
"""

from __future__ import annotations

import os

os.environ.update(
    OMP_NUM_THREADS="1",
    HF_HUB_OFFLINE="1",
    TOKENIZERS_PARALLELISM="false",
    TQDM_DISABLE="1",
    TRL_EXPERIMENTAL_SILENCE="1",
)

import random
import sys
import tempfile
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datasets import Dataset
from tiny_language import (
    ANSWERS,
    EOS,
    POSSIBLE_ANSWERS,
    keep_run,
    record_named,
    warm_folder,
    write_summary,
)
from transformers import AutoModelForCausalLM, set_seed
from trl import DPOConfig, DPOTrainer, GRPOConfig, GRPOTrainer
from trl.experimental.kto import KTOConfig, KTOTrainer
from trl.experimental.orpo import ORPOConfig, ORPOTrainer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from transformers import PreTrainedTokenizerFast

SUMMARY = {
    "reward": "reward",
    "correct": "rewards/correct/mean",
    "held-out reward": "eval_reward",
    "loss": "loss",
    "held-out loss": "eval_loss",
    "chosen log-prob": "logps/chosen",
    "rejected log-prob": "logps/rejected",
    "accuracy": "rewards/accuracies",
    "held-out accuracy": "eval_rewards/accuracies",
    "margin": "rewards/margins",
}

OFTEN = {"eval_steps": 4, "logging_steps": 2}
HELD_OUT = 20  # of the hundred pairs of digits
OPERATORS = {"sums": "+", "differences": "-"}


@dataclass(frozen=True, slots=True)
class Run:
    """One run: `fault` is `none` or what is wrong with it; `config` overrides the trainer's."""

    name: str
    fault: str = "none"
    trainer: str = "grpo"
    seed: int = 0
    rewards: tuple[str, ...] = ("correct",)
    task: str = "sums"
    shown: int = 100 - HELD_OUT  # different problems that training shows
    mislabelled: float = 0.0  # share of pairs whose chosen answer is the wrong one
    config: Mapping[str, Any] = field(default_factory=dict)


BASE = {"wrong": 0.5}  # share of wrong labels in the warm start
COMMON = {"per_device_train_batch_size": 64, "max_grad_norm": 1.0, "lr_scheduler_type": "constant"}
GRPO = {
    **COMMON,
    "learning_rate": 1e-3,
    "max_steps": 150,
    "num_generations": 8,
    "max_completion_length": 6,
    "temperature": 1.0,
    "beta": 0.0,
    "epsilon": 0.2,
    "loss_type": "dapo",
    "eval_steps": 10,
    "per_device_eval_batch_size": 80,
}
DPO = {
    **COMMON,
    "learning_rate": 1e-4,
    "max_steps": 200,
    "beta": 0.1,
    "eval_steps": 10,
    "per_device_eval_batch_size": 80,
}
ORPO = {**DPO, "learning_rate": 3e-4}
KTO = {**DPO}
PREFERENCE = {"dpo": DPO, "orpo": ORPO, "kto": KTO}

RUNS = (
    Run("grpo-evaluated-0"),
    Run("grpo-evaluated-1", seed=1),
    Run("grpo-memorises", fault="few-prompts", shown=4, config={"learning_rate": 3e-3}),
    Run("grpo-memorises-slowly", fault="few-prompts", shown=8, config=OFTEN),
    Run("grpo-evaluated-often", seed=2, config=OFTEN),
    Run("grpo-evaluated-kl", seed=3, config={**OFTEN, "beta": 0.04}),
    Run("grpo-length-paid", fault="verifier-exploited", rewards=("correct", "length")),
    Run("dpo-healthy-0", trainer="dpo"),
    Run("dpo-healthy-1", trainer="dpo", seed=1, config={"learning_rate": 3e-4}),
    Run("dpo-healthy-beta", trainer="dpo", config={"beta": 0.5, "learning_rate": 3e-4}),
    *(Run(f"grpo-evaluated-{seed}", seed=seed) for seed in range(4, 8)),
    Run("grpo-evaluated-linear", seed=8, config={**OFTEN, "lr_scheduler_type": "linear"}),
    Run("grpo-evaluated-slow", seed=9, config={"learning_rate": 5e-4}),
    *(Run(f"dpo-healthy-{seed}", trainer="dpo", seed=seed) for seed in range(3, 6)),
    Run("dpo-healthy-linear", trainer="dpo", seed=6, config={"lr_scheduler_type": "linear"}),
    Run("dpo-healthy-soft", trainer="dpo", seed=7, config={"beta": 0.3}),
    Run("dpo-healthy-rate", trainer="dpo", seed=8, config={**OFTEN, "learning_rate": 2e-4}),
    Run("dpo-lr-high", fault="lr-high", trainer="dpo", config={"learning_rate": 1e-2}),
    Run(
        "dpo-few-pairs",
        fault="few-prompts",
        trainer="dpo",
        shown=6,
        config={**OFTEN, "learning_rate": 3e-3, "beta": 0.02},
    ),
    Run("dpo-healthy-often", trainer="dpo", seed=2, config=OFTEN),
    Run(
        "dpo-labels-noisy",
        fault="labels-wrong",
        trainer="dpo",
        mislabelled=0.45,
        config={"learning_rate": 2e-3, "beta": 0.02},
    ),
    *(
        Run(
            f"dpo-differences-{seed}",
            trainer="dpo",
            task="differences",
            seed=seed,
            config={"learning_rate": rate, "beta": beta},
        )
        for seed, (rate, beta) in enumerate(((1e-4, 0.1), (3e-4, 0.1), (3e-4, 0.5), (5e-5, 0.05)))
    ),
    *(
        Run(f"{trainer}-{task}-{seed}", trainer=trainer, task=task, seed=seed, config=config)
        for trainer in ("orpo", "kto")
        for task in ("sums", "differences")
        for seed, config in enumerate(({}, {"beta": 0.3}, {"lr_scheduler_type": "linear"}))
    ),
    Run(
        "dpo-differences-lr-high",
        fault="lr-high",
        trainer="dpo",
        task="differences",
        config={"learning_rate": 6e-3},
    ),
    Run(
        "dpo-differences-few-pairs",
        fault="few-prompts",
        trainer="dpo",
        task="differences",
        shown=8,
        config={"learning_rate": 2e-3, "beta": 0.05},
    ),
    Run(
        "dpo-differences-labels-noisy",
        fault="labels-wrong",
        trainer="dpo",
        task="differences",
        mislabelled=0.45,
        config={"learning_rate": 1e-3, "beta": 0.05},
    ),
    Run("orpo-lr-high", fault="lr-high", trainer="orpo", config={"learning_rate": 2e-2}),
    Run("orpo-labels-noisy", fault="labels-wrong", trainer="orpo", mislabelled=0.45),
    Run("kto-lr-high", fault="lr-high", trainer="kto", config={"learning_rate": 1e-2}),
    Run(
        "kto-few-pairs",
        fault="few-prompts",
        trainer="kto",
        shown=6,
        config={**OFTEN, "learning_rate": 3e-3, "beta": 0.02},
    ),
    Run(
        "kto-labels-noisy",
        fault="labels-wrong",
        trainer="kto",
        mislabelled=0.45,
        config={"learning_rate": 2e-3, "beta": 0.02},
    ),
)


def examples(run: Run) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """Return the problems that training shows, repeated and shuffled, and those held out."""
    every = [(a, b) for a in range(10) for b in range(10)]
    random.Random(3).shuffle(every)
    sign = OPERATORS[run.task]
    rows = [{"prompt": f"{a}{sign}{b}=", "answer": str(ANSWERS[sign](a, b))} for a, b in every]
    train_rows, held_out = rows[HELD_OUT:][: run.shown], rows[:HELD_OUT]
    copies = train_rows * (480 // len(train_rows))
    random.Random(run.seed).shuffle(copies)
    return copies, held_out


def correct(completions: list[str], answer: list[str], **_: object) -> list[float]:
    """1 for the right sum."""
    return [float(c.strip() == a) for c, a in zip(completions, answer, strict=True)]


def length(completions: list[str], **_: object) -> list[float]:
    """Return half a character's number."""
    return [len(c) / 2 for c in completions]


REWARDS = {"correct": correct, "length": length}


def pairs(run: Run, rows: list[dict[str, str]], seed: int, mislabelled: float) -> Dataset:
    """Pair the right answer with a wrong one; KTO gets the two as examples of their own."""
    dice = random.Random(seed)
    answers = [str(n) for n in POSSIBLE_ANSWERS[OPERATORS[run.task]]]
    every: list[dict[str, Any]] = []
    for row in rows:
        wrong = dice.choice([answer for answer in answers if answer != row["answer"]])
        chosen, rejected = row["answer"] + EOS, wrong + EOS
        if dice.random() < mislabelled:
            chosen, rejected = rejected, chosen
        if run.trainer == "kto":
            every.append({"prompt": row["prompt"], "completion": chosen, "label": True})
            every.append({"prompt": row["prompt"], "completion": rejected, "label": False})
        else:
            every.append({"prompt": row["prompt"], "chosen": chosen, "rejected": rejected})
    return Dataset.from_list(every)


def settings(run: Run, work: Path) -> dict[str, Any]:
    """Return the keyword arguments of the run's TRL configuration."""
    return {
        **PREFERENCE.get(run.trainer, GRPO),
        "output_dir": str(work),
        "seed": run.seed,
        "logging_steps": 1,
        "eval_strategy": "steps",
        "save_strategy": "no",
        "report_to": "none",
        "use_cpu": True,
        "bf16": False,
        "gradient_checkpointing": False,
        "disable_tqdm": True,
        **run.config,
    }


def make(run: Run, work: Path, base: Path, tok: PreTrainedTokenizerFast) -> Any:
    """Build the trainer."""
    train_rows, held_out = examples(run)
    if run.trainer in PREFERENCE:
        config, trainer = {
            "dpo": (DPOConfig, DPOTrainer),
            "orpo": (ORPOConfig, ORPOTrainer),
            "kto": (KTOConfig, KTOTrainer),
        }[run.trainer]
        return trainer(
            model=AutoModelForCausalLM.from_pretrained(base),
            args=config(**settings(run, work)),
            train_dataset=pairs(run, train_rows, run.seed, run.mislabelled),
            eval_dataset=pairs(run, held_out * 4, 99, 0.0),
            processing_class=tok,
        )
    return GRPOTrainer(
        model=str(base),
        args=GRPOConfig(**settings(run, work)),
        reward_funcs=[REWARDS[name] for name in run.rewards],
        train_dataset=Dataset.from_list(train_rows),
        eval_dataset=Dataset.from_list(held_out),
        processing_class=tok,
    )


def record(run: Run, out: Path, bases: Path) -> None:
    """Train, keep the log, rewrite the summary."""
    base, tok = warm_folder(bases / run.task, **BASE, operator=OPERATORS[run.task])
    set_seed(run.seed)
    keys = {**PREFERENCE.get(run.trainer, GRPO), **run.config}
    packages = ", ".join(f"{name} {version(name)}" for name in ("trl", "transformers", "torch"))
    with tempfile.TemporaryDirectory() as scratch:
        trainer = make(run, Path(scratch), base, tok)
        trainer.train()
        trainer.save_state()
        options = {key: getattr(trainer.args, key) for key in keys}
        plain = {k: v for k, v in options.items() if isinstance(v, int | float | str)}
        facts = {
            **plain,
            "mode": run.trainer,
            "task": run.task,
            "seed": run.seed,
            "fault": run.fault,
            "injected": False,
            "made_by": f"scripts/record_evaluated_runs.py, {packages}",
        }
        keep_run(Path(scratch), out / run.name, facts)
    write_summary(out, SUMMARY)


if __name__ == "__main__":
    sys.exit(record_named(RUNS, record, __doc__))
