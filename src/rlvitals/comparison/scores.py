"""Score a run: the mean of its last part, its last value, or its best."""

import contextlib
import math
import re
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rlvitals import metrics
from rlvitals.errors import UsageError, nearest
from rlvitals.rules import standing
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Series, Trace

Array = NDArray[np.float64]
Axis = Literal["steps", "samples", "episodes", "tokens", "time"]

AXES: tuple[Axis, ...] = ("steps", "samples", "episodes", "tokens", "time")
# A counter of all so far, and those of what is new in a row.
DEFAULT_MEAN_PERCENT = 10.0  # the last part of a run
SCORE_EXAMPLES = "last, best, mean of last 10 %"


@dataclass(frozen=True, slots=True)
class At:
    """The part of a run that its score is taken from."""

    kind: Literal["last", "best", "mean"] = "mean"
    percent: float = DEFAULT_MEAN_PERCENT  # of the run, where it is a mean

    def __str__(self) -> str:
        """Return the text that `--at` accepts."""
        return f"mean of last {self.percent:g} %" if self.kind == "mean" else self.kind


def parse_axis(text: str) -> Axis:
    """Parse the name of an axis. Raises UsageError."""
    for name in AXES:
        if text == name:
            return name
    hint = nearest(text, AXES) or f"one of {', '.join(AXES)}"
    raise UsageError(f"runs are not aligned on {text!r}", hint=hint)


def parse_score_at(text: str) -> At:
    """Parse `last`, `best` or `mean of last N %`. Raises UsageError."""
    phrase = " ".join(text.lower().split())
    if phrase == "last":
        return At("last")
    if phrase == "best":
        return At("best")
    match = re.fullmatch(r"mean of (?:the )?last (\d+(?:\.\d+)?) ?%", phrase)
    if match is None or not 0 < float(match[1]) <= 100:  # per cent
        raise UsageError(f"a score is not taken at {text!r}", hint=f"one of {SCORE_EXAMPLES}")
    return At("mean", float(match[1]))


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """A metric over an axis, up = better: columns [n], sorted by the axis."""

    x: Array
    gains: Array  # NaN and inf kept as logged
    seconds: Array  # of training since the start; NaN where the log has no times

    def until(self, end: float) -> "Curve":
        """Return the points up to `end` on the axis."""
        is_before = self.x <= end
        return Curve(self.x[is_before], self.gains[is_before], self.seconds[is_before])

    @property
    def last(self) -> float:
        """The last position on the axis; NaN for an empty curve."""
        return float(self.x[-1]) if len(self.x) else math.nan


def sign(metric: str) -> float:
    """Return +1 where higher is better, -1 where lower is. Raises UsageError where unknown."""
    entry = metrics.find(metric)
    if metric == "optimiser/loss" or (entry is not None and entry.better == "down"):
        return -1.0
    if metric in standing.OUTCOME_NAMES or (entry is not None and entry.better == "up"):
        return 1.0
    raise UsageError(
        f"nobody says whether more of {metric} is better",
        hint="compare an outcome: return, success_rate; what differs: rlvitals diff A B",
    )


def find_metric(text: str, traces: list[Trace]) -> str:
    """Find a logged metric by its name or the last part of it. Raises UsageError."""
    logged = sorted({name for trace in traces for name in trace.series})
    if text in logged:
        return text
    matches = [name for name in logged if name.rpartition("/")[2] == text]
    matches.sort(
        key=lambda name: (name not in standing.OUTCOME_NAMES, not name.startswith("outcome/"))
    )
    if matches:
        return matches[0]
    last_parts = {name.rpartition("/")[2] for name in logged}
    hint = nearest(text, {*logged, *last_parts}) or f"logged: {', '.join(logged[:8])}"
    raise UsageError(f"no run logs a metric {text!r}", hint=hint)


def select_outcome(traces: list[Trace]) -> str:
    """Select the outcome that most runs log, the first by rank. Raises UsageError."""
    counts = {
        name: sum(len(trace.get(name) or ()) > 1 for trace in traces)
        for name in (*standing.OUTCOME_NAMES, "optimiser/loss")
    }
    best = max(counts, key=lambda name: counts[name])
    if not counts[best]:
        raise UsageError(
            "no run logs an outcome", hint="--metric NAME, or --map KEY=outcome/return"
        )
    return best


def curve(trace: Trace, metric: str, axis_name: Axis) -> Curve:
    """Return a metric over an axis; empty where it is not logged. Raises UsageError."""
    series = trace.get(metric)
    if series is None or not len(series):
        return Curve(np.empty(0), np.empty(0), np.empty(0))
    seconds = _seconds(trace, series)
    x = _axis_values(trace, series, axis_name, seconds)
    order = np.argsort(x, kind="stable")
    return Curve(x[order], (sign(metric) * series.values)[order], seconds[order])


