"""A number that training computes is no number any more: NaN or infinite.

## What it sees
NaN or infinity, logged as such, in a loss, KL, ratio, gradient or weight norm. An error where the
last 3 points of the metric are (all, where there are fewer), or more than a fifth of all are; else
a note. An error as well where every loss is NaN in the last row and was a number in each row
before, unless the run is known to go on or its budget is reached; without a budget there have to be
two such losses. The rest has its own measure. A gradient norm that is infinite now and then is
mixed precision's loss scaler skipping a step, a note at most; where 8 of the last 20 are, more than
before, or the loss scale was halved so often, no scale is found and most updates are skipped: a
warning. Explained variance that is NaN in a fifth of the points says that returns had no variance,
a note; a mean return that is NaN says that no episode ended, unless the length of the episodes is a
number in the same rows: then the reward itself is NaN, an error where it lasts to the end. An
entropy or a length that is missing says nothing. A metric that never was a number was not computed:
a note, unless every loss is such a metric and not everything else is, or both the loss of a policy
or a critic and its gradient norm are: then that network trains on NaN.

## Why it matters
Once a weight is NaN, every output is, and no later update can mend it. What was trained since
then is lost; what was saved since then must not be resumed from.

## What to do
Restart from a checkpoint before the step at which it began. Lower the learning rate, clip
gradients, and look for what divides by zero: a standard deviation of equal rewards, a logarithm
of 0, a mask over everything, a reward or an observation that is NaN itself.

## When it is wrong
A metric that is not computed in every update should be left out of the log, not logged as NaN:
where only one unimportant metric is NaN, look there first. The reverse happens too: Stable-
Baselines3 stops with an exception before a NaN row is written, transformers' `Trainer` replaces a
NaN loss by 0 in its log, and some writers turn NaN into 0.

## References
- Micikevicius et al. 2018, "Mixed Precision Training", section 3.2, on skipped steps.
- transformers, `TrainingArguments.logging_nan_inf_filter`.
"""

from dataclasses import replace

import numpy as np

from rlvitals.metrics.absence import describe_absence
from rlvitals.metrics.catalogue.optimiser import (
    CRITIC_GRAD_NORM,
    EVAL_LOSS,
    GRAD_NORM,
    LOSS,
    LOSS_SCALE,
    WEIGHT_NORM,
)
from rlvitals.metrics.catalogue.outcome import EPISODE_LENGTH, RETURN
from rlvitals.metrics.catalogue.policy import (
    APPROX_KL,
    KL_TO_REFERENCE,
    KL_TO_REFERENCE_PER_TOKEN,
    KL_TO_WARM_START,
    RATIO,
)
from rlvitals.metrics.catalogue.policy import LOSS as POLICY_LOSS
from rlvitals.metrics.catalogue.value import EXPLAINED_VARIANCE, MSE_EXPLAINED_VARIANCE
from rlvitals.metrics.catalogue.value import LOSS as VALUE_LOSS
from rlvitals.metrics.catalogue.value import LOSS_SUM as VALUE_LOSS_SUM
from rlvitals.metrics.catalogue.value import MEAN as VALUE_MEAN
from rlvitals.metrics.metric import Bound
from rlvitals.rules.going_on import goes_on, reaches_budget
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Undecided
from rlvitals.types import Series, Trace

# In the order of their weight: the first that fails names the finding.
FINITE_METRICS = (
    WEIGHT_NORM,
    LOSS,
    POLICY_LOSS,
    VALUE_LOSS,
    VALUE_LOSS_SUM,
    APPROX_KL,
    RATIO,
    KL_TO_REFERENCE,
    KL_TO_WARM_START,
    KL_TO_REFERENCE_PER_TOKEN,
    VALUE_MEAN,
    GRAD_NORM,
    EVAL_LOSS,
)
LOSS_NAMES = tuple(metric.name for metric in (LOSS, POLICY_LOSS, VALUE_LOSS, VALUE_LOSS_SUM))
# Logged without training.
UNTRAINED_PREFIXES = ("throughput/", "progress/", "optimiser/learning_rate")
MIN_LASTING_NANS = 3  # points at the end: one may be an overflow that the next update corrects
MAX_NAN_SHARE = 0.2  # of all points
MAX_SKIPPED_UPDATES = 8  # of `SKIP_WINDOW` updates: a loss scaler settles in fewer
SKIP_WINDOW = 20  # updates
FINITE_BOUND = Bound(0.0, "no such point belongs in a log")


