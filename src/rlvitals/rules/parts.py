"""A reward whose gain comes from one part while another part stays at its floor.

Where a part is named for right answers, its name says what the run is judged by. Where none is, the
sum says nothing of which part the training was for.
"""

import math

import numpy as np

from rlvitals.metrics.catalogue.outcome import ACCURACY, EVAL_ACCURACY, EVAL_TASK, SUCCESS_RATE
from rlvitals.metrics.catalogue.reward import COMPONENT, COMPONENT_STD, MAX, MIN, SCORE_STD, STD
from rlvitals.metrics.reward_names import FORM_PATTERN, checks_the_answer, pays_the_task
from rlvitals.rules.gains import MIN_SOLVED_LEVEL
from rlvitals.rules.remembered import cache_by_trace
from rlvitals.rules.standing import MIN_OUTCOME_POINTS, MIN_SHARE_GAIN, label
from rlvitals.signals.level import first_last_change
from rlvitals.signals.spread import noise_sd
from rlvitals.types import Series, Trace

MIN_RISING_GAIN_SHARE = 0.75  # of all gains, by the rising part
MIN_FULL_BATCHES = 3  # batches whose best response, or every one, earned 1: it is the most
# Logs of these say which answers were right.
GRADED_NAMES = (ACCURACY.name, SUCCESS_RATE.name, EVAL_ACCURACY.name)


@cache_by_trace
def unclear_gain(trace: Trace) -> str:
    """Say that the reward rises by one part and that another is hardly ever earned; else empty.

    Of parts between 0 and 1 that are earned at times, and that no name tells the meaning of. A
    part that is never earned is not in use, and one below 0 is a penalty.
    """
    parts = {name: s for name in trace.series if (s := _share(trace, name)) is not None}
    if len(parts) < 2 or _has_answer_metric(trace):  # one that rises, one that does not
        return ""
    gains = {name: _gain(series) for name, series in parts.items()}
    best = max(gains, key=lambda name: gains[name])
    other_names = [n for n in parts if n != best and not _moves_with(parts[n], parts[best])]
    floors = [
        name
        for name in other_names
        # Up to 2 % of what a part can pay is earned by chance.
        if 0 < parts[name].values.mean() <= parts[name].values.max() <= 0.02
    ]
    single_rise = all(
        gains[name] < (1 - MIN_RISING_GAIN_SHARE) * gains[best] for name in other_names
    )
    if gains[best] < MIN_SHARE_GAIN or not single_rise or not floors:
        return ""
    floor = floors[0]
    first, last = first_last_change(parts[best].values) or (0.0, 0.0)
    rising, rare = _key(trace, best), _key(trace, floor)
    level = parts[floor].values.mean()
    course = f"{rising} alone rises, {first:.3g} to {last:.3g}, {rare} is {level:.2g}"
    return f"{course}: which of them means right answers? --map {rare}={ACCURACY.name} says so"


@cache_by_trace
def unpaid_task(trace: Trace) -> tuple[str, Series] | None:
    """Return a part for the task where no such part was ever earned, and others were; else None.

    All parts that pay for neither form nor manner are one number in every row, 0 or below, so that
    whatever the sum gained it gained beside the task.
    """
    parts = {
        name: found
        for name in sorted(trace.series)
        if name.startswith(f"{COMPONENT.name}/")
        if len(found := trace[name].finite()) >= 20
    }
    task = [name for name in parts if pays_the_task(name.removeprefix(f"{COMPONENT.name}/"))]
    unpaid = all(not np.ptp(parts[n].values) and parts[n].values[0] <= 0 for n in task)
    if not task or not unpaid or not any(np.ptp(series.values) for series in parts.values()):
        return None
    return task[0], parts[task[0]]


def _key(trace: Trace, name: str) -> str:
    """Return what the log calls a metric."""
    return trace.measured[name].key if name in trace.measured else label(name)


def _moves_with(component: Series, twin: Series) -> bool:
    """Return True if a component repeats another one: a difference of the two, a scaled copy."""
    _, part_rows, twin_rows = np.intersect1d(component.steps, twin.steps, return_indices=True)
    x, y = component.values[part_rows], twin.values[twin_rows]
    if len(x) < MIN_OUTCOME_POINTS or not np.ptp(x) or not np.ptp(y):
        return False
    return bool(np.corrcoef(x, y)[0, 1] >= 0.98)  # one component is the other one


def _has_answer_metric(trace: Trace) -> bool:
    return any(
        name in GRADED_NAMES or name.startswith(f"{EVAL_TASK.name}/") or checks_the_answer(name)
        for name in trace.series
    )


def _share(trace: Trace, name: str) -> Series | None:
    if not name.startswith(f"{COMPONENT.name}/") or FORM_PATTERN.search(name):
        return None
    series = trace[name].finite()
    if len(series) < MIN_OUTCOME_POINTS or series.values.min() < 0 or series.values.max() > 1:
        return None
    return series


def _gain(series: Series) -> float:
    levels = first_last_change(series.values)
    return 0.0 if levels is None else levels[1] - levels[0]


def is_share(name: str) -> bool:
    """Return True for the name of a share of right answers, or of a part that pays for them."""
    return name in {ACCURACY.name, SUCCESS_RATE.name} or checks_the_answer(name)


def is_unit_interval(series: Series) -> bool:
    """Return True for values from 0 to 1."""
    return bool(len(series) and series.values.min() >= 0 and series.values.max() <= 1)


def pays_one_at_most(trace: Trace, series: Series) -> bool:
    """Return True if 1 is the highest reward, as batch means or the logged extremes show.

    Whole batches earn exactly 1, or the best response of several does, none more, and others 0.
    """
    low, high = (trace.numbers(metric.name, MIN_FULL_BATCHES) for metric in (MIN, MAX))
    if low is not None and high is not None and low.values.min() == 0 and high.values.max() == 1:
        return bool((high.values == 1).sum() >= MIN_FULL_BATCHES)
    full = int((series.values == 1).sum())
    return MIN_FULL_BATCHES <= full <= MIN_SOLVED_LEVEL * len(series)


def response_sd_of(trace: Trace, name: str, series: Series) -> float:
    """Return the standard deviation of the rewards of single responses, 0 where not logged.

    Of answers that are right (1) or wrong (0) no more than follows from their share: the rewards'
    unit is another one.
    """
    logged = trace.numbers(STD.name) or trace.numbers(SCORE_STD.name)
    sd = 0.0 if logged is None else float(logged.values.mean())
    if is_share(name) and is_unit_interval(series):
        mean = float(series.values.mean())
        return min(sd, math.sqrt(mean * (1 - mean)))
    return sd


def single_sd(trace: Trace, name: str, series: Series) -> float:
    """Return the standard deviation of a single response's reward, in the unit of `series`.

    As logged for each batch, else the scatter of its means, which is less.
    """
    sd_name = name.replace(COMPONENT.name, COMPONENT_STD.name, 1)
    for logged in (sd_name if sd_name != name else "", STD.name, SCORE_STD.name):
        if logged in trace and len(points := trace[logged].finite()):
            return float(points.values.mean())
    return noise_sd(series.values) or 0.0
