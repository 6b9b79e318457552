"""One curve of episodes logged raw, and as a rolling mean at several row spacings, is one run."""

from dataclasses import replace

import made_traces as made
import numpy as np
import pytest

from rlvitals.rules.answers import verdict_trend
from rlvitals.rules.episode_window import episode_sd, max_episode_sd
from rlvitals.types import Lifecycle, Measured, Profile

EPISODES, LENGTH, EPISODE_SD = 1000, 20, 10.0
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
COURSES = {
    "flat": [0, 0, 0, 0, 0],
    "rises": [0, 8, 15, 22, 30],
    "falls and ends above": [0, 0, -30, 6, 42],
    "falls and rises far above": [0, -15, -10, 15, 40],
    "gains and loses": [0, 25, 40, 20, 5],
    "gains late": [0, 0, 0, 10, 40],
    "learns early": [0, 35, 40, 40, 40],
}
GOOD, POOR = {"rising", "holding its best", "at its ceiling"}, {"flat", "falling", "fallen back"}
LOGS = [
    (window, spacing, known)
    for window in (10, 50, 100)
    for spacing in (1, 5, 20)
    for known in (True, False)
]


def episodes(course, seed, sd=EPISODE_SD):
    """Return single returns around a course: [1000]."""
    levels = np.interp(np.linspace(0, 1, EPISODES), SHARES, COURSES[course])
    return levels + sd * np.random.default_rng(seed).normal(size=EPISODES)


def logged(raw, window, spacing, *, known):
    """Log the mean of the last `window` episodes after each `spacing` of them."""
    ends = np.arange(spacing, len(raw) + 1, spacing)
    sums, starts = np.append(0.0, np.cumsum(raw)), np.maximum(ends - window, 0)
    means, steps = (sums[ends] - sums[starts]) / (ends - starts), ends * LENGTH
    lengths = np.full(len(means), float(LENGTH))
    trace = made.trace(
        Profile.CONTROL_PPO,
        outcome__return=made.series(means, steps),
        outcome__episode_length=made.series(lengths, steps),
    )
    key = "rollout/ep_rew_mean" if window > 1 else "episode_return"
    measured = Measured("made", key, "", window=window if known else 1)
    measured = {**trace.measured, "outcome/return": measured}
    return replace(trace, measured=measured, lifecycle=Lifecycle(ended=True))


@pytest.mark.parametrize("sd", [1.0, 4.0, EPISODE_SD, 20.0])
@pytest.mark.parametrize("course", COURSES)
def test_no_window_and_no_spacing_contradicts_the_raw_log(course, sd):
    raw = episodes(course, seed=1, sd=sd)
    answer = verdict_trend(logged(raw, 1, 1, known=False)).state
    assert answer in GOOD | POOR
    opposite = POOR if answer in GOOD else GOOD
    for window, spacing, known in LOGS:
        state = verdict_trend(logged(raw, window, spacing, known=known)).state
        assert state not in opposite, (window, spacing, known)


@pytest.mark.parametrize("course", ["falls and ends above", "gains and loses"])
@pytest.mark.parametrize("seed", range(4))
def test_a_bent_curve_is_never_flat_behind_a_window(course, seed):
    for sd in (1.0, 4.0, 20.0):
        for window in (50, 100):
            trace = logged(episodes(course, seed, sd), window, 1, known=True)
            assert verdict_trend(trace).state != "flat", (sd, window)


@pytest.mark.parametrize("spacing", [1, 5, 20])
@pytest.mark.parametrize("course", ["flat", "rises", "gains and loses"])
def test_the_scatter_of_an_episode_follows_from_window_and_spacing(course, spacing):
    for window in (10, 50, 100):
        traces = [logged(episodes(course, s), window, spacing, known=True) for s in range(8)]
        most = np.median([max_episode_sd(trace, "outcome/return") for trace in traces])
        least = np.median(
            [episode_sd(trace, "outcome/return", trace["outcome/return"]) for trace in traces]
        )
        assert most == pytest.approx(EPISODE_SD, rel=0.35), window
        assert least <= 1.2 * EPISODE_SD


@pytest.mark.parametrize("window", [1, 10, 50, 100])
def test_a_flat_return_behind_a_known_window_stays_flat(window):
    traces = [logged(episodes("flat", seed), window, 1, known=True) for seed in range(4)]
    assert {verdict_trend(trace).state for trace in traces} == {"flat"}


def states_of_rewards(gain_sd, runs=60):
    """Return the states of rewards of single answers that gain so many standard deviations."""
    states = []
    for seed in range(runs):
        rewards = np.linspace(0, gain_sd, 164) + made.noise(164, seed)
        trace = made.trace(Profile.UNKNOWN, outcome__reward=rewards)
        states.append(verdict_trend(replace(trace, lifecycle=Lifecycle(ended=True))).state)
    return states


def test_a_gain_beyond_its_own_error_is_not_said_to_be_none():
    assert states_of_rewards(0.7).count("flat") <= 6  # of 60
    assert states_of_rewards(0.0).count("flat") >= 45
