"""The model gives its tools up, cannot use them, or spends every turn it has.

## What it sees
`language/tool_calls` over the last fifth below a tenth of its first updates, in at least half of
20 successive updates up to the end (10 where fewer than 40 are logged); or
`language/tool_failures` above 0.5 as often and not below its start; or `language/turns_mean`
within 5 % of the most turns any episode takes, to the end; or down to the fewest turns, where at
least one more was taken at first. A note; a warning where the outcome is proven to stall or fall.

## Why it matters
A tool that fails, or is charged for, is unlearned before it can pay: its first calls are clumsy.
Then the task is answered by guessing, and what the tools could have taught is lost for good.

## What to do
Read some transcripts. If calls fail, mend the format and the tool before the reward. If they work
and are not paid for, pay for the answer alone; check that the tool's own text is masked out of the
loss. Where every episode ends at the turn limit, look for loops.

## When it is wrong
A model that has learned the answers needs no calculator: where the outcome rises, fewer calls are
a saving, and this is a note. One turn at most is no agent, and is not asked about turns.

## References
- Jin et al. 2025, "Search-R1", on masking retrieved tokens out of the loss.
- Xue et al. 2025, "SimpleTIR", on void turns in multi-turn tool use.
"""

from rlvitals.metrics.absence import describe_absence
from rlvitals.metrics.catalogue.language import TOOL_CALLS, TOOL_FAILURES
from rlvitals.metrics.catalogue.rollouts import TURNS_MAX, TURNS_MEAN, TURNS_MIN
from rlvitals.metrics.metric import Bound
from rlvitals.rules import kinds
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Threshold, Undecided
from rlvitals.rules.shapes import SHORT_WINDOW, above, below, start
from rlvitals.rules.weigh import by_learning
from rlvitals.signals.level import first_last_change
from rlvitals.signals.spread import median
from rlvitals.types import Trace

MIN_CALLS_LEFT = Threshold(
    "tool-use-fades.left", 0.1, "calls per response that are left, of the first"
)
MAX_TOOL_FAILURE_SHARE = Threshold("tool-use-fades.failures", 0.5, "share of calls that fail")
# No run must log these: only who has tools can.
TOOL_METRICS = (TOOL_CALLS, TOOL_FAILURES, TURNS_MEAN)
MIN_TOOL_POINTS = 2 * SHORT_WINDOW
TURN_LIMIT_SHARE = 0.95  # of the most turns, for rounding
FIRST_TOOL_UPDATES = 5


def check(trace: Trace) -> Answer:
    """Ask whether calls vanish, then whether they fail, then where the turns have gone."""
    if all(trace.numbers(m.name, MIN_TOOL_POINTS) is None for m in TOOL_METRICS):
        lacks = "neither tools nor turns are logged"
        return Undecided(describe_absence(trace, lacks, *TOOL_METRICS, min_count=MIN_TOOL_POINTS))
    for ask in (_vanish, _fail, _no_turn_left, _one_turn_left):
        finding = ask(trace)
        if finding is not None:
            return finding
    return Clear()


