"""Record small real runs of TRL's last PPOTrainer (RLHF), healthy and with one fault each.

    python scripts/record_rlhf_runs.py OUT NAME... | --all | --list

Needs torch 2.13, trl 1.12 (the last with `trl.experimental.ppo`), transformers 5; about a minute
a run on one thread. Each run leaves `OUT/<name>/trainer_state.json` as the trainer wrote it,
`settings.json`, and a line in `OUT/SUMMARY.md`.
"""

from __future__ import annotations

import os

os.environ.update(
    OMP_NUM_THREADS="1",
    HF_HUB_OFFLINE="1",
    TOKENIZERS_PARALLELISM="false",
    TRL_EXPERIMENTAL_SILENCE="1",
)

import contextlib
import io
import sys
import tempfile
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch
from datasets import Dataset
from tiny_language import EOS, keep_run, problems, record_named, warm_folder, write_summary
from transformers import (
    GenerationConfig,
    Qwen2ForCausalLM,
    Qwen2ForSequenceClassification,
    set_seed,
)
from trl.experimental.ppo import PPOConfig, PPOTrainer, ppo_trainer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from transformers import PreTrainedTokenizerFast

SUMMARY = {
    "score": "objective/scores",
    "KL to reference": "objective/kl",
    "non-score": "objective/non_score_reward",
    "RLHF reward": "objective/rlhf_reward",
    "entropy": "policy/entropy_avg",
    "approx KL": "policy/approxkl_avg",
    "clipped": "policy/clipfrac_avg",
    "ratio": "val/ratio",
    "ratio var": "val/ratio_var",
    "value loss": "loss/value_avg",
    "value clipped": "val/clipfrac_avg",
    "EOS tokens": "val/num_eos_tokens",
}


@dataclass(frozen=True, slots=True)
class Run:
    """One run: `fault` is `none` or what is wrong with it; `config` overrides the trainer's."""

    name: str
    fault: str = "none"
    seed: int = 0
    reward: str = "correct"
    jump_at: int = 0  # update from which scores are a hundred times as large
    sampled_at: float = 1.0  # temperature of the sampler; the trainer's is 1
    recorded_at: float = 1.0  # temperature that the old log-probabilities are taken at
    config: Mapping[str, Any] = field(default_factory=dict)


PPO = {
    "learning_rate": 1e-4,
    "per_device_train_batch_size": 64,
    "num_mini_batches": 4,
    "num_ppo_epochs": 4,
    "total_episodes": 64 * 100,
    "response_length": 6,
    "temperature": 1.0,
    "kl_coef": 0.05,
    "kl_estimator": "k1",
    "cliprange": 0.2,
    "cliprange_value": 0.2,
    "vf_coef": 0.1,
    "gamma": 1.0,
    "lam": 0.95,
    "missing_eos_penalty": 1.0,
    "stop_token": "eos",
    "lr_scheduler_type": "linear",
}

RUNS = (
    Run("healthy-0"),
    Run("healthy-1", seed=1),
    Run("healthy-k3", seed=2, config={"kl_estimator": "k3", "lr_scheduler_type": "constant"}),
    *(Run(f"healthy-{seed}", seed=seed) for seed in range(3, 9)),
    *(Run(f"healthy-k3-{seed}", seed=seed, config={"kl_estimator": "k3"}) for seed in (8, 9)),
    Run("healthy-kl-coef-0.02", seed=10, config={"kl_coef": 0.02}),
    Run("kl-explodes", fault="kl-explodes", config={"kl_coef": 0.0, "learning_rate": 5e-3}),
    Run(
        "kl-dominates",
        fault="kl-dominates",
        config={"kl_coef": 5.0, "learning_rate": 1e-3, "lr_scheduler_type": "constant"},
    ),
    Run(
        "sampler-hotter",
        fault="sampler-hotter",
        sampled_at=3.0,
        config={"learning_rate": 3e-4},
    ),
    Run("old-log-probs-hotter", fault="old-log-probs-hotter", recorded_at=2.0),
    Run(
        "eos-vanishes",
        fault="eos-vanishes",
        reward="long",
        config={
            "missing_eos_penalty": None,
            "response_length": 16,
            "kl_coef": 0.01,
            "learning_rate": 3e-4,
            "lr_scheduler_type": "constant",
        },
    ),
    Run("value-loss-spike", fault="value-loss-spike", jump_at=60),
    Run("constant-score", fault="constant-score", reward="constant"),
    Run("lr-low", fault="lr-low", config={"learning_rate": 1e-8}),
    Run(
        "lr-high",
        fault="lr-high",
        config={"learning_rate": 3e-2},
    ),
)


