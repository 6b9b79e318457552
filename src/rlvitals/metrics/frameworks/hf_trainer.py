"""Hugging Face's Trainer alone, and TRL's SFTTrainer on top of it.

`trainer_state.json` holds the bare keys; trackers put "train/" before them and turn "eval_"
into "eval/". Values are means over the steps since the previous row.
"""

import re
from collections.abc import Iterable

from rlvitals.metrics.catalogue import (
    exploration,
    optimiser,
    outcome,
    progress,
    rollouts,
    throughput,
)
from rlvitals.metrics.frameworks.key import Family, Name, Table

TRAINER = {  # transformers/trainer.py, _maybe_log_save_evaluate, log and the end of training
    "loss": Name(optimiser.LOSS, "mean over the steps since the previous row"),
    "grad_norm": Name(optimiser.GRAD_NORM, "before clipping, of the last step"),
    "learning_rate": Name(optimiser.LEARNING_RATE, "of the last step"),
    "epoch": Name(progress.EPOCH),
    "train_loss": Name(optimiser.RUN_LOSS, "written once, at the end"),
    "train_runtime": Name(throughput.ELAPSED, "written once, at the end"),
    "train_samples_per_second": Name(throughput.SAMPLES_PER_SECOND, "over the whole run"),
    "train_steps_per_second": Name(throughput.UPDATES_PER_SECOND, "over the whole run"),
    "total_flos": Name(progress.FLOPS),
    "mean_token_accuracy": Name(outcome.ACCURACY, "share of right next tokens (SFT)"),
}

EVALUATION_KEYS = {  # transformers/trainer.py, evaluate; trainer_utils.py, speed_metrics
    "loss": Name(optimiser.EVAL_LOSS, "on the evaluation set"),
    "mean_token_accuracy": Name(outcome.EVAL_ACCURACY, "share of right next tokens (SFT)"),
    "runtime": Name(throughput.EVAL_ELAPSED),
    "samples_per_second": Name(throughput.EVAL_SAMPLES_PER_SECOND),
}

TRAINING_ARGUMENTS = {
    "learning_rate": "learning_rate",
    "per_device_train_batch_size": "minibatch_size",
    "train_batch_size": "minibatch_size",  # in trainer_state.json: per device
    "gradient_accumulation_steps": "gradient_accumulation",
    "max_grad_norm": "max_grad_norm",
    "weight_decay": "weight_decay",
    "warmup_steps": "warmup_steps",
    "max_steps": "total_steps",
    "num_train_epochs": "total_epochs",
    "seed": "seed",
    "model_name_or_path": "model",
    "dataset_name": "dataset",
}


def name_evaluations(names: dict[str, Name]) -> dict[str, Name]:
    """Return evaluation's names as files ("eval_loss") and as trackers ("eval/loss") have them."""
    return {f"eval{mark}{key}": name for mark in "_/" for key, name in names.items()}


def held_out(keys: Iterable[str]) -> Family:
    """Return the family of training's keys that a TRL trainer logs of an evaluation as well."""
    either = "|".join(map(re.escape, keys))
    return Family(rf"eval(?:_|/)({either})", Name(rollouts.HELD_OUT, "on the evaluation set"))


NAMES = Table(
    "hf-trainer",
    "Hugging Face Trainer",
    keys={
        **TRAINER,
        **name_evaluations(EVALUATION_KEYS),
        # Without an argument that asks for it the Trainer writes none of these.
        "num_input_tokens_seen": Name(throughput.TOKENS, "since the start, padding as configured"),
        "train_tokens_per_second": Name(
            throughput.TOKENS_PER_SECOND, "since this process began, of all processes"
        ),
        # trl/trainer/sft_trainer.py, compute_loss
        "num_tokens": Name(throughput.TOKENS, "not padded, since the start"),
        "entropy": Name(exploration.ENTROPY, "of the softmax at the data's tokens (SFT)"),
        "aux_loss": Name(optimiser.ROUTER_LOSS),
    },
    settings=TRAINING_ARGUMENTS,
    sources=("trainer-state",),
    prefixes=("train/",),
    marks=(
        ("loss", "learning_rate"),
        ("loss", "epoch"),
        ("train_runtime",),
        ("eval_runtime",),
        ("eval/runtime",),
    ),
    read_from="transformers 5.23: src/transformers/trainer.py (_maybe_log_save_evaluate, log,"
    " evaluate), trainer_utils.py (speed_metrics); huggingface/trl v1.16:"
    " trl/trainer/sft_trainer.py (compute_loss, log)",
)
