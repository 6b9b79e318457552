"""Read ATIF documents, Harbor's `TRIAL/agent/trajectory.json`, schema versions 1.0 to 1.8.

The reward, an exception and the task's name are those of the trial's `result.json`, where it lies
next to the agent's folder. Source: `harbor.models.trajectories`, `harbor.models.trial`.
"""

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from rlvitals.rollouts.chat_messages import content_text, is_failure, split_prompt
from rlvitals.rollouts.dialects.rollout_dialect import (
    Dialect,
    Record,
    mapping,
    mappings,
    number,
    numbers,
    scores,
    token_total,
)
from rlvitals.rollouts.sample import EVAL_SPLIT, Sample, Tokens, ToolCall, Turn, to_text


def claims(path: Path, record: Record) -> bool:  # noqa: ARG001 - the schema names itself
    """Claim documents that name an ATIF schema."""
    return to_text(record.get("schema_version")).startswith("ATIF-v1.") and "steps" in record


def samples(path: Path, record: Record) -> Sequence[Sample]:
    """Convert a trajectory."""
    steps = mappings(record["steps"])
    turns = [turn for step in steps if not step.get("is_copied_context") for turn in _turns(step)]
    prompt, replies = split_prompt(turns)
    metrics = [mapping(step.get("metrics")) for step in steps]
    agent_steps = (step for step in steps if step.get("source") == "agent")
    counts = (mapping(step.get("metrics")).get("completion_tokens") for step in agent_steps)
    # Nothing where there is no `result.json` that can be read.
    try:
        with (path.parent.parent / "result.json").open("rb") as file:
            result = mapping(json.loads(file.read(16 << 20)))
    except (OSError, ValueError, RecursionError):
        result = {}
    rewards = scores(mapping(mapping(result.get("verifier_result")).get("rewards")))
    single = next(iter(rewards.values())) if len(rewards) == 1 else None
    total = rewards.get("reward", single)
    exception = mapping(result.get("exception_info"))
    log_probs = [numbers(m.get("logprobs")) for m in metrics]
    return [
        Sample(
            prompt=prompt,
            turns=replies,
            split=EVAL_SPLIT,
            task=to_text(result.get("task_name")),
            reward=None if total is None else total.score,
            parts=rewards,
            error=": ".join(
                filter(
                    None,
                    (to_text(exception.get(k)) for k in ("exception_type", "exception_message")),
                )
            ),
            seconds=_seconds(steps),
            token_count=token_total(counts),
            tokens=Tokens(sampler_log_probs=tuple(p for step in log_probs for p in step)),
        )
    ]


def _turns(step: Record) -> list[Turn]:
    """Convert a step: its message, and the results of its calls."""
    role = {"agent": "assistant"}.get(to_text(step.get("source")), to_text(step.get("source")))
    text = content_text(step.get("message"))
    if reasoning := to_text(step.get("reasoning_content")):
        text = f"<think>{reasoning}</think>\n{text}"
    results = mappings(mapping(step.get("observation")).get("results"))
    by_call = {
        to_text(result.get("source_call_id")): content_text(result.get("content"))
        for result in results
    }
    calls = []
    for call in mappings(step.get("tool_calls")):
        answer = by_call.get(to_text(call.get("tool_call_id")))
        name, arguments = to_text(call.get("function_name")), to_text(call.get("arguments"))
        calls.append(ToolCall(name, arguments, answer, answer is not None and is_failure(answer)))
    return [
        Turn(role, text, tuple(calls)),
        *(Turn("tool", content_text(result.get("content"))) for result in results),
    ]


def _seconds(steps: Sequence[Record]) -> float | None:
    stamps = [to_text(step["timestamp"]) for step in steps if step.get("timestamp")]
    try:
        moments = [datetime.fromisoformat(stamp).timestamp() for stamp in stamps]
    except ValueError:
        return None
    return number(moments[-1] - moments[0]) if len(moments) > 1 else None


DIALECT = Dialect(
    name="atif",
    title="ATIF (Harbor)",
    files=("*trajectory*.json",),
    layout="document",
    claims=claims,
    samples=samples,
    example="jobs/2026-08-20/task__abc/agent/trajectory.json",
)
