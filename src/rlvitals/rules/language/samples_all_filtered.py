"""The filter leaves nothing to learn from: no positive sample in PSR, no negative one in NSR.

## What it sees
Successive updates whose batch holds no sample of the side that the mode learns from. How many are
too many follows from the run itself: its rate before, with the prompts of a batch taken as
independent and the samples of one prompt not, and how often a batch had none before. The chance of
such a stretch anywhere in the run must be below one in a thousand by both. Where the side was
never seen, 20 updates are asked. W-REINFORCE is told when either side is gone.

## Why it matters
With nothing left there is no policy gradient. The optimiser's momentum still moves the weights
for a while, so that the log goes on looking alive.

## What to do
PSR without positives: look at the reward first (does a right answer earn it?), then lower the
threshold to what a right answer earns, never below. NSR without negatives: if answers are right,
the data is too easy, take harder prompts or more completions; if they are not, the threshold lies
below what a wrong answer earns: raise it.

## When it is wrong
An NSR batch without negatives is also what success looks like: with right answers at 95 % this is
a note. A KL penalty, an entropy bonus or an auxiliary loss goes on training all the same.

## References
- Zhu et al. 2025, "The Surprising Effectiveness of Negative Reinforcement in LLM Reasoning".
"""

import numpy as np
from numpy.typing import NDArray

from rlvitals.metrics.catalogue.language import (
    NEGATIVE_SAMPLES,
    NEGATIVE_SHARE,
    POSITIVE_SAMPLES,
    POSITIVE_SHARE,
)
from rlvitals.metrics.catalogue.optimiser import GRAD_NORM
from rlvitals.metrics.reward_names import SOLVED_SHARE
from rlvitals.rules import kinds
from rlvitals.rules.answers import last_share, learning_trend
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold
from rlvitals.rules.shapes import MIN_LASTING_SHARE
from rlvitals.rules.standing import Standing
from rlvitals.rules.weigh import sides
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Profile, Series, Trace

MAX_STRETCH_CHANCE = Threshold(
    "samples-all-filtered.chance", 1e-3, "chance of such a stretch anywhere in the run", high=1.0
)
MIN_ABSENT_UPDATES = Threshold(
    "samples-all-filtered.never", 20.0, "updates from the start without a single sample", low=3.0
)
MIN_SOLVED_SHARE = Threshold(
    "samples-all-filtered.solved",
    SOLVED_SHARE,
    "share of right answers from which on nothing is left to unlearn",
    high=1.0,
)
FILTER_REMEDIES = {
    "positive": (
        "check that a right answer earns the reward at all",
        "lower reward_threshold to what a right answer earns, not below",
        "take easier prompts, or more completions per prompt",
    ),
    "negative": (
        "if answers are right: take harder prompts or more completions per prompt",
        "if they are not: raise reward_threshold above what a wrong answer earns",
        "check the reward on wrong answers",
    ),
}
FILTER_CAUSES = {
    "positive": ("reward_threshold above what a right answer earns", "prompts too hard"),
    "negative": ("reward_threshold below what a wrong answer earns", "prompts too easy"),
}


@dataclass(frozen=True, slots=True)
class Gone:
    """A stretch of updates without one side."""

    side: str
    metric: str
    first_step: int  # step
    last_step: int  # step
    updates: int
    samples: float  # in all
    rate: float  # share of that side before
    share: float  # of the run
    goes_on: bool


def check(trace: Trace) -> Answer:
    """Look for each side that the mode learns from."""
    sides_needed = {
        Profile.PSR: (("positive", POSITIVE_SAMPLES.name),),
        Profile.NSR: (("negative", NEGATIVE_SAMPLES.name),),
    }.get(trace.profile, (("positive", POSITIVE_SAMPLES.name), ("negative", NEGATIVE_SAMPLES.name)))
    absences = [
        absence
        for side, name in sides_needed
        if name in trace and (absence := _find_absence(trace, side, name)) is not None
    ]
    if not absences:
        return Clear()
    return _finding(trace, max(absences, key=lambda absence: absence.updates))


def _find_absence(trace: Trace, side: str, name: str) -> Gone | None:
    counts = trace[name].finite()
    first, last = _longest_zero(counts.values)
    updates = last - first + 1
    if updates < 3 or not len(counts):  # updates in a stretch, whatever the rate
        return None
    size = _samples(trace, side, counts)
    counts_before = counts.values[:first]
    rate = float(counts_before.mean()) / size if counts_before.any() else 0.0
    if rate > 0:
        if len(counts) * _chance(
            trace, counts_before, rate, size
        ) ** updates > MAX_STRETCH_CHANCE.on(trace):
            return None
    elif updates < MIN_ABSENT_UPDATES.on(trace):
        return None
    return Gone(
        side,
        name,
        int(counts.steps[first]),
        int(counts.steps[last]),
        updates,
        updates * size,
        rate,
        updates / len(counts),
        goes_on=last == len(counts) - 1,
    )


