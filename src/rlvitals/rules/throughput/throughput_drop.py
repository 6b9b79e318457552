"""The run became slower than it was, and stays slow.

## What it sees
Steps per second over windows of at least 20 seconds (half a second where the clock has fractions),
from `throughput/elapsed` or the log's wall times. The last five windows and a fifth of the run
below 70 % of the median of what came before, but for one in five, is a note; half of it a warning.

## Why it matters
Slower collection wastes hours and money and rarely repairs itself. Frameworks that log a mean
since the start (SB3's `time/fps`) hide it.

## What to do
Look at what changed at that step: another job on the machine, memory growing into swap, a log
that is rewritten whole at every row, an environment that became slower with longer episodes.

## When it is wrong
Off-policy methods slow down when learning starts: the first tenth of the time is left out, and
only what came after the first update is compared. Longer episodes or responses cost time by
themselves.

## References
- Huang et al. 2022, "The 37 Implementation Details of Proximal Policy Optimization", on SPS.
"""

import numpy as np

from rlvitals.metrics.metric import Bound
from rlvitals.records import Series, Trace
from rlvitals.rules.pace import LEAST, SLOWER, Pace, pace, slow_since
from rlvitals.rules.rule import Answer, Clear, Curve, Finding, Rule, Severity, Undecided

HALVED = 0.5  # of the run's own past
FIRST_UPDATE = ("optimiser/loss", "policy/loss", "value/loss", "optimiser/grad_norm")


def check(trace: Trace) -> Answer:
    """Compare the end with the run's own past, from its first update on."""
    firsts = [int(s.steps[0]) for n in FIRST_UPDATE if (s := trace.get(n)) is not None and len(s)]
    speed = pace(trace.since(min(firsts)) if firsts else trace)
    if speed is None or len(speed.rates) < LEAST:
        return Undecided("no clock, or too few intervals of it", ("throughput/elapsed",))
    split = slow_since(speed)
    if split is None:
        return Clear()
    before, after = float(np.median(speed.rates[:split])), float(np.median(speed.rates[split:]))
    return Finding(
        f"{trace.step_unit} per second fell from {before:,.3g} to {after:,.3g} and stay there",
        severity=Severity.WARNING if after < HALVED * before else Severity.NOTE,
        metric=_shown(trace),
        began=int(speed.steps[split - 1]),
        ended=int(speed.steps[-1]),
        observed=after,
        bound=Bound(SLOWER * before, f"{SLOWER:.0%} of this run's own speed before"),
        curve=Curve(f"{trace.step_unit} per second", _drawn(speed)),
        evidence=(f"measured over windows of {speed.seconds:,.3g} s",),
    )


def _drawn(speed: Pace) -> Series:
    return Series(speed.steps, np.full(len(speed.rates), np.nan), speed.rates)


def _shown(trace: Trace) -> str:
    if "throughput/elapsed" in trace:
        return "throughput/elapsed"
    return max(trace.series, key=lambda name: int(np.isfinite(trace[name].times).sum()))


RULE = Rule(
    name="throughput-drop",
    needs=(),
    check=check,
    doc=__doc__,
    causes=(
        "another job on the machine, or fewer cores",
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
)
