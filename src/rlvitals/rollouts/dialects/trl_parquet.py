"""Read TRL's `completions/completions_00040.parquet`: the last generation batch of a logging step.

Columns of floats are reward functions. Source: `GRPOTrainer.log`; needs the extra `parquet`.
"""

from collections.abc import Sequence
from pathlib import Path

from rlvitals.readers.trl_completions import (
    COMPLETION_ADVANTAGE,
    COMPLETION_STEP,
    COMPLETION_TEXT,
    COMPLETIONS_FILE,
    COMPLETIONS_FOLDER,
)
from rlvitals.rollouts.chat_messages import tagged_turns, to_prompt, to_turns
from rlvitals.rollouts.dialects.rollout_dialect import Dialect, Record, integer, number, step_in
from rlvitals.rollouts.sample import RewardPart, Sample, to_text


def claims(path: Path, record: Record) -> bool:
    """Claim rows with a prompt and a completion in a file of TRL's name."""
    matches_name = COMPLETIONS_FILE.fullmatch(path.name) is not None
    return matches_name and record.keys() >= {"prompt", COMPLETION_TEXT}


def samples(path: Path, record: Record) -> Sequence[Sample]:
    """Convert a row."""
    completion = record[COMPLETION_TEXT]
    step = integer(record.get(COMPLETION_STEP))
    skipped = {COMPLETION_STEP, COMPLETION_ADVANTAGE}
    cells = {k: v for k, v in record.items() if k not in skipped and isinstance(v, float)}
    values = {key: number(value) for key, value in cells.items()}
    parts = {key: RewardPart(value) for key, value in values.items() if value is not None}
    return [
        Sample(
            prompt=to_prompt(record["prompt"]),
            turns=to_turns(completion)
            if isinstance(completion, list)
            else tagged_turns(to_text(completion)),
            step=step_in(path, COMPLETIONS_FILE) if step is None else step,
            reward=sum(part.value for part in parts.values()) if parts else None,
            parts=parts,
            advantage=number(record.get(COMPLETION_ADVANTAGE)),
        )
    ]


def home(path: Path) -> Path:
    """Return the trainer's output folder."""
    return path.parent.parent if path.parent.name == COMPLETIONS_FOLDER else path.parent


DIALECT = Dialect(
    name="trl",
    title="TRL's completions (with the extra parquet)",
    files=("completions_*.parquet",),
    layout="parquet",
    claims=claims,
    samples=samples,
    example="out/completions/completions_00040.parquet",
    home=home,
)