def _vanish(trace: Trace) -> Finding | None:
    calls = trace.numbers(TOOL_CALLS.name, MIN_TOOL_POINTS)
    levels = None if calls is None else first_last_change(calls.values)
    # Tools may be given up within the first tenth of a run.
    first = None if calls is None else median(calls.values[:FIRST_TOOL_UPDATES])
    # With fewer than .05 calls per response, tools were never in use.
    if calls is None or levels is None or first is None or first < 0.05:
        return None
    min_calls = MIN_CALLS_LEFT.bound(trace, f"{MIN_CALLS_LEFT.default:g} x this run's start", first)
    low = below(calls, min_calls.value)
    if levels[1] >= min_calls.value or low is None or not low.goes_on:
        return None
    failed = trace.numbers(TOOL_FAILURES.name, MIN_TOOL_POINTS)
    share = None if failed is None else median(failed.values[: max(5, len(failed) // 5)])
    sentences = () if share is None or share == 0 else (f"{share:.0%} of the first calls failed",)
    clumsy = share is not None and share > MAX_TOOL_FAILURE_SHARE.on(trace)
    return by_learning(
        trace,
        f"the model gives its tools up: {first:.3g} calls per response at first, "
        f"{levels[1]:.2g} at the end",
        (TOOL_CALLS.name, calls),
        (low.start, levels[1]),
        min_calls,
        sentences,
        (FAILING_CALLS_CAUSE, UNPAID_CALLS_CAUSE, TOOL_TEXT_CAUSE)
        if clumsy
        else (UNPAID_CALLS_CAUSE, FAILING_CALLS_CAUSE, TOOL_TEXT_CAUSE),
    )


def _fail(trace: Trace) -> Finding | None:
    failed = trace.numbers(TOOL_FAILURES.name, MIN_TOOL_POINTS)
    if failed is None:
        return None
    stretch = above(failed, MAX_TOOL_FAILURE_SHARE.on(trace))
    first = start(failed)
    if stretch is None or not stretch.goes_on or first is None:
        return None
    level = median(stretch.of(failed).values) or 0.0
    if level < first:
        return None  # it learns the format
    return by_learning(
        trace,
        f"{level:.0%} of tool calls fail in the median update, {first:.0%} at first",
        (TOOL_FAILURES.name, failed),
        (stretch.start, level),
        MAX_TOOL_FAILURE_SHARE.bound(trace, "default"),
        (),
        (FAILING_CALLS_CAUSE, "the prompt does not show how the tool is called"),
    )


def _no_turn_left(trace: Trace) -> Finding | None:
    mean = trace.numbers(TURNS_MEAN.name, MIN_TOOL_POINTS)
    max_turns = trace.numbers(TURNS_MAX.name, MIN_TOOL_POINTS)
    if mean is None or max_turns is None:
        return None
    limit = float(max_turns.values.max())
    # Two turns are a question and its answer.
    stretch = above(mean, TURN_LIMIT_SHARE * limit) if limit > 2.0 else None
    # A fixed number of turns is how the task is made: only what was once shorter has been lost.
    if stretch is None or not stretch.goes_on or mean.values.min() >= TURN_LIMIT_SHARE * limit:
        return None
    level = median(stretch.of(mean).values) or 0.0
    return by_learning(
        trace,
        f"episodes end at the limit of turns: {level:.3g} of {limit:g} on average",
        (TURNS_MEAN.name, mean),
        (stretch.start, level),
        Bound(TURN_LIMIT_SHARE * limit, f"{TURN_LIMIT_SHARE:.0%} of the most turns of any episode"),
        (),
        (
            "the model calls in a loop",
            "the limit of turns is too low for the task",
            FAILING_CALLS_CAUSE,
        ),
    )


def _one_turn_left(trace: Trace) -> Finding | None:
    mean = trace.numbers(TURNS_MEAN.name, MIN_TOOL_POINTS)
    min_turns = trace.numbers(TURNS_MIN.name, MIN_TOOL_POINTS)
    levels = None if mean is None else first_last_change(mean.values)
    if mean is None or levels is None:
        return None
    floor = 1.0 if min_turns is None else float(min_turns.values.min())
    first = median(mean.values[:FIRST_TOOL_UPDATES]) or 0.0
    beyond = floor + MIN_CALLS_LEFT.on(trace) * (first - floor)
    # With less than one turn beyond the fewest there was no conversation.
    stretch = below(mean, beyond) if first - floor >= 1.0 else None
    if stretch is None or not stretch.goes_on or levels[1] > beyond:
        return None
    return by_learning(
        trace,
        f"episodes shrink to the fewest turns: {first:.3g} at first, {levels[1]:.3g} at the end",
        (TURNS_MEAN.name, mean),
        (stretch.start, levels[1]),
        Bound(beyond, f"a tenth of the turns beyond {floor:g} that it began with"),
        (),
        (
            UNPAID_CALLS_CAUSE,
            FAILING_CALLS_CAUSE,
            "the answer is guessed in the first turn, and guesses are paid",
        ),
    )


FAILING_CALLS_CAUSE = "calls fail: a format the tool does not take, a tool that is down or too slow"
UNPAID_CALLS_CAUSE = "the reward charges for calls, or pays as well without them"
TOOL_TEXT_CAUSE = "the tool's own text is trained on, and drowns the calls"

RULE = Rule(
    name="tool-use-fades",
    needs=(),
    check=check,
    doc=__doc__,
    causes=(UNPAID_CALLS_CAUSE, FAILING_CALLS_CAUSE, TOOL_TEXT_CAUSE),
    remedies=(
        "read some transcripts from before and after the step at which it began",
        "mend what makes calls fail; return the error as text that the model can learn from",
        "mask the tool's text out of the loss, and drop episodes with void turns",
        "pay for the answer alone, not for or against calls",
    ),
    profiles=kinds.LANGUAGE,
    explained_by=("component-dominates", "text-degenerates", "judge-outage"),
    thresholds=(MIN_CALLS_LEFT, MAX_TOOL_FAILURE_SHARE),
)
