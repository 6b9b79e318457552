"""reward-spread-grows: a wider batch, and a long tail."""

import made_traces as made
import numpy as np
import pytest

from rlvitals.rules.reward.reward_spread_grows import RULE
from rlvitals.rules.rule import Clear, Severity
from rlvitals.types import Profile


def run(highest, spread=None, lowest=None):
    count = len(highest)
    parts = {} if lowest is None else {"reward__min": lowest}
    return made.trace(
        Profile.RLHF_PPO,
        outcome__score=np.linspace(0.0, 1.0, count) + 0.05 * made.noise(count),
        reward__std=np.full(count, 1.0) if spread is None else spread,
        reward__max=highest,
        **parts,
    )


def test_a_few_extreme_rewards_are_a_long_tail_although_the_spread_stands_still():
    highest = 3.0 + 0.2 * made.noise(120, 2)
    highest[80:] += 25.0
    found = RULE.judge(run(highest))
    assert found.severity is Severity.NOTE
    assert "highest" in found.summary
    assert abs(found.began / made.STEP - 81) <= 1


def test_the_other_tail_is_looked_at_too():
    lowest = -3.0 + 0.2 * made.noise(120, 2)
    lowest[80:] -= 25.0
    found = RULE.judge(run(3.0 + 0.2 * made.noise(120, 4), lowest=lowest))
    assert found.metric == "reward/min"


@pytest.mark.parametrize("rate", [0.3, 0.01])
def test_trap_a_bounded_reward_has_no_tail_however_rare(rate):
    dice = np.random.default_rng(3)
    draws = dice.random((200, 512)) < np.linspace(0.3, rate, 200)[:, None]
    trace = made.trace(
        Profile.GRPO,
        outcome__reward=draws.mean(axis=1),
        reward__std=draws.std(axis=1),
        reward__max=draws.max(axis=1).astype(float),
        reward__min=draws.min(axis=1).astype(float),
    )
    assert isinstance(RULE.judge(trace), Clear)


def test_trap_one_extreme_reward_is_no_tail():
    highest = 3.0 + 0.2 * made.noise(120, 2)
    highest[60] = 50.0
    assert isinstance(RULE.judge(run(highest)), Clear)
