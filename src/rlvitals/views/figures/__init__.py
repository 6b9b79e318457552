"""Define the figures of a run, one file each; `rlvitals plot` draws those with logged metrics."""

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
)
