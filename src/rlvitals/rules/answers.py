"""Outcome of a language-model run: right answers, score or evaluation, rather than the reward.

A composed reward rises by its easy parts, and a reward less a KL penalty rises by giving up
what was learned. The share of right answers, or the plain score, does not.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from rlvitals.metrics.catalogue import preference
from rlvitals.metrics.catalogue.outcome import (
    ACCURACY,
    EVAL_ACCURACY,
    EVAL_RETURN,
    EVAL_REWARD,
    EVAL_SUCCESS_RATE,
    EVAL_TASK,
    RETURN,
    REWARD,
    RLHF_REWARD,
    SCORE,
    SUCCESS_RATE,
)
from rlvitals.metrics.catalogue.reward import COMPONENT, COMPONENT_STD, STD
from rlvitals.metrics.catalogue.reward import MEAN as MEAN_REWARD
from rlvitals.metrics.reward_names import checks_the_answer
from rlvitals.rules import kinds
from rlvitals.rules.course import early_level, judge_late_part, judge_unclear, loss_from_best
from rlvitals.rules.curves import LONG_CURVE, describe_earlier_learning
from rlvitals.rules.gains import (
    INTERVAL_ERRORS,
    MIN_GAIN_POINTS,
    MIN_SOLVED_LEVEL,
    Gain,
    after_loss,
    excuse_selected_prompts,
    few_returns,
    gain,
    has_steady_rise,
    level_standing,
    order_chance,
    rises_at_once,
    rising_evaluations,
    succeeds_throughout,
)
from rlvitals.rules.outcome_blocks import (
    flat_by_blocks,
    recovery,
    rising_again,
    stands_where_training_rose,
)
from rlvitals.rules.parts import (
    is_share,
    is_unit_interval,
    pays_one_at_most,
    response_sd_of,
    single_sd,
    unclear_gain,
    unpaid_task,
)
from rlvitals.rules.remembered import cache_by_trace
from rlvitals.rules.scarce_outcomes import few_losses, pair_trend, return_trend
from rlvitals.rules.spent import too_early
from rlvitals.rules.standing import (
    MIN_OUTCOME_POINTS,
    MIN_START_GAIN,
    OUTCOME_METRICS,
    SHARE_OUTCOMES,
    Standing,
    beyond,
    label,
    outcome,
    standing,
)
from rlvitals.rules.untaught import dead, floor_share, no_movement
from rlvitals.types import Profile, Series, Trace

OUTCOME_METRIC_NAMES = {metric.name for metric in OUTCOME_METRICS}
# Judged over a whole run by blocks as well.
RETURN_OR_REWARD_NAMES = (RETURN.name, EVAL_RETURN.name, REWARD.name, MEAN_REWARD.name)
MEAN_ANSWER_PATTERN = re.compile(
    r"(?:acc|reward|score|correct).*mean@|mean@.*(?:acc|reward|score)|accuracy|avg_score|avg@\d"
)
SMALL_EFFECT_SD = 0.2  # sd of a single reward: Cohen's small effect
MIN_ANSWER_GAIN = 0.02  # share of all answers: a smaller gain does not count


def answers(trace: Trace) -> tuple[str, Series] | None:
    """Return the share of right answers, as finite points in [0, 1], and its canonical name."""
    outcomes = [(m.name, trace[m.name]) for m in (ACCURACY, SUCCESS_RATE) if m.name in trace]
    for name, series in (*outcomes, *list_answer_checks(trace)):
        points = paid_share(trace, name, series.finite())
        if (
            len(points) >= MIN_OUTCOME_POINTS
            and points.values.min() >= 0
            and points.values.max() <= 1
        ):
            return name, points
    return None


def paid_share(trace: Trace, name: str, series: Series) -> Series:
    """Return a reward part that pays one sum or nothing as the share of responses it paid for.

    Of such a part with the mean m and the standard deviation s, the sum is m + s^2 / m: where the
    batches agree on it, it is divided out. Every other part is given back as it is.
    """
    sd = trace.get(name.replace(COMPONENT.name, COMPONENT_STD.name, 1))
    if sd is None or name in OUTCOME_METRIC_NAMES or not len(series) or series.values.max() <= 1:
        return series
    scatter = sd.finite()
    _, mean_rows, sd_rows = np.intersect1d(series.steps, scatter.steps, return_indices=True)
    mean, spread = series.values[mean_rows], scatter.values[sd_rows]
    mixed = (mean > 0) & (spread > 0)
    if mixed.sum() < MIN_OUTCOME_POINTS or series.values.min() < 0:
        return series
    low, paid, high = np.quantile(mean[mixed] + spread[mixed] ** 2 / mean[mixed], (0.1, 0.5, 0.9))
    if high - low > 0.2 * paid:  # the batches disagree on the sum
        return series
    return Series(series.steps, series.times, np.minimum(series.values / paid, 1.0))


def list_answer_checks(trace: Trace) -> list[tuple[str, Series]]:
    """Return the reward components whose names say that they check the answer, sorted."""
    return [(name, trace[name]) for name in sorted(trace.series) if checks_the_answer(name)]


def learning_trend(trace: Trace, since: int | None = None) -> Standing:
    """Judge by right answers; without them by the score before the KL penalty; else as usual.

    From its first number on, a run is judged as a whole.
    """
    return _learning_trend(trace, None if since is None or since <= trace.first_number else since)


@cache_by_trace
def _learning_trend(trace: Trace, since: int | None) -> Standing:
    trend = _judge_training(trace, since)
    if trend.state in {"flat", "unknown"}:
        # Batches that are drawn for their difficulty stay level while the policy gets better.
        evaluated = (*_evaluations(trace, since), *few_evaluations(trace, since))
        evaluation = next((h for h in evaluated if h.improves), None)
        if trend.metric == REWARD.name and since is None and floor_share(trace):
            trend = replace(trend, state="flat", why="")
        return excuse_selected_prompts(trace, trend) if evaluation is None else evaluation
    gains = trend.state in {"rising", "holding its best"}
    return replace(trend, state="flat", why="") if gains and dead(trace) else trend


def _evaluations(trace: Trace, since: int | None) -> Iterator[Standing]:
    """Judge the right answers on prompts that are not trained on, wherever they are logged."""
    for name in _evaluated_names(trace):
        series = trace[name].finite()
        values = (series if since is None else series.since(since)).values
        if len(values) < MIN_OUTCOME_POINTS or values.min() < 0 or values.max() > 1:
            continue
        trend = standing(isolate_outcome(trace, SUCCESS_RATE.name, series), since)
        yield judge_batches(trace, replace(trend, metric=name), series, since)


def few_evaluations(trace: Trace, since: int | None) -> Iterator[Standing]:
    """Give the evaluations that rise from one to the next, where they are too few for a trend.

    By Kendall's test of their order, at 1 %: five that all rise have a chance of 1 in 120, and
    four are ordered by chance too often.
    """
    for name in _evaluated_names(trace):
        series = trace[name].finite()
        values = (series if since is None else series.since(since)).values
        if not 0 < len(values) < MIN_OUTCOME_POINTS or values.min() < 0 or values.max() > 1:
            continue
        levels = float(values[0]), float(values[-1]), float(values.max())
        if levels[1] - levels[0] > MIN_ANSWER_GAIN and order_chance(values) <= 0.01:
            reason = f"rises over {len(values)} evaluations: {levels[0]:.4g} to {levels[1]:.4g}"
            yield Standing("rising", name, reason, *levels)


def _evaluated_names(trace: Trace) -> tuple[str, ...]:
    names = (EVAL_ACCURACY.name, EVAL_SUCCESS_RATE.name, EVAL_REWARD.name)
    return (*(name for name in names if name in trace), *members(trace))


def members(trace: Trace) -> list[str]:
    """Return the evaluations of one task each that are means over answers, none of the best."""
    prefix = f"{EVAL_TASK.name}/"
    return [
        name
        for name in sorted(trace.series)
        if name.startswith(prefix) and MEAN_ANSWER_PATTERN.search(name)
    ]


def _judge_training(trace: Trace, since: int | None) -> Standing:
    right_answers = answers(trace)
    if right_answers is not None:
        name, series = right_answers
        trend = standing(isolate_outcome(trace, SUCCESS_RATE.name, series), since)
        reason = trend.why.replace(SUCCESS_RATE.name, name)
        reason = reason.replace(label(SUCCESS_RATE.name), label(name))
        trend = replace(trend, metric=name, why=reason)
        trend = judge_batches(trace, trend, series, since)
        return trend if since is not None else after_loss(trend, series.values, late=True)
    task = unpaid_task(trace)
    unpaid = None if task is None else _constant_standing(trace, *task)
    if unpaid is not None:
        return unpaid
    score = trace.get(SCORE.name)
    if score is not None and len(score.finite()) >= MIN_OUTCOME_POINTS:
        other_series = {k: s for k, s in trace.series.items() if k != RLHF_REWARD.name}
        trace = replace(trace, series=other_series)
    picked, trend = outcome(trace), standing(trace, since)
    if picked is not None:
        trend = judge_batches(trace, trend, trace[picked[0]].finite(), since)
    unclear = unclear_gain(trace) if trend.improves else ""
    return replace(trend, state="unknown", why=unclear) if unclear else trend


def _constant_standing(trace: Trace, name: str, series: Series) -> Standing | None:
    """Return the standing of a constant that was to rise; None early in a run."""
    if too_early(trace):
        return None
    level = float(series.values[0])
    reason = f"is {level:.3g} in all {len(series):,} rows: no answer was ever right"
    return Standing(
        "flat", name, reason, level, level, level, 0.0, 0.0, MIN_ANSWER_GAIN, "any at all"
    )


def judge_batches(trace: Trace, trend: Standing, series: Series, since: int | None) -> Standing:
    """Judge again what a test for sluggish noise calls flat, or cannot tell.

    A mean over new prompts has no memory, so that much smaller gains can be told. What rose early
    and stays there holds its best; right answers that are nearly all there from the start have
    nothing to rise to.
    """
    during = series if since is None else series.since(since)
    if trend.state not in {"flat", "unknown"} or describe_earlier_learning(trace):
        return trend
    change = gain(during.values)
    if change is not None:
        new_trend = _judge_levels(trace, trend, during, change)
    elif trend.state == "unknown" and has_steady_rise(during.values):  # too few rows for stretches
        new_trend = replace(trend, state="rising", why="")
    elif rises_at_once(during.values, SMALL_EFFECT_SD * single_sd(trace, trend.metric, during)):
        new_trend = replace(trend, state="holding its best", why="")
    else:
        new_trend = trend
    if new_trend is not trend or since is not None:
        return new_trend
    return level_standing(trace, trend, during, response_sd_of(trace, trend.metric, during))


def _judge_levels(trace: Trace, trend: Standing, during: Series, change: Gain) -> Standing:
    """Judge by the first and last levels of batches; return `trend` itself where they tell less."""
    share, in_unit_interval = is_share(trend.metric), is_unit_interval(during)
    is_solved = min(change.first, change.last) >= MIN_SOLVED_LEVEL and not change.falls
    if in_unit_interval and is_solved and (share or pays_one_at_most(trace, during)):
        return replace(trend, state="at its ceiling", why="")
    if share and in_unit_interval:
        min_gain = MIN_ANSWER_GAIN
    else:
        # What is proven counts if it is a tenth of the first level, however rewards scatter.
        min_effect = SMALL_EFFECT_SD * single_sd(trace, trend.metric, during)
        start = MIN_START_GAIN * change.first
        min_gain = min(min_effect, abs(start)) if start else min_effect
    is_proven = change.proven or trend.low > 0 or has_steady_rise(during.values)
    if is_proven and change.size >= min_gain and not change.falls:
        return replace(trend, state="rising" if change.goes_on else "holding its best", why="")
    if (
        trend.state == "flat"
        and not trend.hardly
        and change.size > max(INTERVAL_ERRORS * change.error, min_gain)
    ):
        reason = f"{label(trend.metric)} goes {change.first:.4g} to {change.last:.4g}"
        return replace(
            trend, state="unknown", why=f"{reason}, within twice its standard error of 0"
        )
    return trend


def isolate_outcome(trace: Trace, name: str, series: Series) -> Trace:
    """Return the run with one outcome, and what says nothing of another: its steps are a run's."""
    other_series = {
        metric_name: logged
        for metric_name, logged in trace.series.items()
        if metric_name not in OUTCOME_METRIC_NAMES and not checks_the_answer(metric_name)
    }
    return replace(trace, series={**other_series, name: series})


