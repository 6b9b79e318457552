"""What the policy had learned was lost at a step at which no update had moved it.

## What it sees
A step at which the critic is suddenly and lastingly wrong (its loss above 4 x the median and
1.5 x the highest of the 20 points before, or the explained variance below its median by 0.3, in 4
of 5 points) and from which the outcome loses 30 % or more of what it had gained, while the policy
was quiet: KL per update and clip fraction up to that step no higher than twice what they had been
in the 20 points before, no spike of the KL among these, and no jump of the learning rate. An
error where half of the gain is lost for good, else a warning. Where no KL is logged (A2C), a steady
entropy of discrete actions and half of the loss within five rows stand for it, as a note.

## Why it matters
Returns that break can come from the policy or from the world. An update that breaks a policy
shows in its KL before the returns fall. Where the critic errs first and the policy has not moved,
what changed is outside: the environment, the sensors, the actuators, the reward, the data. No
setting of the algorithm repairs that.

## What to do
Compare both sides of that step: versions, configuration, stage of a curriculum, normaliser
statistics, sensors and action order, the reward function. Replay a stored episode through the
environment of today.

## When it is wrong
A curriculum makes a task harder on purpose. A first deep exploration of a new part of the world
surprises the critic too, but the return does not stay down. Without KL, clip fraction and
entropy, or without the critic's numbers, the two kinds of break look alike: the rule cannot
tell, and `return-collapse` speaks.

## References
- Padakandla et al. 2020, "Reinforcement learning algorithm for non-stationary environments".
- da Silva et al. 2006, "Dealing with non-stationary environments using context detection": a
  model that errs where it did not is the sign of a new world.
"""

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from rlvitals.metrics.exploration import ENTROPY
from rlvitals.metrics.metric import Bound
from rlvitals.metrics.optimiser import LEARNING_RATE
from rlvitals.metrics.policy import APPROX_KL, CLIP_FRACTION
from rlvitals.metrics.value import EXPLAINED_VARIANCE, LOSS
from rlvitals.records import Series, Trace
from rlvitals.rules import kinds
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold, Undecided
from rlvitals.rules.shapes import KL_SPIKE, jumps
from rlvitals.rules.standing import label, least_that_counts, outcome, up
from rlvitals.signals.finite import Array
from rlvitals.signals.rolling import medians_ending_at
from rlvitals.signals.spread import median

JUMP = Threshold(
    "environment-changed.jump", 4.0, "times the critic's recent loss that is a sudden error"
)
LOST = Threshold("environment-changed.lost", 0.3, "share of the gain that is lost")
GRAVE = 0.5  # of the gain: an error
HIGHEST = 1.5  # x the largest of the recent values: a spiky loss is none
DROP = 0.3  # of explained variance
PAST = 20  # points before
LASTS, WITHIN = 4, 5  # so many of so many points: an outlier is no change
QUIET = 2.0  # x the largest of the recent KL values
NEW_RATE = 2.0  # x a learning rate: steps of a schedule stay below
UP_TO = 2  # points before the break whose updates may have caused it
BEFORE = 5  # points of the outcome that tell its level
# Of the fall, in the first half of what is left: a mean over 100 episodes falls in a line.
BY_HALF = 1 / 3
BACK = 0.75  # of the fall: made good again
SHOWS, AT_ONCE = 0.1, 5  # of the fall, within so many points: a slow decline is the policy's own
# Updates that are large all the time may be to blame as well.
MODEST, CLIPPED = 0.03, 0.3  # nats, share of samples
NARROWS = 0.75  # x the entropy of discrete actions: a policy that was becoming certain
NEAR = 5  # points in which it would have become certain
TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, slots=True)
class _Fall:
    """What the outcome did after a break."""

    before: float
    low: float
    last: float
    gain: float  # what had been gained until the break
    at_once: bool  # half of the loss within a few points
    shown: int  # the step at which a tenth of the loss shows: until then no update may be to blame


