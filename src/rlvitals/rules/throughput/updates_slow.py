"""The learner waits: updates come more slowly than they did, or data takes most of the time.

## What it sees
Updates per second (`optimiser/updates` against the run's clock) over the last windows below 70 %
of the median of what came before; or, where the log splits its time, more than half of it spent
on collecting data. A note, never more.

## Why it matters
A learner that waits for data leaves the accelerator idle; one whose batches are too small spends
its time on launching work.

## What to do
Collect with more environments or workers, or use larger batches: what is short decides. If
updates slowed in mid-run, look at what else changed there.

## When it is wrong
With expensive simulators collecting *is* the work, and half of the time is little.

## References
- Petrenko et al. 2020, "Sample Factory", on where the time of a learner goes.
"""

import numpy as np

from rlvitals.metrics.optimiser import UPDATES
from rlvitals.metrics.throughput import PHASE_SHARE, PHASE_TIME
from rlvitals.records import Series, Trace
from rlvitals.rules.pace import LEAST, SLOWER, pace, slow_since
from rlvitals.rules.rule import Answer, Clear, Curve, Finding, Rule, Severity, Threshold, Undecided
from rlvitals.signals.spread import median

SPEED = Threshold("updates-slow.speed", SLOWER, "part of the run's own speed before", high=1.0)
WAITING = Threshold(
    "updates-slow.waiting", 0.5, "share of the time that collecting data takes", high=1.0
)
COLLECTS = ("sample", "collect", "rollout", "generation", "env")
LEARNS = ("grad", "learn", "update", "train", "optimize")


def check(trace: Trace) -> Answer:
    """Prefer the log's own split of time; else compare with the run's own past."""
    split = _split(trace)
    if split is not None and split[1] > WAITING.on(trace):
        return Finding(
            f"collecting data takes {split[1]:.0%} of the time, learning the rest",
            severity=Severity.NOTE,
            metric=split[0],
            began=trace.first_number,
            ended=trace.last_step,
            observed=split[1],
            bound=WAITING.bound(trace, "default: half of the time"),
        )
    slowed = _slowed(trace)
    if slowed is None and split is not None:
        return Clear()
    return slowed or Undecided("no clock, or too few intervals of it", ("throughput/elapsed",))


def _split(trace: Trace) -> tuple[str, float] | None:
    """Name the longest phase that collects data, and the share of the time it takes."""
    name = PHASE_TIME.name if trace.family(PHASE_TIME.name) else PHASE_SHARE.name
    phases = {k: median(s.values) or 0.0 for k, s in trace.family(name).items()}
    collect = max(((t, k) for k, t in phases.items() if k.startswith(COLLECTS)), default=None)
    learn = max((t for k, t in phases.items() if k.startswith(LEARNS)), default=0.0)
    if collect is None or collect[0] <= 0 or learn <= 0:
        return None
    return f"{name}/{collect[1]}", 1 / (1 + learn / collect[0])


def _slowed(trace: Trace) -> Answer | None:
    updates = trace.get(UPDATES.name)
    speed = None if updates is None or not len(updates) else pace(trace, updates.finite())
    if speed is None or len(speed.rates) < LEAST:
        return None
    split = slow_since(speed, SPEED.on(trace))
    if split is None:
        return Clear()
    before, after = float(np.median(speed.rates[:split])), float(np.median(speed.rates[split:]))
    return Finding(
        f"updates per second fell from {before:,.3g} to {after:,.3g} and stay there",
        severity=Severity.NOTE,
        metric=UPDATES.name,
        began=int(speed.steps[split - 1]),
        ended=int(speed.steps[-1]),
        observed=after,
        bound=SPEED.bound(
            trace, f"{SPEED.on(trace):.0%} of this run's own speed before", scale=before
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
    at_least=LEAST,
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
    thresholds=(SPEED, WAITING),
)
