"""RLlib: `progress.csv` and `result.json`, flattened with "/"; old and new API stack.

Old stack, until 2019: `info/learner/policy_entropy`, A2C and IMPALA log sums over the batch.
Old stack, since 2020: `info/learner/<policy>/learner_stats/entropy`, means.
New stack, since 2023: `env_runners/...` and `learners/<module>/...`, means.
"""

from rlvitals.metrics.catalogue import (
    exploration,
    optimiser,
    outcome,
    policy,
    progress,
    reward,
    throughput,
    value,
)
from rlvitals.metrics.frameworks.key import RETURN_WINDOW, Family, Name, Table

# evaluation/metrics.py, collect_episodes: at least 100 episodes, older ones filling up.
FILLED_UP_EPISODES = "the new episodes, filled up to 100 with older ones"
SUM = "summed over the training batch (A2C and IMPALA of 2018-2019)"
EXACT_KL = "exact KL of the action distributions, last epoch"

RLLIB_NUMBERS = {
    "return": Name(outcome.RETURN, f"mean over {FILLED_UP_EPISODES}", window=RETURN_WINDOW),
    "return_min": Name(outcome.RETURN_MIN, f"over {FILLED_UP_EPISODES}", window=RETURN_WINDOW),
    "return_max": Name(outcome.RETURN_MAX, f"over {FILLED_UP_EPISODES}", window=RETURN_WINDOW),
    "length": Name(outcome.EPISODE_LENGTH, f"mean over {FILLED_UP_EPISODES}", window=RETURN_WINDOW),
    "eval_return": Name(outcome.EVAL_RETURN, "mean over the evaluation's episodes"),
    "eval_length": Name(outcome.EVAL_EPISODE_LENGTH, "mean over the evaluation's episodes"),
    "trained": Name(progress.STEPS_TRAINED, "samples, each pass over them counted"),
}

# What RLlib's policies report, under "info/learner/<policy>/[learner_stats/]".
POLICY_KEYS = {
    "policy_loss": Name(policy.LOSS, "mean over the last epoch's minibatches"),
    "vf_loss": Name(value.LOSS, "PPO: squared error cut at vf_clip_param; IMPALA: halved"),
    "total_loss": Name(optimiser.LOSS, "mean over the last epoch's minibatches"),
    "vf_explained_var": Name(value.EXPLAINED_VARIANCE, "clamped at -1 from below"),
    "kl": Name(policy.APPROX_KL, EXACT_KL, estimator="exact"),
    "entropy": Name(exploration.ENTROPY, "mean over the batch"),
    "entropy_coeff": Name(exploration.ENTROPY_COEF),
    "cur_kl_coeff": Name(policy.KL_COEF, "adaptive, of the KL to the collecting policy"),
    "cur_lr": Name(optimiser.LEARNING_RATE),
    "grad_gnorm": Name(optimiser.CLIPPED_GRAD_NORM, "after clipping: never above grad_clip"),
    "var_gnorm": Name(optimiser.WEIGHT_NORM),
    "mean_q": Name(value.Q_MEAN, "of the batch's actions"),
    "min_q": Name(value.Q_MIN),
    "max_q": Name(value.Q_MAX),
    "actor_loss": Name(policy.ACTOR_LOSS),
    "critic_loss": Name(value.LOSS, "SAC, TD3: of the first critic"),
    "alpha_value": Name(exploration.ENTROPY_COEF, "SAC's alpha"),
    "alpha_loss": Name(exploration.ENTROPY_COEF_LOSS),
    "mean_td_error": Name(value.TD_ERROR, "signed mean"),
}


