"""open-instruct: Ai2's GRPO with a generation service of its own, DPO and reward models.

One row per training step. What the loss logs is the mean over the step's response tokens.
"""

from rlvitals.metrics.catalogue import (
    exploration,
    language,
    optimiser,
    outcome,
    policy,
    preference,
    progress,
    reward,
    rollouts,
    sampler,
    surrogate,
    throughput,
)
from rlvitals.metrics.frameworks.key import Family, Name, Table

OVER_STEP_TOKENS = "mean over response tokens of the step"
OVER_TRAINED_BATCH = "mean over the batch that is trained on"


NAMES = Table(
    "open-instruct",
    "open-instruct",
    keys={
        # grpo_utils.py, populate_sample_loss_stats; data_loader.py, DataPreparationActor
        "scores": Name(outcome.SCORE, OVER_TRAINED_BATCH),
        "objective/verifiable_correct_rate": Name(
            outcome.ACCURACY, "share of a verified reward > 0"
        ),
        "objective/verifiable_reward": Name(outcome.REWARD, OVER_TRAINED_BATCH),
        "loss/policy_avg": Name(policy.LOSS, OVER_STEP_TOKENS),
        "loss/total_avg": Name(optimiser.LOSS, OVER_STEP_TOKENS),
        "loss/kl_avg": Name(
            surrogate.KL_LOSS, f"the estimate times beta, {OVER_STEP_TOKENS}", zero_if_off=True
        ),
        "objective/kl_avg": Name(policy.KL_TO_REFERENCE_PER_TOKEN, OVER_STEP_TOKENS),
        "objective/kl2_avg": Name(
            policy.KL_TO_REFERENCE_PER_TOKEN,
            f"k3, {OVER_STEP_TOKENS}",
            estimator="k3",
            zero_if_off=True,
        ),
        "policy/clipfrac_avg": Name(policy.CLIP_FRACTION_EFFECTIVE, OVER_STEP_TOKENS),
        "policy/entropy_avg": Name(exploration.ENTROPY, f"of the softmax, {OVER_STEP_TOKENS}"),
        "val/ratio": Name(policy.RATIO, OVER_STEP_TOKENS),
        "val/ratio_var": Name(policy.RATIO_VAR, "over sequences, weighted by tokens"),
        "val/rho_weight": Name(
            sampler.RATIO_MEAN, f"trainer over sampler, truncated, {OVER_STEP_TOKENS}"
        ),
        "val/rho_clipfrac": Name(sampler.RATIO_CLIPPED_SHARE, OVER_STEP_TOKENS),
        "debug/vllm_vs_local_logprob_diff_mean": Name(
            sampler.LOGP_DIFFERENCE_MEAN, OVER_STEP_TOKENS
        ),
        "debug/vllm_vs_local_logprob_diff_max": Name(sampler.LOGP_DIFFERENCE_MAX),
        "debug/vllm_local_reverse_kl": Name(sampler.KL, OVER_STEP_TOKENS),
        "optim/grad_norm": Name(optimiser.GRAD_NORM, "before clipping"),
        "lr": Name(optimiser.LEARNING_RATE),
        "val/sequence_lengths": Name(language.LENGTH_MEAN, OVER_TRAINED_BATCH),
        "val/sequence_lengths_max": Name(language.LENGTH_MAX),
        "val/sequence_lengths_min": Name(language.LENGTH_MIN),
        "val/sequence_lengths_solved": Name(
            rollouts.LENGTH_RIGHT,
            "responses of the full reward; 0 where there is none",
            zero_if_off=True,
        ),
        "val/sequence_lengths_unsolved": Name(
            rollouts.LENGTH_WRONG,
            "responses below the full reward; 0 where there is none",
            zero_if_off=True,
        ),
        "val/advantages_mean": Name(policy.ADVANTAGE_MEAN),
        "val/advantages_max": Name(surrogate.ADVANTAGE_MAX),
        "val/advantages_min": Name(surrogate.ADVANTAGE_MIN),
        "val/num_total_tokens": Name(throughput.TOKENS, "since the start"),
        "val/num_step_tokens": Name(progress.TOKENS_NEW, "of the step"),
        "real_batch_size_ratio": Name(
            rollouts.KEPT_SHARE, "of the responses expected, those in groups whose rewards differ"
        ),
        "num_steps_off_policy": Name(optimiser.POLICY_LAG, "mean over the batch"),
        "model_step_mean": Name(sampler.VERSION, "mean over the batch"),
        "tools/aggregate/avg_calls_per_rollout": Name(language.TOOL_CALLS),
        "tools/aggregate/failure_rate": Name(language.TOOL_FAILURES),
        "eval/scores": Name(outcome.EVAL_REWARD, "evaluation set"),
        "episode": Name(progress.EPISODE, "responses"),
        "training_step": Name(progress.ITERATION),
        "learner_tokens_per_second_step": Name(throughput.TOKENS_PER_SECOND, "of the update"),
        "time/total": Name(throughput.STEP_TIME),
        # dpo_tune_cache.py, reward_modeling.py
        "train_loss": Name(optimiser.LOSS),
        "rewards/chosen": Name(preference.CHOSEN_REWARD),
        "rewards/rejected": Name(preference.REJECTED_REWARD),
        "rewards/accuracy": Name(preference.ACCURACY),
        "rewards/margin": Name(preference.MARGIN),
        "rewards/average": Name(preference.REWARD_MEAN),
        "logps/chosen": Name(preference.CHOSEN_LOGP),
        "logps/rejected": Name(preference.REJECTED_LOGP),
        "train/rm/accuracy": Name(preference.ACCURACY),
        "train/rm/loss": Name(optimiser.LOSS),
        "train/rm/lr": Name(optimiser.LEARNING_RATE),
        "train/rm/chosen_rewards": Name(preference.CHOSEN_REWARD),
        "train/rm/rejected_rewards": Name(preference.REJECTED_REWARD),
        "train/rm/reward_margin": Name(preference.MARGIN),
        "eval/rm/accuracy": Name(preference.EVAL_ACCURACY),
        "eval/rm/reward_margin": Name(preference.EVAL_MARGIN),
        "eval/rm/loss": Name(optimiser.EVAL_LOSS),
    },
    families=(
        Family(r"eval/(pass_at_\w+)", Name(outcome.EVAL_TASK, "best of k")),
        Family(r"val/(stop)_rate", Name(rollouts.STOP_REASON, "share of the responses")),
        Family(
            r"eval/(stop_rate|rm/(?:chosen|rejected)_rewards)",
            Name(rollouts.HELD_OUT, "mean over the evaluation set"),
        ),
        Family(
            r"objective/((?!verifiable)\w+)_(?:reward|correct_rate)",
            Name(reward.COMPONENT, OVER_TRAINED_BATCH),
        ),
        Family(r"evolving_rubrics/avg_(\w+)_reward", Name(reward.COMPONENT)),
        Family(r"objective/(kl[013])_avg", Name(surrogate.LOSS_WEIGHT, "another estimator of KL")),
        Family(r"val/(rho_\w+)", Name(surrogate.LOSS_WEIGHT)),
        Family(r"val/(format)_scores", Name(reward.COMPONENT)),
        Family(r"tools/(?!aggregate/)(.+)/avg_calls_per_rollout", Name(rollouts.TOOL_USE)),
        Family(r"tools/(?!aggregate/)(.+)/failure_rate", Name(rollouts.TOOL_ERRORS)),
        Family(r"tools/(.+)/avg_(?:runtime|excess_calls)\w*", Name(throughput.PHASE_TIME)),
        Family(r"env/(.+)", Name(outcome.DOMAIN, "as the environment logs it")),
        Family(r"(stale_results)_dropped", Name(rollouts.DROPPED, "of the step")),
        Family(r"(mfu)", Name(throughput.MFU)),
        Family(r"(actor_tokens_\w+|learner_tokens_\w+)", Name(throughput.PHASE_RATE)),
        Family(r"(packed_ratio|unsolved_batch_size_ratio)", Name(rollouts.SHARE_OF)),
        Family(r"(model_step_\w+)", Name(rollouts.COUNT, "version of the sampler")),
        Family(r"(actor_\w+|learner_\w+)", Name(rollouts.STATISTIC)),
        Family(r"time/(.+)", Name(throughput.PHASE_TIME, "seconds of one step")),
    ),
    other_prefixes=r"batch|val|eval|debug|evolving_rubrics|perf",
    settings={
        "model_name_or_path": "model",
        "beta": "beta",
        "clip_lower": "clip_range",
        "clip_higher": "clip_range_high",
        "num_samples_per_prompt_rollout": "num_generations",
        "num_unique_prompts_rollout": "prompt_batch_size",
        "response_length": "max_completion_length",
        "max_prompt_token_length": "max_prompt_length",
        "learning_rate": "learning_rate",
        "num_epochs": "n_epochs",
        "num_mini_batches": "n_minibatches",
        "async_steps": "max_policy_lag",
        "total_episodes": "total_episodes",
        "temperature": "temperature",
        "seed": "seed",
        "loss_fn": "loss_type",
    },
    marks=(
        ("objective/verifiable_correct_rate",),
        ("objective/verifiable_reward",),
        ("val/sequence_lengths", "val/stop_rate"),
        ("loss/policy_avg", "policy/clipfrac_avg"),
        ("val/total_reward_groups",),
        ("train/rm/accuracy",),
        ("rewards/average", "rewards/margin"),
    ),
    step_unit="steps",
    read_from="allenai/open-instruct e6c3044: open_instruct/grpo_fast.py (one_training_step),"
    " grpo_utils.py (populate_sample_loss_stats), data_loader.py (DataPreparationActor),"
    " dpo.py, reward_modeling.py",
)
