"""Define the figures of a run, one file each; `rlvitals plot` draws those with logged metrics."""

from collections.abc import Sequence

from rlvitals.errors import UsageError, nearest
from rlvitals.views.figures import (
    actions,
    dashboard,
    distributions,
    domain,
    gradient_norm,
    key_metrics,
    learning_rate,
    lengths,
    nsr_metrics,
    policy,
    rank_bands,
    reward_breakdown,
    rewards,
    temperature,
    throughput,
    training_loss,
    value,
)
from rlvitals.views.figures.figure import Figure

FIGURES: tuple[Figure, ...] = (
    dashboard.FIGURE,
    key_metrics.FIGURE,
    training_loss.FIGURE,
    rewards.FIGURE,
    learning_rate.FIGURE,
    gradient_norm.FIGURE,
    nsr_metrics.FIGURE,
    policy.FIGURE,
    value.FIGURE,
    actions.FIGURE,
    temperature.FIGURE,
    reward_breakdown.FIGURE,
    throughput.FIGURE,
    distributions.FIGURE,
    lengths.FIGURE,
    domain.FIGURE,
    rank_bands.FIGURE,
)


def choose(names: Sequence[str], origin: str) -> tuple[Figure, ...]:
    """Return the figures of these names, all where none is given.

    `origin` is where the names were given. Raises UsageError for an unknown name.
    """
    by_name = {figure.name: figure for figure in FIGURES}
    for name in names:
        if name not in by_name:
            hint = nearest(name, by_name) or f"one of {', '.join(by_name)}"
            raise UsageError(f"no picture is called {name!r}", where=origin, hint=hint)
    return tuple(by_name[name] for name in names) or FIGURES