@cache_by_trace
def verdict_trend(trace: Trace) -> Standing:
    """Judge a run's outcome as its verdict does.

    A language model's by what it learned; any other's by its evaluation, where that tells.
    """
    batches = trace.profile is Profile.UNKNOWN and {REWARD.name, STD.name} <= trace.series.keys()
    if trace.profile in kinds.LANGUAGE or (batches and RETURN.name not in trace):
        trend = learning_trend(trace)  # a spread is logged of samples: their mean is a batch's
        return trend if trend.metric else (return_trend(trace) or trend)
    if trace.profile is Profile.SUPERVISED and (pairs := judge_pairs(trace)) is not None:
        return pairs
    trend = judge_whole_run(trace, standing(prefer_evaluation(trace)))
    if trend.state == "unknown" and not trend.metric:  # no outcome of training is logged
        evaluated = (*_evaluations(trace, None), *few_evaluations(trace, None))
        trend = next((h for h in evaluated if h.state != "unknown"), trend)
    if trend.state == "unknown":
        ordered = few_returns(trace) or rising_evaluations(trace) or few_losses(trace)
        if ordered is not None:
            return ordered
    if trend.state in {"unknown", "flat"} and succeeds_throughout(trace):
        return replace(trend, state="holding its best", why="")
    right = trace.numbers(ACCURACY.name, MIN_GAIN_POINTS)
    if trend.state == "unknown" and right is not None and not right.values.any():
        return _constant_standing(trace, ACCURACY.name, right) or trend
    shares = trace.numbers(trend.metric) if trend.metric in SHARE_OUTCOMES else None
    late = trend.metric == ACCURACY.name  # success falls where a curriculum gets harder
    return trend if shares is None else after_loss(trend, shares.values, late=late)


