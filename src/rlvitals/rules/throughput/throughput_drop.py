"""The run became slower than it was, and stays slow.

## What it sees
Steps per second over windows of at least 20 seconds, from `throughput/elapsed`, from
`throughput/steps_per_second` where it is that of each interval (`rlvitals train ppo`), or from the
log's wall times; of a language model tokens per second, where tokens or lengths are logged. The
last five windows and a fifth of the run below 70 % of the median of what came before, but for one
in five, is a note; below 55 % a warning. Where the machine was busier then than before, with half
again as many processes as it has cores, the finding says so and stays a note: the run is slow for
the machine's sake. Where the seconds of collecting and of learning are logged, the evidence names
the phase that takes longer, and what recording takes.

## Why it matters
Slower collection wastes hours and money and rarely repairs itself. Frameworks that log a mean
since the start (SB3's `time/fps`) hide it.

## What to do
Look at what changed at that step: another job on the machine, memory growing into swap, a log
that is rewritten whole at every row, an environment that became slower with longer episodes.

## When it is wrong
Off-policy methods slow down when learning starts: the first tenth of the time is left out, and
only what came after the first update is compared. Longer episodes cost time by themselves, and
so do longer responses where no tokens are logged.

## References
- Huang et al. 2022, "The 37 Implementation Details of Proximal Policy Optimization", on SPS.
"""

from collections.abc import Iterable

import numpy as np

from rlvitals.metrics.catalogue.language import LENGTH_MEAN
from rlvitals.metrics.catalogue.progress import TOKENS_NEW
from rlvitals.metrics.catalogue.throughput import (
    CORES,
    LOAD,
    PHASE_TIME,
    RECORDER_SHARE,
    STEPS_PER_SECOND,
    TOKENS,
)
from rlvitals.rules import kinds
from rlvitals.rules.pace import MIN_PACE_WINDOWS, SLOW_PACE_FACTOR, Pace, by_rate, pace, slow_since
from rlvitals.rules.rule import Answer, Clear, Curve, Finding, Rule, Severity, Threshold, Undecided
from rlvitals.signals.spread import median
from rlvitals.types import Profile, Series, Trace

MAX_DROPPED_SPEED = Threshold(
    "throughput-drop.speed", SLOW_PACE_FACTOR, "part of the run's own speed before", high=1.0
)
# Of 800 recorded runs six fell to 0.61-0.67 of their speed for the machine's sake alone.
SEVERE_DROPPED_SPEED = Threshold(
    "throughput-drop.severe", 0.55, "the same, for a warning", high=1.0
)
MAX_LOAD_PER_CORE = Threshold(
    "throughput-drop.busy", 1.5, "processes for each core that make a machine slow for all"
)
LOAD_GROWTH_FACTOR = 1.2  # x the load before: a machine as busy before is no cause of a change
PHASE_DESCRIPTIONS = {
    "collect": "simulation, inference or communication",
    "learn": "the optimiser: batches, or the machine it runs on",
}
OTHER_JOB_CAUSE = "another job on the machine, or fewer cores"
VARYING_UNITS = ("rows", "epochs", "episodes", "generations", "iterations")
FIRST_UPDATE_NAMES = ("optimiser/loss", "policy/loss", "value/loss", "optimiser/grad_norm")


def check(trace: Trace) -> Answer:
    """Compare the end with the run's own past, from its first update on."""
    # A table's cells are there, and empty, before the first update.
    logged = [s.finite() for n in FIRST_UPDATE_NAMES if (s := trace.get(n)) is not None]
    firsts = [int(s.steps[0]) for s in logged if len(s)]
    counter, unit = _work_counter(trace)
    speed = pace(trace.since(min(firsts)) if firsts else trace, counter)
    if speed is None or len(speed.rates) < MIN_PACE_WINDOWS:
        return Undecided("no clock, or too few intervals of it", ("throughput/elapsed",))
    split = slow_since(speed, MAX_DROPPED_SPEED.on(trace))
    if split is None:
        return Clear()
    rate_before = float(np.median(speed.rates[:split]))
    rate_after = float(np.median(speed.rates[split:]))
    first_slow_step = int(speed.steps[split - 1])
    busy = _describe_load(trace, first_slow_step)
    # How much an update of a language model has to write is known by its tokens alone, and how
    # much an epoch, an episode or a row of another's loop has to do is not known at all.
    varies = trace.step_unit in VARYING_UNITS or (trace.profile is Profile.UNKNOWN and not firsts)
    same_work = trace.profile not in kinds.LANGUAGE and not varies
    is_measured = counter is not None or same_work
    severe = rate_after < SEVERE_DROPPED_SPEED.on(trace) * rate_before and not busy and is_measured
    return Finding(
        f"{unit} per second fell from {_format_rate(rate_before)} to {_format_rate(rate_after)} "
        f"and stay there{busy}",
        severity=Severity.WARNING if severe else Severity.NOTE,
        metric=_metric_name(trace),
        began=first_slow_step,
        ended=int(speed.steps[-1]),
        observed=rate_after,
        bound=MAX_DROPPED_SPEED.bound(
            trace, f"{MAX_DROPPED_SPEED.on(trace):.0%} of this run's own speed before", rate_before
        ),
        curve=Curve(f"{unit} per second", _speed_curve(speed)),
        evidence=(
            f"measured over windows of {speed.seconds:,.3g} s",
            *_bottleneck(trace, first_slow_step),
        ),
        causes=(OTHER_JOB_CAUSE,) if busy else (),
    )