def check(trace: Trace) -> Answer:
    """Find where the critic broke, ask what the outcome did and whether the policy had moved."""
    picked = outcome(trace)
    if picked is None:
        return Undecided("no outcome is logged", ("outcome/return",))
    logged = [s.finite() for m in (APPROX_KL, CLIP_FRACTION) if (s := trace.get(m.name))]
    moved = [s for s in logged if len(s)]
    if not moved and (LEARNING_RATE.name not in trace or not _discrete(trace)):
        why = "whether the policy had moved cannot be told"
        return Undecided(why, (APPROX_KL.name, CLIP_FRACTION.name))
    for step, said in _breaks(trace):
        fall = _fall(trace, *picked, step)
        if fall is None or _new_rate(trace, fall.shown) or _moves_much(trace, step):
            continue
        quiet = (_quiet(s, fall.shown) for s in moved)
        if all(quiet) if moved else fall.at_once and _steady(trace, step):
            return _finding(trace, picked[0], step, fall, said, told=bool(moved))
    return Clear()


def _discrete(trace: Trace) -> bool:
    entropy = trace.get(ENTROPY.name)
    return entropy is not None and bool((entropy.finite().values > 0).any())


def _breaks(trace: Trace) -> list[tuple[int, str]]:
    """List the steps from which the critic is lastingly wrong, first ones first."""
    found: list[tuple[int, str]] = []
    loss, ev = trace.get(LOSS.name), trace.get(EXPLAINED_VARIANCE.name)
    if loss is not None and len(series := loss.finite()) > PAST:
        for at in _sudden(series.values, JUMP.on(trace)):
            was = median(series.values[max(0, at - PAST) : at]) or 0.0
            worst = float(series.values[at : at + WITHIN].max())
            said = f"the value loss jumps there, from {was:.3g} to {worst:.3g}"
            found.append((int(series.steps[at]), said))
    if ev is not None and len(series := ev.finite()) > PAST:
        for at in _drops(series.values):
            was = median(series.values[max(0, at - PAST) : at]) or 0.0
            now = median(series.values[at : at + WITHIN]) or 0.0
            said = f"explained variance drops there, from {was:.2f} to {now:.2f}"
            found.append((int(series.steps[at]), said))
    return sorted(found)