def check(trace: Trace) -> Answer:
    """Judge each watched metric by itself; the gravest answer counts, the earliest of equals."""
    logged_metrics = [
        (m.name, trace[m.name]) for m in FINITE_METRICS if len(trace.get(m.name) or ())
    ]
    findings = [
        f for name, series in logged_metrics if (f := _judge(trace, name, series)) is not None
    ]
    findings += [f for f in (_storm(trace), _nan_return(trace)) if f is not None]
    if (at_end := _nan_at_end(trace)) is not None:
        return _add_findings(at_end, findings)
    if findings:
        worst = max(f.severity for f in findings)
        first = min((f for f in findings if f.severity == worst), key=lambda f: f.began)
        return _add_findings(first, findings)
    for metric in (EXPLAINED_VARIANCE, MSE_EXPLAINED_VARIANCE):
        series = trace.get(metric.name)
        if series is not None and (note := _no_variance(metric.name, series)):
            return note
    if not logged_metrics:
        nothing = "no loss, KL or gradient norm is logged"
        return Undecided(
            describe_absence(trace, nothing, *FINITE_METRICS), (LOSS.name, GRAD_NORM.name)
        )
    return Clear()


def _judge(trace: Trace, name: str, logged: Series) -> Finding | None:
    numbers = np.flatnonzero(~np.isnan(logged.values))
    computed = bool(numbers.size) or _trains_on_nan(trace, name)
    # What is no number yet has not been computed yet.
    series = logged.since(int(logged.steps[numbers[0]])) if numbers.size else logged
    bad = ~np.isfinite(series.values)
    if not bad.any():
        return None
    good = np.flatnonzero(~bad)
    tail = len(series) - (int(good[-1]) + 1 if good.size else 0)
    is_frequent = float(bad.mean()) > MAX_NAN_SHARE and (tail > 0 or name != GRAD_NORM.name)
    lasts = is_frequent or tail >= min(MIN_LASTING_NANS, len(series))
    nan = bool(np.isnan(series.values[bad]).any())
    first = int(bad.argmax()) if not lasts or tail == 0 else len(series) - tail
    bad_rows = np.flatnonzero(bad)
    kind = "NaN" if nan else "infinite"
    severity = Severity.ERROR if lasts and computed else Severity.NOTE
    to_the_end = f", {tail} of them from step {series.steps[first]:,} to the end"
    return Finding(
        f"{name} is {kind} in {bad_rows.size} of {len(series)} points"
        f"{to_the_end if tail and lasts else ''}",
        severity=severity,
        metric=name,
        began=int(series.steps[first]),
        ended=int(series.steps[bad_rows[-1]]),
        observed=float(series.values[bad_rows[-1]]),
        bound=FINITE_BOUND,
        counter=_counter(computed=computed, recovered=not (lasts or tail)),
    )


def _counter(*, computed: bool, recovered: bool) -> tuple[str, ...]:
    if not computed:
        return ("it never was a number: it may not be computed in this run, or not be read",)
    return ("it was a number again afterwards",) if recovered else ()


def _trains_on_nan(trace: Trace, name: str) -> bool:
    """Return True if a metric that never was a number is a loss of a run that trains on NaN.

    No loss of such a run is ever finite, and something else that it measures is: a log in which
    no metric is a number was not read. A loss whose own gradient norm never is finite is enough.
    """
    gradient = {VALUE_LOSS.name: CRITIC_GRAD_NORM.name, POLICY_LOSS.name: GRAD_NORM.name}.get(name)
    norms = trace.get(gradient) if gradient else None
    if norms is not None and len(norms) and np.isnan(norms.values).all():
        return True
    losses = [trace[loss] for loss in LOSS_NAMES if len(trace.get(loss) or ())]
    if name not in LOSS_NAMES or any(np.isfinite(loss.values).any() for loss in losses):
        return False
    other_finite = [
        np.isfinite(series.values).any()
        for other_name, series in trace.series.items()
        if other_name not in LOSS_NAMES and not other_name.startswith(UNTRAINED_PREFIXES)
    ]
    return any(other_finite) or not other_finite


def _nan_return(trace: Trace) -> Finding | None:
    """Return the finding of episodes that ended, as their length is logged, with a NaN return."""
    returns, lengths = trace.get(RETURN.name), trace.get(EPISODE_LENGTH.name)
    if returns is None or lengths is None or not np.isfinite(returns.values).any():
        return None
    first = int(np.isfinite(returns.values).nonzero()[0][-1]) + 1
    has_length = np.isin(returns.steps[first:], lengths.finite().steps)
    if len(returns) - first < MIN_LASTING_NANS or not has_length.all():
        return None
    onset_step, last = int(returns.steps[first]), int(returns.steps[-1])
    return Finding(
        f"{RETURN.name} is NaN in the last {len(returns) - first} of {len(returns)} points, from "
        f"step {onset_step:,} on, while {EPISODE_LENGTH.name} is a number: rewards are NaN",
        severity=Severity.ERROR,
        metric=RETURN.name,
        began=onset_step,
        ended=last,
        observed=float("nan"),
        bound=FINITE_BOUND,
        causes=("a reward that is NaN: a division by zero, a logarithm of 0, a missing value",),
        remedies=("check the reward function's inputs at the step before it began",),
    )


