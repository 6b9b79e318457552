"""Most batches are dropped before their epochs are over, because the KL passed its limit.

## What it sees
`optimiser/updates` grows by fewer epochs per iteration than are set (`n_epochs`, or where that is
not known the most that any iteration took) in at least half of the iterations. Only where that
counter counts epochs, as Stable-Baselines3's PPO does. A note, unless the outcome is proven not
to improve: then a warning where nine in ten iterations end in their first two epochs.

## Why it matters
With a KL target set, an update that goes too far is stopped, and KL as it is logged looks well:
it hardly exceeds the target. The missing epochs are the trace that is left. A run that always
stops there uses each batch once at most: its steps are too large, or its target too small.

## What to do
If the run learns, nothing: that is what the target is for. Else lower the learning rate until
most epochs are run; or set fewer epochs and save the time.

## When it is wrong
Some recipes set many epochs and let the KL target choose how many: there stopping is meant.

## References
- Stable-Baselines3, `ppo/ppo.py`, `train`: stops above 1.5 x `target_kl`.
- Dossa et al. 2021, "An Empirical Investigation of Early Stopping Optimizations in PPO".
"""

import numpy as np

from rlvitals.metrics.catalogue.optimiser import UPDATES
from rlvitals.metrics.catalogue.progress import ITERATION
from rlvitals.metrics.metric import Bound
from rlvitals.rules import weigh
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold, Undecided
from rlvitals.rules.shapes import SHORT_WINDOW
from rlvitals.rules.standing import standing
from rlvitals.types import Profile, Series, Trace

MAX_CUT_SHARE = Threshold("updates-cut-short.share", 0.5, "share of iterations that stopped early")
# The epoch in which it stops is counted too: with one minibatch an epoch, KL is 0 in the first.
FIRST_EPOCHS = 2
EPOCH_ROUNDING = 0.5  # of an epoch


def check(trace: Trace) -> Answer:
    """Count epochs per iteration, and compare with what was set."""
    how = trace.measured[UPDATES.name].how if UPDATES.name in trace.measured else ""
    if "epochs" not in how:
        return Undecided("the counter of updates does not count epochs")
    epochs = _epochs(trace)
    if epochs is None or len(epochs) < SHORT_WINDOW:
        return Undecided("too few iterations are counted", (UPDATES.name, ITERATION.name))
    n_epochs = trace.number("n_epochs")
    planned = n_epochs if n_epochs is not None and n_epochs > 0 else float(epochs.values.max())
    origin = (
        "the run's n_epochs"
        if n_epochs is not None and n_epochs > 0
        else "the most of any iteration"
    )
    is_cut = epochs.values < planned - EPOCH_ROUNDING
    share = float(is_cut.mean())
    limit = MAX_CUT_SHARE.bound(trace, "default: every second iteration")
    if share < limit.value or not is_cut.any():
        return Clear()
    return _finding(trace, epochs, is_cut, Bound(planned, origin), limit)


def _epochs(trace: Trace) -> Series | None:
    """Return epochs per iteration, one value for each row after the first."""
    updates, iterations = trace[UPDATES.name].finite(), trace.get(ITERATION.name)
    if iterations is None:
        return None
    common = np.isin(updates.steps, iterations.steps)
    updates = updates.where(common)
    rows = np.searchsorted(iterations.steps, updates.steps)
    with np.errstate(all="ignore"):
        rate = np.diff(updates.values) / np.diff(iterations.values[rows])
    rows_after = updates.where(slice(1, None))
    epochs = Series(rows_after.steps, rows_after.times, rate).finite()
    return epochs.where(epochs.values >= 0)


def _finding(
    trace: Trace, epochs: Series, is_cut: np.typing.NDArray[np.bool_], planned: Bound, limit: Bound
) -> Finding:
    trend = standing(trace)
    evidence, counter = weigh.sides(trend)
    early_share = float((epochs.values <= FIRST_EPOCHS + EPOCH_ROUNDING).mean())
    # The share of iterations that end at once.
    is_useless = (
        early_share >= 0.9 and planned.value > FIRST_EPOCHS + EPOCH_ROUNDING and trend.stalls
    )
    short_rows = np.flatnonzero(is_cut)
    share = float(is_cut.mean())
    return Finding(
        f"{share:.0%} of the iterations stop before their {planned.value:g} epochs are over: "
        f"{np.median(epochs.values):.3g} in the median, {early_share:.0%} end in the first two",
        severity=Severity.WARNING if is_useless else Severity.NOTE,
        metric=UPDATES.name,
        began=int(epochs.steps[short_rows[0]]),
        ended=int(epochs.steps[short_rows[-1]]),
        observed=share,
        bound=limit,
        limit_on_curve=False,
        evidence=(f"epochs by {planned.origin}", *evidence),
        counter=counter,
    )


RULE = Rule(
    name="updates-cut-short",
    needs=(UPDATES,),
    at_least=SHORT_WINDOW,
    check=check,
    doc=__doc__,
    causes=(
        "a KL target that is set very low",
        "learning rate too high for the KL target",
        "more epochs than the target leaves room for",
    ),
    remedies=(
        "leave it, if the run learns",
        "raise target_kl towards 0.01-0.03, or lower the learning rate",
        "set fewer epochs",
    ),
    profiles=(Profile.CONTROL_PPO, Profile.SCHEDULER_PPO),
    explained_by=(
        "setting-out-of-range",
        "learning-rate-too-high",
        "learning-rate-jump",
        "kl-above-target",
    ),
    thresholds=(MAX_CUT_SHARE,),
)
