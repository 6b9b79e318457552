"""Read the `results.jsonl` of verifiers' environments before its version 1: one rollout a line.

Source: `state_to_output`. Metrics lie in `metrics` and once more at the top level.
"""

from collections.abc import Sequence
from pathlib import Path

from rlvitals.rollouts.chat_messages import tagged_turns, to_prompt, to_turns
from rlvitals.rollouts.dialects.rollout_dialect import (
    Dialect,
    Record,
    integer,
    mapping,
    number,
    scores,
)
from rlvitals.rollouts.sample import EVAL_SPLIT, Sample, to_text


def claims(path: Path, record: Record) -> bool:  # noqa: ARG001 - the names of its fields are enough
    """Claim records with the fields that every output has."""
    return record.keys() >= {"example_id", "prompt", "completion", "reward", "metrics"}


def samples(path: Path, record: Record) -> Sequence[Sample]:  # noqa: ARG001 - no step is recorded
    """Convert one line."""
    completion, error = record["completion"], record.get("error")
    failure = mapping(error)
    stop = to_text(record.get("stop_condition"))
    usage = mapping(record.get("token_usage"))
    return [
        Sample(
            prompt=to_prompt(record["prompt"]),
            turns=to_turns(completion)
            if isinstance(completion, list)
            else tagged_turns(to_text(completion)),
            split=EVAL_SPLIT,
            group=to_text(record["example_id"]),
            task=to_text(record.get("task")),
            answer=to_text(record.get("answer")),
            reward=number(record["reward"]),
            parts=scores(mapping(record["metrics"])),
            stop_reason=stop or ("length" if record.get("is_truncated") else ""),
            error=f"{failure['error']}: {failure.get('message')}" if failure else to_text(error),
            seconds=number(mapping(record.get("timing")).get("total")),
            token_count=integer(usage.get("output_tokens")),
        )
    ]


DIALECT = Dialect(
    name="verifiers",
    title="verifiers' results",
    files=("results.jsonl",),
    layout="lines",
    claims=claims,
    samples=samples,
    example="outputs/evals/gsm8k--model/1a2b3c/results.jsonl",
)
