"""Estimate a training from its settings: `rlvitals train grpo --plan`."""

from collections import Counter
from dataclasses import dataclass, replace

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily

from rlvitals.trainers.language.config import Config
from rlvitals.trainers.language.planning import device, overhead, prompts, shell, updates
from rlvitals.trainers.language.planning.device import Rates
from rlvitals.trainers.language.planning.plan import Plan
from rlvitals.trainers.language.planning.shell import Shell
from rlvitals.trainers.language.planning.updates import Update
from rlvitals.trainers.language.rlhf import config as rlhf
from rlvitals.trainers.language.tiny import base as tiny

GIB = 2.0**30


@dataclass(frozen=True, slots=True)
class Overrides:
    """Stated values of the device and the prompts; 0: measured, or read."""

    flops: float = 0.0  # peak of the device, a second
    bandwidth: float = 0.0  # peak of its memory, bytes a second
    tokens: int = 0  # of a prompt


def plan(config: Config | rlhf.Config, stated: Overrides) -> Plan:
    """Estimate memory and time of an update; nothing but the model's config.json is fetched.

    Raises VitalsError, or UsageError for a setting, as a training does before its weights load,
    and for a model whose layers depend on the numbers that they compute.
    """
    settings = config.rlhf if isinstance(config, rlhf.Config) else config.training
    reference = isinstance(config, rlhf.Config) or config.training.beta > 0
    if threads := settings.threads or (1 if config.model.vlm_name in tiny.TINY_MODELS else 0):
        torch.set_num_threads(threads)
    questions = prompts.read(config.model, config.data, seed=settings.seed, tokens=stated.tokens)
    update = (
        updates.of_rlhf(config.rlhf, questions)
        if isinstance(config, rlhf.Config)
        else updates.of_trl(config, questions)
    )
    overhead.measure()  # outside of fake tensors
    with shell.build_shell(config.model, seed=settings.seed) as model_shell:
        with unset_fake_temporarily():
            dtype = torch.bfloat16 if update.bf16 else _largest_dtype(model_shell)
            text = model_shell.model_config.get_text_config()
            inner = getattr(text, "intermediate_size", None) or 4 * text.hidden_size
            sides = update.rows * (questions.tokens + update.completion), text.hidden_size, inner
            rates = device.rates(dtype, sides, flops=stated.flops, bandwidth=stated.bandwidth)
        traced = updates.trace(
            model_shell, config.model, update, updates.speeds(rates, overhead.measure()),
            reference=reference and not config.model.lora,
        )  # fmt: skip
        result = Plan(
            config.model.vlm_name, model_shell.parameters, model_shell.trainable,
            model_shell.adapters,
            traced.parts, traced.phases, rates, _assumptions(update, rates, model_shell),
        )  # fmt: skip
    return replace(result, warnings=_warnings(result))


def _largest_dtype(model_shell: Shell) -> torch.dtype:
    """Return the type of most weights: adapters may have another."""
    count: Counter[torch.dtype] = Counter()
    for weight in model_shell.weights():
        count[weight.dtype] += weight.numel()
    return count.most_common(1)[0][0]


def _assumptions(update: Update, rates: Rates, model_shell: Shell) -> tuple[str, ...]:
    questions = update.prompts
    source = f"{device.PEAK_UTILISATION:.0%} of the peaks stated"
    if rates.source == "measured":
        source = f"measured on this machine's {rates.device}"
    image_text = (
        f", {questions.images} x {questions.patches:,} patches of images"
        if questions.images
        else ""
    )
    lines = [
        f"prompts of {questions.tokens:,} tokens{image_text}: {questions.source}",
        f"completions of {update.completion:,} tokens each: as long as they may be",
        f"{rates.flops / 1e9:,.0f} GFLOP/s and {rates.bandwidth / 1e9:,.1f} GB/s: {source}",
        (
            "one process; without rewards, data, checkpoints, Python and its libraries, and what "
            "the memory's allocator keeps"
        ),
    ]
    if questions.images:
        lines.append(
            "the image encoder as layers of SigLIP of its width and depth, each patch of an image "
            "attending to all others"
        )
    if rates.device == "cpu":
        lines.append("attention as PyTorch's kernel for the CPU computes it; no GPU is here")
    return (*lines, *model_shell.notes)


def _warnings(result: Plan) -> tuple[str, ...]:
    """Return why the training is too large or too slow for this machine."""
    rates, warnings = result.rates, []
    if rates.source == "stated":  # of another machine
        return ()
    if result.memory > rates.memory:
        warnings.append(
            f"{result.memory / GIB:,.1f} GiB are needed, and {rates.memory / GIB:,.1f} GiB of "
            f"the {rates.device}'s memory are free"
        )
    if rates.device == "cpu" and result.seconds > 600.0:
        warnings.append(f"without a GPU an update takes about {result.seconds / 60:,.0f} minutes")
    return tuple(warnings)
