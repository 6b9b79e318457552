"""Whether a resumed training sees the data in the order in which it would have seen it.

The Trainer skips what an epoch has had already. That gives the same rows where the order of an
epoch follows from its number, which accelerate's sampler (the default) sees to. It does not where
a sampler shuffles by a generator that begins anew in each process. Measured with transformers
5.23, accelerate 1.15, trl 1.16: each case below is one in which the weights came out different.
"""

from math import ceil
from typing import Any

BY_EPOCH = ("SeedableRandomSampler", "SequentialSampler")
PLACE = "the place in the data, by ignore_data_skip,"
WORKERS = "what dataloader_persistent_workers had drawn ahead"
STREAM = "the place in a stream that is read more than once"


def restore(loader: Any, epochs: int) -> bool:
    """Give a resumed training the order of the data that its epoch has.

    TRL's sampler shuffles each epoch by a generator of its own, which begins anew in each
    process: a training resumed in its third epoch would see the first one's order again.
    Returns whether there was such a sampler; call it before the epoch begins.
    """
    sampler = _sampler(loader)
    if type(sampler).__name__ != "RepeatSampler" or not sampler.shuffle or epochs < 1:
        return False
    import torch  # noqa: PLC0415 - a trainer has loaded it

    for _ in range(epochs):
        torch.randperm(sampler.num_samples, generator=sampler.generator)
    return True


def lost(args: Any, loader: Any, step: int, passes: int) -> list[str]:
    """Say what of the order of the data a training that is resumed at a step will not have.

    `passes`: how often this process has begun the data.
    """
    found = [PLACE] if args.ignore_data_skip else []
    if args.dataloader_persistent_workers and args.dataloader_num_workers:
        found.append(WORKERS)
    sampler, epoch = _sampler(loader), steps(loader, args.gradient_accumulation_steps)
    if epoch is None:
        return found + ([STREAM] if passes > 1 else [])
    later = step > epoch and step % epoch > 0
    if later and type(sampler).__name__ not in (*BY_EPOCH, "RepeatSampler"):
        found.append(f"the order that {type(sampler).__name__} gives a later epoch")
    return found


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
    seen = loader
    while True:
        inner = getattr(seen, "batch_sampler", None)
        inner = getattr(seen, "sampler", None) if inner is None else inner
        if inner is None:
            return seen
        seen = inner
