"""Classic frameworks: which table a log gets, its step and unit, what its keys mean.

The keys are those that the sources named in each table's `read_from` write.
"""

import csv

import numpy as np
import pytest

from rlvitals.metrics import canonicalize
from rlvitals.metrics.frameworks import TABLES, lookup
from rlvitals.readers.select import claim
from rlvitals.types import Log, Profile, Series

TABLE = {table.framework: table for table in TABLES}

# A "+" is a blank. What is not judged stands behind the bar.
LOGS = {
    "rlgym-ppo": (
        """
        PPO+Batch+Consumption+Time Cumulative+Model+Updates Policy+Entropy Mean+KL+Divergence
        Value+Function+Loss SB3+Clip+Fraction Cumulative+Timesteps Total+Iteration+Time
        Timesteps+Collected Timestep+Collection+Time Timestep+Consumption+Time
        Collected+Steps+per+Second Overall+Steps+per+Second Policy+Reward |
        Policy+Update+Magnitude Value+Function+Update+Magnitude
        """,
        "rlgym-ppo",
        Profile.CONTROL_PPO,
    ),
    "garage ppo": (
        """
        Evaluation/Iteration Evaluation/AverageReturn Evaluation/MaxReturn Evaluation/MinReturn
        GaussianMLPPolicy/KL GaussianMLPPolicy/Entropy GaussianMLPPolicy/LossAfter
        GaussianMLPValueFunction/LossAfter TotalEnvSteps |
        Evaluation/NumEpisodes Evaluation/AverageDiscountedReturn Evaluation/StdReturn
        Evaluation/TerminationRate GaussianMLPPolicy/LossBefore GaussianMLPPolicy/dLoss
        GaussianMLPPolicy/KLBefore
        """,
        "garage",
        Profile.CONTROL_PPO,
    ),
    "garage trpo in tensorflow": (
        """
        Evaluation/AverageReturn CategoricalMLPPolicy/KL CategoricalMLPPolicy/Entropy
        CategoricalMLPPolicy/LossAfter LinearFeatureBaseline/ExplainedVariance TotalEnvSteps |
        Evaluation/AverageDiscountedReturn CategoricalMLPPolicy/Perplexity
        Extras/EpisodeRewardMean
        """,
        "garage",
        Profile.CONTROL_PPO,
    ),
    "garage sac": (
        """
        Evaluation/AverageReturn Evaluation/SuccessRate AlphaTemperature/mean Policy/Loss
        QF/Qf1Loss QF/Qf2Loss Average/TrainAverageReturn TotalEnvSteps |
        Evaluation/AverageDiscountedReturn ReplayBuffer/buffer_size
        """,
        "garage-off-policy",
        Profile.OFF_POLICY,
    ),
    "garage ddpg": (
        """
        Evaluation/AverageReturn Epoch Policy/AveragePolicyLoss QFunction/AverageQFunctionLoss
        QFunction/AverageQ QFunction/MaxQ QFunction/AverageY TotalEnvSteps |
        Evaluation/AverageDiscountedReturn QFunction/AverageAbsQ QFunction/MaxY
        QFunction/AverageAbsY Evaluation/100EpRewardMean
        """,
        "garage-off-policy",
        Profile.OFF_POLICY,
    ),
    "rllab trpo": (
        """
        Iteration AverageReturn ExplainedVariance Entropy MaxReturn MinReturn LossAfter MeanKL
        AveragePolicyStd |
        AverageDiscountedReturn NumTrajs Perplexity StdReturn LossBefore MeanKLBefore dLoss
        """,
        "garage",
        Profile.CONTROL_PPO,
    ),
    "rllab ddpg": (
        """
        Epoch AverageReturn MaxReturn MinReturn AverageEsReturn AverageQLoss AveragePolicySurr
        AverageQ AverageY |
        StdReturn StdEsReturn AverageDiscountedReturn AverageAbsQ AverageAction
        """,
        "garage-off-policy",
        Profile.OFF_POLICY,
    ),
    "rlkit 0.2 sac": (
        """
        trainer/QF1+Loss trainer/QF2+Loss trainer/Policy+Loss trainer/Q1+Predictions+Mean
        trainer/Q2+Predictions+Mean trainer/Q+Targets+Mean trainer/Log+Pis+Mean trainer/Alpha
        trainer/Alpha+Loss trainer/num+train+calls exploration/num+steps+total
        exploration/num+paths+total exploration/path+length+Mean exploration/Returns+Mean
        exploration/Average+Returns evaluation/path+length+Mean evaluation/Returns+Mean
        evaluation/Returns+Max evaluation/Average+Returns time/epoch+(s) time/total+(s)
        time/saving+(s) Epoch |
        replay_buffer/size evaluation/Returns+Std evaluation/num+steps+total
        """,
        "rlkit",
        Profile.OFF_POLICY,
    ),
    "rlkit since 2021": (
        (
            "epoch trainer/QF1+Loss trainer/policy/normal/std+Mean expl/num+steps+total"
            " expl/Returns+Mean eval/Returns+Mean eval/Average+Returns | replay_buffer/size"
        ),
        "rlkit",
        Profile.OFF_POLICY,
    ),
    "rlkit 0.1": (
        """
        QF+Loss VF+Loss Policy+Loss Q+Predictions+Mean Log+Pis+Mean Test+Returns+Mean
        Exploration+Returns+Mean AverageReturn Number+of+train+steps+total
        Number+of+env+steps+total Number+of+rollouts+total Epoch |
        V+Predictions+Mean
        """,
        "rlkit",
        Profile.OFF_POLICY,
    ),
    "softlearning": (
        """
        evaluation/episode-reward-mean evaluation/episode-length-mean
        training/episode-reward-mean update/Q_value-mean update/Q_loss-mean
        update/policy_loss-mean update/alpha update/alpha_loss-mean policy/entropy-mean epoch
        total_timestep num_train_steps sampler/total-samples |
        evaluation/episode-reward-std sampler/pool-size timestep
        """,
        "softlearning",
        Profile.OFF_POLICY,
    ),
    "mbpo": (
        """
        Q-avg Q_loss alpha policy/-log-pis-mean evaluation/return-average
        evaluation/episode-length-avg training/return-average model/val_loss timesteps_total
        train-steps |
        Q-std evaluation/return-std
        """,
        "softlearning",
        Profile.OFF_POLICY,
    ),
    "pfrl dqn": (
        (
            "steps episodes elapsed mean max min average_q average_loss n_updates |"
            " median stdev cumulative_steps rlen"
        ),
        "pfrl",
        Profile.OFF_POLICY,
    ),
    "pfrl ppo": (
        """
        steps episodes elapsed mean max min average_value average_entropy average_value_loss
        average_policy_loss n_updates explained_variance | median stdev
        """,
        "pfrl",
        Profile.ON_POLICY,
    ),
    "pfrl in event files": (
        """
        eval/mean eval/max eval/min agent/average_q1 agent/average_q2 agent/average_q_func1_loss
        agent/average_q_func2_loss agent/temperature | eval/median eval/stdev
        """,
        "pfrl",
        Profile.OFF_POLICY,
    ),
    "baselines ppo1": (
        """
        loss_pol_surr loss_pol_entpen loss_vf_loss loss_kl loss_ent ev_tdlam_before EpLenMean
        EpRewMean EpThisIter EpisodesSoFar TimestepsSoFar TimeElapsed
        """,
        "baselines",
        Profile.CONTROL_PPO,
    ),
    "baselines trpo": (
        """
        meankl entloss surrgain entropy ev_tdlam_before EpLenMean EpRewMean EpThisIter
        EpisodesSoFar TimestepsSoFar TimeElapsed | optimgain
        """,
        "baselines",
        Profile.CONTROL_PPO,
    ),
    "mlagents 0.3": (
        """
        Info/cumulative_reward Info/episode_length Info/value_estimate Info/entropy
        Info/value_loss Info/policy_loss Info/learning_rate Info/Lesson
        """,
        "mlagents",
        Profile.ON_POLICY,
    ),
}


