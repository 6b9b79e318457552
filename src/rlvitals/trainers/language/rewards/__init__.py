"""Reward functions: one file each, selected by name, combined with weights."""

from collections.abc import Callable

from rlvitals.trainers.language.config import RewardsConfig
from rlvitals.trainers.language.rewards import (
    accuracy_reward,
    chart_type_reward,
    format_reward,
    length_think_reward,
    num_token_reward,
    process_style_reward,
    table_style_reward,
)
from rlvitals.trainers.language.rewards.reward import Measure
from rlvitals.trainers.language.rewards.reward_fn import Failure, Reward, make_rewards, weights

__all__ = ["REWARD_MEASURES", "Failure", "Reward", "functions", "weights"]

REWARD_MEASURES: tuple[Measure, ...] = (
    format_reward.MEASURE,
    num_token_reward.MEASURE,
    accuracy_reward.MEASURE,
    length_think_reward.MEASURE,
    chart_type_reward.MEASURE,
    table_style_reward.MEASURE,
    process_style_reward.MEASURE,
)


def functions(
    config: RewardsConfig, default: tuple[str, ...], *, failed: Callable[[Failure], None]
) -> list[Reward]:
    """Make the settings' reward functions for TRL, or those that the task has by `default`.

    With `process_model`, process_style_reward is one of them by default. `failed` is called for
    each sample that one raised on. Raises UsageError for a name that is unknown or comes twice.
    """
    return make_rewards(config, default, REWARD_MEASURES, failed)
