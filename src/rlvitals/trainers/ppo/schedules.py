"""Counters of a training, and schedules of learning rate and coefficients."""

import math
from dataclasses import dataclass, field

from rlvitals.trainers.ppo.config import PPOConfig, ReferenceConfig, ScheduleConfig


@dataclass(slots=True)
class Chunk:
    """Progress of a run that is trained in chunks."""

    number: int = 0  # of the current one; 0: none yet
    began: int = 0  # the environment step it began at
    counts: list[int] = field(default_factory=list)  # of each action in it
    first_kl: float | None = None  # to the warm start, in its first update and its last
    last_kl: float | None = None  # None: there is no warm start


@dataclass(slots=True)
class Counters:
    """Counters of a training."""

    steps: int = 0  # of the environments
    updates: int = 0  # rollouts learned from
    minibatches: int = 0  # steps of the optimiser
    stabilised: int = 0  # steps of the phase before learning
    kl_coef: float = 0.0  # of the KL to the policy that collected
    chunk: Chunk = field(default_factory=Chunk)


def linear(first: float, last: float, progress: float) -> float:
    """Go straight from `first` at progress 0 to `last` at 1, and stay there."""
    return first + (last - first) * min(max(progress, 0.0), 1.0)


def cosine_with_restarts(step: int, *, warmup: int, period: int, floor: float) -> float:
    """Return the factor of a learning rate at an update `step` (Loshchilov and Hutter 2017).

    It rises over `warmup` updates from 0 to 1, then falls as a half cosine to `floor` and
    restarts at 1 every `period` updates.
    """
    if step < warmup:
        return (step + 1) / warmup
    phase = ((step - warmup) % period) / period
    return floor + (1.0 - floor) * 0.5 * (1.0 + math.cos(math.pi * phase))


def coefficients(
    config: PPOConfig,
    schedule: ScheduleConfig,
    reference: ReferenceConfig,
    counters: Counters,
    progress: float,
) -> dict[str, float]:
    """Return the learning rate and the weights of the loss's terms at a run's progress."""
    last = config.entropy_coef if config.entropy_coef_final < 0 else config.entropy_coef_final
    entropy = linear(config.entropy_coef, last, progress)
    if config.entropy_warmup_updates:
        entropy += linear(
            config.entropy_warmup_coef, 0.0, counters.updates / config.entropy_warmup_updates
        )
    return {
        "lr": config.learning_rate * lr_factor(schedule, counters.updates, progress),
        "entropy_coef": entropy,
        "entropy_min": config.entropy_min,
        "kl_coef": counters.kl_coef,
        "kl_ref_coef": linear(
            reference.kl_ref_coef_initial,
            reference.kl_ref_coef_final,
            counters.minibatches / max(reference.kl_ref_decay_steps, 1),
        ),
    }


def lr_factor(schedule: ScheduleConfig, updates: int, progress: float) -> float:
    """Return what the learning rate is multiplied by."""
    if schedule.type == "linear":
        return linear(1.0, schedule.min_lr_ratio, progress)
    if schedule.type == "cosine_annealing_with_warmup":
        return cosine_with_restarts(
            updates,
            warmup=schedule.warmup_steps,
            period=schedule.restart_period,
            floor=schedule.min_lr_ratio,
        )
    return 1.0
