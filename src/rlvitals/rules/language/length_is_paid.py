"""Within a group the longer reply is paid, and replies grow longer without better answers.

## What it sees
`rollout/length_reward_correlation` above 0.5 in at least half of 20 successive updates (10 where
fewer than 40 are logged), and `language/length_mean` at more than 1.5 times its start over the last
fifth; or the correlation below -0.5 as often, and the length at less than half of its start. A
warning where the outcome that is judged is proven to stall or fall, a note where it cannot be told.
Where it rises or holds its best, the length is what it takes, and nothing is said.

## Why it matters
Prompts that need longer replies are not it: the correlation is taken within groups of one prompt.
What remains is a reward that can be had by writing more, or less, whatever is said.

## What to do
Read the longest and the shortest reply of one group. Take length out of the reward or normalise by
it; charge for length only where the answer is right.

## When it is wrong
Right answers may need more steps than wrong ones: then they rise with the length.

## References
- Singhal et al. 2023, "A Long Way to Go: Investigating Length Correlations in RLHF".
- Liu et al. 2025, "Understanding R1-Zero-Like Training" (Dr. GRPO).
"""

from rlvitals.metrics.absence import describe_absence
from rlvitals.metrics.catalogue.language import LENGTH_MEAN
from rlvitals.metrics.catalogue.rollout_metrics import LENGTH_REWARD_CORRELATION
from rlvitals.metrics.catalogue.rollouts import STATISTIC
from rlvitals.rules import kinds
from rlvitals.rules.answers import learning_trend
from rlvitals.rules.rule import Answer, Clear, Rule, Threshold, Undecided
from rlvitals.rules.shapes import SHORT_WINDOW, above, below, start
from rlvitals.rules.weigh import by_learning, clear_by_answers, content
from rlvitals.signals.level import MIN_CHANGE_VALUES, first_last_change
from rlvitals.signals.spread import median
from rlvitals.types import Trace

CHARACTERS_MEAN = f"{STATISTIC.name}/characters_mean"  # where tokens are not recorded
# x the start. 19 healthy runs of scripts/record_rollout_runs.py go to 0.63 and to 1.13 of it.

# The same runs: windows from -0.21 to 0.09.
MIN_LENGTH_CORRELATION = Threshold(
    "length-is-paid.correlation", 0.5, "correlation of reward and length within groups", high=1.0
)


def check(trace: Trace) -> Answer:
    """Ask whether length pays, whether it moved that way, and what came of it."""
    logged = (trace.get(LENGTH_MEAN.name), trace.get(CHARACTERS_MEAN))
    lengths = next((series for series in logged if series is not None), None)
    first = None if lengths is None else start(lengths)
    levels = None if lengths is None else first_last_change(lengths.values)
    if not first or levels is None:
        lacks = "the length of replies is not logged"
        return Undecided(
            describe_absence(trace, lacks, LENGTH_MEAN, min_count=MIN_CHANGE_VALUES),
            (LENGTH_MEAN.name,),
        )
    correlation = trace[LENGTH_REWARD_CORRELATION.name]
    limit = MIN_LENGTH_CORRELATION.on(trace)
    is_longer = levels[1] > 1.5 * first
    if not is_longer and levels[1] >= 0.5 * first:
        return Clear()
    stretch = above(correlation, limit) if is_longer else below(correlation, -limit)
    if stretch is None:
        return Clear()
    if content(learning_trend(trace)):
        return clear_by_answers(trace)
    level = median(stretch.of(correlation).finite().values) or 0.0
    adjective, verb = ("longer", "grew") if is_longer else ("shorter", "shrank")
    return by_learning(
        trace,
        f"within a group the {adjective} reply is paid (correlation {level:+.2f}), and replies "
        f"{verb} to {levels[1] / first:.2g} times their length",
        (LENGTH_REWARD_CORRELATION.name, correlation),
        (stretch.start, level),
        MIN_LENGTH_CORRELATION.bound(trace, "default", 1.0 if is_longer else -1.0),
        (),
        (),
    )


RULE = Rule(
    name="length-is-paid",
    needs=(LENGTH_REWARD_CORRELATION,),
    at_least=SHORT_WINDOW,
    check=check,
    doc=__doc__,
    causes=(
        "a part of the reward that grows or falls with length",
        "a judge that prefers long answers",
    ),
    remedies=(
        "read the longest and the shortest reply of one group",
        "take length out of the reward, or normalise by it",
        "charge for length only where the answer is right",
    ),
    profiles=kinds.LANGUAGE,
    explained_by=("component-dominates",),
    thresholds=(MIN_LENGTH_CORRELATION,),
)
