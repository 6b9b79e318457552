"""Keys that no table knows: which of them name the outcome."""

import numpy as np
import pytest

from rlvitals.metrics import canonicalize, outcome_words
from rlvitals.types import Log, Series

RETURN, REWARD, SCORE = "outcome/return", "outcome/reward", "outcome/score"
TESTED = "outcome/eval_return"


@pytest.mark.parametrize(
    ("key", "metric"),
    [
        ("rewards", REWARD), ("Total_Reward", RETURN), ("totalReward", RETURN),
        ("EpisodeReward", RETURN), ("ep_rew", RETURN), ("average_reward", REWARD),
        ("cumulative_reward", RETURN), ("returns", RETURN), ("return_mean", RETURN),
        ("scores", SCORE), ("avg_score", SCORE), ("fitness", RETURN),
        ("winrate", "outcome/success_rate"), ("profit", RETURN), ("portfolio_value", RETURN),
        ("mean_reward", REWARD), ("rewards4", REWARD), ("Eval_AverageReturn", TESTED),
        ("test_reward_mean", TESTED), ("win_rate_vs_random", "outcome/success_rate"),
        ("wr", "outcome/success_rate"),
        ("total_money", RETURN), ("Rw", "outcome/reward"),
        ("final_equity", RETURN), ("avg_elo", "outcome/elo"),
        ("mean_r50", REWARD), ("recompensa_media", REWARD),
        ("Last 10 mean_episode_rewards", RETURN), ("train/episode_reward", RETURN),
        ("reward_mean_raw", REWARD), ("RawAverageReturn", RETURN), ("rewards/r_total", RETURN),
        ("rewards_idqn", REWARD), ("PPO_total_reward", RETURN), ("reward_log", REWARD),
        ("EpRet", RETURN), ("rolling_reward_20", REWARD), ("Reward_MA", REWARD),
        ("undiscounted_return", RETURN), ("game_score", SCORE),
        ("win_pct", "outcome/success_rate"), ("survival_time", RETURN), ("net_worth", RETURN),
        ("Global/Reward", REWARD), ("training_progress/episode_rewards", RETURN),
        ("mean_reward_last_1000_steps", REWARD), ("population_s_average_fitness", RETURN),
        ("AvgRwd", REWARD), ("pipes", RETURN), ("avg_pipes_passed", RETURN),
    ],
)  # fmt: skip
def test_names_of_an_outcome(key, metric):
    assert outcome_words.meaning(key)[1].name == metric


@pytest.mark.parametrize(
    "key",
    ["reward_std", "max_reward", "step_reward", "reward_scale", "Eval_StdReturn", "loss", "",
     "intrinsic_reward", "best_score", "agent_0/reward", "train/0_reward", "reward" * 20,
     "progress_reward", "reward/progress", "reward_mean_norm", "rewards/r_torques", "log_reward",
     "r_total", "final_score"],
)  # fmt: skip
def test_names_of_something_else(key):
    assert outcome_words.meaning(key) is None


def log(**columns):
    steps = np.arange(40)
    empty = np.full(40, np.nan)
    series = {key: Series(steps, empty, np.asarray(v, dtype=float)) for key, v in columns.items()}
    return Log("csv", series)


def test_one_candidate_is_taken_and_said():
    trace = canonicalize.trace([log(totalReward=range(40), other=range(40))])
    assert trace.series[RETURN].values.tolist() == list(range(40))
    assert trace.unmapped == ("other",)
    assert any("`totalReward` is taken for outcome/return" in note for note in trace.notes)


@pytest.mark.parametrize(
    ("key", "metric"),
    [("Rewards Episodi", RETURN), ("Rewards Blackjack", REWARD),
     ("run5_fix Episode Reward 2023-10-20-17-31-13", RETURN),
     ("reward_1", REWARD), ("rewards_before", REWARD), ("test_reward_v2", "outcome/eval_return")],
)  # fmt: skip
def test_the_only_key_with_an_outcome_s_word_is_taken_and_said(key, metric):
    trace = canonicalize.trace([log(**{key: range(40), "max_q": range(40)})])
    assert metric in trace
    assert any(f"`{key}` is taken for {metric} by its name" in note for note in trace.notes)


@pytest.mark.parametrize(
    "keys",
    [("reward_a", "reward_b"), ("reward_std",), ("best_score",), ("step_reward",),
     ("expected_return",), ("rewards/r_torques",), ("reward_coef",), ("return_rate",)],
)  # fmt: skip
def test_parts_and_statistics_of_an_outcome_are_not_taken(keys):
    trace = canonicalize.trace([log(**dict.fromkeys(keys, range(40)))])
    assert not [name for name in trace.series if name.startswith("outcome/")]


@pytest.mark.parametrize("key", ["wins", "success"])
def test_a_count_of_wins_is_no_share(key):
    assert "outcome/success_rate" not in canonicalize.trace([log(**{key: range(40)})])
    won = canonicalize.trace([log(**{key: [n % 2 for n in range(40)]})])
    assert "outcome/success_rate" in won


def test_the_share_of_wins_is_taken_before_their_count():
    trace = canonicalize.trace([log(wins=range(40), **{"win%": [n / 40 for n in range(40)]})])
    assert trace["outcome/success_rate"].values[-1] == 39 / 40


def test_of_several_the_most_trusted_is_taken_and_the_others_are_named():
    trace = canonicalize.trace([log(winrate=[0.5] * 40, profits=range(40))])
    assert RETURN in trace.series
    assert "outcome/success_rate" not in trace.series
    assert any("beside it: `winrate`" in note for note in trace.notes)


def test_of_algorithms_that_log_below_their_names_the_first_is_judged():
    names = ("EpisodeReward", "Epsilon", "Score_Std")
    keys = [f"{method}/{name}" for method in ("MonteCarlo", "Q-Learning") for name in names]
    values = {key: range(n, 40 + n) for n, key in enumerate([*keys, "Comparison/Score_montecarlo"])}
    trace = canonicalize.trace([log(**values)])
    assert trace[RETURN].values.tolist() == list(range(40))
    assert any("beside it: `Q-Learning/EpisodeReward`" in note for note in trace.notes)
    teams = {key.replace("MonteCarlo", "red").replace("Q-Learning", "blue"): v
             for key, v in values.items()}  # fmt: skip
    assert RETURN not in canonicalize.trace([log(**teams)])


def test_a_mean_beside_its_best_and_worst_is_the_outcome():
    keys = dict.fromkeys(("best", "avg", "worst", "generation"), range(40))
    assert canonicalize.trace([log(**keys)]).measured["outcome/reward"].key == "avg"
    del keys["best"], keys["worst"]
    assert "outcome/reward" not in canonicalize.trace([log(**keys)])


def test_a_known_outcome_is_enough():
    trace = canonicalize.trace([log(episode_return=range(40), totalReward=[0.0] * 40)])
    assert trace.series[RETURN].values[-1] == 39.0
    assert "totalReward" in trace.unmapped


def test_a_fit_s_accuracy_is_no_outcome_beside_a_reward():
    keys = ("reward_avg", "reward_min", "reward_max", "epsilon", "loss", "accuracy")
    trace = canonicalize.trace([log(**dict.fromkeys(keys, range(40)))])
    assert trace.measured["outcome/reward"].key == "reward_avg"


def test_a_win_rate_in_per_cent():
    trace = canonicalize.trace([log(winrate=[50.0] * 40)])
    assert trace.series["outcome/success_rate"].values[0] == 0.5