RESULT = {  # evaluation/metrics.py, summarize_episodes; algorithms/algorithm.py, step
    "episode_reward_mean": RLLIB_NUMBERS["return"],
    "episode_reward_min": RLLIB_NUMBERS["return_min"],
    "episode_reward_max": RLLIB_NUMBERS["return_max"],
    "episode_len_mean": RLLIB_NUMBERS["length"],
    "episodes_this_iter": Name(progress.EPISODES_NEW),
    "episodes_total": Name(progress.EPISODE, "the old stack of 2018 counts the smoothed ones"),
    "timesteps_total": Name(progress.STEPS),
    "timesteps_this_iter": Name(progress.STEPS_NEW),
    "num_env_steps_sampled": Name(progress.STEPS),
    "num_env_steps_sampled_lifetime": Name(progress.STEPS),
    "num_env_steps_sampled_this_iter": Name(progress.STEPS_NEW),
    "num_env_steps_trained": RLLIB_NUMBERS["trained"],
    "num_agent_steps_trained": RLLIB_NUMBERS["trained"],
    "training_iteration": Name(progress.ITERATION),
    "time_this_iter_s": Name(throughput.STEP_TIME, "one iteration"),
    "time_total_s": Name(throughput.ELAPSED, "seconds of training, over all attempts"),
    "num_healthy_workers": Name(throughput.WORKERS),
    "evaluation/episode_reward_mean": RLLIB_NUMBERS["eval_return"],
    "evaluation/episode_reward_min": Name(outcome.EVAL_RETURN_MIN),
    "evaluation/episode_reward_max": Name(outcome.EVAL_RETURN_MAX),
    "evaluation/env_runners/episode_return_min": Name(outcome.EVAL_RETURN_MIN),
    "evaluation/env_runners/episode_return_max": Name(outcome.EVAL_RETURN_MAX),
    "evaluation/episode_len_mean": RLLIB_NUMBERS["eval_length"],
    "evaluation/env_runners/episode_reward_mean": RLLIB_NUMBERS["eval_return"],
    "evaluation/env_runners/episode_return_mean": RLLIB_NUMBERS["eval_return"],
    "evaluation/env_runners/episode_len_mean": RLLIB_NUMBERS["eval_length"],
    "info/num_steps_sampled": Name(progress.STEPS),
    "info/num_steps_trained": RLLIB_NUMBERS["trained"],
    "info/num_env_steps_sampled": Name(progress.STEPS),
    "info/num_env_steps_trained": RLLIB_NUMBERS["trained"],
    "info/num_target_updates": Name(optimiser.TARGET_UPDATES),
    "info/opt_samples": Name(progress.BATCH_SIZE),
    "info/opt_peak_throughput": Name(throughput.LEARNER_RATE, "at the peak"),
    "info/train_throughput": Name(throughput.LEARNER_RATE),
    "info/sample_peak_throughput": Name(throughput.SAMPLER_RATE, "at the peak"),
    "info/sample_throughput": Name(throughput.SAMPLER_RATE),
    "num_env_steps_sampled_throughput_per_sec": Name(throughput.STEPS_PER_SECOND),
    "num_env_steps_trained_throughput_per_sec": Name(throughput.LEARNER_RATE),
    "env_runners/episode_return_mean": RLLIB_NUMBERS["return"],
    "env_runners/episode_return_min": RLLIB_NUMBERS["return_min"],
    "env_runners/episode_return_max": RLLIB_NUMBERS["return_max"],
    "env_runners/episode_reward_mean": RLLIB_NUMBERS["return"],
    "env_runners/episode_reward_min": RLLIB_NUMBERS["return_min"],
    "env_runners/episode_reward_max": RLLIB_NUMBERS["return_max"],
    "env_runners/episode_len_mean": RLLIB_NUMBERS["length"],
    "env_runners/num_episodes": Name(progress.EPISODES_NEW),
    "env_runners/num_episodes_lifetime": Name(progress.EPISODE),
    "env_runners/num_env_steps_sampled": Name(progress.STEPS_NEW),
    "env_runners/num_env_steps_sampled_lifetime": Name(progress.STEPS),
    "num_training_step_calls_per_iteration": Name(optimiser.UPDATES, "per iteration"),
}


