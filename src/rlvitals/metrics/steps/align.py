"""Align the logs of one run that count different steps.

A tracker counts its own rows, a table its lines, a trainer environment steps. The log that
states its unit, else the longest, is the reference. The steps of the others are translated by
values that both logs contain or by wall times.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Series

Steps = NDArray[np.int64]
How = Literal["same", "values", "times", "unknown"]

UNKNOWN_UNIT = "steps"  # units of a log that states none
MIN_CLOCK_PAIRS = 5  # equal values, or rows with a time, for a translation
MIN_MATCHED_SHARE = 0.5  # of a column's values that the other must contain
MIN_ORDERED_SHARE = 0.9  # of the pairs: values that are equal by chance have no order


@dataclass(frozen=True, slots=True)
class Source:
    """The unit of a log and its columns under canonical names."""

    unit: str
    series: Mapping[str, Series]

    @property
    def says(self) -> bool:
        """True if the log states what its steps are."""
        return self.unit not in (UNKNOWN_UNIT, "rows")

    @property
    def rank(self) -> tuple[bool, bool, int]:
        """Suitability as the reference: states a unit, counts steps, number of points."""
        return self.says, self.unit != "rows", sum(map(len, self.series.values()))

    @property
    def last(self) -> int:
        """Highest step; 0 without any."""
        return max((int(s.steps.max()) for s in self.series.values() if len(s)), default=0)


@dataclass(frozen=True, slots=True, eq=False)
class Clock:
    """Translation of one log's steps to another's: `mine` [n] ascends, `theirs` [n] never falls."""

    how: How
    to: int = 0  # index of the reference log, or of one already translated
    mine: Steps | None = None
    theirs: Steps | None = None

    def translate(self, steps: Steps) -> Steps:
        """Return the other log's steps; extrapolated at the mean rate outside the pairs."""
        if self.mine is None or self.theirs is None:
            return steps
        first, last = (self.mine[0], self.theirs[0]), (self.mine[-1], self.theirs[-1])
        pace = float(last[1] - first[1]) / float(last[0] - first[0])
        translated = np.interp(steps, self.mine, self.theirs)
        translated = np.where(steps < first[0], first[1] - (first[0] - steps) * pace, translated)
        translated = np.where(steps > last[0], last[1] + (steps - last[0]) * pace, translated)
        return np.rint(translated).astype(np.int64)


Pairs = tuple[Steps, Steps]  # [n] each: steps of one log, and the matching steps of the other
Pairing = Callable[[Source, Source], Pairs | None]

SAME_CLOCK = Clock("same")


def unit(sources: Sequence[Source]) -> str:
    """Return the unit of the run's steps: that of the reference log."""
    return max(sources, key=lambda source: source.rank).unit if sources else UNKNOWN_UNIT


def align(sources: Sequence[Source]) -> list[Clock]:
    """Return the clock of each log, in their order; the clock of the reference is "same"."""
    clocks = [SAME_CLOCK] * len(sources)
    order = sorted(range(len(sources)), key=lambda i: sources[i].rank, reverse=True)
    references: list[tuple[int, Source]] = []
    for index in order:
        source = sources[index]
        if not source.last:
            continue
        clock = _clock(source, references) if references else SAME_CLOCK
        clocks[index] = clock
        if clock.how != "unknown":
            if clock.mine is not None:
                series = {
                    name: Series(clock.translate(s.steps), s.times, s.values)
                    for name, s in source.series.items()
                }
                source = Source(source.unit, series)
            references.append((index, source))
    return clocks


def _clock(source: Source, references: Sequence[tuple[int, Source]]) -> Clock:
    """Compare a log with those whose clock is known; the first of these is the reference."""
    if any(source.says and source.unit == reference.unit for _, reference in references):
        return SAME_CLOCK
    ways: tuple[tuple[How, Pairing], ...] = (("values", pair_by_values), ("times", pair_by_times))
    for how, pairs in ways:
        for index, reference in references:
            matched = pairs(source, reference)
            if matched is None:
                continue
            if _alike(how, *matched):
                return SAME_CLOCK
            # Pairs in the order of `mine` are a clock if they increase.
            mine, indices = np.unique(matched[0], return_index=True)
            theirs = np.maximum.accumulate(matched[1][indices])
            if len(mine) > 1 and theirs[-1] > theirs[0]:
                return Clock(how, index, mine, theirs)
    index, first = references[0]
    low, high = sorted((source.last, first.last))
    # Below half, the logs count different steps.
    return Clock("unknown", index) if low < 0.5 * high else SAME_CLOCK


