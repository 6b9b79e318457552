"""SkyRL: synchronous and fully asynchronous training of agents, on FSDP or Megatron.

One row per training step. What the policy logs is the mean over its microbatches and processes.
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
    surrogate,
    throughput,
    value,
)
from rlvitals.metrics.frameworks.key import OVER_GENERATED_BATCH, Family, Name, Table

RESPONSE_TOKENS_THEN_SEQUENCES = "mean over response tokens, then over sequences"


NAMES = Table(
    "skyrl",
    "SkyRL",
    keys={
        **{
            f"policy/{key}": name
            for key, name in {  # workers/worker.py, _forward_backward_micro; utils/ppo_utils.py
                "final_loss": Name(optimiser.LOSS, "policy, entropy and KL terms"),
                "policy_loss": Name(policy.LOSS, "as loss_reduction says"),
                "policy_entropy": Name(exploration.ENTROPY, RESPONSE_TOKENS_THEN_SEQUENCES),
                "policy_kl": Name(
                    surrogate.KL_LOSS, "kl_estimator_type, by default k3", zero_if_off=True
                ),
                "policy_lr": Name(optimiser.LEARNING_RATE),
                "policy_update_steps": Name(optimiser.UPDATES, "of the step"),
                "grad_norm": Name(optimiser.GRAD_NORM, "before clipping"),
                "raw_grad_norm": Name(optimiser.GRAD_NORM, "before clipping (SkyRL before 0.3)"),
                "loss": Name(optimiser.LOSS, "as the backend adds it up"),
                "lr": Name(optimiser.LEARNING_RATE),
                "loss_metrics/clip_ratio": Name(
                    policy.CLIP_FRACTION_EFFECTIVE, RESPONSE_TOKENS_THEN_SEQUENCES
                ),
                "ppo_clip_ratio": Name(
                    policy.CLIP_FRACTION_EFFECTIVE,
                    f"{RESPONSE_TOKENS_THEN_SEQUENCES} (SkyRL before 0.4)",
                ),
                "loss_metrics/is_ratio_mean": Name(
                    sampler.RATIO_MEAN, RESPONSE_TOKENS_THEN_SEQUENCES
                ),
                "loss_metrics/is_ratio_max": Name(sampler.RATIO_MAX),
                "loss_metrics/is_ratio_min": Name(sampler.RATIO_MIN),
                "rollout_train_logprobs_abs_diff_mean": Name(
                    sampler.LOGP_DIFFERENCE_MEAN, "over tokens"
                ),
                "rollout_train_logprobs_abs_diff_max": Name(sampler.LOGP_DIFFERENCE_MAX),
            }.items()
        },
        **{
            f"critic/{key}": name
            for key, name in {
                "critic_loss": Name(value.LOSS, "half the clipped squared error"),
                "values_mean": Name(value.PREDICTION_MEAN, "over response tokens"),
                "values_clipfrac": Name(value.CLIP_FRACTION, "over response tokens"),
                "critic_lr": Name(optimiser.CRITIC_LEARNING_RATE),
                "grad_norm": Name(optimiser.CRITIC_GRAD_NORM, "before clipping"),
            }.items()
        },
        # train/trainer.py, postprocess_generator_output, apply_reward_kl_penalty
        "reward/avg_raw_reward": Name(
            outcome.REWARD, f"{OVER_GENERATED_BATCH}, before any KL penalty"
        ),
        "reward/mean_positive_reward": Name(reward.POSITIVE_PART, OVER_GENERATED_BATCH),
        "loss/avg_final_rewards": Name(reward.SHAPED, "summed over tokens, after the KL penalty"),
        "loss/avg_raw_advantages": Name(policy.ADVANTAGE_MEAN, "over response tokens"),
        "loss/avg_kl": Name(
            policy.KL_TO_REFERENCE_PER_TOKEN, "mean over tokens, before the update"
        ),
        "loss/kl_loss_coef": Name(policy.KL_COEF),
        "generate/avg_num_tokens": Name(language.LENGTH_MEAN, OVER_GENERATED_BATCH),
        "generate/max_num_tokens": Name(language.LENGTH_MAX),
        "generate/min_num_tokens": Name(language.LENGTH_MIN),
        "generate/std_num_tokens": Name(language.LENGTH_STD),
        "generate/avg_tokens_non_zero_rewards": Name(rollouts.LENGTH_RIGHT, "response alone"),
        "generate/avg_tokens_zero_rewards": Name(rollouts.LENGTH_WRONG, "response alone"),
        "generate/avg_assistant_tokens": Name(rollouts.POLICY_TOKENS_MEAN, OVER_GENERATED_BATCH),
        "generate/tokens_per_turn_mean": Name(rollouts.TURN_LENGTH),
        "async/staleness_mean": Name(optimiser.POLICY_LAG, "over groups of the batch"),
        "async/staleness_max": Name(optimiser.POLICY_LAG_MAX, "over groups of the batch"),
        "async/staleness_ratio": Name(
            optimiser.POLICY_LAG_SHARE, "groups of the batch that are a version or more behind"
        ),
        "async/keep_rate": Name(rollouts.KEPT_SHARE, "groups that were not too old"),
        "trainer/epoch": Name(progress.EPOCH),
        "trainer/global_step": Name(progress.ITERATION),
        "trainer/tokens_per_second_per_gpu": Name(throughput.TOKENS_PER_SECOND_PER_DEVICE),
        "train/loss": Name(optimiser.LOSS, "supervised"),
        "train/grad_norm": Name(optimiser.GRAD_NORM, "supervised"),
        "train/lr": Name(optimiser.LEARNING_RATE, "supervised"),
        "train/tokens_per_second": Name(throughput.TOKENS_PER_SECOND, "supervised"),
        "train/total_tokens_processed": Name(throughput.TOKENS, "supervised, since the start"),
        "eval/all/avg_score": Name(outcome.EVAL_REWARD, "all evaluation sets"),
        "timing/step": Name(throughput.STEP_TIME),
    },
    families=(
        Family(r"reward/num_(zero_variance)_filtered", Name(rollouts.DROPPED, "of the step")),
        Family(r"reward/avg_(pass_at_\d+)", Name(outcome.PASS_RATE, OVER_GENERATED_BATCH)),
        Family(r"reward_dropped/(.+)", Name(reward.DROPPED_REWARD, "mean over the dropped groups")),
        # evaluate.py writes the rollout's keys again below "eval/all"
        Family(
            r"eval/(all/(?:generate|environment)/.+|.+/mean_positive_reward)",
            Name(rollouts.HELD_OUT, "over the evaluation sets"),
        ),
        Family(r"eval/[^/]+/loss", Name(optimiser.EVAL_LOSS, "supervised")),
        Family(
            r"eval/((?!all/avg_score).+/(?:avg_score|pass_at_\w+))",
            Name(outcome.EVAL_TASK, "mean score of a set; pass_at_k the best of k"),
        ),
        Family(r"environment/(.+)", Name(outcome.DOMAIN, "as the environment logs it")),
        Family(r"generate/(trajectory_time_.+)", Name(throughput.PHASE_TIME, "of an episode")),
        Family(r"async/(num_groups_dropped)", Name(rollouts.DROPPED, "too old")),
        Family(
            r"policy/loss_metrics/(.+)", Name(surrogate.LOSS_WEIGHT, RESPONSE_TOKENS_THEN_SEQUENCES)
        ),
        Family(r"(policy/rollout_train_logprobs_abs_diff_(?:min|std))", Name(rollouts.EXTREME)),
        Family(r"(loss/avg_kl_max)", Name(rollouts.EXTREME, "mean over sequences of their most")),
        Family(r"loss/(avg_\w+)", Name(surrogate.LOSS_WEIGHT)),
        Family(r"moe/(.+)", Name(sampler.ROUTING)),
        Family(r"timing/(.+)", Name(throughput.PHASE_TIME, "seconds of one step")),
        Family(r"ray/(.*mem\w*_gb.*|gpu\.mem\w*)", Name(throughput.MEMORY)),
        Family(r"ray/(.*ram\w*_gb.*)", Name(throughput.MEMORY)),
        Family(r"ray/(.+)", Name(throughput.MACHINE)),
    ),
    other_prefixes="eval|generate|async|train",
    settings={
        "trainer/policy/model/path": "model",
        "trainer/policy/optimizer_config/lr": "learning_rate",
        "trainer/policy/optimizer_config/weight_decay": "weight_decay",
        "trainer/policy/optimizer_config/max_grad_norm": "max_grad_norm",
        "trainer/algorithm/advantage_estimator": "algorithm",
        "trainer/algorithm/eps_clip_low": "clip_range",
        "trainer/algorithm/eps_clip_high": "clip_range_high",
        "trainer/algorithm/kl_loss_coef": "beta",
        "trainer/algorithm/gamma": "gamma",
        "trainer/algorithm/lambd": "gae_lambda",
        "trainer/algorithm/policy_loss_type": "loss_type",
        "trainer/train_batch_size": "prompt_batch_size",
        "trainer/policy_mini_batch_size": "prompt_minibatch_size",
        "trainer/update_epochs_per_batch": "n_epochs",
        "trainer/epochs": "total_epochs",
        "trainer/fully_async/max_staleness_steps": "max_policy_lag",
        "generator/n_samples_per_prompt": "num_generations",
        "generator/sampling_params/max_generate_length": "max_completion_length",
        "generator/sampling_params/temperature": "temperature",
        "trainer/seed": "seed",
    },
    marks=(
        ("reward/avg_raw_reward",),
        ("generate/avg_num_tokens",),
        ("policy/policy_loss", "policy/policy_lr"),
        ("loss/avg_final_rewards",),
    ),
    step_unit="steps",
    read_from="NovaSky-AI/SkyRL a956457: skyrl/train/trainer.py (postprocess_generator_output,"
    " compute_advantages_and_returns, fwd_logprobs_values_reward), train/fully_async_trainer.py,"
    " train/generators/utils.py, train/evaluate.py, train/sft_trainer.py,"
    " skyrl/backends/skyrl_train/workers/worker.py, utils/ppo_utils.py",
)
