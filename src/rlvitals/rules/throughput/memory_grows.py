"""Memory grows without end: at this pace the run ends in an out-of-memory error.

## What it sees
`throughput/memory` or a share of memory among `throughput/machine` that rises through the second
half of the run: by its trend, in each of five successive stretches, in the last quarter at no
less than half the pace of the one before, and by a tenth of its level (2 points of a share). A
note; a warning where the total is known and the forecast reaches it within the run's budget.

## Why it matters
A run that is killed at 90 % has cost nine tenths and may have saved nothing since its last
checkpoint. Before that it swaps, or its cache is emptied again and again, and slows down.

## What to do
Find what is kept: tensors that still hold their graph, lists of completions or infos, a log held
in memory, workers that are never closed. Save a checkpoint before the step that is named.

## When it is wrong
Memory grows at first in every run, and flattens: allocators keep what they once needed. A replay
buffer grows until it is full, and longer responses need more: both are said where they are logged.
A machine's memory belongs to all that runs on it.

## References
- PyTorch documentation, "Understanding CUDA Memory Usage", and the FAQ on running out of memory.
- Kwon et al. 2023, "Efficient Memory Management for Large Language Model Serving with
  PagedAttention", on preemption.
"""

import numpy as np

from rlvitals.metrics.catalogue.language import LENGTH_MEAN
from rlvitals.metrics.catalogue.throughput import MACHINE, MEMORY, PREEMPTIONS
from rlvitals.metrics.metric import Bound
from rlvitals.rules.curves import by_steps
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold
from rlvitals.signals.level import first_last_change
from rlvitals.signals.trend import trend
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Series, Trace

TOTAL_MEMORY_GIB = Threshold(
    "memory-grows.total", 0.0, "GiB that there are, 0 where it is not known"
)
MIN_MEMORY_GROWTH = Threshold(
    "memory-grows.growth", 0.1, "growth over the second half, of its level"
)
MIN_MEMORY_POINTS = 40  # points: half of fewer shows no trend
MEMORY_STRETCHES = 5
MEMORY_NAMES = ("ram", "mem", "vram")  # parts of names of a machine's shares


@dataclass(frozen=True, slots=True)
class Growth:
    """A memory's course over the second half of the run."""

    name: str
    half: Series  # its points there
    last: float  # median of the last fifth of it
    middle_step: float  # the step in the middle of that
    pace: float  # per step, over the last quarter
    total: Bound | None
    unit: str

    @property
    def full_at(self) -> float | None:
        """The step at which it is used up at this pace; None where the total is not known."""
        if self.total is None or self.pace <= 0:
            return None
        return self.middle_step + (self.total.value - self.last) / self.pace


def check(trace: Trace) -> Answer:
    """Look at every memory that is logged, and report the one that is used up first."""
    growths = [
        growth for name in _memory_names(trace) if (growth := _growth(trace, name)) is not None
    ]
    if not growths:
        return Clear()
    # What has a known end comes first, then what grows fastest for its size.
    worst = min(growths, key=lambda g: (g.full_at or np.inf, -g.pace / max(g.last, 1e-9), g.name))
    return _finding(trace, worst)


def _memory_names(trace: Trace) -> list[str]:
    names = [f"{MEMORY.name}/{suffix}" for suffix in trace.family(MEMORY.name)]
    shares = [
        suffix for suffix in trace.family(MACHINE.name) if any(m in suffix for m in MEMORY_NAMES)
    ]
    return [*names, *(f"{MACHINE.name}/{suffix}" for suffix in shares)]


