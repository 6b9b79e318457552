"""What the policy had learned was lost at a step at which no update had moved it.

## What it sees
A step at which the critic is suddenly and lastingly wrong (its loss above 4 x the median and 1.5 x
the highest of the 20 points before, or the explained variance below its median by 0.3, in 4 of 5
points, and the loss at least a hundredth of its highest level so far: at a return that never varies
it is next to nothing, and the policy's own first failures make it creep up) and from which the
outcome loses 30 % or more of what it had gained (5 % where the critic never gets over it: both its
loss and its explained variance stay worse in nine of ten points), while the policy was quiet: KL
per update (beyond 0.03 or the target) and clip fraction up to there no higher than twice what they
had been in the 20 points before, no spike of the KL in the last of these, and no jump of the
learning rate. The outcome must show it within five points, or, where it is a mean over W episodes,
within a tenth of W x the length of those that follow, and must not fall for longer than such a mean
needs to forget: what gets worse from update to update is the policy. So is an outcome that had
begun to fall before explained variance drops while the value loss halves: returns that are all
alike leave nothing to explain. An error where half of the gain is lost for good, else a warning.
Where no KL is logged (A2C), a steady entropy of discrete actions and half of the loss within five
rows stand for it, as a note.

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

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from rlvitals.metrics.absence import describe_absence
from rlvitals.metrics.catalogue.exploration import ENTROPY
from rlvitals.metrics.catalogue.optimiser import LEARNING_RATE
from rlvitals.metrics.catalogue.policy import APPROX_KL, CLIP_FRACTION
from rlvitals.metrics.catalogue.value import EXPLAINED_VARIANCE, LOSS
from rlvitals.metrics.metric import Bound
from rlvitals.rules import kinds
from rlvitals.rules.episode_window import OUTCOME_LEVEL_POINTS, memory
from rlvitals.rules.falling import PROMPT_POINTS, VISIBLE_LOSS_SHARE, Fall, fall
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold, Undecided
from rlvitals.rules.shapes import KL_SPIKE_LIMITS, jumps
from rlvitals.rules.standing import label, least_that_counts, outcome, standing, up
from rlvitals.signals.blocks import block_means
from rlvitals.signals.finite import Array
from rlvitals.signals.rolling import medians_ending_at
from rlvitals.signals.spread import median, noise_sd
from rlvitals.types import Series, Trace

LOSS_JUMP_FACTOR = Threshold(
    "environment-changed.jump", 4.0, "times the critic's recent loss that is a sudden error"
)
MIN_LOST_GAIN = Threshold("environment-changed.lost", 0.3, "share of the gain that is lost")
MIN_PEAK_FACTOR = 1.5  # x the largest recent value: spikes of a loss stay below
# Of what the critic's loss was before: at a return that is always the same it is next to nothing,
# and the first episodes that end otherwise multiply it. That is the policy's doing.
MIN_EV_DROP = 0.3  # of explained variance
MIN_CHANGE_GAIN, MIN_CHANGE_SCATTERS = 0.05, 5.0  # of the gain; x the noise between points
RECENT_POINTS = 20  # before the break
BREAK_POINTS = 5  # after the break
CAUSE_POINTS = 2  # before the break: their updates may have caused it
START_POINTS = 5  # of the outcome: their median is a level
# Of the fall, in the first half of what is left: a mean over 100 episodes falls in a line.
# Updates that are large all the time may be to blame as well.
ORDINARY_KL, ORDINARY_CLIP_FRACTION = 0.03, 0.3  # nats, share of samples
MIN_ENTROPY_RATIO = 0.75  # of discrete actions, over CERTAINTY_POINTS: lower is more certain
CERTAINTY_POINTS = 5


def check(trace: Trace) -> Answer:
    """Find where the critic broke, ask what the outcome did and whether the policy had moved."""
    picked = outcome(trace)
    if picked is None:
        return Undecided(standing(trace).why, ("outcome/return",))
    kl, clip = (trace.numbers(metric.name) for metric in (APPROX_KL, CLIP_FRACTION))
    by_kl = not (kl is None and clip is None)
    if not by_kl and (LEARNING_RATE.name not in trace or not _discrete(trace)):
        reason = "whether the policy had moved cannot be told"
        return Undecided(reason, (APPROX_KL.name, CLIP_FRACTION.name))
    for step, last, text in _breaks(trace):
        fall_there = _fall(trace, *picked, step)
        if (
            fall_there is None
            or _new_rate(trace, fall_there.visible_step)
            or _moves_much(trace, step)
        ):
            continue
        if _errs_less(trace, step) and _sank(picked[1], step, fall_there):
            continue
        if _one_episode(trace, *picked, fall_there):
            continue
        quiet = _quiet(trace, kl, clip, fall_there, step, min(last, fall_there.visible_step))
        if quiet if by_kl else fall_there.half and _steady(trace, step):
            return _finding(trace, picked, step, fall_there, text, by_kl=by_kl)
    return Clear()


def _discrete(trace: Trace) -> bool:
    entropy = trace.get(ENTROPY.name)
    return entropy is not None and bool((entropy.finite().values > 0).any())


def _breaks(trace: Trace) -> list[tuple[int, int, str]]:
    """List the steps from which the critic is lastingly wrong, first ones first.

    With each the last step whose update may be to blame: explained variance is taken before the
    update that is logged with it, the loss during it.
    """
    breaks: list[tuple[int, int, str]] = []
    loss, ev = trace.get(LOSS.name), trace.get(EXPLAINED_VARIANCE.name)
    if loss is not None and len(series := loss.finite()) > RECENT_POINTS:
        for index in _find_jumps(series.values, LOSS_JUMP_FACTOR.on(trace)):
            was = median(series.values[max(0, index - RECENT_POINTS) : index]) or 0.0
            worst = float(series.values[index : index + BREAK_POINTS].max())
            if _faint(series.values, index, worst):
                continue
            text = f"the value loss jumps there, from {was:.3g} to {worst:.3g}"
            breaks.append((int(series.steps[index]), int(series.steps[index]), text))
    if ev is not None and len(series := ev.finite()) > RECENT_POINTS:
        for index in _drops(series.values):
            was = median(series.values[max(0, index - RECENT_POINTS) : index]) or 0.0
            level = median(series.values[index : index + BREAK_POINTS]) or 0.0
            text = f"explained variance drops there, from {was:.2f} to {level:.2f}"
            breaks.append((int(series.steps[index]), int(series.steps[index - 1]), text))
    return sorted(breaks)


def _faint(values: Array, index: int, worst: float) -> bool:
    """Tell a critic whose loss was next to nothing, and is, or had begun to be more before."""
    # 1 % of the highest loss so far.
    highest = 0.01 * float(block_means(values[:index], RECENT_POINTS).max())
    was = median(values[index - CERTAINTY_POINTS : index])
    then = median(values[max(0, index - 2 * RECENT_POINTS) : index - RECENT_POINTS])
    # The loss rose fourfold within 20 points.
    crept = was is not None and then is not None and then < was * 0.25 and then < highest
    return worst < highest or crept


def _errs_less(trace: Trace, step: int) -> bool:
    """Tell a critic that is not wrong from a step on, but has returns that are all alike."""
    loss = trace.get(LOSS.name)
    if loss is None:
        return False
    was = median(loss.until(step - 1).finite().tail(RECENT_POINTS).values)
    loss_after = median(loss.since(step).finite().values[:BREAK_POINTS])
    # The critic's loss halves: it does not err more.
    return was is not None and loss_after is not None and loss_after < 0.5 * was


def _sank(series: Series, step: int, drop: Fall) -> bool:
    """Tell an outcome that had begun to fall before: a policy that got worse brought it there."""
    recent = series.until(step).values[-RECENT_POINTS:]
    # More than 5 % of the loss: the fall had begun before.
    return float(recent.max()) - drop.before > 0.05 * drop.loss


def _one_episode(trace: Trace, name: str, series: Series, drop: Fall) -> bool:
    """Return True if a mean over episodes is back as soon as its window has passed.

    Then a few episodes were bad, one outlier perhaps, and not what the policy acts in.
    """
    window = memory(trace, name, drop.visible_step)
    # After 1.1 windows, the earlier episodes have left the mean.
    left = drop.visible_step + round(1.1 * window)
    after = series.since(left).values[:OUTCOME_LEVEL_POINTS]
    if not window or not after.size:
        return False
    return bool(drop.before - np.median(after) < VISIBLE_LOSS_SHARE * drop.loss)


def _find_jumps(values: Array, factor: float) -> list[int]:
    if values.size <= RECENT_POINTS:
        return []
    largest = sliding_window_view(values, RECENT_POINTS)[:-1].max(axis=1)
    indices = RECENT_POINTS + np.flatnonzero(values[RECENT_POINTS:] > MIN_PEAK_FACTOR * largest)
    recent = medians_ending_at(values, indices - 1, RECENT_POINTS, RECENT_POINTS // 2)
    limit = np.maximum(factor * recent, MIN_PEAK_FACTOR * largest[indices - RECENT_POINTS])
    candidates = zip(indices.tolist(), limit.tolist(), strict=True)
    return [
        i
        for i, highest in candidates
        if values[i] > highest and _lasts(values[i : i + BREAK_POINTS] > highest)
    ]


def _drops(values: Array) -> list[int]:
    padded = np.concatenate((np.full(RECENT_POINTS, -np.inf), values))
    largest = sliding_window_view(padded, RECENT_POINTS)[:-1].max(axis=1)
    indices = np.flatnonzero((values < largest - MIN_EV_DROP) & (largest > MIN_EV_DROP))
    recent = medians_ending_at(values, indices - 1, RECENT_POINTS, RECENT_POINTS // 2)
    limit = recent - MIN_EV_DROP
    low = zip(indices.tolist(), limit.tolist(), (recent > MIN_EV_DROP).tolist(), strict=True)
    return [
        i
        for i, lowest, was_high in low
        if was_high and values[i] < lowest and _lasts(values[i : i + BREAK_POINTS] < lowest)
    ]


def _lasts(mask: Array) -> bool:
    return int(np.count_nonzero(mask)) >= 4  # of BREAK_POINTS: one may be an outlier


def _fall(trace: Trace, name: str, series: Series, step: int) -> Fall | None:
    """Return how the outcome fell after a break; None where it did not, or not at once."""
    drop = fall(trace, name, series, step)
    if drop is None or drop.earlier or drop.late or drop.slow:
        return None
    material, _ = least_that_counts(trace, name, series)
    gain = _gain(drop, series, step)
    min_loss = max(material, MIN_LOST_GAIN.on(trace) * gain)
    if _for_good(trace, step) and drop.before - drop.last >= MIN_CHANGE_GAIN * gain:
        min_loss = max(
            MIN_CHANGE_GAIN * gain, MIN_CHANGE_SCATTERS * (noise_sd(series.values) or 0.0)
        )
    if gain <= material or drop.loss < min_loss:
        return None
    after = series.since(step + 1).values
    soon = after[: max(2 * START_POINTS, len(after) // 2)]
    # A third of the loss comes within the first half.
    if drop.before - float(soon.min()) < drop.loss * (1 / 3):
        return None
    # The fall must come from here: what came before the break was no lower than it.
    if float(series.until(step).values[-2 * START_POINTS :].min()) < drop.before - drop.loss / 2:
        return None
    return drop


def _for_good(trace: Trace, step: int) -> bool:
    """Tell a critic that was right before a step and is wrong in nearly all points after it."""
    loss, ev = trace.get(LOSS.name), trace.get(EXPLAINED_VARIANCE.name)
    if loss is None or ev is None:
        return False
    was, then = (s.until(step - 1).finite().values[-RECENT_POINTS:] for s in (loss, ev))
    loss_after, explained_after = (s.since(step).finite().values for s in (loss, ev))
    if (
        min(was.size, then.size) < RECENT_POINTS
        or min(loss_after.size, explained_after.size) < RECENT_POINTS
    ):
        return False
    worse = float((loss_after > np.median(was)).mean())
    blind = float((explained_after < np.median(then) - MIN_EV_DROP).mean())
    return bool(then.min() > MIN_EV_DROP) and min(worse, blind) >= 0.9  # of the points after it


def _gain(drop: Fall, series: Series, step: int) -> float:
    """Return what had been gained until a break."""
    return drop.before - float(np.median(series.until(step).values[:START_POINTS]))


def _quiet(  # noqa: PLR0913, PLR0917 - both measures, the fall, the break, the last suspect update
    trace: Trace, kl: Series | None, clip: Series | None, drop: Fall, step: int, last: int
) -> bool:
    """Tell whether neither KL nor clip fraction says that an update moved the policy."""
    # Weights that are lost make the KL jump in the update of the break itself. Of a policy that
    # had settled all updates are small; one within the usual target breaks none.
    modest = trace.number("target_kl") or ORDINARY_KL
    return (kl is None or _updates_modest(kl, last, step, drop.hidden, modest)) and (
        clip is None or _updates_modest(clip, last, last, drop.hidden, 0.0)
    )


def _updates_modest(series: Series, last: int, step: int, hidden: int, modest: float) -> bool:
    """Tell whether updates up to the last suspect one were modest, or no larger than before.

    Nor did they spike up to `step` since an outcome that hides a fall for so long could hide it.
    """
    until = series.until(last)
    newest = until.values[-CAUSE_POINTS:]
    past = until.values[-RECENT_POINTS - CAUSE_POINTS : -CAUSE_POINTS]
    if len(past) < RECENT_POINTS // 2:
        return False
    if np.abs(newest).max() > max(2.0 * np.abs(past).max(), modest):  # x the largest recent KL
        return False
    recent = len(until.until(last - hidden)) - CAUSE_POINTS - PROMPT_POINTS
    return all(spike.index < recent for spike in jumps(series.until(step), *KL_SPIKE_LIMITS))


def _moves_much(trace: Trace, step: int) -> bool:
    limits = {
        APPROX_KL.name: trace.number("target_kl") or ORDINARY_KL,
        CLIP_FRACTION.name: ORDINARY_CLIP_FRACTION,
    }
    for name, limit in limits.items():
        series = trace.get(name)
        past = None if series is None else series.until(step).finite().values[-RECENT_POINTS:]
        recent = None if past is None else median(past)
        if recent is not None and recent > limit:
            return True
    return _steady(trace, step) is False


def _steady(trace: Trace, step: int) -> bool | None:
    """Tell whether a policy of discrete actions stayed as certain as it was before the break."""
    entropy = trace.get(ENTROPY.name)
    values = (
        np.empty(0) if entropy is None else entropy.until(step - 1).finite().values[-RECENT_POINTS:]
    )
    if len(values) < CERTAINTY_POINTS or values.min() < 0:
        return None
    if values[-1] < 0.25 * values[0]:  # of that of 20 points before: exploration collapses
        return False
    ratio = values[-1] / max(float(values[-CERTAINTY_POINTS]), float(np.finfo(np.float64).tiny))
    return bool(MIN_ENTROPY_RATIO < ratio < 1.0 / MIN_ENTROPY_RATIO)


def _new_rate(trace: Trace, step: int) -> bool:
    rate = trace.get(LEARNING_RATE.name)
    if rate is None:
        return False
    near = rate.until(step).finite().values[-RECENT_POINTS:]
    # The steps of a schedule are smaller than a doubling.
    return len(near) > 1 and bool(near[-CAUSE_POINTS - 1 :].max() > 2.0 * near[0])


def _finding(  # noqa: PLR0913 - what broke, where, and how surely
    trace: Trace, picked: tuple[str, Series], step: int, drop: Fall, text: str, *, by_kl: bool
) -> Finding:
    name = picked[0]
    sign, loss, gain = up(name), drop.loss, _gain(drop, picked[1], step)
    recovers = drop.last - drop.low > 0.75 * loss  # of the fall is made good
    kl = trace.get(APPROX_KL.name)
    evidence = [text]
    if kl is not None and len(values := kl.until(step).finite().values):
        evidence.append(
            f"KL per update was {float(values[-CAUSE_POINTS:].max()):.2g} there, up to "
            f"{float(values[-RECENT_POINTS:].max()):.2g} in the {RECENT_POINTS} updates before"
        )
    if not by_kl:
        evidence.append("neither entropy nor learning rate had changed in the rows before")
    counter = ["the outcome has recovered since"] if recovers else []
    lacks = describe_absence(trace, "no KL is logged", APPROX_KL, CLIP_FRACTION)
    counter += [] if by_kl else [f"{lacks}: weights lost at that step would look alike"]
    end = f"; it is back at {sign * drop.last:.4g}" if recovers else ""
    return Finding(
        f"{label(name)} breaks at step {step:,}, from {sign * drop.before:.4g} to "
        f"{sign * drop.low:.4g}, and no update had moved the policy: what it acts in has changed"
        f"{end}",
        severity=_severity(by_kl=by_kl, large=not recovers and loss >= 0.5 * gain),
        metric=name,
        began=step,
        ended=int(trace[name].steps[-1]),
        observed=sign * drop.last,
        bound=Bound(
            sign * (drop.before - MIN_LOST_GAIN.on(trace) * gain),
            f"{MIN_LOST_GAIN.on(trace):.0%} of this run's own gain",
        ),
        evidence=tuple(evidence),
        counter=tuple(counter),
    )


def _severity(*, by_kl: bool, large: bool) -> Severity:
    if not by_kl:
        return Severity.NOTE
    return Severity.ERROR if large else Severity.WARNING


RULE = Rule(
    name="environment-changed",
    needs=(),
    needs_any=(LOSS, EXPLAINED_VARIANCE),
    at_least=RECENT_POINTS,
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
    thresholds=(LOSS_JUMP_FACTOR, MIN_LOST_GAIN),
)