# Ray 2.x's old stack writes these a second time under "sampler_results/".
NAMES = Table(
    "rllib",
    "RLlib",
    keys={
        **RESULT,
        **{
            f"sampler_results/{key}": RESULT[key]
            for key in (
                "episode_reward_mean",
                "episode_reward_min",
                "episode_reward_max",
                "episode_len_mean",
                "episodes_this_iter",
            )
        },
        **{
            f"info/learner/{key}": name
            for key, name in (
                POLICY_KEYS
                | {  # one policy, until 2019: a3c_tf_policy.py and vtrace_policy_graph.py, stats
                    "policy_loss": Name(policy.LOSS_SUM, SUM),
                    "vf_loss": Name(value.LOSS_SUM, f"half the squared error, {SUM}"),
                    "policy_entropy": Name(exploration.ENTROPY_SUM, SUM),
                    "entropy": Name(
                        exploration.ENTROPY_SUM, f"{SUM}; PPO of that time logs a mean here"
                    ),
                }
            ).items()
        },
        **{f"info/learner/default_policy/{key}": name for key, name in POLICY_KEYS.items()},
        **{f"info/learner/default_policy/learner_stats/{key}": n for key, n in POLICY_KEYS.items()},
        **{
            f"learners/{module}/{key}": n
            for module in ("default_policy", "default_module", "__all_modules__")
            for key, n in {  # new stack: ppo_torch_learner.py, learner.py, of DQN and SAC too
                "policy_loss": Name(
                    policy.LOSS, "PPO: clipped surrogate, the last minibatch; SAC: the actor's loss"
                ),
                "vf_loss": Name(
                    value.LOSS, "squared error cut at vf_clip_param, the last minibatch"
                ),
                "vf_loss_unclipped": Name(
                    value.LOSS_UNCLIPPED, "squared error, the last minibatch"
                ),
                "vf_explained_var": Name(value.EXPLAINED_VARIANCE, "clamped at -1 from below"),
                "total_loss": Name(optimiser.LOSS),
                "entropy": Name(exploration.ENTROPY, "mean over the batch"),
                "mean_kl_loss": Name(
                    policy.APPROX_KL, f"{EXACT_KL}; 0 where use_kl_loss is off", estimator="exact"
                ),
                "curr_kl_coeff": Name(
                    policy.KL_COEF, "adaptive, of the KL to the collecting policy"
                ),
                "curr_entropy_coeff": Name(exploration.ENTROPY_COEF),
                "default_optimizer_learning_rate": Name(optimiser.LEARNING_RATE),
                "gradients_default_optimizer_global_norm": Name(
                    optimiser.GRAD_NORM, "before clipping"
                ),
                "diff_num_grad_updates_vs_sampler_policy": Name(optimiser.POLICY_LAG),
                "module_train_batch_size_mean": Name(progress.BATCH_SIZE),
                "qf_loss": Name(value.LOSS, "temporal-difference loss"),
                "qf_mean": Name(value.Q_MEAN, "of the batch's actions"),
                "qf_min": Name(value.Q_MIN),
                "qf_max": Name(value.Q_MAX),
                "td_error_mean": Name(value.TD_ERROR),
                "alpha_value": Name(exploration.ENTROPY_COEF, "SAC's alpha"),
                "alpha_loss": Name(exploration.ENTROPY_COEF_LOSS),
            }.items()
        },
    },
    families=(
        Family(r"(?:env_runners/)?policy_reward_mean/(.+)", Name(reward.COMPONENT, "per agent")),
        Family(r"info/(\w+_time)_ms", Name(throughput.PHASE_TIME, "milliseconds")),
        Family(
            r"(?:env_runners/)?sampler_perf/(mean_\w+)_ms",
            Name(throughput.PHASE_TIME, "milliseconds"),
        ),
        Family(
            r"(evaluation/sampler_perf/mean_\w+)_ms", Name(throughput.PHASE_TIME, "milliseconds")
        ),
        Family(r"timers/(\w+)_time_ms", Name(throughput.PHASE_TIME, "milliseconds")),
        Family(r"timers/(.+?)(?:_time_s)?", Name(throughput.PHASE_TIME, "seconds (new stack)")),
        Family(r"perf/(\w+)_percent", Name(throughput.MACHINE, "percent")),
    ),
    # `entropy_coeff` is left out: it is negative for a bonus until 2019 and positive since.
    settings={
        "lr": "learning_rate",
        "gamma": "gamma",
        "lambda": "gae_lambda",
        "lambda_": "gae_lambda",
        "clip_param": "clip_range",
        "kl_target": "target_kl",
        "kl_coeff": "kl_coef",
        "entropy_coeff": "entropy_coef",
        "vf_clip_param": "clip_range_value",
        "vf_loss_coeff": "value_coef",
        "grad_clip": "max_grad_norm",
        "num_sgd_iter": "n_epochs",
        "num_epochs": "n_epochs",
        "train_batch_size": "batch_size",
        "train_batch_size_per_learner": "batch_size",
        "sgd_minibatch_size": "minibatch_size",
        "minibatch_size": "minibatch_size",
        "sample_batch_size": "n_steps",
        "rollout_fragment_length": "n_steps",
        "learning_starts": "learning_starts",
        "num_steps_sampled_before_learning_starts": "learning_starts",
        "replay_buffer_config/capacity": "buffer_size",
        "exploration_config/final_epsilon": "epsilon_final",
        "target_network_update_freq": "target_update_interval",
        "tau": "tau",
        "env": "env_id",
        "seed": "seed",
    },
    settings_under=r"config/",
    sources=("rllib",),
    prefixes=("ray/tune/",),
    read_from="ray-project/ray: python/ray/rllib/agents/impala/vtrace_policy_graph.py (VTraceLoss),"
    " a3c/a3c_tf_policy.py (A3CLoss, stats), rllib/agents/impala/vtrace_tf_policy.py (stats),"
    " rllib/algorithms/ppo/ppo_torch_policy.py (stats_fn), ppo/torch/ppo_torch_learner.py"
    " (compute_loss_for_module), rllib/utils/torch_utils.py (explained_variance,"
    " apply_grad_clipping), core/learner/learner.py"
    " (postprocess_gradients_for_module), rllib/evaluation/metrics.py (summarize_episodes)",
)
