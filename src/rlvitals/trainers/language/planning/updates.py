"""Trace an update of GRPO, PSR, NSR or W-REINFORCE as TRL makes it, or one of RLHF."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from trl.kernels.chunked_logprob import TOKEN_CHUNK_SIZE
from trl.trainer import utils as trl

from rlvitals.trainers.language.config import Config, ModelConfig
from rlvitals.trainers.language.planning import passes
from rlvitals.trainers.language.planning.device import Rates
from rlvitals.trainers.language.planning.overhead import Overheads
from rlvitals.trainers.language.planning.passes import Pass
from rlvitals.trainers.language.planning.plan import Phase, phase
from rlvitals.trainers.language.planning.prompts import Prompts
from rlvitals.trainers.language.planning.shell import Shell, fake
from rlvitals.trainers.language.rlhf.batch import Responses
from rlvitals.trainers.language.rlhf.config import RLHFConfig
from rlvitals.trainers.language.rlhf.policy import Policy

Score = Callable[[], Iterable[Tensor]]


@dataclass(frozen=True, slots=True)
class Update:
    """The number of passes in an update, and their rows."""

    prompts: Prompts
    completion: int  # tokens of a completion, at the most
    generated: int  # completions of a generation
    generations: float  # of an update: below 1 where one serves several updates
    rows: int  # of a forward and backward pass
    scored: float  # completions of an update that are scored without a gradient
    learned: float  # completions of an update that are learned from, each counted as often
    steps: int  # of the optimizer
    accumulated: bool  # gradients of several passes are added up
    checkpointing: bool
    bf16: bool
    policy: bool  # RLHF's, with a value head


def of_trl(config: Config, prompts: Prompts) -> Update:
    """Return the passes of an update of GRPO, PSR, NSR or W-REINFORCE."""
    training = config.training
    forwards = training.gradient_accumulation_steps
    shared = training.steps_per_generation or forwards
    every = shared * training.num_iterations  # forward passes from one generation to the next
    generated = training.batch_size * shared
    generations = forwards / every
    times = (training.beta > 0) + (forwards % every != 0)  # the reference, the policy that drew
    return Update(
        prompts, training.max_completion_length, generated, generations, training.batch_size,
        scored=times * generations * generated, learned=training.batch_size * forwards, steps=1,
        accumulated=forwards > 1, checkpointing=training.gradient_checkpointing, bf16=training.bf16,
        policy=False,
    )  # fmt: skip


def of_rlhf(config: RLHFConfig, prompts: Prompts) -> Update:
    """Return the passes of an update of RLHF."""
    minibatch = config.batch_size // config.num_mini_batches
    rows = min(config.forward_batch_size or minibatch, minibatch)
    return Update(
        prompts, config.response_length, config.batch_size, 1.0, rows,
        scored=2 * config.batch_size, learned=config.batch_size * config.num_ppo_epochs,
        steps=config.num_ppo_epochs * config.num_mini_batches, accumulated=rows < minibatch,
        checkpointing=False, bf16=config.bf16, policy=True,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class UpdateTrace:
    """The traced memory and phases of an update."""

    parts: dict[str, int]
    phases: list[Phase]


@dataclass(frozen=True, slots=True)
class Speeds:
    """The rates of a device in each kind of work: an operation's overhead differs."""

    learning: Rates
    generating: Rates


@dataclass(frozen=True, slots=True)
class Passes:
    """The passes of an update."""

    read: Pass  # all prompts of a generation
    drawn: Pass  # the last token of each completion
    scored: Pass
    learned: Pass
    checkpointed: Pass  # the same with gradient checkpointing; RLHF has none


def speeds(rates: Rates, overheads: Overheads) -> Speeds:
    """Return a device's rates with the overheads of its operations."""
    return Speeds(
        replace(rates, overhead=overheads.learning), replace(rates, overhead=overheads.generating)
    )


def trace(
    shell: Shell, config: ModelConfig, update: Update, rates: Speeds, *, reference: bool
) -> UpdateTrace:
    """Trace the passes of an update. `reference`: a second copy of the weights is in memory."""
    shell.model.train()
    with _tile(shell, rates.learning):
        model, score = _policy(shell, update) if update.policy else _trl(shell, update)
        weights = _bytes((*model.parameters(), *model.buffers()))
        trained = _bytes(item for item in model.parameters() if item.requires_grad)
        traces = _passes(shell, config, update, rates, model, score)
        # Adam has two moments, each as large as the trained weights.
        moments = 2 * trained
        parts = {
            "weights": weights, "reference model": weights * reference, "gradients": trained,
            "optimizer state": moments, "activations": traces.learned.retained,
            "activations, gradient checkpointing":
                0 if update.policy else traces.checkpointed.retained,
            "logits": _logits(shell, update), "KV cache": traces.drawn.retained,
        }  # fmt: skip
    resident = weights * (1 + reference) + moments
    phases = _phases(update, traces, rates.learning, resident, trained)
    return UpdateTrace(parts, [item for item in phases if item.seconds])


