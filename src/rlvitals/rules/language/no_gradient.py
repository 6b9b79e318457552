"""Responses are rewarded or preferred differently, and nothing is trained by it.

## What it sees
`optimiser/grad_norm` exactly 0 in nine of ten updates, and at least two of them, in which groups
differ in reward: `reward/group_zero_std` below 1 or `reward/group_std` above 0; where neither is
logged, `reward/std` above 0 in at least five. Or all advantages 0 in five updates from the first
one on, while `reward/max` is above `reward/min`. Or, of preference training, `preference/margin`
and `preference/accuracy` exactly 0 in three rows after the first, at a learning rate above 0. An
error. Where pairs are won by far, and the loss is ln 2 times the share of those that are not, to a
hundredth of it and in three rows in a row at the end, these others have a margin of 0, as those of
two equal answers. A warning, where they are a tenth of the pairs or more.

## Why it matters
A group whose rewards differ has advantages, and advantages have a gradient: nothing else in the
loss can take it to exactly 0. The policy is not trained, however long the run goes on. The margin
of pairs is measured from the reference: it is 0 where the policy begins, and one update moves it.

## What to do
Advantages of 0: look at how they are grouped (a group size of 1 leaves nothing to compare).
Advantages that are not: look at the mask of the loss (padding that is also the end token masks
every response), at parameters that need no gradient, and at a wrapper that keeps the gradient from
the norm that is logged. Pairs: see that the reference is no second name of the model that is
trained, and that the optimiser holds its parameters.

## When it is wrong
It is an identity. A log that prints fewer digits than its gradients have shows zeros too: then
updates are too small to matter. Pairs are not asked by their margin alone for that reason: no pair
of a batch may be ordered either way.

## References
- Rafailov et al. 2023, "Direct Preference Optimization", equation 7: -log sigmoid(0) is ln 2.
- modelscope/ms-swift issue 5890: gradients of 0 under one version of DeepSpeed.
- alibaba/ROLL issue 397: advantages of 0 with groups of one.
- stanleylsx/llms_tool issue 46: margins of exactly 0, and a loss of ln 2, in each row.
"""

import numpy as np

from rlvitals.metrics.catalogue.optimiser import GRAD_NORM, LEARNING_RATE, LOSS
from rlvitals.metrics.catalogue.preference import ACCURACY, CHOSEN_LOGP, MARGIN
from rlvitals.metrics.catalogue.reward import GROUP_STD, GROUP_ZERO_STD, MAX, MIN, STD
from rlvitals.metrics.catalogue.surrogate import ADVANTAGE_MAX, ADVANTAGE_MIN
from rlvitals.metrics.metric import Bound
from rlvitals.rules.books import shared_rows
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Undecided
from rlvitals.types import Profile, Series, Trace

MIN_GROUP_UPDATES = 2  # with rewards that differ within groups
MIN_BATCH_UPDATES = 5  # with rewards that differ within the batch
MASKED_LOSS_CAUSE = (
    "the loss masks every response: padding that is also the end token, a mask shifted by one"
)
FROZEN_PARAMETERS_CAUSE = "no parameter needs a gradient, or an adapter that is not in training"
WRAPPED_NORM_CAUSE = "the norm is taken where a distributed wrapper has no gradient"
SINGLE_RESPONSE_CAUSE = "groups of one response: its own mean is subtracted from its reward"
SPLIT_GROUPS_CAUSE = "responses to one prompt are put in groups of their own"


def check(trace: Trace) -> Answer:
    """Ask for gradients where groups differ, for advantages where scores do, and for margins."""
    if trace.profile is Profile.SUPERVISED:
        return _tied_pairs(trace)
    contrast = _contrast(trace)
    norm = trace.get(GRAD_NORM.name)
    spread = _spread_without_advantage(trace)
    if spread is not None:
        return spread
    if contrast is None or norm is None:
        wants = (GRAD_NORM.name, GROUP_ZERO_STD.name)
        lacks = "gradient norm and spread of a group's rewards are not both logged"
        return Undecided(lacks, wants)
    differing, min_updates = contrast
    _, rows, _ = np.intersect1d(norm.steps, differing.steps, return_indices=True)
    norms = norm.where(rows).finite()
    zero = norms.where(norms.values == 0)
    if len(zero) < min_updates or len(zero) < 0.9 * len(norms):  # of these updates
        return Clear()
    return Finding(
        f"the gradient is 0 in {len(zero):,} of {len(norms):,} updates in which rewards differ",
        severity=Severity.ERROR,
        metric=GRAD_NORM.name,
        began=int(zero.steps[0]),
        ended=int(zero.steps[-1]),
        observed=0.0,
        bound=Bound(0.0, "a gradient of exactly zero"),
        causes=(MASKED_LOSS_CAUSE, FROZEN_PARAMETERS_CAUSE, WRAPPED_NORM_CAUSE),
    )