def _growth(trace: Trace, name: str) -> Growth | None:
    series = by_steps(trace[name].finite())
    if len(series) < MIN_MEMORY_POINTS or series.steps[0] == series.steps[-1]:
        return None
    half = series.where(slice(len(series) // 2, None))
    course = trend(half.values)
    if course is None or not course.rises:
        return None
    levels = [
        float(np.median(stretch)) for stretch in np.array_split(half.values, MEMORY_STRETCHES)
    ]
    share = name.startswith(f"{MACHINE.name}/")
    min_growth = (
        2.0 if share else MIN_MEMORY_GROWTH.on(trace) * abs(levels[0])
    )  # per cent of the memory
    if levels[-1] - levels[0] < min_growth or not all(np.diff(levels) > 0):
        return None
    pace_before, after = (_pace(half.where(p)) for p in np.array_split(np.arange(len(half)), 2))
    # At less than half the pace of the quarter before it flattens.
    if after <= 0 or after < 0.5 * pace_before:
        return None
    set_total = TOTAL_MEMORY_GIB.on(trace)
    total = Bound(100.0, "all of the machine's memory") if share else None
    if not share and set_total > 0:
        total = TOTAL_MEMORY_GIB.bound(trace, "default")
    middle_step = float(np.median(np.array_split(half.steps, MEMORY_STRETCHES)[-1]))
    return Growth(name, half, levels[-1], middle_step, after, total, "%" if share else " GiB")


def _pace(series: Series) -> float:
    """Return the median slope of a stretch's ends, per step: single peaks do not count."""
    third = max(1, len(series) // 3)
    rise = float(np.median(series.values[-third:]) - np.median(series.values[:third]))
    ran = float(np.median(series.steps[-third:]) - np.median(series.steps[:third]))
    return rise / ran if ran > 0 else 0.0


def _finding(trace: Trace, growth: Growth) -> Finding:
    first = float(np.median(growth.half.values[: max(1, len(growth.half) // MEMORY_STRETCHES)]))
    first_step, last_step = int(growth.half.steps[0]), int(growth.half.steps[-1])
    full_at = growth.full_at
    within = (
        full_at is not None and trace.budget is not None and full_at <= float(trace.budget.steps)
    )
    name = growth.name.rsplit("/", 1)[-1].replace("_", " ")
    origin = "growth over the second half of the run"
    return Finding(
        f"memory ({name}) grows steadily, {first:.3g} to {growth.last:.3g}{growth.unit} over the "
        f"second half of the run",
        severity=Severity.WARNING if within else Severity.NOTE,
        metric=growth.name,
        began=first_step,
        ended=last_step,
        observed=growth.last,
        bound=growth.total or Bound(first * (1 + MIN_MEMORY_GROWTH.on(trace)), origin),
        evidence=(*_forecast(trace, growth), *_describe_preemptions(trace, first_step)),
        counter=(*_buffer(trace, last_step), *_describe_lengths(trace, first_step)),
    )


def _forecast(trace: Trace, growth: Growth) -> tuple[str, ...]:
    full_at = growth.full_at
    last_step, times = int(growth.half.steps[-1]), growth.half.times
    ran = int(growth.half.steps[-1] - growth.half.steps[0])
    if full_at is None or growth.total is None:
        rise = growth.pace * ran
        return (f"at this pace it grows by {rise:.2g}{growth.unit} in as many steps again",)
    hours = ""
    if ran and np.isfinite(times[[0, -1]]).all() and times[-1] > times[0]:
        hours_left = (full_at - last_step) * (times[-1] - times[0]) / ran / 3600
        hours = f", {hours_left:.2g} h from now"
    budget = trace.budget
    budget_text = "" if budget is None else f"; the run is to end at step {budget.steps:,}"
    total_text = f"{growth.total.value:g}{growth.unit}"
    return (f"at this pace {total_text} are reached near step {full_at:,.0f}{hours}{budget_text}",)


def _describe_preemptions(trace: Trace, first_step: int) -> tuple[str, ...]:
    logged = trace.get(PREEMPTIONS.name)
    counts_logged = None if logged is None else logged.finite().since(first_step)
    if (
        counts_logged is None
        or not len(counts_logged)
        or counts_logged.values[-1] <= counts_logged.values[0]
    ):
        return ()
    counts = f"{counts_logged.values[0]:,.0f} to {counts_logged.values[-1]:,.0f}"
    return (f"the engine stops requests to free its cache: {counts} meanwhile",)


def _buffer(trace: Trace, last_step: int) -> tuple[str, ...]:
    size = trace.number("buffer_size")
    if size is None or not last_step < size < np.inf:
        return ()
    return (f"the replay buffer fills until {size:,.0f} steps",)


def _describe_lengths(trace: Trace, first_step: int) -> tuple[str, ...]:
    logged = trace.get(LENGTH_MEAN.name)
    levels = None if logged is None else first_last_change(logged.since(first_step).values)
    if levels is None or levels[1] < 1.1 * levels[0]:
        return ()
    return (f"responses grow longer meanwhile: {levels[0]:,.4g} to {levels[1]:,.4g} tokens",)


RULE = Rule(
    name="memory-grows",
    needs=(),
    needs_any=(MEMORY, MACHINE),
    at_least=MIN_MEMORY_POINTS,
    check=check,
    doc=__doc__,
    causes=(
        "something is kept from every update: tensors with their graph, samples, logs",
        "workers, environments or engines that are opened and never closed",
        "a replay buffer that is not yet full",
    ),
    remedies=(
        "save a checkpoint before the step that is named, and restart from it",
        "store numbers, not tensors: detach, or take .item(), before keeping anything",
        "compare two heap snapshots some updates apart",
    ),
    thresholds=(TOTAL_MEMORY_GIB, MIN_MEMORY_GROWTH),
)
