"""An easy part of the reward makes the gain, and the part that matters gets nothing.

## What it sees
Reward parts beside one whose name says that it checks the answer (correct, accuracy, success, pass,
solve). Each part's gain is its change from the first to the last fifth of the run, times its weight
as the logged total tells it. Where one other part is proven to rise and makes more than three
quarters of all gains, and the part that checks the answer is proven to stall or to fall over the
last half of the run, a warning; where its course cannot be told, a note. Nothing where it rises
too, or answers are right: the format is learned first in nearly every run.

## Why it matters
The optimiser takes what is cheapest. A format, a length or a style is learned in a few updates, and
where it pays as much as the answer there is little left to learn the answer for.

## What to do
Pay the easy part only where the answer is right, or lower its weight until the answer's part has
the larger spread within a group; take it out once it is learned. Read responses: the part may
be earned in a way that nobody meant.

## When it is wrong
The part that matters may have a name that does not say so: then this is not asked. A curriculum
that hardens holds the share of right answers flat while the policy gets better.

## References
- Skalse et al. 2022, "Defining and Characterizing Reward Hacking".
- Shao et al. 2024, "DeepSeekMath", rewards composed of parts.
"""

import numpy as np

from rlvitals.metrics.catalogue.outcome import REWARD
from rlvitals.metrics.catalogue.reward import COMPONENT
from rlvitals.metrics.reward_names import SOLVED_SHARE
from rlvitals.rules import kinds
from rlvitals.rules.answers import learning_trend, list_answer_checks
from rlvitals.rules.books import shared_rows
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold, Undecided
from rlvitals.rules.standing import Standing, label
from rlvitals.rules.weigh import content
from rlvitals.signals.level import first_last_change
from rlvitals.signals.spread import noise_sd
from rlvitals.signals.trend import trend
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Series, Trace

MAX_PART_GAIN_SHARE = Threshold(
    "component-dominates.share", 0.75, "share of all gains that one part makes"
)
MIN_PART_UPDATES = 40
MIN_EXPLAINED_REWARD_SHARE = 0.9  # of the total's variance: the fitted weights are credible


@dataclass(frozen=True, slots=True)
class Gain:
    """What one part of the reward gained over the run."""

    name: str
    first: float
    last: float
    weighted: float


def check(trace: Trace) -> Answer:
    """Find the part that makes the gain, then ask what the answer's part does."""
    primary = [
        (n, s.finite()) for n, s in list_answer_checks(trace) if len(s.finite()) >= MIN_PART_UPDATES
    ]
    if not primary:
        return Undecided("no reward part is named for right answers", (COMPONENT.name,))
    parts = {
        name: points
        for name, series in trace.series.items()
        if name.startswith(f"{COMPONENT.name}/")
        and len(points := series.finite()) >= MIN_PART_UPDATES
    }
    other_names = [n for n in parts if n not in {name for name, _ in primary}]
    gains = _gains(trace, parts)
    total = sum(max(gain.weighted, 0.0) for gain in gains)
    best = max((g for g in gains if g.name in other_names), key=lambda g: g.weighted, default=None)
    if best is None and REWARD.name not in trace:
        return Undecided("no other part of the reward is logged", (COMPONENT.name,))
    if best is None or total <= 0 or best.weighted <= MAX_PART_GAIN_SHARE.on(trace) * total:
        return _clear_if_complete(trace, parts)
    if not _rises(parts[best.name], best):
        return _clear_if_complete(trace, parts)
    return _judge(trace, primary[0], best, best.weighted / total)


def _clear_if_complete(trace: Trace, parts: dict[str, Series]) -> Answer:
    """Clear the parts that are logged, unless the total shows that others are not."""
    reward = trace.get(REWARD.name)
    total = None if reward is None else reward.finite().values
    if total is not None and len(total) and np.ptp(total) > 0 and not _weights(trace, parts):
        return Undecided("the logged parts do not make up the reward", (COMPONENT.name,))
    return Clear()


def _gains(trace: Trace, parts: dict[str, Series]) -> list[Gain]:
    weights = _weights(trace, parts)
    gains = []
    for name, series in parts.items():
        levels = first_last_change(series.values)
        if levels is not None:
            change = weights.get(name, 1.0) * (levels[1] - levels[0])
            gains.append(Gain(name, *levels, change))
    return gains


def _weights(trace: Trace, parts: dict[str, Series]) -> dict[str, float]:
    """Solve total = sum of weight x part; empty where the parts do not explain the total."""
    total = trace.get(REWARD.name)
    if total is None:
        return {}
    steps, (y, *columns) = shared_rows([total.finite(), *parts.values()])
    if len(steps) < MIN_PART_UPDATES:
        return {}
    design = np.column_stack((*columns, np.ones(len(steps))))
    weights = np.linalg.lstsq(design, y)[0]
    residual = y - design @ weights
    if float(residual @ residual) > (1 - MIN_EXPLAINED_REWARD_SHARE) * float(
        np.square(y - y.mean()).sum()
    ):
        return {}
    return {name: float(w) for name, w in zip(parts, weights, strict=False)}


def _rises(series: Series, gain: Gain) -> bool:
    noise = noise_sd(series.values) or 0.0
    fit = trend(series.values)
    clear = gain.last - gain.first > 3.0 * noise  # standard deviations of the noise between points
    # A part that is earned in full after a few updates is no straight line: its noise is gone too.
    return clear and (fit is None or fit.change_low > 0 or noise == 0.0 or _jumps(series, gain))


def _jumps(series: Series, gain: Gain) -> bool:
    half = series.tail(len(series) // 2).values
    return bool(half.min() > gain.first + (gain.last - gain.first) / 2)


def _judge(trace: Trace, primary: tuple[str, Series], best: Gain, share: float) -> Answer:
    name, series = primary
    half = int(series.steps[len(series) // 2])
    full_trend, late_trend = learning_trend(trace), learning_trend(trace, since=half)
    right = float(series.tail(len(series) // 5).values.mean())
    if right >= SOLVED_SHARE or full_trend.improves or content(late_trend):
        return Clear()
    stalls = late_trend.stalls or full_trend.state in ("falling", "fallen back")
    if not stalls and late_trend.state != "unknown":
        return Clear()
    name_text = label(name)
    shown_trend: Standing = full_trend if full_trend.stalls or not late_trend.stalls else late_trend
    return Finding(
        f"{label(best.name)} makes {share:.0%} of what the reward gained, {best.first:.3g} to "
        f"{best.last:.3g}, and {name_text} gets nothing",
        severity=Severity.WARNING if stalls else Severity.NOTE,
        metric=best.name,
        began=int(trace[best.name].finite().steps[0]),
        ended=int(series.steps[-1]),
        observed=share,
        bound=MAX_PART_GAIN_SHARE.bound(trace, "default: share of all gains"),
        limit_on_curve=False,
        evidence=(shown_trend.sentence,),
    )


RULE = Rule(
    name="component-dominates",
    needs=(),
    needs_any=(COMPONENT,),
    at_least=MIN_PART_UPDATES,
    check=check,
    doc=__doc__,
    causes=(
        "an easy part of the reward pays as much as the answer",
        "the answer's part is out of reach: too hard, or its check never matches",
    ),
    remedies=(
        "read responses from the end of the run",
        "pay the easy part only where the answer is right, or lower its weight",
        "take the easy part out once it is learned",
    ),
    profiles=kinds.LANGUAGE,
    explained_by=("judge-outage", "learning-rate-jump"),
    thresholds=(MAX_PART_GAIN_SHARE,),
)
