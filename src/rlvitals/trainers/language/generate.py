"""Generate completions from a policy: greedy, or sampled as its training samples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import GenerationConfig, LogitsProcessor, LogitsProcessorList, ProcessorMixin
from trl.data_utils import is_conversational, prepare_multimodal_messages

from rlvitals.trainers.language import models

Row = Mapping[str, Any]  # of a data set: prompt, answer, and whatever the rewards look at
Completion = str | list[dict[str, str]]


@dataclass(frozen=True, slots=True)
class Policy:
    """A model that can be asked, as its training asks it."""

    model: Any
    processor: Any  # tokenizer or processor
    temperature: float
    longest: int  # tokens of a completion at the most

    def ends(self) -> list[int]:
        """Return the tokens that end a completion."""
        return models.ends(self.model, models.tokenizer_of(self.processor))

    def image_tokens(self) -> list[int] | None:
        """Return the image token, which is never generated; None without one."""
        token = getattr(self.model.config, "image_token_id", None)
        return None if token is None else [token]


@dataclass(frozen=True, slots=True)
class Answers:
    """Completions of a batch of rows, and the token ids of each without what follows its end."""

    completions: list[Completion]
    ids: list[list[int]]


@dataclass(slots=True)
class Entropy:
    """Sums up the entropy of the distributions that tokens were drawn from."""

    nats: float = 0.0
    tokens: int = 0

    def mean(self) -> float:
        """Return the mean over tokens, in nats; NaN for none."""
        return self.nats / self.tokens if self.tokens else float("nan")


class _EntropyRecorder(LogitsProcessor):
    """Adds the entropy of each token that is about to be drawn; changes nothing.

    It is called before the temperature is applied, so it applies it.
    """

    def __init__(self, total: Entropy, temperature: float, prompt: int, ends: list[int]) -> None:
        self.total, self.temperature, self.prompt = total, temperature, prompt
        self.ends = torch.tensor(ends)

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        ends = self.ends.to(input_ids.device)
        going = ~torch.isin(input_ids[:, self.prompt :], ends).any(dim=1)
        chances = torch.softmax(scores[going].float() / self.temperature, dim=-1)
        self.total.nats += float(torch.special.entr(chances).sum())
        self.total.tokens += int(going.sum())
        return scores


def greedy(policy: Policy, rows: Sequence[Row]) -> Answers:
    """Answer each row with the likeliest tokens."""
    return _answers(policy, rows, None, {"do_sample": False})


def sample(policy: Policy, rows: Sequence[Row], total: Entropy, *, each: int = 1) -> Answers:
    """Answer each row with tokens that torch's generator draws at the policy's temperature.

    `each`: answers to a row, one after the other. `total` gains the entropy of each token.
    """
    how = {"do_sample": True, "temperature": policy.temperature, "top_k": 0, "top_p": 1.0}
    return _answers(policy, rows, total, {**how, "num_return_sequences": each})


def _answers(
    policy: Policy, rows: Sequence[Row], total: Entropy | None, how: Mapping[str, Any]
) -> Answers:
    tokenizer, ends = models.tokenizer_of(policy.processor), policy.ends()
    images = [row["image"] for row in rows] if rows[0].get("image") is not None else None
    batch = inputs(policy.processor, [row["prompt"] for row in rows], images)
    length = batch["input_ids"].shape[1]
    processors = LogitsProcessorList()
    if total is not None:
        processors.append(_EntropyRecorder(total, policy.temperature, length, ends))
    generation_config = GenerationConfig(
        max_new_tokens=policy.longest, pad_token_id=tokenizer.pad_token_id, eos_token_id=ends,
        bos_token_id=tokenizer.bos_token_id, suppress_tokens=policy.image_tokens(),
        disable_compile=True, **how,
    )  # fmt: skip
    # What ours leaves at a default would be the model's own (transformers issue 42762).
    original_config, policy.model.generation_config = (
        policy.model.generation_config,
        generation_config,
    )
    try:
        with torch.inference_mode():
            tokens = policy.model.generate(
                **batch.to(policy.model.device), logits_processor=processors
            )
    finally:
        policy.model.generation_config = original_config
    # Cut ids after the first that ends a completion.
    ids = [
        next(
            (completion[: i + 1] for i, token in enumerate(completion) if token in ends), completion
        )
        for completion in tokens[:, length:].tolist()
    ]
    texts = tokenizer.batch_decode(ids, skip_special_tokens=True)
    talks = is_conversational({"prompt": rows[0]["prompt"]})
    completions = [[{"role": "assistant", "content": text}] for text in texts] if talks else texts
    return Answers(completions, ids)


def inputs(processor: Any, prompts: Sequence[Any], images: Sequence[Any] | None) -> Any:
    """Return what a model reads of prompts, texts or conversations, padded on the left."""
    if not is_conversational({"prompt": prompts[0]}):
        return processor(text=list(prompts), padding=True, padding_side="left", return_tensors="pt")
    how: dict[str, Any] = {"padding": True}
    if isinstance(processor, ProcessorMixin):
        image_lists = [None] * len(prompts) if images is None else [[image] for image in images]
        prompts = list(map(prepare_multimodal_messages, prompts, image_lists))
        how = {"processor_kwargs": how}
    return processor.apply_chat_template(
        conversation=list(prompts), add_generation_prompt=True, tokenize=True, return_dict=True,
        return_tensors="pt", **how,
    )  # fmt: skip
