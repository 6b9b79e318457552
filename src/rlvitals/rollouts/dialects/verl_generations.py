"""Read verl's `trainer.rollout_data_dir` and `validation_data_dir`: one JSON-lines file a step.

A line has `input`, `output`, `gts`, `score`, `step` and what else the reward function returned with
the score. Prompts and responses are decoded without special tokens, so a tool call is found where
the model writes it in `<tool_call>` tags. Source: `RayPPOTrainer._write_generations`.
"""

from collections.abc import Sequence
from pathlib import Path

from rlvitals.rollouts.chat_messages import tagged_turns
from rlvitals.rollouts.dialects.rollout_dialect import Dialect, Record, integer, number, scores
from rlvitals.rollouts.sample import EVAL_SPLIT, TRAINING_SPLIT, Sample, to_text

VERL_FIELDS = {"input", "output", "score", "step"}
UID_PARTS = 2  # the v1 trainer's uid is PROMPT_ROLLOUT_OUTPUT


def claims(path: Path, record: Record) -> bool:
    """Claim records that have verl's four fields."""
    return path.stem.isdigit() and record.keys() >= VERL_FIELDS


def samples(path: Path, record: Record) -> Sequence[Sample]:
    """Convert one line."""
    uid = to_text(record.get("uid")).rsplit("_", UID_PARTS)
    is_eval = any(name in path.parent.name.lower() for name in ("val", "eval", "test"))
    return [
        Sample(
            prompt=to_text(record["input"]),
            turns=tagged_turns(to_text(record["output"])),
            step=integer(record["step"]),
            split=EVAL_SPLIT if is_eval else TRAINING_SPLIT,
            group=uid[0] if len(uid) > UID_PARTS else "",
            task=to_text(record.get("data_source")),
            answer=to_text(record.get("gts")),
            reward=number(record["score"]),
            parts=scores(record, skip={*VERL_FIELDS, "gts", "uid", "request_id", "reward"}),
        )
    ]


DIALECT = Dialect(
    name="verl",
    title="verl's rollout_data_dir",
    files=("*.jsonl",),
    layout="lines",
    claims=claims,
    samples=samples,
    example="rollout_data/40.jsonl",
)
