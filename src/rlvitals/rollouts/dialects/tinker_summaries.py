"""Read the Tinker cookbook's `iteration_000040/train_rollout_summaries.jsonl`.

A summary has rewards, lengths, metrics and what the environment put into `logs`; the texts of the
conversation only where `logs` has them. Source: `serialize_rollout_summaries`, schema version 1.
"""

from collections.abc import Sequence
from pathlib import Path

from rlvitals.rollouts.dialects.rollout_dialect import (
    Dialect,
    Record,
    first_text,
    integer,
    mapping,
    mappings,
    number,
    scores,
    token_total,
)
from rlvitals.rollouts.sample import EVAL_SPLIT, TRAINING_SPLIT, Sample, Turn, to_text

PROMPT_KEYS = ("prompt", "problem", "question", "input")
LOG_ANSWER_KEYS = ("reference_answer", "ground_truth", "answer", "expected_answer")


def claims(path: Path, record: Record) -> bool:  # noqa: ARG001 - the names of its fields are enough
    """Claim records with the fields of a summary."""
    return record.keys() >= {"schema_version", "iteration", "group_idx", "traj_idx", "steps"}


def samples(path: Path, record: Record) -> Sequence[Sample]:  # noqa: ARG001 - records hold the step
    """Convert one line."""
    steps = mappings(record["steps"])
    logs = [mapping(step.get("logs")) for step in steps]
    last_metrics = mapping(steps[-1].get("metrics")) if steps else {}
    is_train = to_text(record.get("split")).startswith(TRAINING_SPLIT)
    tags = record.get("tags")
    return [
        Sample(
            prompt=first_text(logs[0] if logs else {}, PROMPT_KEYS),
            turns=tuple(Turn("assistant", _reply(log)) for log in logs),
            step=integer(record["iteration"]),
            split=TRAINING_SPLIT if is_train else EVAL_SPLIT,
            group=f"{record['group_idx']}",
            task="/".join(map(to_text, tags)) if isinstance(tags, list) else "",
            answer=first_text(logs[-1] if logs else {}, LOG_ANSWER_KEYS),
            policy_version=integer(record.get("sampling_client_step")),
            reward=number(record.get("total_reward")),
            parts=scores(last_metrics) | scores(mapping(record.get("trajectory_metrics"))),
            token_count=token_total(step.get("ac_len") for step in steps),
        )
    ]


def _reply(log: Record) -> str:
    """Return the policy's text; all of a log whose keys are others."""
    if text := first_text(log, ("response", "completion", "output", "model_response", "assistant")):
        return text
    skipped = {*PROMPT_KEYS, *LOG_ANSWER_KEYS}
    return "\n".join(f"{key}: {to_text(value)}" for key, value in log.items() if key not in skipped)


def home(path: Path) -> Path:
    """Return the run's folder."""
    return path.parent.parent if path.parent.name.startswith("iteration_") else path.parent


DIALECT = Dialect(
    name="tinker",
    title="Tinker cookbook's rollout summaries",
    files=("*_rollout_summaries.jsonl",),
    layout="lines",
    claims=claims,
    samples=samples,
    example="run/iteration_000040/train_rollout_summaries.jsonl",
    home=home,
)
