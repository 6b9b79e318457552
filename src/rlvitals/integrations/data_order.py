"""Restore the data order of a resumed training, and list what cannot be restored.

The Trainer skips the batches that an epoch has already used. That gives the same rows if the order
depends on the epoch alone, as with accelerate's sampler (the default). It does not if a sampler
shuffles with a generator that is created in each process. Measured with transformers 5.23,
accelerate 1.15, trl 1.16: in each case below the resumed weights differed.
"""

from math import ceil
from typing import Any


def restore(loader: Any, epochs: int) -> bool:
    """Advance the sampler of a resumed training to the data order of its epoch.

    TRL's sampler shuffles each epoch with its own generator, which is created in each process: a
    training resumed in its third epoch would see the order of the first one. Returns whether there
    was such a sampler; call it before the epoch starts.
    """
    sampler = _sampler(loader)
    if type(sampler).__name__ != "RepeatSampler" or not sampler.shuffle or epochs < 1:
        return False
    import torch  # noqa: PLC0415 - a trainer has loaded it

    for _ in range(epochs):
        torch.randperm(sampler.num_samples, generator=sampler.generator)
    return True


def list_losses(args: Any, loader: Any, step: int, passes: int) -> list[str]:
    """List what a training resumed at `step` loses of the data order.

    `passes`: number of passes over the data that this process started.
    """
    losses = ["the place in the data, by ignore_data_skip,"] if args.ignore_data_skip else []
    if args.dataloader_persistent_workers and args.dataloader_num_workers:
        losses.append("what dataloader_persistent_workers had drawn ahead")
    sampler, epoch_steps = _sampler(loader), steps(loader, args.gradient_accumulation_steps)
    if epoch_steps is None:
        stream = "the place in a stream that is read more than once"
        return [*losses, stream] if passes > 1 else losses
    in_later_epoch = step > epoch_steps and step % epoch_steps > 0
    if in_later_epoch and type(sampler).__name__ not in (
        "SeedableRandomSampler",
        "SequentialSampler",
        "RepeatSampler",
    ):
        losses.append(f"the order that {type(sampler).__name__} gives a later epoch")
    return losses


def steps(loader: Any, accumulation: int) -> int | None:
    """Count the steps of an epoch; None for a stream."""
    passes = forward_passes(loader)
    return None if passes is None else ceil(passes / accumulation)


def forward_passes(loader: Any) -> int | None:
    """Count the batches of an epoch; None for a stream."""
    try:
        return len(loader) or None
    except TypeError:
        return None


def _sampler(loader: Any) -> Any:
    """Find the sampler below what accelerate wraps around it."""
    sampler = loader
    while True:
        inner = getattr(sampler, "batch_sampler", None)
        inner = getattr(sampler, "sampler", None) if inner is None else inner
        if inner is None:
            return sampler
        sampler = inner
