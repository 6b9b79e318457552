"""Read NeMo RL's `train_data_step40.jsonl` and `val_data_step40.jsonl`.

Each field of a line is a list with one cell. Training lines hold the texts of a conversation
without their roles, which alternate, and log-probs of generation and trainer for each token;
validation lines hold messages. Source: `Logger.log_batched_dict_as_jsonl`, `grpo_train`.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from rlvitals.rollouts.chat_messages import split_prompt, to_turns
from rlvitals.rollouts.dialects.rollout_dialect import Dialect, Record, number, numbers, step_in
from rlvitals.rollouts.sample import EVAL_SPLIT, TRAINING_SPLIT, Sample, Tokens, Turn, to_text

DATA_FILE = re.compile(r"(?:train|val)_data_step(\d+)\.jsonl")


def claims(path: Path, record: Record) -> bool:
    """Claim records with contents and rewards in a file of NeMo RL's name."""
    return bool(DATA_FILE.fullmatch(path.name)) and record.keys() >= {"content", "rewards", "idx"}


def samples(path: Path, record: Record) -> Sequence[Sample]:
    """Convert one line."""
    content = _cell(record["content"])
    messages = content if isinstance(content, list) else [content]
    if messages and isinstance(messages[0], Mapping):
        prompt, turns = split_prompt(to_turns(messages))
    else:
        prompt = to_text(messages[0] if messages else "")
        roles = ("assistant", "user")  # an environment's answer is a user's message
        turns = tuple(Turn(roles[n % 2], to_text(text)) for n, text in enumerate(messages[1:]))
    mask = numbers(_cell(record.get("token_loss_mask")))
    advantages = numbers(_cell(record.get("advantages")))
    generated = [value for value, trained in zip(advantages, mask, strict=False) if trained]
    agent = _cell(record.get("agent_ref"))
    return [
        Sample(
            prompt=prompt,
            turns=turns,
            step=step_in(path, DATA_FILE),
            split=TRAINING_SPLIT if path.name.startswith("train") else EVAL_SPLIT,
            task=to_text(agent.get("name")) if isinstance(agent, Mapping) else to_text(agent),
            reward=number(record["rewards"]),
            advantage=generated[0] if generated else None,
            token_count=int(sum(mask)) if mask else None,
            tokens=Tokens(
                sampler_log_probs=_trainable_values(record.get("generation_logprobs"), mask),
                trainer_log_probs=_trainable_values(record.get("prev_logprobs"), mask),
            ),
        )
    ]


def _cell(value: object) -> object:
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _trainable_values(values: object, mask: Sequence[float]) -> tuple[float, ...]:
    by_token = numbers(_cell(values))
    return tuple(value for value, trained in zip(by_token, mask, strict=False) if trained)


DIALECT = Dialect(
    name="nemo-rl",
    title="NeMo RL's train_data and val_data",
    files=("train_data_step*.jsonl", "val_data_step*.jsonl"),
    layout="lines",
    claims=claims,
    samples=samples,
    example="logs/exp_001/train_data_step40.jsonl",
)
