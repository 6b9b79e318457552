"""Classic frameworks: which table a log gets, its step and unit, what its keys mean.

The keys are those that the sources named in each table's `read_from` write.
"""

import csv

import numpy as np
import pytest

import rlvitals
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
    "sample factory": (
        """
        reward/reward reward/reward_min reward/reward_max len/len policy_stats/avg_true_objective
        perf/_fps perf/_sample_throughput train/env_steps train/lr train/actual_lr
        train/grad_norm train/loss train/value train/entropy train/policy_loss train/kl_loss
        train/value_loss train/exploration_loss train/adv_mean train/kl_divergence
        train/fraction_clipped train/ratio_mean train/version_diff_avg |
        len/len_min policy_stats/avg_true_objective_min train/valids_fraction train/act_min
        train/kl_divergence_max stats/master_process_memory_mb
        """,
        "sample-factory",
        Profile.CONTROL_PPO,
    ),
    "pufferlib 3": (
        """
        SPS agent_steps uptime epoch learning_rate environment/episode_return
        environment/episode_length environment/score environment/perf losses/policy_loss
        losses/value_loss losses/entropy losses/old_approx_kl losses/approx_kl losses/clipfrac
        losses/importance losses/explained_variance performance/eval performance/train |
        environment/n
        """,
        "pufferlib",
        Profile.CONTROL_PPO,
    ),
    "pufferlib 1": (
        """
        0verview/SPS 0verview/agent_steps 0verview/epoch 0verview/learning_rate
        environment/episode_return losses/policy_loss losses/value_loss losses/entropy
        losses/old_approx_kl losses/approx_kl losses/clipfrac losses/explained_variance
        """,
        "pufferlib",
        Profile.CONTROL_PPO,
    ),
    "mappo": (
        """
        value_loss policy_loss dist_entropy actor_grad_norm critic_grad_norm ratio
        average_step_rewards incre_win_rate eval_win_rate eval_average_episode_rewards |
        dead_ratio
        """,
        "mappo",
        Profile.ON_POLICY,
    ),
    "mappo in particles": (
        (
            "value_loss policy_loss dist_entropy actor_grad_norm ratio average_episode_rewards"
            " agent0/individual_rewards"
        ),
        "mappo",
        Profile.ON_POLICY,
    ),
    "harl": (
        """
        agent0/policy_loss agent1/policy_loss agent0/dist_entropy agent1/dist_entropy
        agent0/actor_grad_norm agent0/ratio critic/value_loss critic/critic_grad_norm
        critic/average_step_rewards train_episode_rewards eval_average_episode_rewards
        eval_max_episode_rewards
        """,
        "mappo",
        Profile.ON_POLICY,
    ),
    "pytorch_sac": (
        """
        actor_entropy actor_loss alpha_loss alpha_value batch_reward critic_loss episode
        episode_reward step | actor_target_entropy duration
        """,
        "pytorch-sac",
        Profile.OFF_POLICY,
    ),
    "drq-v2": (
        """
        actor_loss batch_reward critic_loss critic_q1 critic_q2 critic_target_q episode
        episode_length episode_reward fps step total_time | actor_ent actor_logprob buffer_size
        """,
        "pytorch-sac",
        Profile.OFF_POLICY,
    ),
    "drq in event files": (
        (
            "train/episode_reward train_critic/loss train_actor/loss train_actor/entropy"
            " train_alpha/value train/batch_reward eval/episode_reward"
        ),
        "pytorch-sac",
        Profile.OFF_POLICY,
    ),
    "td-mpc2": (
        """
        train/consistency_loss train/reward_loss train/value_loss train/termination_loss
        train/total_loss train/grad_norm train/pi_loss train/pi_entropy train/episode_reward
        train/episode_success train/episode_length train/step train/elapsed_time
        train/steps_per_second eval/episode_reward eval/episode_success eval/episode_length |
        train/pi_scale train/episode_terminated
        """,
        "td-mpc",
        Profile.OFF_POLICY,
    ),
    "torchrl ppo": (
        """
        train/reward train/episode_length train/loss_critic train/loss_entropy
        train/loss_objective train/lr train/clip_epsilon eval/reward time/speed time/collecting
        """,
        "torchrl",
        Profile.CONTROL_PPO,
    ),
    "torchrl sac": (
        """
        train/reward train/episode_length train/q_loss train/actor_loss train/alpha_loss
        train/alpha train/entropy eval/reward time/speed
        """,
        "torchrl",
        Profile.OFF_POLICY,
    ),
    "torchrl dqn": (
        (
            "train/episode_reward train/episode_length train/q_values train/q_loss train/epsilon"
            " eval/reward time/speed"
        ),
        "torchrl",
        Profile.OFF_POLICY,
    ),
    "torchrl's trainer": (
        "r_training total_r_evaluation r_evaluation optim_steps loss_objective kl_approx",
        "torchrl",
        Profile.ON_POLICY,
    ),
    "benchmarl mappo": (
        """
        collection/reward/episode_reward_mean collection/reward/reward_mean
        eval/reward/episode_reward_mean eval/reward/episode_reward_max
        eval/reward/episode_len_mean train/agents/loss_objective train/agents/loss_critic
        train/agents/entropy train/agents/kl_approx train/agents/clip_fraction
        train/agents/grad_norm_loss_objective counters/total_frames counters/current_frames
        counters/iter timers/collection_time timers/total_time |
        train/agents/ESS collection/agents/reward/episode_reward_mean
        """,
        "benchmarl",
        Profile.CONTROL_PPO,
    ),
    "benchmarl in event files": (
        (
            "collection_reward_episode_reward_mean eval_reward_episode_reward_mean"
            " train_agents_loss_objective train_agents_loss_critic counters_total_frames"
        ),
        "benchmarl",
        Profile.ON_POLICY,
    ),
    "dopamine rainbow": (
        (
            "Train/NumEpisodes Train/AverageReturns Train/AverageStepsPerSecond Eval/AverageReturns"
            " CrossEntropyLoss | Eval/NumEpisodes"
        ),
        "dopamine",
        Profile.UNKNOWN,
    ),
    "dopamine sac": (
        (
            "Train/AverageReturns Eval/AverageReturns Losses/Critic Losses/Actor Losses/Alpha"
            " Values/CriticValues1 Values/CriticValues2 Values/Alpha"
        ),
        "dopamine",
        Profile.OFF_POLICY,
    ),
    "tf-agents sac": (
        (
            "Metrics/AverageReturn Metrics/AverageEpisodeLength Metrics/EnvironmentSteps"
            " Losses/critic_loss Losses/actor_loss Losses/alpha_loss eval/Metrics/AverageReturn |"
            " Metrics_vs_EnvironmentSteps/AverageReturn"
        ),
        "tf-agents",
        Profile.OFF_POLICY,
    ),
    "tf-agents ppo": (
        (
            "Metrics/AverageReturn Losses/policy_gradient_loss Losses/value_estimation_loss"
            " Losses/entropy_regularization_loss LearningRate/learning_rate mean_kl_divergence"
        ),
        "tf-agents",
        Profile.CONTROL_PPO,
    ),
    "brax ppo": (
        """
        eval/episode_reward eval/avg_episode_length eval/episode_reward_ctrl training/sps
        training/walltime training/policy_loss training/v_loss training/entropy_loss
        training/total_loss training/kl_mean num_steps |
        eval/episode_reward_std eval/episode_reward_ctrl_std eval/sps eval/walltime
        """,
        "brax",
        Profile.CONTROL_PPO,
    ),
    "brax sac": (
        (
            "eval/episode_reward eval/avg_episode_length training/sps training/critic_loss"
            " training/actor_loss training/alpha training/alpha_loss | training/buffer_current_size"
        ),
        "brax",
        Profile.OFF_POLICY,
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
    ("sample-factory", "train/grad_norm", "optimiser/clipped_grad_norm", 1, "", "after clipping"),
    ("sample-factory", "train/kl_divergence", "policy/approx_kl", 1, "exact", "new to old"),
    ("sample-factory", "train/ratio_mean", "policy/loss_weight/ratio_mean", 1, "", "|1 - ratio|"),
    ("sample-factory", "train/exploration_loss", "exploration/entropy_bonus", -1, "", "minus"),
    ("pufferlib", "losses/approx_kl", "policy/approx_kl", 1, "k3", "1.0 adds up"),
    ("pufferlib", "environment/score", "outcome/domain/score", 1, "", "environment"),
    ("mappo", "average_episode_rewards", "outcome/return", 1, "", "times episode_length"),
    ("mappo", "agent3/dist_entropy", "exploration/entropy", 1, "", "positive"),
    ("pytorch-sac", "train/episode_reward", "outcome/return", 1, "", "episodes"),
    ("pytorch-sac", "eval/episode_reward", "outcome/eval_return", 1, "", "evaluation"),
    ("td-mpc", "train/episode_success", "outcome/success_rate", 1, "", "one episode"),
    ("td-mpc", "eval/episode_success", "outcome/eval_success_rate", 1, "", "share"),
    ("torchrl", "train/reward", "outcome/return", 1, "", "episodes that ended"),
    ("torchrl", "r_training", "reward/mean", 1, "", "steps of the batch"),
    ("torchrl", "train/kl_approx", "policy/kl_signed", 1, "k1", ""),
    ("torchrl", "train/loss_entropy", "exploration/entropy_bonus", -1, "", "minus"),
    ("benchmarl", "train/agents/loss_objective", "policy/loss", 1, "", "with the entropy term"),
    ("benchmarl", "train_agents_alpha", "exploration/entropy_coef", 1, "", "alpha"),
    ("dopamine", "Losses/Entropy", "exploration/entropy", 1, "", "positive"),
    ("tf-agents", "Metrics/AverageReturn", "outcome/return", 1, "", "last 10 episodes"),
    ("brax", "training/entropy_loss", "exploration/entropy_bonus", -1, "", "minus"),
    ("brax", "training/v_loss", "value/loss", 1, "", "vf_coefficient / 2"),
    ("brax", "eval/episode_reward_ctrl", "reward/eval_component/reward_ctrl", 1, "", "sum"),
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
    "step episode_reward episode_length fps",
    "iteration policy_loss value_loss dist_entropy",
    "step train/reward eval/reward",
    "global_step eval/episode_reward training/loss",
    "epoch reward r lr",
    "step mean median stdev max min",
    "episode_reward episode_success episode_length policy_loss value_loss",
    "eval/episode_reward eval/episode",
    "train/q_loss train/reward",
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
    "rlgym-ppo": (["Policy Reward", "Cumulative Model Updates", "Cumulative Timesteps"], 2),
    "pufferlib": (["SPS", "agent_steps", "epoch", "environment/episode_return"], 1),
    "brax": (["num_steps", "eval/episode_reward", "training/sps"], 0),
    "garage": (["Evaluation/Iteration", "Evaluation/AverageReturn", "TotalEnvSteps"], 2),
    "rlkit": (["exploration/Returns Mean", "exploration/num steps total", "Epoch"], 1),
    "rlkit 0.1": (["AverageReturn", "Number of env steps total", "Epoch"], 1),
    "softlearning": (["epoch", "total_timestep", "training/episode-reward-mean"], 1),
    "baselines": (["EpRewMean", "EpisodesSoFar", "TimestepsSoFar"], 2),
    "epymarl": (["return_mean", "t_env", "episode"], 1),
}


