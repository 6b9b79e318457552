"""Optimal split of a workload over replicas: by their speed, where that is known."""

import re
from collections.abc import Mapping

import numpy as np

from rlvitals.metrics.catalogue.policy import ACTION, ACTION_COUNT
from rlvitals.metrics.catalogue.scheduler import SELECTED_REPLICA
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Trace

SPEEDS_SETTING = "replica_speeds"
SPEED_PATTERN = re.compile(r"[^,;\s\[\]()]+")
CHOICE_TAIL_SHARE = 0.2  # last share of the run, over which choices are counted
MIN_CHOICES = 100  # the standard error of a share is then below 0.05


@dataclass(frozen=True, slots=True)
class Optimum:
    """The share of all requests that each replica should get, by its index."""

    shares: tuple[float, ...]
    known: bool  # from the replicas' speeds; else all are taken as equal

    def share(self, replica: str) -> float | None:
        """Return one replica's share; None for a name that is no index."""
        index = int(replica) if replica.isdecimal() else -1
        return self.shares[index] if 0 <= index < len(self.shares) else None

    @property
    def assumption(self) -> str:
        """Say what the optimum rests on."""
        if self.known:
            return f"the best shares follow {SPEEDS_SETTING}: " + " ".join(
                f"{s:.0%}" for s in self.shares
            )
        count = len(self.shares)
        return (
            f"{count} replicas are taken as equal, {1 / count:.0%} each: no {SPEEDS_SETTING} is set"
        )


def optimum(trace: Trace, count: int) -> Optimum | None:
    """Return the best shares for the run's replicas, `count` of them unless the settings say.

    Requests that are sent in proportion to speed load all replicas alike. None for less than two.
    """
    speeds = _speeds(trace)
    if speeds:
        return Optimum(tuple(speed / sum(speeds) for speed in speeds), known=True)
    replicas = int(trace.number("n_replicas") or count)
    return Optimum((1 / replicas,) * replicas, known=False) if replicas > 1 else None


def _speeds(trace: Trace) -> tuple[float, ...]:
    """Read "1.5, 1.1, 0.8", with brackets or without; nothing where one is no speed."""
    numbers = SPEED_PATTERN.findall(str(trace.settings.get(SPEEDS_SETTING, "")))
    try:
        speeds = tuple(float(number) for number in numbers)
    except ValueError:
        return ()
    usable = len(speeds) > 1 and all(np.isfinite(s) and s > 0 for s in speeds)
    agree = trace.number("n_replicas") in {None, float(len(speeds))}
    return speeds if usable and agree else ()


def latest_shares(trace: Trace) -> Mapping[str, float]:
    """Return what share of the last fifth of the choices each replica got; empty if unknown."""
    for metric in (ACTION, SELECTED_REPLICA):
        choices = trace.get(metric.name)
        if choices is None or len(choices := choices.finite()) < MIN_CHOICES:
            continue
        last = choices.tail(max(MIN_CHOICES, round(CHOICE_TAIL_SHARE * len(choices)))).values
        names, counts = np.unique(last, return_counts=True)
        return {f"{n:g}": float(c) / last.size for n, c in zip(names, counts, strict=True)}
    requests = {
        name: float(s.tail(max(1, round(CHOICE_TAIL_SHARE * len(s)))).finite().values.clip(0).sum())
        for name, s in trace.family(ACTION_COUNT.name).items()
    }
    total = sum(requests.values())
    return {n: c / total for n, c in requests.items()} if MIN_CHOICES <= total < np.inf else {}


def misplaced_share(shares: Mapping[str, float], best: Optimum) -> float | None:
    """Return the share of requests that would have to go elsewhere; None where names differ."""
    if any(best.share(name) is None for name in shares):
        return None
    return sum(abs(shares.get(str(i), 0.0) - s) for i, s in enumerate(best.shares)) / 2