def places(trace: Trace, series: Series, axis_name: Axis) -> Array:
    """Return the place of each point of a series on an axis [n]. Raises UsageError without it."""
    return _axis_values(trace, series, axis_name, _seconds(trace, series))


def find_axes(traces: Sequence[Trace], metric: str) -> tuple[Axis, ...]:
    """Return the axes on which a metric of all these runs can be placed; always "steps"."""
    axes = []
    for name in AXES:
        with contextlib.suppress(UsageError):
            for trace in traces:
                curve(trace, metric, name)
            axes.append(name)
    return tuple(axes)


def _axis_values(trace: Trace, series: Series, axis_name: Axis, seconds: Array) -> Array:
    if axis_name == "steps":
        return series.steps.astype(np.float64)
    if axis_name == "time":
        if np.isnan(seconds).any():
            raise UsageError("its log has no times", where=trace.name, hint="--axis steps")
        return seconds
    if axis_name == "samples" and trace.step_unit == "environment steps":
        return series.steps.astype(np.float64)
    total, *increments = {
        "samples": ("progress/steps", "progress/steps_new", "progress/batch_size"),
        "episodes": ("progress/episode", "progress/episodes_new"),
        "tokens": ("throughput/tokens", "progress/tokens_new"),
    }[axis_name]
    counter = trace.numbers(total)
    if counter is not None:
        counts = np.maximum.accumulate(counter.values)
        return np.asarray(np.interp(series.steps, counter.steps, counts))
    for name in increments:
        counter = trace.numbers(name)
        if counter is not None:
            return np.asarray(np.interp(series.steps, counter.steps, np.cumsum(counter.values)))
    raise UsageError(f"it logs no {axis_name}", where=trace.name, hint="--axis steps")


def _seconds(trace: Trace, series: Series) -> Array:
    """Return the seconds of training at each point [n], without pauses between attempts."""
    elapsed = trace.numbers("throughput/elapsed", 2)
    if elapsed is not None and (np.diff(elapsed.values) >= 0).all():
        return np.asarray(np.interp(series.steps, elapsed.steps, elapsed.values))
    if not np.isfinite(series.times).all():
        return np.full(len(series), np.nan)
    # The wall time of the run's first row, in epoch s.
    firsts = [float(s.times[0]) for s in trace.series.values() if len(s)]
    first_time = min(
        [time for time in firsts if math.isfinite(time)], default=float(series.times[0])
    )
    gaps = np.maximum(np.diff(series.times, prepend=first_time), 0.0)
    usual = float(np.median(gaps[1:])) if len(gaps) > 1 else 0.0
    resumed = np.searchsorted(series.steps, np.asarray(trace.lifecycle.seams, dtype=np.int64))
    for i in resumed[resumed < len(gaps)]:
        gaps[i] = min(gaps[i], usual)
    # Ten minutes without a row are no training.
    return np.asarray(np.cumsum(np.where(gaps > max(600.0, 50 * usual), usual, gaps)))


def score(curve: Curve, score_at: At, end: float) -> float:
    """Return a run's score up to `end` on the axis; NaN where it is undefined."""
    points = curve.until(end)
    if not len(points.x):
        return math.nan
    numbers = np.isfinite(points.gains)
    if score_at.kind == "best":
        return float(points.gains[numbers].max()) if numbers.any() else math.nan
    if score_at.kind == "last":
        return float(points.gains[-1]) if numbers[-1] else math.nan
    begin = end - score_at.percent / 100 * (end - min(float(points.x[0]), 0.0))
    window = points.x > begin
    if not window.any():  # fewer than one point: use the last one
        window = points.x == points.x[-1]
    is_scored = window & numbers
    return float(points.gains[is_scored].mean()) if is_scored.any() and numbers[-1] else math.nan


def start(curve: Curve) -> float:
    """Return the initial level of a run: the mean of its first 5 %; NaN without a number."""
    count = max(1, len(curve.x) // 20)
    first = curve.gains[np.isfinite(curve.gains)][:count]
    return float(first.mean()) if len(first) else math.nan


def find_level(curve: Curve, level: float, end: float) -> tuple[float, float]:
    """Return the position on the axis and the seconds at which a level is reached; inf if never.

    The mean over a twentieth of the run's points must reach it: one lucky episode does not count.
    """
    points = curve.until(end)
    numbers = np.isfinite(points.gains)
    gains, x, seconds = points.gains[numbers], points.x[numbers], points.seconds[numbers]
    width = max(1, len(gains) // 20)
    if len(gains) < width or not len(gains):
        return math.inf, math.inf
    sums = np.concatenate(([0.0], np.cumsum(gains)))
    means = (sums[width:] - sums[:-width]) / width
    reached = np.flatnonzero(means >= level - 1e-12 * abs(level))
    if not len(reached):
        return math.inf, math.inf
    index = reached[0] + width // 2
    return float(x[index]), float(seconds[index])
