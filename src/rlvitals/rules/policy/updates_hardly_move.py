"""Updates are too small to change the policy, while the outcome gets no better.

## What it sees
Over the second half of the run the median of `policy/approx_kl` below 1e-4 nats and the median of
`policy/clip_fraction` below 0.005, where both are logged (one alone is weaker: then at most a
note), with an outcome proven not to improve, and not at its ceiling.

## Why it matters
A policy that does not move does not learn. A KL of zero looks like perfect stability.

## What to do
Raise the learning rate; weaken a KL penalty; loosen the clip range. If the gradient is clipped
in every update the value loss may be using up its budget: lower the value coefficient. If the
advantages are zero (a constant reward) nothing of that helps.

## When it is wrong
At the end of a schedule that anneals the learning rate to zero small updates are meant: while
the learning rate is below 30 % of its peak this rule is silent. Language models learn at a KL of
1e-5 to 1e-3: the rule is not asked there. A clamped estimator hides movement.

## References
- Engstrom et al. 2020, "Implementation Matters in Deep Policy Gradients".
"""

from rlvitals.metrics.metric import Bound
from rlvitals.metrics.optimiser import LEARNING_RATE
from rlvitals.metrics.policy import APPROX_KL, CLIP_FRACTION
from rlvitals.records import Profile, Series, Trace
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Undecided
from rlvitals.rules.shapes import last_stretch_below
from rlvitals.rules.standing import standing
from rlvitals.signals.spread import median

TINY_KL = Bound(1e-4, "default: a hundredth of the usual target")
FEW = Bound(0.005, "default: a twentieth of the lower end of 0.1-0.3")
ANNEALED = 0.3  # of the learning rate's peak


def check(trace: Trace) -> Answer:
    """Judge the second half of the run: a slow start is none of this rule's business."""
    half = trace.first_step + (trace.last_step - trace.first_step) // 2
    if _annealed(trace):
        return Undecided("the learning rate has been annealed: small updates are meant")
    kl, clip = _late(trace, APPROX_KL.name, half), _late(trace, CLIP_FRACTION.name, half)
    still = [kl is not None and kl <= TINY_KL.value, clip is not None and clip < FEW.value]
    logged = [kl is not None, clip is not None]
    if not any(logged):
        return Undecided("too few updates in the second half", (APPROX_KL.name, CLIP_FRACTION.name))
    clamped = "clamped" in getattr(trace.measured.get(APPROX_KL.name), "estimator", "")
    if not (still[1] if clamped and logged[1] else still == logged):
        return Clear()
    now = standing(trace, since=half)
    if now.state == "at its ceiling":
        return Clear()
    if not now.stalled:
        return Undecided(f"updates are small, but {now.sentence}", ("outcome/return",))
    return _finding(trace, kl, clip, now.sentence, lone=not all(logged))


def _annealed(trace: Trace) -> bool:
    rate = trace.get(LEARNING_RATE.name)
    if rate is None or not len(rate := rate.finite()):
        return False
    return bool(rate.values[-1] < ANNEALED * rate.values.max())


def _late(trace: Trace, name: str, half: int) -> float | None:
    series = trace.get(name)
    late = None if series is None else series.since(half).finite()
    return median(late.values) if late is not None and len(late) >= 5 else None  # noqa: PLR2004


def _finding(
    trace: Trace, kl: float | None, clip: float | None, outcome: str, *, lone: bool
) -> Finding:
    by_clip = clip is not None
    name, bound = (CLIP_FRACTION.name, FEW) if by_clip else (APPROX_KL.name, TINY_KL)
    series: Series = trace[name].finite()
    stretch = last_stretch_below(series, max(bound.value, float(series.values[-5:].max()) * 1.01))
    parts = []
    if clip is not None:
        parts.append(f"{clip:.2%} of samples are clipped (never above {series.values.max():.3g})")
    if kl is not None:
        parts.append(f"KL per update is {kl:.1e} nats")
    return Finding(
        f"updates hardly move the policy: {'; '.join(parts)} (medians of the second half)",
        severity=Severity.NOTE if lone else Severity.WARNING,
        metric=name,
        began=stretch.began if stretch else int(series.steps[0]),
        ended=int(series.steps[-1]),
        observed=clip if clip is not None else kl or 0.0,
        bound=bound,
        evidence=(f"meanwhile {outcome}",),
    )


RULE = Rule(
    name="updates-hardly-move",
    needs=(),
    needs_any=(APPROX_KL, CLIP_FRACTION),
    at_least=10,
    check=check,
    doc=__doc__,
    causes=(
        "learning rate too low",
        "KL penalty too strong",
        "advantages near zero: a constant reward or a dead signal",
        "value loss uses up the gradient's clipped norm",
    ),
    remedies=(
        "raise {learning_rate}",
        "lower {kl_coef} to allow larger updates",
        "check that the reward varies within a batch",
        "lower {value_coef} or split the optimisers",
    ),
    profiles=(Profile.CONTROL_PPO, Profile.SCHEDULER_PPO),
    explained_by=("action-collapse", "entropy-collapse"),
)