def judge_pairs(trace: Trace) -> Standing | None:
    """Return the standing of the share of pairs that are ordered rightly, where it is good.

    Of held-out pairs where they alone are logged, and where that share was lost. Else that of the
    margin, which is 0 at the start by construction: any proven rise is learned. None where neither
    is good, or logged: then the loss is judged. The loss of preference training starts at ln 2 and
    is a mean over new pairs, so that its first level scales nothing.
    """
    for name in (preference.ACCURACY.name, preference.EVAL_ACCURACY.name):
        series = trace.numbers(name, MIN_OUTCOME_POINTS)
        if series is None:
            continue
        trend = replace(standing(isolate_outcome(trace, SUCCESS_RATE.name, series)), metric=name)
        trend = judge_batches(trace, trend, series, None)
        is_falling = trend.state in {"falling", "fallen back"} and name != preference.ACCURACY.name
        if trend.improves or trend.state == "holding its best" or is_falling:
            return trend
    return pair_trend(trace)


def judge_whole_run(trace: Trace, trend: Standing) -> Standing:  # noqa: PLR0911 - one a case
    """Judge a whole run's return or reward by blocks, where no trend can be told of it.

    For the run's verdict alone: it weighs no symptom. A return that only fell is flat.
    """
    picked = outcome(prefer_evaluation(trace))
    no_return = trend.metric not in RETURN_OR_REWARD_NAMES or np.isnan(trend.material)
    if no_return or picked is None:
        return trend
    if describe_earlier_learning(trace):
        return judge_late_part(trace, trend, picked[1])
    if trend.metric == EVAL_RETURN.name and stands_where_training_rose(trace):
        return replace(trend, state="holding its best", why="")
    is_proven = trend.improves and (trend.low > 0 or trend.state == "at its ceiling")
    if not is_proven and no_movement(trace) is not None:
        return replace(trend, state="flat", why="")  # one policy throughout: all else is noise
    values = picked[1].values
    if trend.metric == REWARD.name and len(values) < LONG_CURVE:
        return loss_from_best(trace, *picked, trend) or early_level(trace, trend, picked[1])
    rebound = recovery(prefer_evaluation(trace), trend.material)
    if rebound is not None and not trend.improves:
        return rising_again(trend, rebound)
    if rebound is None and (loss := loss_from_best(trace, *picked, trend)) is not None:
        return loss
    if trend.state == "flat" and not trend.sags:
        level = early_level(trace, trend, picked[1])
        return flat_by_blocks(trace, trend, values) if level is trend else level
    if trend.state == "unknown" and not beyond(trace, trend.metric, values, trend.last):
        return judge_unclear(trace, trend, picked[1])
    return trend


def prefer_evaluation(trace: Trace) -> Trace:
    """Return the run without its training's return, where its evaluation's return tells more.

    Training returns hold the exploration, and whatever the environment happened to bring.
    """
    if not _evaluation_tells(trace):
        return trace
    return replace(trace, series={k: s for k, s in trace.series.items() if k != RETURN.name})


@cache_by_trace
def _evaluation_tells(trace: Trace) -> bool:
    eval_return = trace.get(EVAL_RETURN.name)
    if eval_return is None or RETURN.name not in trace or trace.profile in kinds.LANGUAGE:
        return False
    return standing(isolate_outcome(trace, EVAL_RETURN.name, eval_return)).state != "unknown"


def last_share(trace: Trace, count: int = 20) -> float | None:
    """Return the mean share of right answers over the last `count` points; None if not logged."""
    right_answers = answers(trace)
    return None if right_answers is None else float(np.mean(right_answers[1].tail(count).values))
