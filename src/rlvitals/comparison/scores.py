"""One number of a run: how well it does at the end, at its best, or last of all."""

import math
import re
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rlvitals import metrics
from rlvitals.errors import UsageError, nearest
from rlvitals.rules import standing
from rlvitals.types import Series, Trace

Array = NDArray[np.float64]
Axis = Literal["steps", "episodes", "tokens", "time"]

AXES: tuple[Axis, ...] = ("steps", "episodes", "tokens", "time")
COUNTERS = {
    "episodes": ("progress/episode", "progress/episodes_new"),
    "tokens": ("throughput/tokens", "progress/tokens_new"),
}
ELAPSED = "throughput/elapsed"
LATEST = 10.0  # per cent of a run, its last, whose mean is its score
PHRASE = re.compile(r"mean of (?:the )?last (\d+(?:\.\d+)?) ?%")
EXAMPLE = "last, best, mean of last 10 %"
PAUSE = 600.0  # seconds without a row at a resume that were no training


@dataclass(frozen=True, slots=True)
class At:
    """Where a run's score is taken."""

    kind: Literal["last", "best", "mean"] = "mean"
    percent: float = LATEST  # of the run, where it is a mean

    def __str__(self) -> str:
        """Say it as it is typed."""
        return f"mean of last {self.percent:g} %" if self.kind == "mean" else self.kind


def axis(text: str) -> Axis:
    """Read the name of an axis. Raises UsageError."""
    for known in AXES:
        if text == known:
            return known
    hint = nearest(text, AXES) or f"one of {', '.join(AXES)}"
    raise UsageError(f"runs are not aligned on {text!r}", hint=hint)


def at(text: str) -> At:
    """Read `last`, `best` or `mean of last N %`. Raises UsageError."""
    said = " ".join(text.lower().split())
    if said == "last":
        return At("last")
    if said == "best":
        return At("best")
    found = PHRASE.fullmatch(said)
    if found is None or not 0 < float(found[1]) <= 100:  # noqa: PLR2004 - per cent
        raise UsageError(f"a score is not taken at {text!r}", hint=f"one of {EXAMPLE}")
    return At("mean", float(found[1]))


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """A metric over an axis, up = better: columns of one length, in the order of the axis."""

    x: Array
    gains: Array  # NaN and inf kept as logged
    seconds: Array  # of training since the start; NaN where the log has no times

    def until(self, end: float) -> "Curve":
        """Keep the points at or before a place on the axis."""
        kept = self.x <= end
        return Curve(self.x[kept], self.gains[kept], self.seconds[kept])

    @property
    def last(self) -> float:
        """The last place that was reached; NaN of an empty curve."""
        return float(self.x[-1]) if len(self.x) else math.nan


def sign(metric: str) -> float:
    """Return +1 where more is better, -1 where less is. Raises UsageError where nobody says."""
    known = metrics.find(metric)
    if metric == "optimiser/loss" or (known is not None and known.better == "down"):
        return -1.0
    if metric in standing.OUTCOMES or (known is not None and known.better == "up"):
        return 1.0
    raise UsageError(
        f"nobody says whether more of {metric} is better",
        hint="compare an outcome: return, success_rate; what differs: rlvitals diff A B",
    )


def named(text: str, traces: list[Trace]) -> str:
    """Find the metric that a person names, whole or by its last part. Raises UsageError."""
    logged = sorted({name for trace in traces for name in trace.series})
    if text in logged:
        return text
    ends = [name for name in logged if name.rpartition("/")[2] == text]
    ends.sort(key=lambda name: (name not in standing.OUTCOMES, not name.startswith("outcome/")))
    if ends:
        return ends[0]
    parts = {name.rpartition("/")[2] for name in logged}
    hint = nearest(text, {*logged, *parts}) or f"logged: {', '.join(logged[:8])}"
    raise UsageError(f"no run logs a metric {text!r}", hint=hint)


def outcome(traces: list[Trace]) -> str:
    """Choose the outcome that most runs log, the first by rank. Raises UsageError."""
    counts = {
        name: sum(len(trace.get(name) or ()) > 1 for trace in traces)
        for name in (*standing.OUTCOMES, "optimiser/loss")
    }
    best = max(counts, key=lambda name: counts[name])
    if not counts[best]:
        raise UsageError(
            "no run logs an outcome", hint="--metric NAME, or --map KEY=outcome/return"
        )
    return best


