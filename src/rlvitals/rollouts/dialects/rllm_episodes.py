"""Read rLLM's episodes: `episodes/train_step_40_epoch_0/episode_hash1a2b_id7_0.json`.

An episode is a JSON document with a trajectory for each agent. Source: `EpisodeLogger`.
"""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from rlvitals.rollouts.chat_messages import split_prompt, to_turns
from rlvitals.rollouts.dialects.rollout_dialect import (
    Dialect,
    Record,
    first_text,
    integer,
    mapping,
    mappings,
    number,
    scores,
)
from rlvitals.rollouts.sample import EVAL_SPLIT, TRAINING_SPLIT, Sample, Turn, to_text

RLLM_STOPS = {
    "env_done": "stop",
    "max_response_length_exceeded": "length",
    "max_prompt_length_exceeded": "prompt_length",
    "max_turns_exceeded": "max_turns",
}


def claims(path: Path, record: Record) -> bool:  # noqa: ARG001 - the names of its fields are enough
    """Claim documents with an episode's fields."""
    return record.keys() >= {"training_step", "episode_id", "task_hash", "trajectories"}


def samples(path: Path, record: Record) -> Sequence[Sample]:
    """Convert an episode: one sample for each trajectory."""
    task, reason = mapping(record["task"]), to_text(record.get("termination_reason"))
    question = first_text(task, ("question", "prompt", "instruction", "problem"))
    is_correct = number(record.get("is_correct"))
    metrics = {"is_correct": is_correct} if is_correct is not None else {}
    converted = []
    for trajectory in mappings(record["trajectories"]):
        prompt, turns = _conversation(mappings(trajectory.get("steps")))
        name = to_text(trajectory.get("name"))
        timing = mapping(trajectory.get("timing"))
        seconds = number(timing.get("total_time") or timing.get("total"))
        converted.append(
            Sample(
                prompt=prompt or question or to_text(record["task"]),
                turns=turns,
                step=integer(record["training_step"]),
                split=TRAINING_SPLIT if path.parent.name.startswith("train") else EVAL_SPLIT,
                group=f"{record['task_hash']}/{name}",
                task=to_text(task.get("data_source")) or name,
                answer=first_text(task, ("ground_truth", "answer", "solution")),
                reward=number(trajectory.get("reward")),
                parts=scores(mapping(record.get("metrics"))) | scores(metrics),
                stop_reason=RLLM_STOPS.get(reason, reason),
                error=reason if reason in ("error", "timeout") else "",
                seconds=seconds,
            )
        )
    return converted


def _conversation(steps: Sequence[Record]) -> tuple[str, tuple[Turn, ...]]:
    """Return prompt and turns: of the last step, where it repeats the others, else of each."""
    chats = [mappings(step.get("chat_completions")) for step in steps]
    if chats and all(list(new[: len(old)]) == list(old) for old, new in pairwise(chats)):
        return split_prompt(to_turns(chats[-1]))
    prompt = split_prompt(to_turns(chats[0]))[0] if chats else ""
    return prompt, tuple(Turn("assistant", to_text(step.get("model_response"))) for step in steps)


def home(path: Path) -> Path:
    """Return the experiment's folder."""
    return next((p.parent for p in path.parents if p.name == "episodes"), path.parent)


DIALECT = Dialect(
    name="rllm",
    title="rLLM's episodes",
    files=("episode_*.json",),
    layout="document",
    claims=claims,
    samples=samples,
    example="logs/project/experiment/episodes/train_step_40_epoch_0/episode_hash1a_id7_0.json",
    home=home,
)
