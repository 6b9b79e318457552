"""How much of the catalogue could judge this run, and what to log to judge more."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rlvitals.rules.rule import Rule, Undecided


@dataclass(frozen=True, slots=True)
class Wanted:
    """A metric or setting that is not there, and how many rules wait for it."""

    name: str
    rules: int


@dataclass(frozen=True, slots=True)
class Coverage:
    """Absence of data, said aloud."""

    judged: int
    asked: int
    wanted: tuple[Wanted, ...]  # the most useful first


def coverage(asked: int, undecided: Sequence[tuple[Rule, Undecided]]) -> Coverage:
    """Count what could be judged; rank what is missing by the rules it would let judge."""
    waiting: Counter[str] = Counter()
    for _, answer in undecided:
        waiting.update(set(answer.wants))
    wanted = tuple(
        Wanted(name, count) for name, count in sorted(waiting.items(), key=lambda i: (-i[1], i[0]))
    )
    return Coverage(asked - len(undecided), asked, wanted)