def _tied_pairs(trace: Trace) -> Answer:
    # A reward model has pairs too, and no log-probabilities.
    names = (MARGIN.name, ACCURACY.name, CHOSEN_LOGP.name)
    missing = tuple(name for name in names if name not in trace)
    if missing:  # without a margin they are no pairs: nothing is asked for
        wants = missing if MARGIN.name in trace else ()
        return Undecided("no policy is compared with its reference on pairs", wants)
    margin, ordered = trace[MARGIN.name].finite(), trace[ACCURACY.name].finite()
    steps = np.intersect1d(margin.steps, ordered.steps)
    if LEARNING_RATE.name in trace:
        rate = trace[LEARNING_RATE.name].finite()
        steps = np.intersect1d(steps, rate.steps[rate.values > 0])
    steps = steps[1:]  # the first update comes after its batch is measured
    margins, shares = (s.values[np.searchsorted(s.steps, steps)] for s in (margin, ordered))
    if len(steps) < 3 or margins.any() or shares.any():
        return _equal_answers(trace) or Clear()
    return Finding(
        f"the margin between chosen and rejected is 0 in {len(steps):,} rows after the first: the"
        " policy is the reference still",
        severity=Severity.ERROR,
        metric=MARGIN.name,
        began=int(steps[0]),
        ended=int(steps[-1]),
        observed=0.0,
        bound=Bound(0.0, "a margin of exactly zero"),
        causes=(
            "the reference is the model that is trained: it moves along",
            FROZEN_PARAMETERS_CAUSE,
        ),
    )


def _equal_answers(trace: Trace) -> Finding | None:
    """Find pairs of one answer: each costs ln 2 whatever the policy, and counts as not won.

    A pair that is lost costs more than ln 2, one that is won by a margin of 5 less than 0.01.
    """
    if LOSS.name not in trace:
        return None
    steps, (losses, shares, margins) = shared_rows(
        [trace[metric.name].finite() for metric in (LOSS, ACCURACY, MARGIN)]
    )
    ties, each = 1 - shares, float(np.log(2))
    # A margin of 5 costs nothing, -log sigmoid(5) is 0.007; the mean is over all pairs.
    explained = (ties >= 0.1) & (margins > 5.0 * shares)
    explained &= np.abs(losses - each * ties) <= 0.01 * each * ties
    count = int(np.argmin(explained[::-1])) if not explained.all() else len(explained)
    if count < 3:
        return None
    share = float(ties[-count:].mean())
    return Finding(
        f"the loss of the last {count:,} rows is ln 2 times the share of pairs that are not won:"
        f" {share:.0%} of the pairs have a margin of 0, as those of two equal answers",
        severity=Severity.WARNING,
        metric=LOSS.name,
        began=int(steps[-count]),
        ended=int(steps[-1]),
        observed=float(losses[-count:].mean()),
        bound=Bound(each * share, "ln 2 times the share of pairs that are not won"),
        causes=(
            "one text as chosen and as rejected",
            "answers cut to what they have in common: a prompt that fills the length limit",
        ),
        remedies=(
            "count the pairs whose two token sequences are equal, after truncation",
            "leave them out, or raise the length limit",
        ),
    )


def _contrast(trace: Trace) -> tuple[Series, int] | None:
    """Return the updates in which rewards differ, and how many of them are needed."""
    for metric, min_updates in (
        (GROUP_ZERO_STD, MIN_GROUP_UPDATES),
        (GROUP_STD, MIN_GROUP_UPDATES),
        (STD, MIN_BATCH_UPDATES),
    ):
        if metric.name in trace and len(logged := trace[metric.name].finite()):
            differs = logged.values < 1 if metric.name == GROUP_ZERO_STD.name else logged.values > 0
            return logged.where(differs), min_updates
    return None


def _spread_without_advantage(trace: Trace) -> Finding | None:
    names = (ADVANTAGE_MAX.name, ADVANTAGE_MIN.name, MAX.name, MIN.name)
    if any(name not in trace for name in names):
        return None
    steps, (highest, lowest, best, worst) = shared_rows([trace[name].finite() for name in names])
    differs = best > worst
    if (
        differs.sum() < MIN_BATCH_UPDATES
        or np.any(highest[differs] != 0)
        or np.any(lowest[differs] != 0)
    ):
        return None
    return Finding(
        f"all advantages are 0 in {int(differs.sum()):,} updates in which rewards differ",
        severity=Severity.ERROR,
        metric=ADVANTAGE_MAX.name,
        began=int(steps[differs][0]),
        ended=int(steps[differs][-1]),
        observed=0.0,
        bound=Bound(0.0, "advantages of exactly zero"),
        causes=(SINGLE_RESPONSE_CAUSE, SPLIT_GROUPS_CAUSE),
    )


RULE = Rule(
    name="no-gradient",
    needs=(),
    needs_any=(GRAD_NORM, ADVANTAGE_MAX, MARGIN),
    at_least=MIN_GROUP_UPDATES,
    check=check,
    doc=__doc__,
    causes=(MASKED_LOSS_CAUSE, FROZEN_PARAMETERS_CAUSE, WRAPPED_NORM_CAUSE),
    remedies=(
        "print the mask of one batch: which tokens does the loss see?",
        "compare one parameter before and after an update",
        "check that {num_generations} is above 1, and how responses are grouped",
    ),
    # PSR and NSR leave out samples on one side of a threshold.
    profiles=(Profile.GRPO, Profile.SUPERVISED),
    explained_by=("judge-outage",),
    verdict="stalled",
    no_threshold=True,
)