def _alike(how: How, mine: Steps, theirs: Steps) -> bool:
    """Return True if two logs count the same steps within a row, or more when paired by time."""
    if how == "times":
        # A tenth of the steps between rows logged at the same time.
        slack = 0.1 * max(int(np.ptp(mine)), int(np.ptp(theirs)))
    else:
        slack = float(np.median(np.diff(np.unique(theirs)))) if np.ptp(theirs) else 0.0
    return bool(np.mean(np.abs(theirs - mine) <= slack) >= MIN_ORDERED_SHARE)


def pair_by_values(source: Source, reference: Source) -> Pairs | None:
    """Pair the steps at which the same metric has the same value, if that value is unique."""
    matches: list[Pairs] = []
    for name in source.series.keys() & reference.series.keys():
        mine, theirs = _once(source.series[name]), _once(reference.series[name])
        _, rows, reference_rows = np.intersect1d(
            mine.values, theirs.values, assume_unique=True, return_indices=True
        )
        if len(rows) >= max(MIN_CLOCK_PAIRS, MIN_MATCHED_SHARE * len(mine)):
            matches.append((mine.steps[rows], theirs.steps[reference_rows]))
    if not matches:
        return None
    pairs = np.unique(np.concatenate([np.stack(pair, axis=1) for pair in matches]), axis=0)
    ordered = _rising(pairs[:, 1])
    if len(ordered) < MIN_ORDERED_SHARE * len(pairs):
        return None
    return pairs[ordered, 0], pairs[ordered, 1]


def _once(series: Series) -> Series:
    """Select the points whose value, rounded to 17 bits, is unique; return rounded values."""
    numbers = series.finite()
    mantissa, exponent = np.frexp(numbers.values)
    with np.errstate(over="ignore"):  # the largest float64, rounded up
        # 17 bits: a float32 and a text of six digits preserve them.
        rounded = np.ldexp(np.rint(mantissa * 2.0**17), exponent)
    values, indices, counts = np.unique(rounded, return_index=True, return_counts=True)
    indices = indices[counts == 1]
    return Series(numbers.steps[indices], numbers.times[indices], values[counts == 1])


def _rising(values: Steps) -> NDArray[np.int64]:
    """Return the indices of the longest subsequence that never falls (patience sorting)."""
    tops: list[int] = []  # smallest last value of a subsequence of each length
    ends: list[int] = []  # the index of that value
    previous: list[int] = []  # the preceding index in the subsequence
    for i, value in enumerate(values.tolist()):
        length = bisect_right(tops, value)
        previous.append(ends[length - 1] if length else -1)
        tops[length : length + 1] = [value]
        ends[length : length + 1] = [i]
    chain: list[int] = []
    index = ends[-1] if ends else -1
    while index >= 0:
        chain.append(index)
        index = previous[index]
    return np.array(chain[::-1], dtype=np.int64)


def pair_by_times(source: Source, reference: Source) -> Pairs | None:
    """Pair each step with the step of the other log at that wall time."""
    mine, theirs = _column_with_times(source), _column_with_times(reference)
    if len(mine) < MIN_CLOCK_PAIRS or len(theirs) < MIN_CLOCK_PAIRS:
        return None
    inside = (mine.times >= theirs.times[0]) & (mine.times <= theirs.times[-1])
    if inside.sum() < max(MIN_CLOCK_PAIRS, MIN_MATCHED_SHARE * len(mine)):
        return None
    steps = np.interp(mine.times[inside], theirs.times, theirs.steps)
    return mine.steps[inside], np.rint(steps).astype(np.int64)


def _column_with_times(source: Source) -> Series:
    """Return the column with most wall times, sorted by step; the later time of a repeated step."""
    columns = [s.where(np.isfinite(s.times)) for s in source.series.values()]
    best = max(columns, key=len)
    order = np.lexsort((best.times, best.steps))
    ordered = best.where(order)
    last = ordered.where(np.append(np.diff(ordered.steps) > 0, True)[: len(ordered)])
    return Series(last.steps, np.maximum.accumulate(last.times), last.values)
