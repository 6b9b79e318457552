"""Read SkyRL's evaluation dumps: `dumped_evals/global_step_40_evals/DATASET.jsonl`.

Prompts and responses hold special tokens; a reward may be a list with one number for each token.
Source: `dump_per_dataset_eval_results`. Its training batches are pickled and not read.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from rlvitals.rollouts.chat_messages import tagged_turns
from rlvitals.rollouts.dialects.rollout_dialect import (
    Dialect,
    Record,
    mapping,
    number,
    numbers,
    step_in,
)
from rlvitals.rollouts.sample import EVAL_SPLIT, Sample, to_text

EVALS_FOLDER = re.compile(r"global_step_(\d+)_evals")


def claims(path: Path, record: Record) -> bool:  # noqa: ARG001 - the names of its fields are enough
    """Claim records with SkyRL's fields."""
    return record.keys() >= {"input_prompt", "output_response", "score", "env_class"}


def samples(path: Path, record: Record) -> Sequence[Sample]:
    """Convert one line."""
    extras = mapping(record.get("env_extras"))
    truth = mapping(extras.get("reward_spec") or extras.get("reward_model")).get("ground_truth")
    by_token = numbers(record["score"])
    task = record.get("data_source") or record["env_class"]
    return [
        Sample(
            prompt=to_text(record["input_prompt"]),
            turns=tagged_turns(to_text(record["output_response"])),
            step=step_in(path, EVALS_FOLDER),
            split=EVAL_SPLIT,
            task=to_text(task),
            answer=to_text(truth),
            reward=sum(by_token) if by_token else number(record["score"]),
            stop_reason=to_text(record.get("stop_reason")),
            token_count=len(by_token) or None,
        )
    ]


def home(path: Path) -> Path:
    """Return the folder that the dumps are exported to."""
    return next((p.parent for p in path.parents if p.name == "dumped_evals"), path.parent)


DIALECT = Dialect(
    name="skyrl",
    title="SkyRL's dumped evaluations",
    files=("*.jsonl",),
    layout="lines",
    claims=claims,
    samples=samples,
    example="exports/dumped_evals/global_step_40_evals/gsm8k.jsonl",
    home=home,
)
