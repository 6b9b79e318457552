"""Define a rollout: one conversation of the policy, with what it was paid."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import field

from rlvitals.startup.fast_dataclass import dataclass

TRAINING_SPLIT, EVAL_SPLIT = "train", "eval"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool; `result` is None where the log has none."""

    name: str
    arguments: str  # as the model wrote them, mostly JSON
    result: str | None = None
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Turn:
    """A message after the prompt: of the policy, a tool, the environment or a user."""

    role: str  # "assistant", "tool", "user", "system"
    text: str
    tool_calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True)
class RewardPart:
    """What one reward function gave, and its weight in the total."""

    score: float
    weight: float = 1.0

    @property
    def value(self) -> float:
        """The part of the total reward."""
        return self.score * self.weight


@dataclass(frozen=True, slots=True)
class Tokens:
    """Values of the generated tokens of a rollout, each a tuple of one length or empty."""

    sampler_log_probs: tuple[float, ...] = ()  # by the engine that generated them
    trainer_log_probs: tuple[float, ...] = ()  # by the trainer, before the update
    entropy: tuple[float, ...] = ()  # nats
    mask: tuple[bool, ...] = ()  # whether the loss has the token


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One rollout. None or an empty text where the log does not record a field."""

    prompt: str
    turns: tuple[Turn, ...]
    step: int | None = None
    split: str = TRAINING_SPLIT
    group: str = ""  # rollouts whose rewards are compared; "": those of one prompt and step
    task: str = ""  # the data set or environment
    answer: str = ""  # the expected one
    policy_version: int | None = None  # of the weights that generated it
    reward: float | None = None
    parts: Mapping[str, RewardPart] = field(default_factory=dict)
    advantage: float | None = None
    stop_reason: str = ""
    error: str = ""
    seconds: float | None = None
    token_count: int | None = None  # generated tokens
    tokens: Tokens = Tokens()

    @property
    def text(self) -> str:
        """What the policy wrote, its turns joined by empty lines."""
        return "\n\n".join(turn.text for turn in self.turns if turn.role == "assistant")

    @property
    def tool_calls(self) -> Iterator[ToolCall]:
        """All calls of tools, in order."""
        return (call for turn in self.turns for call in turn.tool_calls)

    def to_json(self) -> dict[str, object]:
        """Return the sample as JSON's types; fields that the log lacks are left out."""
        values: dict[str, object] = {
            "step": self.step,
            "split": self.split,
            "task": self.task,
            "group": self.group,
            "prompt": self.prompt,
            "turns": [turn_json(turn) for turn in self.turns],
            "answer": self.answer,
            "reward": self.reward,
            "parts": {k: {"score": p.score, "weight": p.weight} for k, p in self.parts.items()},
            "advantage": self.advantage,
            "policy_version": self.policy_version,
            "stop_reason": self.stop_reason,
            "error": self.error,
            "seconds": self.seconds,
            "token_count": self.token_count,
        }
        return {key: value for key, value in values.items() if value not in (None, "", {})}


def turn_json(turn: Turn) -> dict[str, object]:
    """Return a turn as JSON's types."""
    values: dict[str, object] = {"role": turn.role, "text": turn.text}
    if turn.tool_calls:
        values["tool_calls"] = [
            {"name": c.name, "arguments": c.arguments, "result": c.result, "failed": c.failed}
            for c in turn.tool_calls
        ]
    return values


def to_text(value: object) -> str:
    """Return a text as it is, nothing for None, anything else as JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False, default=str)
