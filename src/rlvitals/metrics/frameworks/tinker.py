"""Tinker's cookbook: reinforcement learning and on-policy distillation over a training service.

One row per batch, in the JSON lines that it always writes. "env/all" is the mean over all
environments, "env/<tag>" that over one kind of problem; an evaluation puts its name before the same
keys. What an environment logs of its own ("correct", "format") stands beside them.
"""

from rlvitals.metrics.catalogue import (
    exploration,
    language,
    optimiser,
    outcome,
    policy,
    progress,
    reward,
    rollouts,
    sampler,
    throughput,
)
from rlvitals.metrics.frameworks import generic
from rlvitals.metrics.frameworks.key import Family, Name, Table

OVER_EPISODES = "mean over episodes"
SHARE_OF_GROUPS = "share of the batch's groups; a group is good at a reward of 0.5"

TRAINING = {
    "env/all/reward/total": Name(outcome.REWARD, f"sum over an episode's turns, {OVER_EPISODES}"),
    "env/all/correct": Name(outcome.ACCURACY, f"as the environment grades, {OVER_EPISODES}"),
    "test/env/all/correct": Name(outcome.EVAL_ACCURACY, "mean over the test set"),
    "test/env/all/reward/total": Name(outcome.EVAL_REWARD, "mean over the test set"),
    "env/all/ac_tokens_per_turn": Name(language.LENGTH_MEAN, "tokens of one turn"),
    "env/all/ob_tokens_per_turn": Name(language.QUERY_LENGTH_MEAN, "tokens of one turn's input"),
    "env/all/turns_per_episode": Name(rollouts.TURNS_MEAN, OVER_EPISODES),
    "env/all/by_group/frac_mixed": Name(
        reward.GROUP_ZERO_STD, "what the other two leave of the groups", again=True
    ),
    "env/all/by_group/frac_all_good": Name(reward.GROUP_ALL_RIGHT, SHARE_OF_GROUPS),
    "env/all/by_group/frac_all_bad": Name(reward.GROUP_ALL_WRONG, SHARE_OF_GROUPS),
    "env/all/total_ac_tokens": Name(progress.TOKENS_NEW, "written by the policy in the batch"),
    # recipes/rl_loop.py, which people extend with what they measure
    "reward/total": Name(outcome.REWARD, "mean over groups of the group's mean"),
    "reward/mean": Name(outcome.REWARD, "as its writer measured it"),
    "policy/entropy": Name(exploration.ENTROPY, "as its writer measured it"),
    "optim/lr": Name(optimiser.LEARNING_RATE),
    "optim/entropy": Name(
        exploration.ENTROPY, "of the sampled tokens: minus their mean log-probability at sampling"
    ),
    # The trainer's log-probabilities are those of before the update.
    "optim/kl_sample_train_v1": Name(
        sampler.KL_SIGNED, "k1, mean over action tokens", estimator="k1"
    ),
    "optim/kl_sample_train_v2": Name(sampler.KL, "k2, mean over action tokens", estimator="k2"),
    "kl_policy_base": Name(
        policy.KL_TO_REFERENCE_PER_TOKEN, "k1, mean over action tokens", estimator="k1"
    ),
    "kl_pre_post_v1": Name(policy.KL_SIGNED, "k1, after the update", estimator="k1"),
    "kl_pre_post_v2": Name(policy.APPROX_KL, "k2, after the update", estimator="k2"),
    "train_mean_nll": Name(optimiser.LOSS, "supervised: mean over tokens"),
    "progress/batch": Name(progress.ITERATION, "batches"),
    "progress/epoch": Name(progress.EPOCH),
    "time/total": Name(throughput.STEP_TIME, "one batch, evaluations included"),
    "num_sequences": Name(progress.BATCH_SIZE, "supervised"),
    "num_tokens": Name(progress.TOKENS_NEW, "supervised"),
    "sampling_client/step_mean": Name(sampler.VERSION, "mean over the batch, asynchronous"),
}


NAMES = Table(
    "tinker",
    "Tinker cookbook",
    keys=TRAINING,
    families=(
        # metric_util.py, _compute_(trajectory|by_group)_metrics: these are no parts of a reward
        Family(
            r"env/all/((?!(?:reward|ac_tokens_per_turn|ob_tokens_per_turn|ac_tokens_per_trajectory"
            r"|ob_tokens_per_trajectory|turns_per_episode|total_\w+|by_group|by_episode|correct)"
            r"(?:/|$))[^/]+)",
            Name(reward.COMPONENT, OVER_EPISODES),
        ),
        Family(
            rf"reward/((?!(?:{generic.STATISTIC_WORDS})\Z)[^/]+)",
            Name(reward.COMPONENT, "as its writer measured it"),
        ),
        Family(r"env/((?!all/)[^/]+)/reward/total", Name(outcome.TASK_REWARD, OVER_EPISODES)),
        Family(
            r"(eval\w*)/env/all/(?:reward/total|correct)",
            Name(outcome.EVAL_TASK, "mean over an evaluation's episodes"),
        ),
        Family(r"(?:test|eval\w*)/[a-z]*nll", Name(optimiser.EVAL_LOSS)),
        Family(r"(?:test|eval\w*)/(env/all/.+)", Name(rollouts.HELD_OUT, "as of training")),
        Family(r"(env/all/total_\w+)", Name(rollouts.COUNT, "of the batch")),
        Family(r"env/(?!all/)([^/]+/.+)", Name(outcome.DOMAIN, "of one kind of problem")),
        Family(r"((?:sampling|training)_client/step\w*)", Name(rollouts.COUNT, "of weights")),
        Family(r"(progress/done_frac)", Name(rollouts.SHARE_OF, "of the budget")),
        Family(r"(env/all/\w+_tokens_per_trajectory)", Name(rollouts.LENGTH_OF, "of an episode")),
        Family(r"time/(.+)", Name(throughput.PHASE_TIME, "seconds of one batch")),
    ),
    settings={
        "model_name": "model",
        "learning_rate": "learning_rate",
        "group_size": "num_generations",
        "groups_per_batch": "prompt_batch_size",
        "max_tokens": "max_completion_length",
        "temperature": "temperature",
        "kl_penalty_coef": "kl_coef",
        "loss_fn": "loss_type",
        "seed": "seed",
    },
    marks=(
        ("env/all/reward/total",),
        ("optim/kl_sample_train_v1",),
        ("progress/done_frac", "optim/lr"),
    ),
    step_unit="steps",
    read_from="thinking-machines-lab/tinker-cookbook 9dfcc3a: tinker_cookbook/rl/train.py"
    " (do_sync_training), rl/metric_util.py (compute_trajectory_metrics), rl/metrics.py"
    " (compute_kl_sample_train, incorporate_kl_penalty), distillation/train_on_policy.py",
)
