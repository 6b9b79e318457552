"""Which checkpoints are kept, and which may go: asked after each save, never before."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from typing import Literal

from rlvitals.errors import UsageError

HEALTHY = "healthy"


@dataclass(frozen=True, slots=True)
class Best:
    """The metric by which a checkpoint is the best, and which way is better."""

    metric: str
    better: Literal["max", "min"] = "max"

    def of(self, entries: Sequence["Entry"]) -> "Entry | None":
        """Return the best entry, the newest of equals; None where none has the metric."""
        sign = 1.0 if self.better == "max" else -1.0
        scored = [
            (sign * one.metrics[self.metric], one.sequence, one)
            for one in entries
            if not isnan(one.metrics.get(self.metric, float("nan")))
        ]
        return max(scored, key=lambda pair: pair[:2])[2] if scored else None


@dataclass(frozen=True, slots=True)
class Policy:
    """How many checkpoints are kept, and which besides."""

    keep: int = 3  # newest
    best: Best | None = None
    every: int | None = None  # steps: those divisible by it are kept
    healthy: bool = True  # the last one whose diagnosis was healthy
    shielded: frozenset[int] = frozenset()  # steps that somebody else still needs

    def __post_init__(self) -> None:
        """Refuse what keeps nothing. Raises UsageError."""
        if self.keep < 1:
            raise UsageError(f"keep cannot be {self.keep}", hint="keep the newest at least: 1")
        if self.every is not None and self.every < 1:
            raise UsageError(
                f"keep_every cannot be {self.every}", hint="a number of steps, or None"
            )


@dataclass(frozen=True, slots=True)
class Entry:
    """What retention knows of a sealed checkpoint of this run."""

    step: int
    sequence: int
    metrics: dict[str, float]
    health: str = ""
    pinned: bool = False


def surplus(entries: Sequence[Entry], policy: Policy) -> tuple[Entry, ...]:
    """Return the checkpoints that may be deleted, the oldest first."""
    by_age = sorted(entries, key=lambda one: one.sequence)
    kept = {one.sequence for one in by_age[-policy.keep :]}
    kept |= {one.sequence for one in by_age if one.pinned or one.step in policy.shielded}
    if policy.every is not None:
        kept |= {one.sequence for one in by_age if one.step % policy.every == 0}
    if policy.best is not None and (best := policy.best.of(by_age)) is not None:
        kept.add(best.sequence)
    healthy = [one.sequence for one in by_age if one.health == HEALTHY]
    if policy.healthy and healthy:
        kept.add(healthy[-1])
    return tuple(one for one in by_age if one.sequence not in kept)
