"""Calibrate alarms on the whole lives of healthy runs, a world at a time."""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from weighing_table import LIFE_PARTS, Row

LEVELS = {"badge": 50, "page": 500, "stop": 1000}  # at most one alarm in so many healthy lives
CONFIDENCE = 0.95


def lives(rows: Sequence[Row], kept: Sequence[Row]) -> None:
    """Print false alarms over whole lives, and the level that the worlds can certify."""
    healthy = [row for row in (*rows, *kept) if row.label == "healthy"]
    groups = {
        "tier 1": [row for row in healthy if row.source == "tier-1"],
        "worlds, dev": [row for row in healthy if row.source == "dev"],
        "kept": [row for row in healthy if row.source == "kept"],
        "all": healthy,
    }
    print(f"Judged at {LIFE_PARTS} prefixes of each run, the whole of it last.\n")
    print(
        "| healthy runs | runs | worlds | frameworks | an alarm at the end | in the whole life | alarms a run | worlds with one |"
    )
    print("| --- |" + " --: |" * 7)
    for name, group in groups.items():
        print(f"| {name} |", " | ".join(map(str, _row(group))), "|")
    print()
    for name, group in groups.items():
        count = Counter(rule for row in group for rule in {r for at in row.life for r in at})
        print(name, "raised on healthy runs:", dict(count.most_common()))
    print()
    certify(healthy)


def _row(group: Sequence[Row]) -> tuple[str, ...]:
    worlds = {row.world for row in group}
    ringing = {row.world for row in group if any(row.life)}
    ends = sum(bool(row.life[-1]) for row in group)
    whole = sum(any(row.life) for row in group)
    alarms = sum(len({rule for at in row.life for rule in at}) for row in group)
    return (
        str(len(group)), str(len(worlds)), str(len({row.framework for row in group})),
        f"{ends / len(group):.3f}", f"{whole / len(group):.3f}", f"{alarms / len(group):.3f}",
        f"{len(ringing)}",
    )  # fmt: skip


def certify(healthy: Sequence[Row]) -> None:
    """Print what the number of worlds lets one certify, and what each level needs."""
    worlds = sorted({row.world for row in healthy})
    ringing = {row.world for row in healthy if any(row.life)}
    count = len(worlds)
    print(
        f"{count} healthy worlds. The least level that a conformal limit can hold: 1 in {count + 1}."
    )
    print(
        f"Worlds with an alarm: {len(ringing)}; at most {upper(len(ringing), count):.3f} of new worlds (95 %)."
    )
    print(f"Without any alarm it would be at most {upper(0, count):.3f}.")
    print("| level | at most | worlds for a conformal limit | worlds without an alarm for 95 % |")
    print("| --- | --- | --: | --: |")
    for level, least in LEVELS.items():
        needed = math.ceil(math.log(1 - CONFIDENCE) / math.log(1 - 1 / least))
        print(f"| {level} | 1 in {least:,} | {least - 1:,} | {needed:,} |")


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
