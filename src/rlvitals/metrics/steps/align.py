"""Several logs of one run that count different steps, brought to one count.

A tracker counts its own rows, a table its lines, a trainer environment steps. The log that says
what its steps are, else the fullest, sets the count. For each of the others it is found out, from
values that stand in both or from the wall times, which of those steps each of its own is.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rlvitals.types import Series

Steps = NDArray[np.int64]
How = Literal["same", "values", "times", "unknown"]

UNSAID, ROWS = "steps", "rows"  # units of a log that does not say what it counts
LEAST = 5  # values, or rows with a time, that must meet before a count is believed
DIGITS = 2.0**17  # values are compared to 17 bits: a float32, and a text of six digits, keep them
MATCHED = 0.5  # of a column's values that must stand in the other
MOST = 0.9  # of the pairs: values that meet by chance are in no order
NEAR = 0.1  # of the steps passed: what is logged at the same time may be this far apart
APART = 0.5  # last steps whose ratio is below this do not end one run by one count


@dataclass(frozen=True, slots=True)
class Source:
    """One log as its clock is told by: its unit and its columns under shared names."""

    unit: str
    series: Mapping[str, Series]

    @property
    def says(self) -> bool:
        """Whether the log says what its steps are."""
        return self.unit not in (UNSAID, ROWS)

    @property
    def rank(self) -> tuple[bool, bool, int]:
        """How well it can set the count: says what it counts, counts at all, its points."""
        return self.says, self.unit != ROWS, sum(map(len, self.series.values()))

    @property
    def last(self) -> int:
        """Its highest step; 0 where it has none."""
        return max((int(s.steps.max()) for s in self.series.values() if len(s)), default=0)


@dataclass(frozen=True, slots=True, eq=False)
class Clock:
    """How a log's steps become those of another: `mine` [n] ascends, `theirs` [n] never falls."""

    how: How
    to: int = 0  # the log, by its place, that sets the count or has been brought to it
    mine: Steps | None = None
    theirs: Steps | None = None

    def translate(self, steps: Steps) -> Steps:
        """Return the other log's count; before the first and after the last pair by mean pace."""
        if self.mine is None or self.theirs is None:
            return steps
        first, last = (self.mine[0], self.theirs[0]), (self.mine[-1], self.theirs[-1])
        pace = float(last[1] - first[1]) / float(last[0] - first[0])
        found = np.interp(steps, self.mine, self.theirs)
        found = np.where(steps < first[0], first[1] - (first[0] - steps) * pace, found)
        found = np.where(steps > last[0], last[1] + (steps - last[0]) * pace, found)
        return np.rint(found).astype(np.int64)


Pairs = tuple[Steps, Steps]  # [n] each: a step of one log, and the other's step at that moment
Pairing = Callable[[Source, Source], Pairs | None]

SAME = Clock("same")


def unit(sources: Sequence[Source]) -> str:
    """Return what the run's steps are: the unit of the log that sets the count."""
    return max(sources, key=lambda source: source.rank).unit if sources else UNSAID


def align(sources: Sequence[Source]) -> list[Clock]:
    """Find each log's clock, in their order; that of the log which sets the count is the same."""
    clocks = [SAME] * len(sources)
    order = sorted(range(len(sources)), key=lambda i: sources[i].rank, reverse=True)
    known: list[tuple[int, Source]] = []
    for place in order:
        own = sources[place]
        if not own.last:
            continue
        clock = _clock(own, known) if known else SAME
        clocks[place] = clock
        if clock.how != "unknown":
            known.append((place, _translated(own, clock)))
    return clocks


def _translated(source: Source, clock: Clock) -> Source:
    if clock.mine is None:
        return source
    moved = {
        k: Series(clock.translate(s.steps), s.times, s.values) for k, s in source.series.items()
    }
    return Source(source.unit, moved)


def _clock(own: Source, known: Sequence[tuple[int, Source]]) -> Clock:
    """Compare a log with those whose clock is known, the first of which sets the count."""
    if any(own.says and own.unit == other.unit for _, other in known):
        return SAME
    ways: tuple[tuple[How, Pairing], ...] = (("values", by_values), ("times", by_times))
    for how, pairs in ways:
        for place, other in known:
            found = pairs(own, other)
            if found is not None and _alike(how, *found):
                return SAME
            if found is not None and (clock := _made(how, place, *found)) is not None:
                return clock
    place, first = known[0]
    low, high = sorted((own.last, first.last))
    return Clock("unknown", place) if low < APART * high else SAME


