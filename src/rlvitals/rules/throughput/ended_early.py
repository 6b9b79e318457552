"""The run crashed, or ended far short of its stated budget.

## What it sees
An error where the log, its exit code or its process says that the run ended as no training should:
an exception, a signal, an exit code other than 0, a process that is gone without a recorded end.
Where a run that is known to be over ends before nine tenths of its stated budget, by more than two
rows, and nothing says why: a warning if its outcome is logged and nothing can be told of it yet,
since then nothing was reached that it may have been stopped for; else a note. A run that was
stopped on purpose, and says so, is clear; a run that may go on is not judged.

## Why it matters
What is missing is training that somebody planned for, and the last rows are often those of a
policy that was already broken. A comparison with complete runs is unfair to it.

## What to do
Read the last lines that the process printed. Resume from the latest checkpoint that was saved
before the cause, not from the last one, where the numbers of the last rows are not finite.

## When it is wrong
A run that was stopped because it had learned enough, by hand or by a callback, ends short of its
budget too. A traceback in a log may be of an exception that the program handled.

## References
- Python, "Built-in Exceptions"; POSIX, exit status 128 + n of a process that signal n ended.
"""

from rlvitals.rules import causes
from rlvitals.rules.answers import verdict_trend
from rlvitals.rules.going_on import describe_end, liveness, nearly_reaches_budget
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold, Undecided
from rlvitals.rules.standing import OUTCOME_METRICS
from rlvitals.types import Trace

MIN_SPENT_SHARE = Threshold(
    "ended-early.spent", 0.9, "share of the budget that a complete run spends"
)


def check(trace: Trace) -> Answer:
    """Judge how a run ended, once it is known to be over."""
    budget = trace.budget
    share = None if budget is None else trace.last_step / budget.steps
    if trace.lifecycle.failed:
        return _finding(trace, f"the run crashed: {describe_end(trace)}", Severity.ERROR, share)
    if not any(len(series.finite()) for series in trace.series.values()):
        return Undecided("no finite number is logged: what was trained is not known")
    state = liveness(trace)
    if state.live is None:
        return Undecided(f"whether the run goes on is not known: {state.why}")
    is_over = bool(state.live or trace.lifecycle.reason)
    if is_over or nearly_reaches_budget(trace, MIN_SPENT_SHARE.on(trace)):
        return Clear()
    if budget is None or share is None:
        return Undecided("how long the run was meant to be is not known", ("total_steps",))
    summary = (
        f"the run ended at step {trace.last_step:,} of {budget.steps:,}, {share:.0%} of its "
        "budget, and nothing says why"
    )
    has_outcome = any(metric.name in trace for metric in OUTCOME_METRICS)
    is_untold = has_outcome and verdict_trend(trace).state == "unknown"
    severity = Severity.WARNING if is_untold else Severity.NOTE
    return _finding(trace, summary, severity, share)


def _finding(trace: Trace, summary: str, severity: Severity, share: float | None) -> Finding:
    last = trace.last_step
    return Finding(
        summary,
        severity=severity,
        metric=next((name for name, s in trace.series.items() if last in s.steps[-1:]), ""),
        began=last,
        ended=last,
        observed=1.0 if share is None else share,
        bound=MIN_SPENT_SHARE.bound(trace, "share of the budget that a complete run spends"),
        limit_on_curve=False,
        has_limit=severity is not Severity.ERROR,
    )


RULE = Rule(
    name="ended-early",
    needs=(),
    check=check,
    doc=__doc__,
    causes=(
        "an exception in the program, or in the environment",
        "the process was killed: memory, a time limit, preemption, by hand",
    ),
    remedies=(
        "read the last lines that the process printed",
        "resume from a checkpoint that was saved before the cause",
    ),
    explained_by=causes.MECHANISM_RULES,
    no_threshold=True,  # an exception is a fact, whatever else is logged
    thresholds=(MIN_SPENT_SHARE,),
    verdict="failed",
)