def correct(answer: str, right: str) -> float:
    """1 for the right sum, -1 for what is no number."""
    return 1.0 if answer == right else 0.0 if answer.isdigit() else -1.0


def long(answer: str, right: str) -> float:
    """Return an eighth a character, with a bonus for the right first one."""
    return len(answer) / 8 + float(answer[:1] == right[:1])


def constant(answer: str, right: str) -> float:
    """1, whatever is written."""
    del answer, right
    return 1.0


REWARDS: dict[str, Callable[[str, str], float]] = {
    "correct": correct,
    "long": long,
    "constant": constant,
}


class Tokens(torch.nn.Module):
    """What PPOTrainer takes for a reward model's backbone: its hidden state is the text itself."""

    def forward(self, input_ids: torch.Tensor, **_: object) -> SimpleNamespace:
        """Token numbers, (batch, length)."""
        return SimpleNamespace(hidden_states=[input_ids])


class Verifier(torch.nn.Module):
    """A rule in the shape of a reward model: each position carries the score of the whole text."""

    base_model_prefix = "backbone"

    def __init__(self, tok: PreTrainedTokenizerFast, run: Run) -> None:
        super().__init__()
        self.backbone = Tokens()
        self._tok = tok
        self._rule = REWARDS[run.reward]
        self._jump_at = run.jump_at
        self._calls = 0

    def score(self, tokens: torch.Tensor) -> torch.Tensor:
        """(batch, length) token numbers to (batch, length, 1) scores. Called once an update."""
        self._calls += 1
        scale = 100.0 if self._jump_at and self._calls >= self._jump_at else 1.0
        scores = torch.tensor([self._of(text) * scale for text in self._tok.batch_decode(tokens)])
        return scores[:, None, None].expand(*tokens.shape, 1)

    def _of(self, text: str) -> float:
        question, answer = text.replace(self._tok.pad_token, "").split("=", maxsplit=1)
        first, second = question.split("+")
        return self._rule(answer.split(EOS)[0], str(int(first) + int(second)))


@contextlib.contextmanager
def sampler_of(run: Run) -> Iterator[None]:
    """Sample, and record the sampler's log-probabilities, at the run's two temperatures.

    Stands for an inference engine whose settings have drifted from the trainer's.
    """
    original = ppo_trainer.batch_generation

    def batch_generation(
        model: Qwen2ForCausalLM,
        queries: torch.Tensor,
        size: int,
        pad: int,
        generation: GenerationConfig,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        generation.temperature = run.sampled_at
        responses, logits = original(model, queries, size, pad, generation)
        return responses, logits * run.sampled_at / run.recorded_at

    if run.sampled_at == run.recorded_at == 1.0:
        yield
        return
    ppo_trainer.batch_generation = batch_generation
    try:
        yield
    finally:
        ppo_trainer.batch_generation = original


def trainer_of(run: Run, work: Path, base: Path, tok: PreTrainedTokenizerFast) -> PPOTrainer:
    """Policy, reference and critic from the same warm start; the reward is a rule."""
    rows = [{"input_ids": tok(row["prompt"]).input_ids} for row in problems(2000, 7)]
    arguments = PPOConfig(
        output_dir=str(work),
        seed=run.seed,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        disable_tqdm=True,
        num_sample_generations=0,
        **{**PPO, **run.config},
    )
    return PPOTrainer(
        args=arguments,
        processing_class=tok,
        model=Qwen2ForCausalLM.from_pretrained(base),
        ref_model=Qwen2ForCausalLM.from_pretrained(base),
        reward_model=Verifier(tok, run),
        value_model=Qwen2ForSequenceClassification.from_pretrained(base, num_labels=1),
        train_dataset=Dataset.from_list(rows),
        eval_dataset=Dataset.from_list(rows[:8]),
    )


def run_settings(run: Run) -> dict[str, object]:
    """Return what a reader of the run should know, flat."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("trl", "transformers", "torch"))
    return {
        **PPO,
        **run.config,
        "mode": "rlhf-ppo",
        "reward_functions": run.reward,
        "seed": run.seed,
        "fault": run.fault,
        "injected": False,
        "made_by": f"scripts/record_rlhf_runs.py, {packages}",
    }


def record(run: Run, out: Path, bases: Path) -> None:
    """Train, keep the log, rewrite the summary."""
    base, tok = warm_folder(bases / "half-wrong")
    set_seed(run.seed)
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        trainer = trainer_of(run, work, base, tok)
        with sampler_of(run), contextlib.redirect_stdout(io.StringIO()):
            trainer.train()
        trainer.state.save_to_json(str(work / "trainer_state.json"))
        keep_run(work, out / run.name, run_settings(run))
    write_summary(out, SUMMARY)


if __name__ == "__main__":
    sys.exit(record_named(RUNS, record, __doc__))