def _nan_at_end(trace: Trace) -> Finding | None:
    """Tell a log that ends early in a row where every loss has just become NaN.

    One such row may be an overflow that the next update mends. Here no next update came: the run
    has failed, unless it is known to go on or to have done all its steps.
    """
    losses = {name: trace[name] for name in LOSS_NAMES if len(trace.get(name) or ())}
    if not losses or goes_on(trace) or reaches_budget(trace):
        return None
    # Without a budget the log may just end with one.
    if len(losses) < (2 if trace.budget is None else 1):
        return None
    ends = {name: int(series.steps[-1]) for name, series in losses.items()}
    # Rows without losses hold NaN in some tables: then it stands in earlier rows as well.
    only_last = all(
        np.isnan(s.values[-1]) and len(s) > 1 and np.isfinite(s.values[:-1]).all()
        for s in losses.values()
    )
    if not only_last or len({*ends.values()}) > 1:
        return None
    name, step = next(iter(ends.items()))
    of = "" if trace.budget is None else f" of {trace.budget.steps:,}"
    subject = "the loss is" if len(losses) == 1 else f"all {len(losses)} losses are"
    return Finding(
        f"{subject} NaN in the last row, at step {step:,}{of}: the log ends there",
        severity=Severity.ERROR,
        metric=name,
        began=step,
        ended=step,
        observed=float("nan"),
        bound=FINITE_BOUND,
        evidence=(f"NaN: {', '.join(losses)}",) if len(losses) > 1 else (),
    )


def _storm(trace: Trace) -> Finding | None:
    """Tell a loss scaler that finds no scale from one that skips a step now and then."""
    for metric, description in (
        (GRAD_NORM, "gradient norms are infinite"),
        (LOSS_SCALE, "times halved"),
    ):
        series = trace.get(metric.name)
        if series is None or len(series) < 2 * SKIP_WINDOW:
            continue
        values = series.values
        if metric is GRAD_NORM:
            bad = np.isinf(values)
        else:
            with np.errstate(divide="ignore", invalid="ignore"):
                # A loss scaler halves its scale.
                bad = np.append(False, values[1:] / values[:-1] <= 0.5 + 1e-6)
        skips = int(bad[-SKIP_WINDOW:].sum())
        if skips < MAX_SKIPPED_UPDATES or bad[:-SKIP_WINDOW].mean() >= skips / SKIP_WINDOW:
            continue
        first = len(values) - SKIP_WINDOW + int(bad[-SKIP_WINDOW:].argmax())
        return Finding(
            f"mixed precision finds no loss scale: {skips} of the last {SKIP_WINDOW} "
            f"{description}, {bad[:-SKIP_WINDOW].mean():.0%} of those before: "
            "these updates are skipped",
            severity=Severity.WARNING,
            metric=metric.name,
            began=int(series.steps[first]),
            ended=int(series.steps[-1]),
            observed=skips / SKIP_WINDOW,
            bound=Bound(MAX_SKIPPED_UPDATES / SKIP_WINDOW, "share of the last updates, default"),
            limit_on_curve=False,
            causes=(
                "gradients overflow float16 at every scale: they grow, or the loss is not finite",
            ),
            remedies=("train in bfloat16 or float32 instead of float16",),
        )
    return None


def _add_findings(first: Finding, findings: list[Finding]) -> Finding:
    other_summaries = tuple(f.summary for f in findings if f is not first)
    return replace(first, evidence=other_summaries)


def _no_variance(name: str, series: Series) -> Finding | None:
    """Say what a NaN explained variance means: its denominator is the returns' variance."""
    bad = np.flatnonzero(~np.isfinite(series.values))
    if bad.size <= MAX_NAN_SHARE * len(series):
        return None
    return Finding(
        f"{name} is no number in {bad.size} of {len(series)} points: returns have zero variance",
        severity=Severity.NOTE,
        metric=name,
        began=int(series.steps[bad[0]]),
        ended=int(series.steps[bad[-1]]),
        observed=bad.size / len(series),
        bound=Bound(MAX_NAN_SHARE, "default"),
        limit_on_curve=False,
        causes=("all rewards are equal", "gamma = 0 with a constant reward"),
        remedies=("look at the rewards: what is there to be learnt from them?",),
    )


RULE = Rule(
    name="not-a-number",
    needs=(),
    check=check,
    doc=__doc__,
    causes=(
        "learning rate too high, or no gradient clipping",
        "a division by zero or a logarithm of 0 in the loss",
        "a reward or an observation that is NaN",
        "overflow in half precision",
    ),
    remedies=(
        "restart from a checkpoint before the step at which it began",
        "lower {learning_rate} and {max_grad_norm:clip gradients}",
        "check rewards and observations for NaN where they enter",
        "train in bfloat16 or float32 instead of float16",
    ),
    explained_by=(
        "setting-out-of-range",
        "gradient-explosion",
        "learning-rate-jump",
        "kl-spike",
        "policy-loss-explosion",
        "value-loss-explosion",
        "learning-rate-too-high",
    ),
    verdict="failed",
)
