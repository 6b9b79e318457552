"""Read miles' conversations: `DUMP/trajectory/40.jsonl`, written with `--dump-details`.

The per-token columns and the `.pt` dumps next to them are not read: the first have no text, the
second are pickled. Source: `miles/ray/rollout/debug_data.py`, `trajectory_rows`.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from rlvitals.rollouts.chat_messages import split_prompt, to_prompt, to_turns
from rlvitals.rollouts.dialects.rollout_dialect import Dialect, Record, number, step_in
from rlvitals.rollouts.sample import EVAL_SPLIT, TRAINING_SPLIT, Sample, to_text

TRAJECTORY_FILE = re.compile(r"(?:eval_)?(\d+)\.jsonl")


def claims(path: Path, record: Record) -> bool:
    """Claim records with miles' fields in a file that is named by its step."""
    return bool(TRAJECTORY_FILE.fullmatch(path.name)) and record.keys() >= {
        "sample_index",
        "group_index",
        "status",
        "messages",
    }


def samples(path: Path, record: Record) -> Sequence[Sample]:
    """Convert one line: the conversation of a sample."""
    messages = record["messages"]
    prompt, turns = split_prompt(to_turns(messages if isinstance(messages, list) else []))
    status, group = to_text(record["status"]), record["group_index"]
    return [
        Sample(
            prompt=prompt or to_prompt(record.get("prompt")),
            turns=turns,
            step=step_in(path, TRAJECTORY_FILE),
            split=EVAL_SPLIT if path.name.startswith("eval_") else TRAINING_SPLIT,
            group="" if group is None else str(group),
            reward=number(record.get("reward")),
            stop_reason={"completed": "stop", "truncated": "length"}.get(status, status),
            error=status if status in ("aborted", "failed") else "",
        )
    ]


DIALECT = Dialect(
    name="miles",
    title="miles' conversations",
    files=("*.jsonl",),
    layout="lines",
    claims=claims,
    samples=samples,
    example="dump/trajectory/40.jsonl",
    home=lambda path: path.parent.parent,
)
