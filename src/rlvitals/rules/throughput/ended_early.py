"""The run crashed, or ended far short of its stated budget.

## What it sees
An error where the log, its exit code or its process says that the run ended as no training should:
an exception, a signal, an exit code other than 0, a process that is gone without a recorded end.
Where a run that is known to be over ends before nine tenths of its stated budget, by more than two
rows, and nothing says why: a warning if its outcome is logged and nothing can be told of it yet,
since then nothing was reached that it may have been stopped for; else a note. A run that was
stopped on purpose, and says so, is clear, but for one: a warning where a person's Ctrl-C ended it
before its outcome was seen to improve, which ends no higher than it began, or is not logged. A run
that may go on is not judged.

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
from rlvitals.rules.curves import describe_earlier_learning
from rlvitals.rules.gains import is_likely_flat
from rlvitals.rules.going_on import (
    describe_end,
    ends_by_hand,
    liveness,
    nearly_reaches_budget,
)
from rlvitals.rules.likely_outcome import likely_answer
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold, Undecided
from rlvitals.rules.standing import OUTCOME_METRICS, up
from rlvitals.types import Profile, Trace

MIN_SPENT_SHARE = Threshold(
    "ended-early.spent", 0.9, "share of the budget that a complete run spends"
)


def check(trace: Trace) -> Answer:
    """Judge how a run ended, once it is known to be over."""
    budget = trace.budget
    share = None if budget is None else trace.last_step / budget.steps
    is_cut_off = _is_cut_off(trace, MIN_SPENT_SHARE.on(trace))
    if trace.lifecycle.failed or is_cut_off:
        severity = Severity.WARNING if is_cut_off else Severity.ERROR
        return _finding(trace, _describe_break(trace), severity, share)
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


def _is_cut_off(trace: Trace, share: float) -> bool:
    """Return True if a person's Ctrl-C ended a run before its outcome could be told to improve.

    Not where most of its budget is spent, nor where its outcome ends above its start: that it was
    seen to learn may be why it was stopped.
    """
    if not ends_by_hand(trace) or not trace.series:
        return ends_by_hand(trace)
    is_resumed = trace.last_step > trace.first_step and describe_earlier_learning(trace)
    is_complete = nearly_reaches_budget(trace, share) or is_resumed
    trend = verdict_trend(trace)
    is_open = trend.state == "unknown" or is_likely_flat(trend)
    return is_open and not likely_answer(trace) and not _seems_to_learn(trace) and not is_complete


def _seems_to_learn(trace: Trace) -> bool:
    """Return True if the second half of an outcome is better than its first: of five readings."""
    for metric in OUTCOME_METRICS:
        series = trace.numbers(metric.name, 5)
        if series is None or (up(metric.name) < 0 and trace.profile is not Profile.SUPERVISED):
            continue
        half = len(series) // 2
        gain = float(series.values[half:].mean() - series.values[:half].mean())
        if up(metric.name) * gain > 0:
            return True
    return False


def _describe_break(trace: Trace) -> str:
    if trace.lifecycle.failed:
        return f"the run crashed: {describe_end(trace)}"
    if not trace.series:
        return "the run was stopped by hand before it logged a row"
    budget = "" if trace.budget is None else f" of {trace.budget.steps:,}"
    step = f"at step {trace.last_step:,}{budget}"
    return f"the run was stopped by hand {step}, before its outcome was seen to improve"


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