@pytest.mark.parametrize("case", STEP_COLUMNS)
def test_a_table_stands_at_steps_of_the_environment(tmp_path, case):
    names, place = STEP_COLUMNS[case]
    rows = [[n * (1000 if i == place else i + 1) for i, _ in enumerate(names)] for n in range(1, 9)]
    trace = read_rows(tmp_path / "progress.csv", names, rows)
    outcome = next(key for key in trace.series if key.startswith("outcome/"))
    assert trace[outcome].steps.tolist() == [1000 * n for n in range(1, 9)]
    of_agents = case in {"rlgym-ppo", "pufferlib"}
    assert trace.step_unit == ("agent steps" if of_agents else "environment steps")


def test_a_file_of_ray_tune_may_be_softlearnings(tmp_path):
    names = ["training_iteration", "timesteps_total", "evaluation/return-average", "Q_loss"]
    rows = [(n, 1000 * n, 3.0 * n, 0.5) for n in range(1, 9)]
    trace = read_rows(tmp_path / "progress.csv", names, rows)
    assert trace.measured["outcome/eval_return"].framework == "softlearning"
    assert trace["value/loss"].steps[0] == 1000


def test_the_second_table_of_pytorch_sac_is_an_evaluation(tmp_path):
    """Both have the same names: what tells them apart is their files'."""
    for name, others in (("train", ["actor_loss", "batch_reward", "critic_loss"]), ("eval", [])):
        rows = [(n, 9.0 * n, 1000 * n, *([0.5] * len(others))) for n in range(1, 9)]
        read_rows(tmp_path / f"{name}.csv", ["episode", "episode_reward", "step", *others], rows)
    (trace,) = rlvitals.runs(tmp_path)
    assert trace.measured["outcome/return"].where == "train.csv"
    assert trace.measured["outcome/return"].framework == "pytorch-sac"
    assert trace.measured["outcome/eval_return"].where == "eval.csv"
    assert trace.step_unit == "environment steps"


def test_losses_of_dopamine_are_placed_at_iterations():
    iterations, updates = np.arange(1, 11), np.arange(500, 5500, 500)
    times = 1.7e9 + np.arange(10) * 60.0
    log = Log(
        "tensorboard",
        {
            "Train/AverageReturns": Series(iterations, times, iterations * 1.0),
            "HuberLoss": Series(updates, times, 1.0 / iterations),
        },
    )
    trace = canonicalize.trace([log])
    assert trace["value/loss"].steps.tolist() == iterations.tolist()
    assert trace.step_unit == "iterations"