def keys_of(text):
    return [word.replace("+", " ") for word in text.split()]


@pytest.mark.parametrize("case", LOGS)
def test_a_log_gets_its_framework_and_its_kind(case):
    text, framework, kind = LOGS[case]
    judged, _, others = text.partition("|")
    keys = [*keys_of(judged), *keys_of(others)]
    steps = np.arange(1, 31)
    series = Series(steps, 1.7e9 + steps, np.linspace(0.1, 0.2, 30))
    log = Log("tensorboard", dict.fromkeys(keys, series))
    assert lookup.choose("tensorboard", keys, TABLES).framework == framework
    trace = canonicalize.trace([log])
    assert trace.profile is kind
    assert set(trace.unmapped) == set(keys_of(others))
    assert trace.step_unit == (TABLE[framework].step_unit or "steps")


# framework, key, canonical name, scale, estimator, words that its measure must hold
MEANINGS = [
    ("rlgym-ppo", "Policy Reward", "outcome/return", 1, "", "each of weight 0.1"),
    ("rlgym-ppo", "Mean KL Divergence", "policy/approx_kl", 1, "k3", "all epochs"),
    ("rlgym-ppo", "SB3 Clip Fraction", "policy/clip_fraction", 1, "", "|ratio - 1|"),
    ("garage", "Evaluation/AverageReturn", "outcome/return", 1, "", "of the update's batch"),
    ("garage", "Average/SuccessRate", "outcome/success_rate", 1, "", "share"),
    ("garage", "GaussianMLPPolicy/KL", "policy/approx_kl", 1, "exact", "after the update"),
    ("garage", "MeanKL", "policy/approx_kl", 1, "exact", "mean over the batch"),
    (
        "garage",
        "GaussianMLPValueFunction/LossAfter",
        "optimiser/loss_part/GaussianMLPValueFunction",
        1,
        "",
        "log-likelihood",
    ),
    ("garage-off-policy", "Evaluation/AverageReturn", "outcome/eval_return", 1, "", "evaluation"),
    ("garage-off-policy", "AverageReturn", "outcome/eval_return", 1, "", "evaluation"),
    ("garage-off-policy", "AverageEsReturn", "outcome/return", 1, "", "exploration"),
    ("garage-off-policy", "QF/Qf2Loss", "value/critic_loss/Qf2", 1, "", "second critic"),
    ("rlkit", "AverageReturn", "outcome/eval_return", 1, "", "evaluation"),
    ("rlkit", "expl/Returns Mean", "outcome/return", 1, "", "epoch's episodes"),
    ("rlkit", "trainer/Log Pis Mean", "exploration/entropy", -1, "", "minus the log-probability"),
    ("softlearning", "Q_loss-mean", "value/loss", 1, "", "half the squared error"),
    ("softlearning", "policy/-log-pis-mean", "exploration/entropy", 1, "", "minus the"),
    ("pfrl", "mean", "outcome/eval_return", 1, "", "evaluation"),
    ("pfrl", "temperature", "exploration/entropy_coef", 1, "", "alpha"),
    ("baselines", "loss_ent", "exploration/entropy", 1, "", "positive"),
    ("baselines", "loss_pol_entpen", "exploration/entropy_bonus", -1, "", "minus entcoeff"),
    ("baselines", "entloss", "exploration/entropy_bonus", 1, "", "a gain"),
    ("baselines", "surrgain", "policy/loss", -1, "", "sign flipped"),
    ("baselines", "loss_kl", "policy/approx_kl", 1, "exact", "after the update"),
    ("mlagents", "Info/policy_loss", "policy/loss_sum", 1, "", "added up"),
]