def _passes(  # noqa: PLR0913, PLR0917 - what is traced, each by its name
    shell: Shell, config: ModelConfig, update: Update, rates: Speeds, model: Any, score: Score
) -> Passes:
    questions, total = update.prompts, update.prompts.tokens + update.completion
    image_pass, image_learning = Pass(), Pass()
    if questions.images:
        image_pass, image_learning = passes.encoder(
            shell, config, rates.learning, update.rows * questions.images, questions.patches
        )
    read = passes.prefill(
        shell, rates.generating, update.generated, questions.tokens, all_logits=update.policy
    )
    learned = passes.learn(model, rates.learning, score, bf16=update.bf16)
    checkpointed = learned
    if not update.policy:
        with _checkpointing(shell):
            checkpointed = passes.learn(model, rates.learning, score, bf16=update.bf16)
    # An image encoder's pass keeps one layer of its activations at a time.
    layers = passes.layers(shell.model_config.vision_config) if image_learning.seconds else 1
    return Passes(
        read + image_pass.times(update.generated / update.rows),
        passes.decode(shell, rates.generating, update.generated, total - 1),
        image_pass + passes.forward(model, rates.learning, score),
        image_learning + learned,
        Pass(
            image_learning.seconds * 4 / 3,
            image_learning.flops * 4 / 3,
            image_learning.peak // layers,
            image_learning.retained // layers,
        )
        + checkpointed,
    )


def _phases(
    update: Update, traces: Passes, rates: Rates, resident: int, trained: int
) -> list[Phase]:
    """Return the phases of an update, with `resident` bytes and `trained` bytes of gradients."""
    tokens = traces.drawn.times(update.completion)
    generated = Pass(
        traces.read.seconds + tokens.seconds, traces.read.flops + tokens.flops,
        max(traces.read.peak, traces.drawn.peak),
    )  # fmt: skip
    # A step of Adam reads and writes 7 times: weight, gradient and moments; 3 are written. It is 15
    # operations over all weights at once.
    step = Pass(
        7 * trained / rates.bandwidth + 15 * rates.overhead,
        peak=2 * trained,  # the gradients, and what the step computes from them
    )
    learned = traces.checkpointed if update.checkpointing else traces.learned
    return [
        phase("generation", generated.times(update.generations), resident),
        phase("scoring", traces.scored.times(update.scored / update.rows), resident),
        phase(
            "gradients", learned.times(update.learned / update.rows),
            resident + trained * update.accumulated,
        ),
        phase("optimizer step", step.times(update.steps), resident),
    ]  # fmt: skip


@contextmanager
def _tile(shell: Shell, rates: Rates) -> Iterator[None]:
    """Make TRL's tile of logits no wider than the vocabulary, on a CPU.

    Its columns beyond are never written: on a CPU they take no memory.
    """
    width = trl._CHUNKED_LOGPROB_CHUNK_SIZE  # noqa: SLF001 - a constant of TRL
    if rates.device == "cpu":
        trl._CHUNKED_LOGPROB_CHUNK_SIZE = min(width, _vocabulary(shell))  # noqa: SLF001
    try:
        yield
    finally:
        trl._CHUNKED_LOGPROB_CHUNK_SIZE = width  # noqa: SLF001


def _vocabulary(shell: Shell) -> int:
    return int(shell.model_config.get_text_config().vocab_size)


def _logits(shell: Shell, update: Update) -> int:
    """Return the bytes of logits in 32 bits: all of RLHF's, of TRL's one tile."""
    rows = update.rows * (update.prompts.tokens + update.completion)
    if update.policy:
        return rows * _vocabulary(shell) * 4
    tile: int = trl._CHUNKED_LOGPROB_CHUNK_SIZE  # noqa: SLF001
    return int(min(rows, TOKEN_CHUNK_SIZE) * tile * 4)


def _bytes(tensors: Iterable[Tensor]) -> int:
    """Return the bytes of tensors; those of tied weights once."""
    storages = {id(tensor): tensor.numel() * tensor.element_size() for tensor in tensors}
    return sum(storages.values())


def _trl(shell: Shell, update: Update) -> tuple[Any, Score]:
    base = shell.model.get_base_model() if hasattr(shell.model, "get_base_model") else shell.model
    trl.add_fused_lm_head(base, outputs=("log_probs", "entropy"))
    total = update.prompts.tokens + update.completion

    def score() -> Iterator[Tensor]:
        read = torch.zeros(update.rows, total, dtype=torch.long)
        output = shell.model(
            input_ids=read, attention_mask=torch.ones_like(read), labels=read, fused_lm_head=True
        )
        yield output.log_probs.exp()

    return shell.model, score


def _policy(shell: Shell, update: Update) -> tuple[Any, Score]:
    """Return RLHF's policy, and how it scores responses."""
    rows, total = update.rows, update.prompts.tokens + update.completion
    policy = Policy(shell.model)
    fake(policy)

    def score() -> Iterator[Tensor]:
        tokens = torch.zeros(rows, total, dtype=torch.long)
        drawn = Responses(
            tokens, torch.ones_like(tokens), torch.ones(rows, update.completion),
            torch.ones(rows, dtype=torch.bool),
        )  # fmt: skip
        logprobs, _, values = policy(drawn, 1.0)
        yield from (logprobs.exp(), values)

    return policy, score


@contextmanager
def _checkpointing(shell: Shell) -> Iterator[None]:
    """Compute activations again in the backward pass, under `with`."""
    model = shell.model
    model.enable_input_require_grads()
    model.activation_checkpointing_enable(passes.CHECKPOINTING_OPTIONS)
    try:
        yield
    finally:
        model.activation_checkpointing_disable()
        model.disable_input_require_grads()