def _sudden(values: Array, factor: float) -> list[int]:
    if values.size <= PAST:
        return []
    largest = sliding_window_view(values, PAST)[:-1].max(axis=1)
    at = PAST + np.flatnonzero(values[PAST:] > HIGHEST * largest)
    recent = medians_ending_at(values, at - 1, PAST, PAST // 2)
    limit = np.maximum(factor * recent, HIGHEST * largest[at - PAST])
    over = zip(at.tolist(), limit.tolist(), strict=True)
    return [i for i, most in over if values[i] > most and _lasts(values[i : i + WITHIN] > most)]


def _drops(values: Array) -> list[int]:
    padded = np.concatenate((np.full(PAST, -np.inf), values))
    largest = sliding_window_view(padded, PAST)[:-1].max(axis=1)
    at = np.flatnonzero((values < largest - DROP) & (largest > DROP))
    recent = medians_ending_at(values, at - 1, PAST, PAST // 2)
    limit = recent - DROP
    low = zip(at.tolist(), limit.tolist(), (recent > DROP).tolist(), strict=True)
    return [
        i
        for i, least, was_high in low
        if was_high and values[i] < least and _lasts(values[i : i + WITHIN] < least)
    ]


def _lasts(shown: Array) -> bool:
    return int(np.count_nonzero(shown)) >= LASTS


def _fall(trace: Trace, name: str, series: Series, step: int) -> _Fall | None:
    """Return how the outcome fell after a break; None where it did not."""
    until, after = series.until(step).values, series.since(step + 1).values
    if len(until) < BEFORE or len(after) < 2 * BEFORE:
        return None
    before = float(np.median(until[-BEFORE:]))
    gain = before - float(np.median(until[:BEFORE]))
    material, _ = least_that_counts(trace, name, series)
    soon = after[: max(2 * BEFORE, len(after) // 2)]
    low = float(np.median(np.sort(after)[: max(BEFORE, len(after) // 10)]))
    lost = before - low
    if gain <= material or lost < max(material, LOST.on(trace) * gain):
        return None
    if before - float(soon.min()) < lost * BY_HALF:
        return None
    # The fall must come from here: what came before the break was no lower than it.
    if float(until[-2 * BEFORE :].min()) < before - lost / 2:
        return None
    first = int(np.argmax(after < before - SHOWS * lost))
    # A row in which no episode ended repeats the one before: it does not count.
    moved = np.cumsum(np.diff(after, prepend=until[-1]) != 0)
    if moved[first] > AT_ONCE:
        return None
    shown = int(series.since(step + 1).steps[first])
    at_once = before - float(after[moved <= AT_ONCE].min(initial=before)) >= lost / 2
    return _Fall(before, low, float(np.median(after[-BEFORE:])), gain, at_once, shown)


def _quiet(series: Series, step: int) -> bool:
    """Tell whether the updates up to a step were no larger than those before them."""
    until = series.until(step)
    last, past = until.values[-UP_TO:], until.values[-PAST - UP_TO : -UP_TO]
    if len(past) < PAST // 2 or np.abs(last).max() > QUIET * np.abs(past).max():
        return False
    recent = len(until) - PAST - UP_TO
    return all(spike.index < recent for spike in jumps(until, *KL_SPIKE))


def _moves_much(trace: Trace, step: int) -> bool:
    most = {APPROX_KL.name: trace.number("target_kl") or MODEST, CLIP_FRACTION.name: CLIPPED}
    for name, limit in most.items():
        series = trace.get(name)
        recent = None if series is None else median(series.until(step).finite().values[-PAST:])
        if recent is not None and recent > limit:
            return True
    return _steady(trace, step) is False


def _steady(trace: Trace, step: int) -> bool | None:
    """Tell whether a policy of discrete actions stayed as certain as it was before the break."""
    entropy = trace.get(ENTROPY.name)
    values = np.empty(0) if entropy is None else entropy.until(step - 1).finite().values[-NEAR:]
    if len(values) < NEAR or values.min() < 0:
        return None
    return bool(NARROWS < values[-1] / max(float(values[0]), TINY) < 1.0 / NARROWS)


def _new_rate(trace: Trace, step: int) -> bool:
    rate = trace.get(LEARNING_RATE.name)
    if rate is None:
        return False
    near = rate.until(step).finite().values[-PAST:]
    return len(near) > 1 and bool(near[-UP_TO - 1 :].max() > NEW_RATE * near[0])


def _finding(  # noqa: PLR0913 - what broke, where, and how surely
    trace: Trace, name: str, step: int, fall: _Fall, said: str, *, told: bool
) -> Finding:
    sign, lost = up(name), fall.before - fall.low
    back = fall.last - fall.low > BACK * lost
    kl = trace.get(APPROX_KL.name)
    evidence = [said]
    if kl is not None and len(values := kl.until(step).finite().values):
        evidence.append(
            f"KL per update was {float(values[-UP_TO:].max()):.2g} there, up to "
            f"{float(values[-PAST:].max()):.2g} in the {PAST} updates before"
        )
    if not told:
        evidence.append("neither entropy nor learning rate had changed in the rows before")
    counter = ["the outcome has recovered since"] if back else []
    counter += [] if told else ["no KL is logged: weights lost at that step would look alike"]
    end = f"; it is back at {sign * fall.last:.4g}" if back else ""
    return Finding(
        f"{label(name)} breaks at step {step:,}, from {sign * fall.before:.4g} to "
        f"{sign * fall.low:.4g}, and no update had moved the policy: what it acts in has changed"
        f"{end}",
        severity=_severity(told=told, grave=not back and lost >= GRAVE * fall.gain),
        metric=name,
        began=step,
        ended=int(trace[name].steps[-1]),
        observed=sign * fall.last,
        bound=Bound(
            sign * (fall.before - LOST.on(trace) * fall.gain),
            f"{LOST.on(trace):.0%} of this run's own gain",
        ),
        evidence=tuple(evidence),
        counter=tuple(counter),
    )


def _severity(*, told: bool, grave: bool) -> Severity:
    if not told:
        return Severity.NOTE
    return Severity.ERROR if grave else Severity.WARNING


RULE = Rule(
    name="environment-changed",
    needs=(),
    needs_any=(LOSS, EXPLAINED_VARIANCE),
    at_least=PAST,
    check=check,
    doc=__doc__,
    causes=(
        "the environment, its version or a stage of its curriculum changed",
        "what the agent sees changed: sensors, normaliser statistics, a wrapper",
        "what it does is carried out differently: action order, scale, an actuator",
        "the reward function changed",
    ),
    remedies=(
        "compare configuration, versions and data on both sides of that step",
        "replay a stored episode and compare observations and rewards",
        "go back to the checkpoint before it once the cause is mended",
    ),
    profiles=kinds.ACTOR_CRITIC,
    verdict="collapsed",
    thresholds=(JUMP, LOST),
)
