"""The log has stopped growing, the budget is not spent, and nothing says that the run ended.

## What it sees
The time since the last row longer than all of: 10 x the median gap between rows, 3 x the longest
gap so far, 10 minutes. Only of a run that is known to go on: its process is there, `--live` says
so, or the command `follow` has seen it grow. The age of a log alone says nothing: without such
evidence the rule is undecided. Never once 98 % of the budget is spent. A run that was only seen to
grow needs a known budget, and after a day without a row it is a note: it is over, however it
ended.

## Why it matters
A reward function that waits for an answer, a worker that died under a barrier, a full disk: the
process is there, the machine is paid for, and nothing happens.

## What to do
See whether the process lives (`ps`, the queue's own list) and what it waits for (`py-spy dump`).
If it was killed, look for its last words: memory, time limit, preemption. Then resume from the
latest checkpoint.

## When it is wrong
A long evaluation or upload that comes for the first time. A log that is flushed rarely. To
the command `follow`, a run that was stopped by hand looks the same.

## References
- verl, issue 7155: a trainer that waits for its replay buffer for ever.
"""

import numpy as np

from rlvitals import metrics
from rlvitals.metrics.catalogue.throughput import ELAPSED
from rlvitals.metrics.metric import Bound
from rlvitals.rules.going_on import nearly_reaches_budget
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold, Undecided
from rlvitals.types import Series, Trace

MIN_SILENCE_SECONDS = Threshold(
    "no-new-rows.seconds", 600.0, "silence that is never too long, seconds"
)
MIN_TIMED_ROWS = 10  # rows with a wall time


def check(trace: Trace) -> Answer:
    """Compare the silence since the last row with the gaps between rows."""
    cycle = trace.lifecycle
    recognised = (series for name, series in trace.series.items() if metrics.find(name) is not None)
    if not any(np.isfinite(series.values).any() for series in recognised):
        return Undecided("no row holds a number")
    if cycle.over or nearly_reaches_budget(trace, 0.98):  # many runs never write their last rows
        return Clear()
    silence = cycle.silence
    if trace.budget is None and not cycle.live:
        return Undecided("how long the run is meant to be is not known", ("total_steps",))
    if cycle.live is None and silence is None:
        return Undecided("whether the run goes on is not known")
    if (
        silence is None
        or not np.isfinite(silence)
        or (longest := _find_timed_series(trace)) is None
    ):
        return Undecided("when the log last grew is not known, or how fast it did")
    return _long_silence(trace, silence, *longest)


def _long_silence(trace: Trace, silence: float, name: str, series: Series) -> Answer:
    gaps = np.diff(series.times)
    shortest = MIN_SILENCE_SECONDS.on(trace)
    limit = float(max(10.0 * np.median(gaps), 3.0 * gaps.max(), shortest))
    if silence <= limit:
        return Clear()
    return _finding(trace, name, silence, limit)


def _find_timed_series(trace: Trace) -> tuple[str, Series] | None:
    """Return the series with the most wall times, in the order of their times."""
    by_name = {name: s.where(np.isfinite(s.times)) for name, s in trace.series.items()}
    elapsed = trace.get(ELAPSED.name)
    if elapsed is not None and not any(len(s) >= MIN_TIMED_ROWS for s in by_name.values()):
        clock = elapsed.finite()  # a clock of its own will do for gaps
        by_name[ELAPSED.name] = Series(clock.steps, clock.values, clock.values)
    name = max(by_name, key=lambda n: len(by_name[n]), default=None)
    if name is None or len(by_name[name]) < MIN_TIMED_ROWS:
        return None
    return name, by_name[name].where(np.argsort(by_name[name].times, kind="stable"))


def _finding(trace: Trace, name: str, silence: float, limit: float) -> Finding:
    budget, cycle = trace.budget, trace.lifecycle
    spent = "" if budget is None else f", at {trace.last_step / budget.steps:.0%} of the budget"
    is_old = silence > 86_400.0 and not cycle.live
    process_text = (
        "the process is still there" if cycle.alive else "nothing says that the run ended"
    )
    beat = (
        ""
        if cycle.beat_age is None
        else f"its last heartbeat is {_format_duration(cycle.beat_age)} old"
    )
    return Finding(
        f"no new row for {_format_duration(silence)}{spent}, and {process_text}",
        severity=Severity.NOTE if is_old else Severity.WARNING,
        metric=name,
        began=trace.last_step,
        ended=trace.last_step,
        observed=silence,
        bound=Bound(limit, "seconds: 10 x the median gap, 3 x the longest, 10 minutes"),
        limit_on_curve=False,
        evidence=(beat,) if beat else (),
        counter=("more than a day: the run is over",) if is_old else (),
    )


def _format_duration(seconds: float) -> str:
    for unit, size in (("days", 86_400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


RULE = Rule(
    name="no-new-rows",
    needs=(),
    check=check,
    doc=__doc__,
    causes=(
        "the process waits: a worker, a reward function, a queue",
        "it was killed: memory, a time limit, preemption",
    ),
    remedies=(
        "see whether the process lives, and what it waits for",
        "resume from the latest checkpoint",
    ),
    verdict="hung",
    thresholds=(MIN_SILENCE_SECONDS,),
)