def _alike(how: How, mine: Steps, theirs: Steps) -> bool:
    """Tell whether two logs count the same, give or take a row; by time, give or take more."""
    if how == "times":
        slack = NEAR * max(int(np.ptp(mine)), int(np.ptp(theirs)))
    else:
        slack = float(np.median(np.diff(np.unique(theirs)))) if np.ptp(theirs) else 0.0
    return bool(np.mean(np.abs(theirs - mine) <= slack) >= MOST)


def _made(how: How, place: int, mine: Steps, theirs: Steps) -> Clock | None:
    """Make a clock of pairs in the order of `mine`; None where they do not go anywhere."""
    mine, at = np.unique(mine, return_index=True)
    theirs = np.maximum.accumulate(theirs[at])
    return Clock(how, place, mine, theirs) if len(mine) > 1 and theirs[-1] > theirs[0] else None


def by_values(own: Source, other: Source) -> Pairs | None:
    """Pair the steps at which the same metric has the same value, if it has it only once."""
    found: list[Pairs] = []
    for name in own.series.keys() & other.series.keys():
        mine, theirs = _once(own.series[name]), _once(other.series[name])
        _, here, there = np.intersect1d(
            mine.values, theirs.values, assume_unique=True, return_indices=True
        )
        if len(here) >= max(LEAST, MATCHED * len(mine)):
            found.append((mine.steps[here], theirs.steps[there]))
    if not found:
        return None
    pairs = np.unique(np.concatenate([np.stack(pair, axis=1) for pair in found]), axis=0)
    kept = _rising(pairs[:, 1])
    if len(kept) < MOST * len(pairs):
        return None
    return pairs[kept, 0], pairs[kept, 1]


def _once(series: Series) -> Series:
    """Keep the points whose value, to 17 bits, no other point has; values become those bits."""
    numbers = series.finite()
    mantissa, exponent = np.frexp(numbers.values)
    with np.errstate(over="ignore"):  # the largest float64, rounded up
        rounded = np.ldexp(np.rint(mantissa * DIGITS), exponent)
    values, at, counts = np.unique(rounded, return_index=True, return_counts=True)
    at = at[counts == 1]
    return Series(numbers.steps[at], numbers.times[at], values[counts == 1])


def _rising(values: Steps) -> NDArray[np.int64]:
    """Return the indices of the longest subsequence that never falls (patience sorting)."""
    tops: list[int] = []  # the least last value of a rising subsequence of each length
    ends: list[int] = []  # the index of that value
    before: list[int] = []  # the index that comes before each one in its subsequence
    for i, value in enumerate(values.tolist()):
        length = bisect_right(tops, value)
        before.append(ends[length - 1] if length else -1)
        tops[length : length + 1] = [value]
        ends[length : length + 1] = [i]
    chain: list[int] = []
    at = ends[-1] if ends else -1
    while at >= 0:
        chain.append(at)
        at = before[at]
    return np.array(chain[::-1], dtype=np.int64)


def by_times(own: Source, other: Source) -> Pairs | None:
    """Pair each step with the step that the other log had reached at that wall time."""
    mine, theirs = _timed(own), _timed(other)
    if len(mine) < LEAST or len(theirs) < LEAST:
        return None
    inside = (mine.times >= theirs.times[0]) & (mine.times <= theirs.times[-1])
    if inside.sum() < max(LEAST, MATCHED * len(mine)):
        return None
    there = np.interp(mine.times[inside], theirs.times, theirs.steps)
    return mine.steps[inside], np.rint(there).astype(np.int64)


def _timed(source: Source) -> Series:
    """Return the column with most wall times, by step: of a step run again the later time."""
    columns = [s.where(np.isfinite(s.times)) for s in source.series.values()]
    best = max(columns, key=len)
    order = np.lexsort((best.times, best.steps))
    ordered = best.where(order)
    last = ordered.where(np.append(np.diff(ordered.steps) > 0, True)[: len(ordered)])
    return Series(last.steps, np.maximum.accumulate(last.times), last.values)