def _format_rate(rate: float) -> str:
    """Write a rate to three digits at least, without an exponent."""
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"  # three digits


def _describe_load(trace: Trace, step: int) -> str:
    """Say in words that the machine became too busy as the run became slow; empty: it did not."""
    load, cores = trace.numbers(LOAD.name), trace.numbers(CORES.name)
    if load is None or cores is None:
        return ""
    load_before, load_after = median(load.until(step).values), median(load.since(step + 1).values)
    have = cores.values[-1]
    if (
        load_before is None
        or load_after is None
        or load_after < max(MAX_LOAD_PER_CORE.on(trace) * have, LOAD_GROWTH_FACTOR * load_before)
    ):
        return ""
    change = f"load {load_after:.0f} on {have:.0f} cores, {load_before:.0f} before"
    return f": the machine was busy, {change}"


def _bottleneck(trace: Trace, step: int) -> Iterable[str]:
    """Name the phase of an iteration that takes longer since then, and what recording takes."""
    slower = []
    for name, series in trace.family(PHASE_TIME.name).items():
        time_before = median(series.until(step).values)
        time_after = median(series.since(step + 1).values)
        if time_before is not None and time_after is not None:
            slower.append((time_after - time_before, time_before, time_after, name))
    if slower:
        growth, time_before, time_after, name = max(slower)
        means = PHASE_DESCRIPTIONS.get(name, "")
        durations = f"{time_after:.3g} s of an iteration, {time_before:.3g} s before"
        if growth > 0.2 * max(time_before, 1e-9):  # a phase that grew less does not slow the run
            yield f"the bottleneck is {name}: {durations}{f' ({means})' if means else ''}"
        else:
            yield f"no phase takes much longer; most of all {name}: {durations}"
    recorder_share = trace.get(RECORDER_SHARE.name)
    share = None if recorder_share is None else median(recorder_share.since(step + 1).values)
    if share is not None:
        # Less explains no drop by a third.
        comment = "which may explain it" if share > 0.1 else "too little to explain it"
        yield f"recording takes {share:.1%} of the time, {comment}"


def _work_counter(trace: Trace) -> tuple[Series | None, str]:
    """Return what a language model's work is counted in, as a running sum; None for steps."""
    if trace.profile not in kinds.LANGUAGE:
        return None, trace.step_unit
    if (total := _enough_points(trace, TOKENS.name)) is not None:
        return total, "tokens"
    for name, unit in ((TOKENS_NEW.name, "tokens"), (LENGTH_MEAN.name, "tokens of each response")):
        if (counter := _enough_points(trace, name)) is not None:
            return Series(counter.steps, counter.times, np.cumsum(counter.values)), unit
    return None, trace.step_unit


def _enough_points(trace: Trace, name: str) -> Series | None:
    logged = trace.get(name)
    points = None if logged is None else logged.finite()
    return points if points is not None and len(points) > MIN_PACE_WINDOWS else None


def _speed_curve(speed: Pace) -> Series:
    return Series(speed.steps, np.full(len(speed.rates), np.nan), speed.rates)


def _metric_name(trace: Trace) -> str:
    if "throughput/elapsed" in trace:
        return "throughput/elapsed"
    if by_rate(trace) is not None:
        return STEPS_PER_SECOND.name
    return max(trace.series, key=lambda name: int(np.isfinite(trace[name].times).sum()))


RULE = Rule(
    name="throughput-drop",
    needs=(),
    check=check,
    doc=__doc__,
    causes=(
        OTHER_JOB_CAUSE,
        "memory pressure: swapping, a growing buffer",
        "logging or checkpointing that costs more with every row",
        "the environment became slower: longer episodes, a leak",
    ),
    remedies=(
        "compare the machine's load before and after the step at which it began",
        "profile one iteration",
        "log less often, and append instead of rewriting",
    ),
    explained_by=("response-length-explodes",),
    thresholds=(MAX_DROPPED_SPEED, SEVERE_DROPPED_SPEED, MAX_LOAD_PER_CORE),
)
