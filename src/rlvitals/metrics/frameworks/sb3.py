"""Stable-Baselines3, as its 2.9.2 source computes it; also sb3-contrib, which shares the keys."""

from rlvitals.metrics.catalogue import (
    exploration,
    observation,
    optimiser,
    outcome,
    policy,
    progress,
    reward,
    throughput,
    value,
)
from rlvitals.metrics.frameworks.key import RETURN_WINDOW, Family, Name, Table

# `ep_info_buffer` is a deque of `stats_window_size` = 100: episodes, not points of the log.
INTERVAL = "recorded by rlvitals: of the interval alone"
RECORDED_ROLLOUT = "recorded by rlvitals: over the transitions collected since the previous point"
RECORDED_EPISODE = "recorded by rlvitals: one episode as it ends"
CLIPS = "recorded by rlvitals: before clipping; mean of the gradient steps"
SAMPLED = "recorded by rlvitals: every tenth gradient step"
MEAN_OF_EPISODES = "moving average over the last 100 episodes"

NAMES = Table(
    "sb3",
    "Stable-Baselines3",
    keys={
        # common/on_policy_algorithm.py and common/off_policy_algorithm.py, dump_logs
        "rollout/ep_rew_mean": Name(outcome.RETURN, MEAN_OF_EPISODES, window=RETURN_WINDOW),
        "rollout/ep_len_mean": Name(outcome.EPISODE_LENGTH, MEAN_OF_EPISODES, window=RETURN_WINDOW),
        "rollout/success_rate": Name(outcome.SUCCESS_RATE, MEAN_OF_EPISODES, window=RETURN_WINDOW),
        "time/fps": Name(
            throughput.STEPS_PER_SECOND, "cumulative: all steps over all time since the start"
        ),
        "time/time_elapsed": Name(throughput.ELAPSED, "whole seconds"),
        "time/total_timesteps": Name(progress.STEPS),
        "time/iterations": Name(progress.ITERATION),
        "time/episodes": Name(progress.EPISODE),
        # common/callbacks.py, EvalCallback._on_step
        "eval/mean_reward": Name(outcome.EVAL_RETURN, "mean over n_eval_episodes"),
        "eval/mean_ep_length": Name(outcome.EVAL_EPISODE_LENGTH, "mean over n_eval_episodes"),
        "eval/success_rate": Name(outcome.EVAL_SUCCESS_RATE, "mean over n_eval_episodes"),
        # common/base_class.py, _update_learning_rate
        "train/learning_rate": Name(optimiser.LEARNING_RATE),
        # ppo/ppo.py, train
        "train/approx_kl": Name(
            policy.APPROX_KL, "k3, mean over the minibatches of the last epoch", estimator="k3"
        ),
        "train/clip_fraction": Name(
            policy.CLIP_FRACTION, "|ratio - 1| > clip_range, mean over all epochs"
        ),
        "train/policy_gradient_loss": Name(
            policy.LOSS, "clipped surrogate, mean over all epochs; advantages whitened"
        ),
        "train/entropy_loss": Name(
            exploration.ENTROPY,
            "logged with its sign flipped; mean over all epochs (A2C: the one batch)",
            scale=-1.0,
        ),
        "train/value_loss": Name(
            value.LOSS, "mean squared error, not halved; mean over all epochs (A2C: one batch)"
        ),
        "train/explained_variance": Name(
            value.EXPLAINED_VARIANCE, "values of the rollout, before the update"
        ),
        "train/loss": Name(
            optimiser.LOSS,
            "PPO: the last minibatch alone; DQN: Huber loss, mean of the gradient steps",
        ),
        "train/std": Name(
            exploration.STD, "mean of exp(log_std); with gSDE another quantity, not action noise"
        ),
        "train/n_updates": Name(
            optimiser.UPDATES, "PPO: epochs; A2C: batches; DQN, SAC, TD3: gradient steps"
        ),
        "train/clip_range": Name(policy.CLIP_RANGE),
        "train/clip_range_vf": Name(value.CLIP_RANGE),
        # a2c/a2c.py, train
        "train/policy_loss": Name(policy.LOSS, "-mean(A log pi) of the one batch, not clipped"),
        # dqn/dqn.py, _on_step
        "rollout/exploration_rate": Name(exploration.EPSILON),
        # sac/sac.py and td3/td3.py, train
        "train/actor_loss": Name(
            value.Q_MEAN,
            "minus the actor's loss: mean of Q1 (TD3), of min Q - alpha log pi (SAC)",
            scale=-1.0,
        ),
        "train/critic_loss": Name(
            value.LOSS, "squared error summed over the critics (SAC: halved), mean of the steps"
        ),
        "train/ent_coef": Name(exploration.ENTROPY_COEF, "SAC's alpha, mean of the steps"),
        "train/ent_coef_loss": Name(exploration.ENTROPY_COEF_LOSS, "mean of the steps"),
        # sb3_contrib: trpo/trpo.py, train
        "train/kl_divergence_loss": Name(
            policy.APPROX_KL, "exact KL of the update that the line search took", estimator="exact"
        ),
        "train/policy_objective": Name(policy.LOSS, "logged with its sign flipped", scale=-1.0),
        # integrations/stable_baselines3, what the callback adds
        "rollout/episode_return": Name(outcome.RETURN, RECORDED_EPISODE),
        "rollout/episode_length": Name(outcome.EPISODE_LENGTH, RECORDED_EPISODE),
        "rollout/episode_success": Name(outcome.SUCCESS_RATE, f"{RECORDED_EPISODE}: 0 or 1"),
        "rollout/reward_mean": Name(reward.MEAN, RECORDED_ROLLOUT),
        "rollout/reward_std": Name(reward.STD, RECORDED_ROLLOUT),
        "rollout/reward_min": Name(reward.MIN, RECORDED_ROLLOUT),
        "rollout/reward_max": Name(reward.MAX, RECORDED_ROLLOUT),
        "rollout/value_mean": Name(value.MEAN, RECORDED_ROLLOUT),
        "rollout/return_target_mean": Name(value.RETURN_MEAN, RECORDED_ROLLOUT),
        "rollout/return_target_var": Name(value.RETURN_VAR, RECORDED_ROLLOUT),
        "rollout/advantage_mean": Name(policy.ADVANTAGE_MEAN, f"{RECORDED_ROLLOUT}; not whitened"),
        "rollout/advantage_std": Name(policy.ADVANTAGE_STD, f"{RECORDED_ROLLOUT}; not whitened"),
        "rollout/action_at_bound_share": Name(policy.ACTION_AT_BOUND, RECORDED_ROLLOUT),
        "rollout/observation_varying_share": Name(observation.VARYING, RECORDED_ROLLOUT),
        "rollout/observation_largest": Name(observation.LARGEST, RECORDED_ROLLOUT),
        "rollout/entropy": Name(
            exploration.ENTROPY, "recorded by rlvitals: -mean log pi of samples at recent states"
        ),
        "rollout/policy_std": Name(exploration.STD, "recorded by rlvitals: before the tanh"),
        "rollout/noise_std": Name(exploration.STD, "recorded by rlvitals: of the action noise"),
        "rollout/q_mean": Name(value.Q_MEAN, "recorded by rlvitals: max Q at recent states"),
        "time/steps_per_second": Name(throughput.STEPS_PER_SECOND, INTERVAL),
        "train/grad_norm": Name(optimiser.GRAD_NORM, CLIPS),
        "train/grad_norm_max": Name(optimiser.GRAD_NORM_MAX, CLIPS.replace("mean", "max")),
        "train/actor_grad_norm": Name(optimiser.GRAD_NORM, f"{SAMPLED}; the actor's"),
        "train/actor_grad_norm_max": Name(optimiser.GRAD_NORM_MAX, f"{SAMPLED}; the actor's"),
        "train/critic_grad_norm": Name(optimiser.CRITIC_GRAD_NORM, SAMPLED),
    },
    families=(
        Family(r"rollout/action_count/(\d+)", Name(policy.ACTION_COUNT, RECORDED_ROLLOUT)),
        Family(r"time/phase/(\w+)", Name(throughput.PHASE_TIME, f"{INTERVAL}, in seconds")),
    ),
    settings={
        "learning_rate": "learning_rate",
        "n_steps": "n_steps",
        "batch_size": "minibatch_size",  # ppo.py: the size of one gradient step's sample
        "n_epochs": "n_epochs",
        "gamma": "gamma",
        "gae_lambda": "gae_lambda",
        "clip_range": "clip_range",
        "clip_range_vf": "clip_range_value",
        "ent_coef": "entropy_coef",
        "vf_coef": "value_coef",
        "max_grad_norm": "max_grad_norm",
        "target_kl": "target_kl",
        "seed": "seed",
        "n_envs": "n_envs",
        "total_timesteps": "total_steps",
        "n_timesteps": "total_steps",  # rl-zoo's name
        "env": "env_id",
        "env_id": "env_id",
        "algo": "algorithm",
        "buffer_size": "buffer_size",
        "learning_starts": "learning_starts",
        "tau": "tau",
        "target_update_interval": "target_update_interval",
        "exploration_final_eps": "epsilon_final",
        "exploration_fraction": "exploration_fraction",
    },
    sources=("sb3-csv", "sb3-json", "sb3-evaluations"),
    read_from="stable_baselines3 2.9.2: common/on_policy_algorithm.py, common/callbacks.py,"
    " ppo/ppo.py, a2c/a2c.py, dqn/dqn.py, sac/sac.py, td3/td3.py (train);"
    " sb3_contrib: trpo/trpo.py (train)",
)
