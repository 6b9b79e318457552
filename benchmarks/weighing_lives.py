"""Calibrate alarms on the whole lives of healthy runs, a world at a time."""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from weighing_table import Row

import rlvitals

LEVELS = {"badge": 50, "page": 500, "stop": 1000}  # at most one alarm in so many healthy lives
CONFIDENCE = 0.95
WARNING, ERROR = int(rlvitals.Severity.WARNING), int(rlvitals.Severity.ERROR)


def lives(healthy: Sequence[Row]) -> None:
    """Print false alarms over whole lives, and the level that the worlds can certify."""
    sources = {"tier-1": "`faults/tier-1`", "kept": "`faults/healthy`", "dev": "worlds, *dev* half"}
    groups = {title: [r for r in healthy if r.source == name] for name, title in sources.items()}
    groups["all"] = list(healthy)
    print("| healthy runs | runs | worlds | frameworks | at the end | in its life | as an error "
          "| alarms per run | worlds with one |")  # fmt: skip
    print("| --- |" + " --: |" * 8)
    for title, group in groups.items():
        print(f"| {title} |", " | ".join(_counts(group)), "|")
    print()
    for title, group in groups.items():
        count = Counter(rule for row in group for rule in _strengths(row))
        print(f"{title}: {', '.join(f'{rule} {n}' for rule, n in count.most_common())}")
    print()
    certify(healthy)


def _strengths(row: Row) -> dict[str, int]:
    """Return the gravest severity of each rule in the life of a run."""
    strengths: dict[str, int] = {}
    for prefix in row.life:
        for rule, severity in prefix.items():
            strengths[rule] = max(severity, strengths.get(rule, 0))
    return strengths


def _maximum(row: Row) -> int:
    return max(_strengths(row).values(), default=0)


def _counts(group: Sequence[Row]) -> tuple[str, ...]:
    worlds = {row.world for row in group}
    return (
        str(len(group)), str(len(worlds)), str(len({row.framework for row in group})),
        str(sum(bool(row.life[-1]) for row in group)), str(sum(any(row.life) for row in group)),
        str(sum(_maximum(row) == ERROR for row in group)),
        f"{sum(len(_strengths(row)) for row in group) / len(group):.3f}",
        str(len({row.world for row in group if any(row.life)})),
    )  # fmt: skip


def certify(healthy: Sequence[Row]) -> None:
    """Print what the number of worlds can certify, and what each level needs."""
    maxima: dict[str, int] = {}  # a world is as loud as the loudest of its healthy runs
    for row in healthy:
        maxima[row.world] = max(_maximum(row), maxima.get(row.world, 0))
    worlds = len(maxima)
    print(f"{worlds} worlds: a conformal limit holds at best 1 in {worlds + 1}.")
    for title, least in (("a warning", WARNING), ("an error", ERROR)):
        ringing = sum(maximum >= least for maximum in maxima.values())
        print(f"worlds with {title}: {ringing}, below {upper(ringing, worlds):.3f} of new worlds")
    print(f"without any it would be below {upper(0, worlds):.3f}\n")
    print("| level | at most | least strength | worlds for a limit | worlds to show it, 95 % |")
    print("| --- | --- | --- | --: | --: |")
    for level, lives_each in LEVELS.items():
        limit = conformal_limit(list(maxima.values()), 1 / lives_each)
        strength = "none: too few worlds" if math.isinf(limit) else f"above severity {limit:g}"
        needed = math.ceil(math.log(1 - CONFIDENCE) / math.log(1 - 1 / lives_each))
        row = (level, f"1 in {lives_each:,}", strength, f"{lives_each - 1:,}", f"{needed:,}")
        print(f"| {' | '.join(row)} |")


def upper(hits: int, count: int) -> float:
    """Return the upper 95 % limit of a share by Clopper and Pearson, one-sided."""
    low, high = hits / count, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        chance = sum(
            math.comb(count, k) * middle**k * (1 - middle) ** (count - k) for k in range(hits + 1)
        )
        low, high = (middle, high) if chance > 1 - CONFIDENCE else (low, middle)
    return high


def conformal_limit(maxima: Sequence[float], level: float) -> float:
    """Return the limit that a new world's maximum passes with a chance of at most `level`.

    `maxima` holds one value a world, the greatest of its runs. Infinite for too few worlds.
    """
    rank = math.ceil((len(maxima) + 1) * (1 - level))
    return float(np.sort(maxima)[rank - 1]) if rank <= len(maxima) else math.inf
