"""What is said of an outcome: of losses, for which less is better, and of what was lost again."""

from dataclasses import replace

import made_traces as made
import numpy as np
import pytest
from loading import MEASURED, RUNS

import rlvitals
from rlvitals.diagnosis.engine import diagnose
from rlvitals.diagnosis.verdict import Word
from rlvitals.rules.answers import verdict_trend
from rlvitals.rules.outcome import no_learning
from rlvitals.rules.rule import Clear, Severity
from rlvitals.rules.standing import standing
from rlvitals.types import Lifecycle, Profile

RULE = no_learning.RULE


def supervised(loss):
    return RULE.ask(made.trace(Profile.SUPERVISED, optimiser__loss=loss))


def interval(finding):
    low, high = (
        finding.evidence[0].removeprefix("95 % interval of the trend over the run: ").split(" to ")
    )
    return float(low), float(high)


def test_a_loss_that_grows_is_said_to_rise():
    found = supervised(np.linspace(2.0, 3.0, 100) + 0.02 * made.noise(100))
    assert found.severity is Severity.ERROR
    assert "loss does not improve, it rises" in found.summary
    low, high = interval(found)
    assert 0 < low < high


def test_a_loss_that_hardly_falls_has_an_interval_below_zero():
    found = supervised(np.linspace(2.0, 1.95, 100) + 1e-4 * made.noise(100))
    assert "hardly improves" in found.summary
    low, high = interval(found)
    assert low < high < 0
    assert found.observed == pytest.approx(-0.04, abs=0.002)


@pytest.mark.parametrize("noise", [0.0, 0.01, 0.03])
def test_a_short_steady_fall_of_a_loss_is_learning(noise):
    loss = np.linspace(3.64, 3.35, 30) + noise * made.noise(30, 4)
    run = made.trace(Profile.SUPERVISED, optimiser__loss=loss)
    assert standing(run).sentence.startswith("loss is falling: 3.6")
    assert isinstance(RULE.ask(run), Clear)


def test_a_loss_that_wanders_is_rarely_said_to_fall():
    walks = [3.64 + 0.1 * np.cumsum(made.noise(30, seed)) for seed in range(200)]
    runs = [made.trace(Profile.SUPERVISED, optimiser__loss=walk) for walk in walks]
    assert sum(standing(run).improves for run in runs) <= 6


def test_what_cannot_be_told_is_said_with_what_would_count():
    wanders = 100 + 10 * np.cumsum(made.noise(40, 3))
    now = standing(made.trace(outcome__return=wanders))
    assert now.state == "unknown"
    spread = np.ptp(wanders)  # a level changes by no more than the values do
    low, high = max(now.low, -spread), min(now.high, spread)
    assert f"the change is {low:+.3g} to {high:+.3g} (95 %), and 2.81" in now.why
    assert now.why.endswith("would count; --set env_id=... may tell more")
    known = standing(made.trace(settings={"env_id": "Mine-v0"}, outcome__return=wanders))
    assert known.why.endswith("would count")


def later(series, steps):
    return replace(series, steps=series.steps + steps)


def fallen_from_the_start():
    """A mean over 100 episodes of DQN on CartPole at a learning rate of 0.5, as SB3 logs it."""
    episodes = np.concatenate((22 + 12 * made.noise(25, 1), np.full(500, 9.5)))
    episodes[25:] += np.interp(np.arange(500), (0, 250, 500), (0.0, 3.0, 2.0))
    means = [episodes[max(0, i - 100) : i].mean() for i in range(4, len(episodes), 4)]
    return np.array(means) + 0.05 * made.noise(len(means), 2)


def test_a_return_that_only_fell_from_its_start_is_not_unknown():
    run = made.trace(Profile.OFF_POLICY, outcome__return=fallen_from_the_start())
    assert verdict_trend(run).state == "flat"
    assert diagnose(run).verdict.word is Word.STALLED
    assert RULE.ask(run).summary.startswith("return does not improve: 16.79")
    resumed = replace(run, series={"outcome/return": later(run["outcome/return"], 1_000_000)})
    assert verdict_trend(resumed).state == "unknown"  # what it learned lies before the log
    came_back = np.concatenate((fallen_from_the_start(), np.linspace(12, 40, 30)))
    assert not verdict_trend(made.trace(Profile.OFF_POLICY, outcome__return=came_back)).stalls


def test_a_stalled_run_is_held_against_a_random_policy():
    settings = {"env_id": "CartPole-v1"}
    run = made.trace(Profile.OFF_POLICY, settings, outcome__return=fallen_from_the_start())
    now = replace(run, lifecycle=Lifecycle(live=True))  # it goes on: no rule calls it a fault yet
    assert diagnose(now).verdict.why.endswith(
        "; no better than a random policy, which gets about 22 on CartPole"
    )


def test_a_return_that_falls_is_said_to_fall():
    found = RULE.ask(made.trace(outcome__return=made.falling()))
    assert "return does not improve, it falls" in found.summary
    low, high = interval(found)
    assert low < high < 0


def test_what_was_learned_at_once_is_held_only_while_it_is_there():
    values = np.concatenate((np.full(3, 20.0), np.full(60, 200.0), np.full(37, 20.0)))
    run = made.trace(outcome__return=values)
    assert standing(run, since=4_000, until=60_000).state in {"holding its best", "at its ceiling"}
    assert standing(run, since=65_000).state == "flat"


@pytest.mark.parametrize("gain", [0.0, 0.3])
def test_a_composed_reward_is_flat_where_its_easy_parts_are_full(gain):
    """Right answers rise by 0.3 while the sum stays within a tenth of its 8: that is learning."""
    right = 0.5 + np.linspace(0.0, gain, 100) + 0.02 * made.noise(100)
    run = made.trace(
        Profile.GRPO, settings={"total_steps": 100 * made.STEP},
        outcome__reward=7.5 + right + 0.2 * made.noise(100, 1), outcome__accuracy=right,
    )  # fmt: skip
    assert isinstance(RULE.ask(run), Clear) == (gain > 0)
    assert (diagnose(run, rates=MEASURED).verdict.word is Word.LEARNING) == (gain > 0)


def test_a_return_that_rose_and_fell_below_its_start_is_no_flat_one():
    """Its settings are left out: the budget is not known."""
    found = rlvitals.diagnose(RUNS / "ppo-cartpole-lr-spike" / "run.csv")
    names = [rule.name for rule, _ in found.findings]
    assert "return-collapse" in names
    assert "no-learning" not in names


@pytest.mark.parametrize("seed", [14, 24, 103, 332])
def test_an_interval_that_holds_zero_is_not_printed_of_an_outcome_that_falls(seed):
    rng = np.random.default_rng(seed)
    corners = rng.normal(0, 8, 7).cumsum()
    values = np.interp(np.arange(300), np.linspace(0, 299, 7), corners - 100)
    values += 3 * rng.standard_normal(300)
    values[-25:] += rng.normal(0, 12)
    values[:25] += rng.normal(0, 12)
    found = RULE.ask(made.trace(outcome__return=values))
    assert "it falls" in found.summary
    assert not [text for text in found.evidence if "interval" in text]
