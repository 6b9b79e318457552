"""The learner waits: updates come more slowly than they did, or data takes more of the time.

## What it sees
Updates per second (`optimiser/updates` against the run's clock) over the last windows below 70 %
of the median of what came before; or, where the log splits its time, more than half of it spent
on collecting data, in rows whose share for learning has come to lie below 70 % of what it was. A
note, never more.

## Why it matters
A learner that waits for data leaves the accelerator idle; one whose batches are too small spends
its time on launching work.

## What to do
Collect with more environments or workers, or use larger batches: what is short decides. If
updates slowed in mid-run, look at what else changed there.

## When it is wrong
Where episodes grow longer as the policy learns, collecting takes longer too. A share that was high
from the start is no finding: with expensive simulators, and on a CPU, collecting *is* the work.

## References
- Petrenko et al. 2020, "Sample Factory", on where the time of a learner goes.
"""

from collections.abc import Mapping

import numpy as np

from rlvitals.metrics.catalogue.optimiser import UPDATES
from rlvitals.metrics.catalogue.throughput import PHASE_SHARE, PHASE_TIME
from rlvitals.rules.pace import (
    MIN_PACE_WINDOWS,
    PACE_WINDOWS,
    SLOW_PACE_FACTOR,
    WARM_UP_SHARE,
    Pace,
    pace,
    slow_since,
)
from rlvitals.rules.rule import Answer, Clear, Curve, Finding, Rule, Severity, Threshold, Undecided
from rlvitals.signals.blocks import block_means
from rlvitals.signals.spread import median
from rlvitals.types import Series, Trace

MAX_SLOWED_SPEED = Threshold(
    "updates-slow.speed", SLOW_PACE_FACTOR, "part of the run's own speed before", high=1.0
)
MAX_COLLECTING_SHARE = Threshold(
    "updates-slow.waiting", 0.5, "share of the time that collecting data takes", high=1.0
)
COLLECTING_PHASES = ("sample", "collect", "rollout", "generation", "env")
LEARNING_PHASES = ("grad", "learn", "update", "train", "optimize")


def check(trace: Trace) -> Answer:
    """Prefer the log's own split of time; else ask how fast updates come: now, and before."""
    waits = _waits(trace)
    if isinstance(waits, Finding):
        return waits
    finding = _slower_updates(trace) or waits
    return finding or Undecided("no clock, or too few intervals of it", ("throughput/elapsed",))


def _waits(trace: Trace) -> Answer | None:
    """Compare the share of the time that collecting takes with the run's own past."""
    split = _collecting_share(trace)
    if split is None:
        return None
    name, collecting = split
    collecting = collecting.since(int(collecting.steps[int(WARM_UP_SHARE * len(collecting))]))
    width = max(len(collecting) // PACE_WINDOWS, 1)
    shares = block_means(collecting.values, width)
    steps = collecting.steps[::-width][::-1][-len(shares) :]
    slow_index = slow_since(Pace(steps, 1 - shares, np.nan), MAX_SLOWED_SPEED.on(trace))
    if slow_index is None:
        return Clear()
    share_before = float(np.median(shares[:slow_index]))
    share_after = float(np.median(shares[slow_index:]))
    if share_after <= MAX_COLLECTING_SHARE.on(trace):
        return Clear()
    return Finding(
        f"collecting data takes {share_after:.0%} of the time, {share_before:.0%} before, "
        "learning the rest",
        severity=Severity.NOTE,
        metric=name,
        began=int(steps[slow_index - 1]),
        ended=int(steps[-1]),
        observed=share_after,
        bound=MAX_COLLECTING_SHARE.bound(trace, "default: half of the time"),
        curve=Curve(
            "share of the time that collecting takes",
            Series(steps, np.full(len(shares), np.nan), shares),
        ),
    )


def _collecting_share(trace: Trace) -> tuple[str, Series] | None:
    """Name the longest phase that collects data, and give the share of the time it takes.

    The time is that of this phase and the longest that learns.
    """
    name = PHASE_TIME.name if trace.family(PHASE_TIME.name) else PHASE_SHARE.name
    phases = {k: s.finite() for k, s in trace.family(name).items()}
    collect = _find_longest_phase(phases, COLLECTING_PHASES)
    learn = _find_longest_phase(phases, LEARNING_PHASES)
    if not collect or not learn:
        return None
    first = phases[collect].where(np.isin(phases[collect].steps, phases[learn].steps))
    second = phases[learn].where(np.isin(phases[learn].steps, phases[collect].steps))
    total = first.values + second.values
    if len(first) != len(second) or len(first) < MIN_PACE_WINDOWS or not (total > 0).all():
        return None
    return f"{name}/{collect}", Series(first.steps, first.times, first.values / total)


def _find_longest_phase(phases: Mapping[str, Series], names: tuple[str, ...]) -> str:
    """Return the phase of these names that takes longest in the median; "" for none."""
    times = {k: median(s.values) or 0.0 for k, s in phases.items() if k.startswith(names)}
    longest = max(times, key=lambda k: (times[k], k), default="")
    return longest if longest and times[longest] > 0 else ""


def _slower_updates(trace: Trace) -> Answer | None:
    updates = trace.get(UPDATES.name)
    speed = None if updates is None or not len(updates) else pace(trace, updates.finite())
    if speed is None or len(speed.rates) < MIN_PACE_WINDOWS:
        return None
    split = slow_since(speed, MAX_SLOWED_SPEED.on(trace))
    if split is None:
        return Clear()
    rate_before = float(np.median(speed.rates[:split]))
    rate_after = float(np.median(speed.rates[split:]))
    return Finding(
        f"updates per second fell from {rate_before:,.3g} to {rate_after:,.3g} and stay there",
        severity=Severity.NOTE,
        metric=UPDATES.name,
        began=int(speed.steps[split - 1]),
        ended=int(speed.steps[-1]),
        observed=rate_after,
        bound=MAX_SLOWED_SPEED.bound(
            trace,
            f"{MAX_SLOWED_SPEED.on(trace):.0%} of this run's own speed before",
            scale=rate_before,
        ),
        curve=Curve(
            "updates per second",
            Series(speed.steps, np.full(len(speed.rates), np.nan), speed.rates),
        ),
    )


RULE = Rule(
    name="updates-slow",
    needs=(),
    needs_any=(UPDATES, PHASE_TIME, PHASE_SHARE),
    at_least=MIN_PACE_WINDOWS,
    check=check,
    doc=__doc__,
    causes=(
        "data is collected too slowly: too few environments or workers",
        "batches too small to keep the accelerator busy",
    ),
    remedies=(
        "collect with {n_envs:more environments} or workers",
        "use {batch_size|n_steps:larger batches}",
        "profile one iteration",
    ),
    explained_by=("throughput-drop", "response-length-explodes"),
    thresholds=(MAX_SLOWED_SPEED, MAX_COLLECTING_SHARE),
)
