"""What a language model is judged by when its reward may pay for something else.

A composed reward rises by its easy parts, and a reward less a KL penalty rises by giving up
what was learned. The share of right answers, or the plain score, does not.
"""

from dataclasses import replace

import numpy as np

from rlvitals.metrics.outcome import (
    ACCURACY,
    EVAL_RETURN,
    RETURN,
    RLHF_REWARD,
    SCORE,
    SUCCESS_RATE,
)
from rlvitals.records import Series, Trace
from rlvitals.rules import kinds
from rlvitals.rules.curves import only_fell
from rlvitals.rules.outcome_blocks import by_blocks, flat_by_blocks
from rlvitals.rules.remembered import remembered
from rlvitals.rules.standing import (
    LEAST,
    OUTCOME_METRICS,
    Standing,
    beyond,
    checks_the_answer,
    label,
    learned_before,
    outcome,
    standing,
)

JUDGED_BY = {metric.name for metric in OUTCOME_METRICS}


def answers(trace: Trace) -> tuple[str, Series] | None:
    """Return the share of right answers, as finite points in [0, 1], and its canonical name."""
    named = [(m.name, trace[m.name]) for m in (ACCURACY, SUCCESS_RATE) if m.name in trace]
    for name, series in (*named, *checks(trace)):
        found = series.finite()
        if len(found) >= LEAST and found.values.min() >= 0 and found.values.max() <= 1:
            return name, found
    return None


def checks(trace: Trace) -> list[tuple[str, Series]]:
    """Return the reward components whose names say that they check the answer, sorted."""
    return [(name, trace[name]) for name in sorted(trace.series) if checks_the_answer(name)]


def learned(trace: Trace, since: int | None = None) -> Standing:
    """Judge by right answers; without them by the score before the KL penalty; else as usual."""
    return _learned(trace, since)


@remembered
def _learned(trace: Trace, since: int | None) -> Standing:
    found = answers(trace)
    if found is not None:
        name, series = found
        now = standing(alone(trace, SUCCESS_RATE.name, series), since)
        why = now.why.replace(SUCCESS_RATE.name, name)
        return replace(now, metric=name, why=why.replace(label(SUCCESS_RATE.name), label(name)))
    score = trace.get(SCORE.name)
    if score is not None and len(score.finite()) >= LEAST:
        rest = {k: s for k, s in trace.series.items() if k != RLHF_REWARD.name}
        return standing(replace(trace, series=rest), since)
    return standing(trace, since)


def alone(trace: Trace, name: str, series: Series) -> Trace:
    """Return the run with one outcome, and what says nothing of another: its steps are a run's."""
    rest = {
        own: logged
        for own, logged in trace.series.items()
        if own not in JUDGED_BY and not checks_the_answer(own)
    }
    return replace(trace, series={**rest, name: series})


def judged(trace: Trace) -> Standing:
    """Judge a run's outcome as its verdict does.

    A language model's by what it learned; any other's by its evaluation, where that tells.
    """
    if trace.profile in kinds.LANGUAGE:
        return learned(trace)
    return since_the_start(trace, standing(evaluated(trace)))


def since_the_start(trace: Trace, now: Standing) -> Standing:
    """Judge a whole run's return by blocks, where no trend can be told of it.

    For the run's verdict alone: it weighs no symptom. A return that only fell is flat.
    """
    picked = outcome(evaluated(trace))
    no_return = not now.metric.endswith("return") or np.isnan(now.material)
    if no_return or picked is None or learned_before(trace):
        return now
    values = picked[1].values
    if now.state == "flat" and not now.sags:
        return flat_by_blocks(trace, now, values)
    if now.state != "unknown" or beyond(trace, now.metric, values, now.last):
        return now
    if only_fell(values, now.first, now.material):
        return replace(now, state="flat", why="")
    return by_blocks(trace, now, values)


def evaluated(trace: Trace) -> Trace:
    """Return the run without its training's return, where its evaluation's return tells more.

    Training returns hold the exploration, and whatever the environment happened to bring.
    """
    if not _evaluation_tells(trace):
        return trace
    return replace(trace, series={k: s for k, s in trace.series.items() if k != RETURN.name})


@remembered
def _evaluation_tells(trace: Trace) -> bool:
    held = trace.get(EVAL_RETURN.name)
    if held is None or RETURN.name not in trace or trace.profile in kinds.LANGUAGE:
        return False
    return standing(alone(trace, EVAL_RETURN.name, held)).state != "unknown"


def last_share(trace: Trace, count: int = 20) -> float | None:
    """Return the mean share of right answers over the last `count` points; None if not logged."""
    found = answers(trace)
    return None if found is None else float(np.mean(found[1].tail(count).values))
