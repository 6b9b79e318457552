"""Decide which checkpoints are kept; evaluated after each save."""

from collections.abc import Sequence
from math import isnan
from typing import Literal

from rlvitals.checkpoints.manifest import Manifest
from rlvitals.errors import UsageError, nearest
from rlvitals.startup.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Best:
    """The metric that ranks checkpoints, and its direction.

    Attributes
    ----------
    metric : str
        A name in the `metrics` of a save.
    better : {"max", "min"}
        Whether the highest or the lowest value is the best.
    """

    metric: str
    better: Literal["max", "min"] = "max"

    def __post_init__(self) -> None:
        """Check the direction. Raises UsageError."""
        directions = ("max", "min")
        if self.better not in directions:
            suggestion = nearest(str(self.better), directions)
            hint = f"{suggestion} " if suggestion else ""
            raise UsageError(
                f"better cannot be {self.better!r}",
                where=f"Best({self.metric!r})",
                hint=f'{hint}"max" where the highest is the best, "min" where the lowest is',
            )

    def of(self, entries: Sequence["Entry"]) -> "Entry | None":
        """Return the best entry, the newest of equals; None if none has the metric."""
        sign = 1.0 if self.better == "max" else -1.0
        scored = [
            (sign * candidate.metrics[self.metric], candidate.sequence, candidate)
            for candidate in entries
            if not isnan(candidate.metrics.get(self.metric, float("nan")))
        ]
        return max(scored, key=lambda pair: pair[:2])[2] if scored else None


@dataclass(frozen=True, slots=True)
class Policy:
    """Number of newest checkpoints to keep, and which others."""

    keep: int = 3  # newest
    best: Best | None = None
    every: int | None = None  # steps: the first at or after each multiple of it is kept
    healthy: bool = True  # the last one whose diagnosis was healthy
    shielded: frozenset[int] = frozenset()  # steps that somebody else still needs

    def __post_init__(self) -> None:
        """Check the numbers. Raises UsageError."""
        if self.keep < 1:
            raise UsageError(f"keep cannot be {self.keep}", hint="keep the newest at least: 1")
        if self.every is not None and self.every < 1:
            raise UsageError(
                f"keep_every cannot be {self.every}", hint="a number of steps, or None"
            )


@dataclass(frozen=True, slots=True)
class Entry:
    """The attributes of a checkpoint that retention uses."""

    step: int
    sequence: int
    metrics: dict[str, float]
    health: str = ""
    pinned: bool = False
    has_hold: bool = False  # on legal hold


def select_surplus(entries: Sequence[Entry], policy: Policy) -> tuple[Entry, ...]:
    """Return the checkpoints that may be deleted, the oldest first."""
    kept_reasons = keep_reasons(entries, policy)
    by_age = sorted(entries, key=lambda candidate: candidate.sequence)
    return tuple(candidate for candidate in by_age if candidate.sequence not in kept_reasons)


def keep_reasons(entries: Sequence[Entry], policy: Policy) -> dict[int, tuple[str, ...]]:
    """Return the reasons why each kept checkpoint is kept, by its sequence."""
    by_age = sorted(entries, key=lambda candidate: candidate.sequence)
    last = by_age[-policy.keep :]
    # So many mean all.
    age_reason = f"last {policy.keep:,}" if policy.keep < 1_000_000 else "all are kept"
    texts: dict[int, list[str]] = {candidate.sequence: [age_reason] for candidate in last}
    if last:
        texts[last[-1].sequence] = ["newest"]

    def add(candidate: Entry, reason: str) -> None:
        texts.setdefault(candidate.sequence, []).append(reason)

    for candidate in by_age:
        in_use = candidate.step in policy.shielded
        marks = {"pinned": candidate.pinned, "on hold": candidate.has_hold, "in use": in_use}
        for reason in (text for text, is_set in marks.items() if is_set):
            add(candidate, reason)
    if policy.every is not None:
        for candidate in _first_of_each(by_age, policy.every):
            add(candidate, f"every {policy.every:,}")
    if policy.best is not None and (best := policy.best.of(by_age)) is not None:
        add(best, f"best {policy.best.metric}")
    healthy = [candidate for candidate in by_age if candidate.health == "healthy"]
    if policy.healthy and healthy:
        add(healthy[-1], "last healthy")
    return {sequence: tuple(sentences) for sequence, sentences in texts.items()}


def _first_of_each(entries: Sequence[Entry], every: int) -> Sequence[Entry]:
    """Return the first at or after each multiple of `every`: few trainings save exactly there.

    Before the first multiple, only a checkpoint at step 0 is returned.
    """
    first_entries: dict[int, Entry] = {}
    for candidate in sorted(entries, key=lambda candidate: (candidate.step, candidate.sequence)):
        if candidate.step == 0 or candidate.step >= every:
            first_entries.setdefault(candidate.step // every, candidate)
    return tuple(first_entries.values())


def make_entry(sealed: Manifest, *, has_hold: bool = False) -> Entry:
    """Return the entry of a checkpoint's manifest; `has_hold`: it is on legal hold."""
    metrics = dict(sealed.metrics)
    return Entry(sealed.step, sealed.sequence, metrics, sealed.health, sealed.pinned, has_hold)


def policy_to_dict(policy: Policy) -> dict[str, object]:
    """Return a policy as JSON, for the manifest."""
    best = None if policy.best is None else [policy.best.metric, policy.best.better]
    return {"keep": policy.keep, "best": best, "every": policy.every, "healthy": policy.healthy}


def policy_from_dict(fields: object) -> Policy:
    """Parse a policy; return the defaults if there is none."""
    if not isinstance(fields, dict):
        return Policy()
    best = fields.get("best")
    try:
        return Policy(
            int(fields.get("keep") or 1),
            Best(str(best[0]), "min" if best[1] == "min" else "max") if best else None,
            int(fields["every"]) if fields.get("every") else None,
            bool(fields.get("healthy", True)),
        )
    except (TypeError, ValueError, OverflowError, LookupError, UsageError):
        return Policy()
