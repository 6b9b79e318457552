"""Sentences about what is not logged, true of every metric of the same meaning.

A framework may log KL per update as a signed estimate alone, or too few numbers of it. Then "no KL
is logged" is false: the sentence names what there is.
"""

from rlvitals.errors import quantity
from rlvitals.metrics.catalogue import exploration, optimiser, outcome, policy, value
from rlvitals.metrics.metric import Metric
from rlvitals.types import Trace

# Metrics of one meaning. A rule may need one of them; the others still belie "not logged".
SIBLINGS: tuple[tuple[Metric, ...], ...] = (
    (policy.APPROX_KL, policy.KL_SIGNED),
    (
        policy.CLIP_FRACTION,
        policy.CLIP_FRACTION_EFFECTIVE,
        policy.CLIP_FRACTION_LOW,
        policy.CLIP_FRACTION_HIGH,
        policy.CISPO_CLIP_FRACTION,
    ),
    (exploration.ENTROPY, exploration.ENTROPY_SEQUENCE, exploration.ENTROPY_SUM),
    (policy.LOSS, policy.LOSS_SUM, policy.LOSS_MAGNITUDE, policy.ACTOR_LOSS),
    (value.LOSS, value.LOSS_SUM, value.LOSS_UNCLIPPED, value.CRITIC_LOSS, value.TD_ERROR),
    (value.EXPLAINED_VARIANCE, value.MSE_EXPLAINED_VARIANCE),
    (value.Q_MEAN, value.CRITIC_Q, value.Q_MIN, value.Q_MAX),
    (
        optimiser.GRAD_NORM,
        optimiser.CLIPPED_GRAD_NORM,
        optimiser.GRAD_NORM_MAX,
        optimiser.CRITIC_GRAD_NORM,
    ),
    (outcome.SUCCESS_RATE, outcome.WIN_RATE_EMA, outcome.EVAL_SUCCESS_RATE),
)


def siblings(metric: Metric) -> tuple[Metric, ...]:
    """Return the other metrics of the same meaning."""
    group = next((group for group in SIBLINGS if metric in group), ())
    return tuple(sibling for sibling in group if sibling is not metric)


def find_sibling(trace: Trace, *metrics: Metric) -> tuple[Metric, int] | None:
    """Return the first of the metrics, then of their siblings, that has numbers, and its count.

    Only finite numbers count: 0 where all that is logged is NaN or infinite. None where no metric
    of the same meaning is logged.
    """
    candidates = (*metrics, *(sibling for metric in metrics for sibling in siblings(metric)))
    logged = [m for m in candidates if m.name in trace and len(trace[m.name])]
    with_numbers = (metric for metric in logged if trace.numbers(metric.name) is not None)
    metric = next(with_numbers, logged[0] if logged else None)
    return None if metric is None else (metric, len(trace[metric.name].finite()))


def describe_absence(trace: Trace, sentence: str, *metrics: Metric, min_count: int = 1) -> str:
    """Return `sentence`, which says that none of the metrics is logged, if that is true.

    Else the count of the one that is logged, where it is below `min_count`, or that it is not
    judged.
    """
    logged = find_sibling(trace, *metrics)
    if logged is None:
        return sentence
    metric, count = logged
    if count < min_count:
        return f"{metric.name} has {quantity(count, 'number')} of the {min_count} needed"
    return f"only {metric.name} is logged, which is not judged here"