def _chance(trace: Trace, counts_before: NDArray[np.float64], rate: float, size: float) -> float:
    """Return the chance of one batch without that side: the larger of two estimates.

    By samples, taking each prompt's as one; and by how many batches had none before, which
    knows how unequal prompts are (Laplace's rule of succession).
    """
    prompts = max(1.0, size / (trace.number("num_generations") or 8))  # TRL's default
    batch_share = (float((counts_before == 0).sum()) + 1.0) / (len(counts_before) + 2.0)
    by_samples: float = (1.0 - min(rate, 1.0)) ** prompts
    return max(by_samples, batch_share)


def _longest_zero(values: NDArray[np.float64]) -> tuple[int, int]:
    """Return the first and last index of the longest run of zeros, the newest of equals."""
    padded = np.concatenate(([False], values == 0, [False]))
    edges = np.flatnonzero(padded[1:] != padded[:-1])
    if not edges.size:
        return 0, -1
    starts, ends = edges[::2], edges[1::2]
    longest = len(starts) - 1 - int(np.argmax((ends - starts)[::-1]))
    return int(starts[longest]), int(ends[longest]) - 1


def _samples(trace: Trace, side: str, counts: Series) -> float:
    """Return the samples of one batch: both sides, a count over its share, or the settings."""
    other_side = trace.get((NEGATIVE_SAMPLES if side == "positive" else POSITIVE_SAMPLES).name)
    if other_side is not None and len(other_side.finite()):
        return max(1.0, float(np.max(other_side.finite().values)))
    share = trace.get((POSITIVE_SHARE if side == "positive" else NEGATIVE_SHARE).name)
    if share is not None:
        common, rows, within = np.intersect1d(counts.steps, share.steps, return_indices=True)
        shares = share.values[within] if len(common) else np.zeros(0)
        positive = shares > 0
        if positive.any():
            return max(1.0, float(np.median(counts.values[rows][positive] / shares[positive])))
    batch_size = trace.number("batch_size") or trace.number("minibatch_size")
    return max(1.0, batch_size or 0.0, float(counts.values.max()))


def _finding(trace: Trace, absence: Gone) -> Finding:
    trend = learning_trend(trace, since=absence.first_step)
    right = last_share(trace.until(absence.last_step))
    solved = (
        absence.side == "negative" and right is not None and right >= MIN_SOLVED_SHARE.on(trace)
    )
    evidence, counter = sides(trend)
    answers = () if right is None else (f"{right:.0%} of answers are right by then",)
    severity = _severity(trace.profile, absence, trend, solved=solved)
    text_before = (
        f"; {absence.rate:.1%} of samples were {absence.side} before" if absence.rate else ""
    )
    says = " (answers are right: the data is too easy by now)" if solved else ""
    return Finding(
        f"no {absence.side} sample in {absence.updates:,} successive updates{text_before}{says}",
        severity=severity,
        metric=absence.metric,
        began=absence.first_step,
        ended=absence.last_step,
        observed=0.0 if absence.rate else float(absence.updates),
        bound=MAX_STRETCH_CHANCE.bound(trace, "chance of this by the run's own rate")
        if absence.rate
        else MIN_ABSENT_UPDATES.bound(trace, "default: so many updates from the start"),
        limit_on_curve=False,
        evidence=(*answers, *_gradient(trace, absence), *evidence),
        counter=("right answers near 100 %: nothing is left to unlearn",) if solved else counter,
        causes=FILTER_CAUSES[absence.side],
        remedies=FILTER_REMEDIES[absence.side],
    )


def _severity(profile: Profile, absence: Gone, trend: Standing, *, solved: bool) -> Severity:
    if solved or trend.improves or not (absence.goes_on or absence.share >= MIN_LASTING_SHARE):
        return Severity.NOTE
    # W-REINFORCE goes on learning from the other side.
    return Severity.WARNING if profile is Profile.W_REINFORCE else Severity.ERROR


def _gradient(trace: Trace, absence: Gone) -> tuple[str, ...]:
    norms = trace.get(GRAD_NORM.name)
    during = (
        None if norms is None else norms.since(absence.first_step).until(absence.last_step).finite()
    )
    if during is None or not len(during) or np.any(during.values != 0):
        return ()
    return (f"grad norm is 0 in all {len(during):,} of these updates",)


RULE = Rule(
    name="samples-all-filtered",
    needs=(),
    needs_any=(POSITIVE_SAMPLES, NEGATIVE_SAMPLES),
    at_least=10,
    check=check,
    doc=__doc__,
    causes=("the threshold does not separate right answers from wrong ones",),
    remedies=("put {reward_threshold} between what a wrong and what a right answer earns",),
    profiles=kinds.THRESHOLD_FILTERED,
    explained_by=(
        "setting-out-of-range",
        "judge-outage",
        "constant-reward",
        "threshold-off-correctness",
        "responses-truncated",
        "entropy-collapse",
    ),
    verdict="stalled",
    thresholds=(MAX_STRETCH_CHANCE, MIN_ABSENT_UPDATES, MIN_SOLVED_SHARE),
)
