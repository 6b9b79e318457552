"""Means over a known number of episodes are compared by the scatter of an episode."""

from dataclasses import replace

import made_traces as made
import numpy as np
import pytest

from rlvitals.rules.episode_window import episodes_per_point, window_levels
from rlvitals.rules.outcome.return_collapse import RULE as COLLAPSE
from rlvitals.rules.rule import Finding
from rlvitals.rules.standing import standing
from rlvitals.types import Lifecycle, Measured, Profile

LENGTH, ROW, WINDOW = 20, 500, 100  # steps of an episode and of a row; episodes of a mean
EPISODES = ROW // LENGTH  # of a row


def of_means(raw, window, key="rollout/ep_rew_mean"):
    """The log that writes, every 25 episodes of `raw`, the mean of the last `window`."""
    ends = np.arange(EPISODES, len(raw) + 1, EPISODES)
    means = [raw[max(end - window, 0) : end].mean() for end in ends]
    trace = made.trace(
        Profile.CONTROL_PPO,
        outcome__return=made.series(means, ROW * (1 + np.arange(len(means)))),
        outcome__episode_length=made.series(
            np.full(len(means), LENGTH), ROW * (1 + np.arange(len(means)))
        ),
    )
    measured = Measured("made", key, "", window=window if window > EPISODES else 1)
    measured = {**trace.measured, "outcome/return": measured}
    return replace(trace, measured=measured, lifecycle=Lifecycle(ended=True))


def course(rows, levels, seed):
    """Single returns of standard deviation 10 around levels that the run goes through."""
    at = np.linspace(0, len(levels) - 1, EPISODES * rows)
    return np.interp(at, np.arange(len(levels)), levels) + 10 * made.noise(EPISODES * rows, seed)


def test_what_counts_is_the_scatter_of_an_episode_where_a_row_is_a_mean_of_many():
    logs = [of_means(course(60, [50, 50], s), EPISODES, key="mean_return") for s in range(20)]
    found = [standing(trace).material for trace in logs]
    assert np.median(found) == pytest.approx(5, rel=0.3)
    assert standing(logs[0]).state == "flat"


def test_a_row_of_one_episode_or_of_an_unknown_number_is_taken_as_one():
    trace = of_means(course(30, [50, 50], 0), EPISODES, key="episode_return")
    assert episodes_per_point(trace, "outcome/return", trace["outcome/return"]) == 1
    trace = of_means(course(30, [50, 50], 0), EPISODES, key="mean_return")
    assert episodes_per_point(trace, "outcome/return", trace["outcome/return"]) == EPISODES
    del trace.series["outcome/episode_length"]
    assert episodes_per_point(trace, "outcome/return", trace["outcome/return"]) == 1
    counted = replace(trace, step_unit="episodes")
    assert episodes_per_point(counted, "outcome/return", counted["outcome/return"]) == ROW


def is_lost(trace):
    series = trace["outcome/return"]
    return window_levels(trace, "outcome/return", series).is_lost


def test_a_loss_in_a_short_log_is_found_and_noise_is_none():
    lost = [of_means(course(24, [50, 80, 55, 55], s), WINDOW) for s in range(20)]
    assert sum(map(is_lost, lost)) >= 18
    assert isinstance(COLLAPSE.ask(lost[0]), Finding)
    for rows in (24, 60):
        noise = [of_means(course(rows, [50, 50], s), WINDOW) for s in range(60)]
        rise = [of_means(course(rows, [50, 80, 85], s), WINDOW) for s in range(60)]
        assert not any(map(is_lost, [*noise, *rise]))


def test_levels_need_a_window_the_length_of_episodes_and_enough_of_them():
    trace = of_means(course(24, [50, 50], 0), WINDOW)
    series = trace["outcome/return"]
    assert window_levels(trace, "outcome/return", series) is not None
    short = of_means(course(11, [50, 50], 0), WINDOW)
    assert window_levels(short, "outcome/return", short["outcome/return"]) is None
    alone = replace(trace, series={"outcome/return": series})
    assert window_levels(alone, "outcome/return", series) is None