def curve(trace: Trace, metric: str, along: Axis) -> Curve:
    """Lay a metric over an axis; empty where it is not logged. Raises UsageError."""
    series = trace.get(metric)
    if series is None or not len(series):
        return Curve(np.empty(0), np.empty(0), np.empty(0))
    seconds = _seconds(trace, series)
    x = _along(trace, series, along, seconds)
    order = np.argsort(x, kind="stable")
    return Curve(x[order], (sign(metric) * series.values)[order], seconds[order])


def _along(trace: Trace, series: Series, along: Axis, seconds: Array) -> Array:
    if along == "steps":
        return series.steps.astype(np.float64)
    if along == "time":
        if np.isnan(seconds).any():
            raise UsageError("its log has no times", where=trace.name, hint="--axis steps")
        return seconds
    total, new = COUNTERS[along]
    counter, running = trace.numbers(total), False
    if counter is None:
        counter, running = trace.numbers(new), True
    if counter is None:
        raise UsageError(f"it logs no {along}", where=trace.name, hint="--axis steps")
    counts = np.cumsum(counter.values) if running else np.maximum.accumulate(counter.values)
    return np.asarray(np.interp(series.steps, counter.steps, counts))


def _seconds(trace: Trace, series: Series) -> Array:
    """Return seconds of training at each point: pauses between attempts do not count."""
    elapsed = trace.numbers(ELAPSED, 2)
    if elapsed is not None and (np.diff(elapsed.values) >= 0).all():
        return np.asarray(np.interp(series.steps, elapsed.steps, elapsed.values))
    if not np.isfinite(series.times).all():
        return np.full(len(series), np.nan)
    gaps = np.maximum(np.diff(series.times, prepend=_start(trace, series)), 0.0)
    usual = float(np.median(gaps[1:])) if len(gaps) > 1 else 0.0
    resumed = np.searchsorted(series.steps, np.asarray(trace.lifecycle.seams, dtype=np.int64))
    for i in resumed[resumed < len(gaps)]:
        gaps[i] = min(gaps[i], usual)
    return np.asarray(np.cumsum(np.where(gaps > max(PAUSE, 50 * usual), usual, gaps)))


def _start(trace: Trace, series: Series) -> float:
    """Return when the run's first row of any kind was written."""
    firsts = [float(s.times[0]) for s in trace.series.values() if len(s)]
    return min([one for one in firsts if math.isfinite(one)], default=float(series.times[0]))


def score(found: Curve, when: At, end: float) -> float:
    """Return a run's score up to a place on the axis; NaN where there is no number there."""
    part = found.until(end)
    if not len(part.x):
        return math.nan
    numbers = np.isfinite(part.gains)
    if when.kind == "best":
        return float(part.gains[numbers].max()) if numbers.any() else math.nan
    if when.kind == "last":
        return float(part.gains[-1]) if numbers[-1] else math.nan
    begin = end - when.percent / 100 * (end - min(float(part.x[0]), 0.0))
    window = part.x > begin
    if not window.any():  # logged so seldom that the last point stands for all of it
        window = part.x == part.x[-1]
    kept = window & numbers
    return float(part.gains[kept].mean()) if kept.any() and numbers[-1] else math.nan


def start(found: Curve) -> float:
    """Return the level that a run began with: the mean of its first 5 %; NaN without a number."""
    count = max(1, len(found.x) // 20)
    first = found.gains[np.isfinite(found.gains)][:count]
    return float(first.mean()) if len(first) else math.nan


def reaches(found: Curve, level: float, end: float) -> tuple[float, float]:
    """Return where on the axis a level is first held, and after how many seconds; inf if never.

    Held: by the mean over a twentieth of the run's points, so that one lucky episode counts for
    nothing.
    """
    part = found.until(end)
    numbers = np.isfinite(part.gains)
    gains, x, seconds = part.gains[numbers], part.x[numbers], part.seconds[numbers]
    width = max(1, len(gains) // 20)
    if len(gains) < width or not len(gains):
        return math.inf, math.inf
    sums = np.concatenate(([0.0], np.cumsum(gains)))
    means = (sums[width:] - sums[:-width]) / width
    held = np.flatnonzero(means >= level - 1e-12 * abs(level))
    if not len(held):
        return math.inf, math.inf
    place = held[0] + width // 2
    return float(x[place]), float(seconds[place])
