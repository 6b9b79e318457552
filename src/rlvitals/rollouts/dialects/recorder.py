"""Read what `run.log_rollouts` records: `rollouts/00000-0-0000.jsonl.zst` in a run's folder."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rlvitals.rollouts.chat_messages import split_prompt, tagged_turns, to_prompt, to_turns
from rlvitals.rollouts.dialects.rollout_dialect import (
    Dialect,
    Record,
    integer,
    mapping,
    number,
    numbers,
)
from rlvitals.rollouts.sample import TRAINING_SPLIT, RewardPart, Sample, Tokens, to_text


def claims(path: Path, record: Record) -> bool:
    """Claim the files of the recorder's folder."""
    return path.parent.name == "rollouts" and record.keys() >= {"step", "prompt"}


def samples(path: Path, record: Record) -> Sequence[Sample]:  # noqa: ARG001 - records hold all
    """Convert one line."""
    prompt = to_prompt(record["prompt"])
    messages, completion = record.get("messages"), record.get("completion")
    messages = completion if isinstance(completion, list) else messages
    if isinstance(messages, list):
        opening, turns = split_prompt(to_turns(messages))
        prompt = prompt or opening
    else:
        turns = tagged_turns(to_text(completion))
    error = record.get("error")
    return [
        Sample(
            prompt=prompt,
            turns=turns,
            step=integer(record["step"]),
            split=to_text(record.get("split")) or TRAINING_SPLIT,
            group=to_text(record.get("group")),
            task=to_text(record.get("task")),
            answer=to_text(record.get("answer")),
            policy_version=integer(record.get("policy_version")),
            reward=number(record.get("reward")),
            parts=_read_parts(mapping(record.get("rewards"))),
            advantage=number(record.get("advantage")),
            stop_reason=to_text(record.get("stop_reason")),
            error=to_text(error) if error else "",
            seconds=number(record.get("seconds")),
            token_count=integer(record.get("token_count")),
            tokens=Tokens(
                sampler_log_probs=numbers(record.get("sampler_log_probs")),
                trainer_log_probs=numbers(record.get("trainer_log_probs")),
                entropy=numbers(record.get("entropy")),
                mask=tuple(map(bool, numbers(record.get("mask")))),
            ),
        )
    ]


def _read_parts(rewards: Record) -> dict[str, RewardPart]:
    """Return reward parts: numbers, or `{"score": 1.0, "weight": 0.5}`."""
    parts: dict[str, RewardPart] = {}
    for name, reward in rewards.items():
        fields = reward if isinstance(reward, Mapping) else {"score": reward}
        score, weight = number(fields.get("score")), number(fields.get("weight"))
        if score is not None:
            parts[name] = RewardPart(score, 1.0 if weight is None else weight)
    return parts


DIALECT = Dialect(
    name="recorder",
    title="rlvitals' own rollouts",
    files=("*.jsonl.zst",),
    layout="frames",
    claims=claims,
    samples=samples,
    example="run/rollouts/0001-0-0000.jsonl.zst",
    home=lambda path: path.parent.parent,
)