@pytest.mark.parametrize("row", MEANINGS, ids=lambda row: f"{row[0]} {row[1]}")
def test_what_a_key_means(row):
    framework, key, canonical, scale, estimator, words = row
    found, name = lookup.find(TABLE[framework], key)
    assert (found, name.scale, name.estimator) == (canonical, scale, estimator)
    assert words in name.how


# What a script of one's own writes: no framework's marks are in it.
HAND_WRITTEN = [
    "step mean std max min",
    "iteration Entropy KL AverageReturn",
    "epoch alpha QF+Loss Policy+Loss",
    "steps episodes mean max",
    "episode entropy meankl reward",
]


@pytest.mark.parametrize("text", HAND_WRITTEN)
def test_names_that_are_everybodys_are_no_frameworks(text):
    found = lookup.choose("csv", keys_of(text), TABLES)
    assert found is None or found.framework not in {framework for _, framework, _ in LOGS.values()}


def read_rows(path, names, rows, delimiter=","):
    with path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(names)
        writer.writerows(rows)
    return canonicalize.trace([claim(path).read(path, None)[0]])


def test_scores_of_pfrl_are_evaluations_at_environment_steps(tmp_path):
    names = ["steps", "episodes", "elapsed", "mean", "median", "stdev", "max", "min", "average_q"]
    rows = [
        (5000 * n, 25 * n, 12.5 * n, 10.0 * n, 9.0 * n, 1.5, 20 * n, n, 0.1 * n)
        for n in range(1, 9)
    ]
    trace = read_rows(tmp_path / "scores.txt", names, rows, "\t")
    assert trace["outcome/eval_return"].steps.tolist() == [5000 * n for n in range(1, 9)]
    assert trace["outcome/eval_return"].values.tolist() == [10.0 * n for n in range(1, 9)]
    assert trace["progress/episode"].values[-1] == 200
    assert trace.step_unit == "environment steps"
    assert trace.unmapped == ("median", "stdev")


# The column that a table's rows stand at, among the others that count.
STEP_COLUMNS = {
    "garage": (["Evaluation/Iteration", "Evaluation/AverageReturn", "TotalEnvSteps"], 2),
    "rlkit": (["exploration/Returns Mean", "exploration/num steps total", "Epoch"], 1),
    "rlkit 0.1": (["AverageReturn", "Number of env steps total", "Epoch"], 1),
    "softlearning": (["epoch", "total_timestep", "training/episode-reward-mean"], 1),
    "baselines": (["EpRewMean", "EpisodesSoFar", "TimestepsSoFar"], 2),
    "epymarl": (["return_mean", "t_env", "episode"], 1),
}


@pytest.mark.parametrize("case", STEP_COLUMNS)
def test_a_table_stands_at_environment_steps(tmp_path, case):
    names, place = STEP_COLUMNS[case]
    rows = [[n * (1000 if i == place else i + 1) for i, _ in enumerate(names)] for n in range(1, 9)]
    trace = read_rows(tmp_path / "progress.csv", names, rows)
    outcome = next(key for key in trace.series if key.startswith("outcome/"))
    assert trace[outcome].steps.tolist() == [1000 * n for n in range(1, 9)]
    assert trace.step_unit == "environment steps"


def test_a_file_of_ray_tune_may_be_softlearnings(tmp_path):
    names = ["training_iteration", "timesteps_total", "evaluation/return-average", "Q_loss"]
    rows = [(n, 1000 * n, 3.0 * n, 0.5) for n in range(1, 9)]
    trace = read_rows(tmp_path / "progress.csv", names, rows)
    assert trace.measured["outcome/eval_return"].framework == "softlearning"
    assert trace["value/loss"].steps[0] == 1000
