"""Score responses by reward functions, a reward model, or both."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rlvitals import UsageError
from rlvitals.trainers.language.tiny.base import quiet

Column = Sequence[Any]


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of `b` responses."""

    total: Tensor  # float32 [b], NaN if no function gave a score
    parts: Mapping[str, list[float | None]]  # of each function, by its name


class Scorer:
    """Sums up reward functions by their weights.

    None and numbers that are not finite are ignored, and the others summed, as TRL does.
    """

    def __init__(self, functions: Sequence[Any], weights: Sequence[float]) -> None:
        """Take functions as TRL has them, and the weight of each."""
        self._functions, self._weights = tuple(functions), tuple(weights)

    def __call__(
        self, prompts: Column, completions: Column, ids: Column, columns: Mapping[str, Column]
    ) -> Scores:
        """Score completions, with the other columns of their rows."""
        total, has_score = [0.0] * len(completions), [False] * len(completions)
        scores_by_function: dict[str, list[float | None]] = {}
        for function, weight in zip(self._functions, self._weights, strict=True):
            values = function(
                prompts=prompts, completions=completions, completion_ids=ids, **columns
            )
            scores_by_function[function.__name__] = scores = [
                float(score) if isinstance(score, int | float) and math.isfinite(score) else None
                for score in values
            ]
            for i, score in enumerate(scores):
                if score is not None:
                    total[i] += weight * score
                    has_score[i] = True
        totals = [
            score if is_known else math.nan
            for score, is_known in zip(total, has_score, strict=True)
        ]
        return Scores(torch.tensor(totals), scores_by_function)


class RewardModel:
    """A sequence classifier of one label, as a reward function: its logit is the score.

    It reads the text of prompt and completion by a tokenizer of its own, and a conversation by the
    template of that tokenizer, where it has one.
    """

    __name__ = "reward_model"

    def __init__(self, name: str, device: torch.device | str = "cpu", *, at_once: int = 0) -> None:
        """Load it by a name or a folder; it reads `at_once` completions in a pass (0: all).

        Raises UsageError for one that is not there.
        """
        import transformers

        self._at_once = at_once
        kind = transformers.AutoModelForSequenceClassification
        try:
            with quiet():
                self.tokenizer = transformers.AutoTokenizer.from_pretrained(name)
                model = kind.from_pretrained(name, num_labels=1, dtype=torch.float32)
        except (OSError, ValueError) as error:
            raise UsageError(
                f"the reward model {name} cannot be read: {error}", where="rlhf.reward_model"
            ) from None
        if model.config.pad_token_id is None:  # it is how the model finds the last token
            model.config.pad_token_id = self.tokenizer.pad_token_id
        self.model = model.to(device).eval().requires_grad_(requires_grad=False)

    def __call__(self, prompts: Column, completions: Column, **_: object) -> list[float]:
        """Score each completion [b]."""
        pairs = list(zip(prompts, completions, strict=True))
        scores: list[float] = []
        for first in range(0, len(pairs), self._at_once or len(pairs)):
            scores += self._scores(pairs[first : first + (self._at_once or len(pairs))])
        return scores

    def _scores(self, pairs: Sequence[tuple[Any, Any]]) -> list[float]:
        templated = self.tokenizer.chat_template and not isinstance(pairs[0][0], str)
        read = self.tokenizer(
            [
                self._apply_template(*pair) if templated else "".join(map(_to_text, pair))
                for pair in pairs
            ],
            padding=True, padding_side="right", return_tensors="pt",
            add_special_tokens=not templated,  # which a template writes itself
        )  # fmt: skip
        with torch.no_grad():
            logits = self.model(
                input_ids=read["input_ids"].to(self.model.device),
                attention_mask=read["attention_mask"].to(self.model.device),
            ).logits
        scores: list[float] = logits[:, 0].float().tolist()
        return scores

    def _apply_template(self, prompt: Any, completion: Any) -> str:
        talk = [*prompt, {"role": "assistant", "content": _to_text(completion)}]
        text: str = self.tokenizer.apply_chat_template(talk, tokenize=False)
        return text


def _to_text(message: Any) -> str:
    return (
        message if isinstance(message, str) else "".join(str(turn["content"]) for turn in message)
    )
