"""Which checkpoints are kept, and which may go: asked after each save, never before."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from typing import Literal

from rlvitals.checkpoints.manifest import Manifest
from rlvitals.errors import UsageError

HEALTHY = "healthy"
ALL = 1_000_000  # to keep: nobody counts so far


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
    every: int | None = None  # steps: the first at or after each multiple of it is kept
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
    kept = reasons(entries, policy)
    by_age = sorted(entries, key=lambda one: one.sequence)
    return tuple(one for one in by_age if one.sequence not in kept)


def reasons(entries: Sequence[Entry], policy: Policy) -> dict[int, tuple[str, ...]]:
    """Say in words why each checkpoint that is kept is kept, by its sequence."""
    by_age = sorted(entries, key=lambda one: one.sequence)
    last = by_age[-policy.keep :]
    among = f"last {policy.keep:,}" if policy.keep < ALL else "all are kept"
    why: dict[int, list[str]] = {one.sequence: [among] for one in last}
    if last:
        why[last[-1].sequence] = ["newest"]

    def add(one: Entry, reason: str) -> None:
        why.setdefault(one.sequence, []).append(reason)

    for one in by_age:
        if one.pinned:
            add(one, "pinned")
        if one.step in policy.shielded:
            add(one, "in use")
    if policy.every is not None:
        for one in _first_of_each(by_age, policy.every):
            add(one, f"every {policy.every:,}")
    if policy.best is not None and (best := policy.best.of(by_age)) is not None:
        add(best, f"best {policy.best.metric}")
    healthy = [one for one in by_age if one.health == HEALTHY]
    if policy.healthy and healthy:
        add(healthy[-1], "last healthy")
    return {sequence: tuple(said) for sequence, said in why.items()}


def _first_of_each(entries: Sequence[Entry], every: int) -> Sequence[Entry]:
    """Return the first at or after each multiple of `every`: few trainings save exactly there.

    Of those before the first multiple only one at step 0.
    """
    found: dict[int, Entry] = {}
    for one in sorted(entries, key=lambda one: (one.step, one.sequence)):
        if one.step == 0 or one.step >= every:
            found.setdefault(one.step // every, one)
    return tuple(found.values())


def entry(sealed: Manifest) -> Entry:
    """Return what retention knows of a checkpoint."""
    return Entry(sealed.step, sealed.sequence, dict(sealed.metrics), sealed.health, sealed.pinned)


def written(policy: Policy) -> dict[str, object]:
    """Write a policy down: a manifest tells by it why a checkpoint is kept."""
    best = None if policy.best is None else [policy.best.metric, policy.best.better]
    return {"keep": policy.keep, "best": best, "every": policy.every, "healthy": policy.healthy}


def policy(said: object) -> Policy:
    """Read a policy that was written down; of one that was not, the defaults."""
    if not isinstance(said, dict):
        return Policy()
    best = said.get("best")
    try:
        return Policy(
            int(said.get("keep") or 1),
            Best(str(best[0]), "min" if best[1] == "min" else "max") if best else None,
            int(said["every"]) if said.get("every") else None,
            bool(said.get("healthy", True)),
        )
    except (TypeError, ValueError, OverflowError, LookupError, UsageError):
        return Policy()
