"""NeMo-RL: GRPO, PPO, DPO, distillation and supervised training on Ray.

One row per training step under "train/", evaluations under "validation/". Shares under
"baseline_reward/" are per cent. What the loss logs is the mean over the step's valid tokens.
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
    value,
)
from rlvitals.metrics.frameworks.key import OVER_GENERATED_BATCH, Family, Name, Table

OVER_VALID_TOKENS = "mean over valid tokens of the step"
PER_CENT = 0.01

GRPO_STEP_KEYS = {  # algorithms/grpo.py, grpo_train; experience/rollouts.py
    "reward": Name(outcome.REWARD, f"{OVER_GENERATED_BATCH}, before dynamic sampling"),
    "filtered_reward": Name(reward.TRAINED_MEAN, "after dynamic sampling"),
    "baseline_reward/pct_0": Name(
        reward.GROUP_ALL_WRONG, "logged in per cent: groups of baseline 0", scale=PER_CENT
    ),
    "baseline_reward/pct_1": Name(
        reward.GROUP_ALL_RIGHT, "logged in per cent: groups of baseline 1", scale=PER_CENT
    ),
    "baseline_reward/pct_mixed": Name(
        reward.GROUP_ZERO_STD, "what the other two leave of the groups", again=True
    ),
    "advantages/mean": Name(policy.ADVANTAGE_MEAN),
    "advantages/max": Name(surrogate.ADVANTAGE_MAX),
    "advantages/min": Name(surrogate.ADVANTAGE_MIN),
    "mean_prompt_length": Name(language.QUERY_LENGTH_MEAN, OVER_GENERATED_BATCH),
    "mean_gen_tokens_per_sample": Name(language.LENGTH_MEAN, OVER_GENERATED_BATCH),
    "gen_tokens_per_sample/mean": Name(language.LENGTH_MEAN, OVER_GENERATED_BATCH),
    "max_gen_tokens_per_sample": Name(language.LENGTH_MAX),
    "mean_total_tokens_per_sample": Name(rollouts.SEQUENCE_LENGTH_MEAN, OVER_GENERATED_BATCH),
    "truncation_rate": Name(language.TRUNCATED_SHARE, OVER_GENERATED_BATCH),
    "avg_turns_per_sample": Name(rollouts.TURNS_MEAN, OVER_GENERATED_BATCH),
    "turns_per_sample/mean": Name(rollouts.TURNS_MEAN, OVER_GENERATED_BATCH),
    "max_turns_per_sample": Name(rollouts.TURNS_MAX),
    "turns_per_sample/max": Name(rollouts.TURNS_MAX),
    "max_gen_tokens_per_turn/mean": Name(rollouts.TURN_LENGTH, "longest turn of each sample"),
    "total_num_tokens": Name(progress.TOKENS_NEW, "of the step"),
    "global_valid_seqs": Name(progress.BATCH_SIZE, "sequences that are trained on"),
    "dynamic_sampling_num_gen_batches": Name(rollouts.GENERATION_BATCHES),
}
PPO_KEYS = {  # algorithms/ppo.py
    "critic/loss": Name(value.LOSS),
    "critic/grad_norm": Name(optimiser.CRITIC_GRAD_NORM, "before clipping"),
    "critic/lr": Name(optimiser.CRITIC_LEARNING_RATE),
    "critic/explained_var": Name(value.EXPLAINED_VARIANCE),
    "critic/vf_clipfrac": Name(value.CLIP_FRACTION),
}

NAMES = Table(
    "nemo-rl",
    "NeMo-RL",
    keys={
        **{
            f"train/{key}": name
            for key, name in {
# algorithms/loss/loss_functions.py, ClippedPGLossFn
    "loss": Name(optimiser.LOSS, "policy and KL terms"),
    "probs_ratio": Name(policy.RATIO, OVER_VALID_TOKENS),
    "kl_penalty": Name(
        policy.KL_TO_REFERENCE_PER_TOKEN,
        f"k3, {OVER_VALID_TOKENS}; 0 without a reference",
        estimator="k3",
        zero_if_off=True,
    ),
    "gen_kl_error": Name(
        sampler.KL, f"k3 of sampler and trainer, {OVER_VALID_TOKENS}", estimator="k3"
    ),
    "sampling_importance_ratio": Name(sampler.RATIO_MEAN, OVER_VALID_TOKENS),
    "approx_entropy": Name(
        exploration.ENTROPY, f"from the sampled tokens alone, {OVER_VALID_TOKENS}; no softmax"
    ),
    "is_oob_ratio": Name(sampler.RATIO_CLIPPED_SHARE, "importance ratios out of bounds"),
    "grad_norm": Name(optimiser.GRAD_NORM, "before clipping"),
    "lr": Name(optimiser.LEARNING_RATE),
    "accuracy": Name(preference.ACCURACY, "mean over pairs"),
    "rewards_chosen_mean": Name(preference.CHOSEN_REWARD, "mean over pairs"),
    "rewards_rejected_mean": Name(preference.REJECTED_REWARD, "mean over pairs"),
    "sft_loss": Name(preference.NLL_LOSS, "of the chosen responses"),
    "returns_mean": Name(value.RETURN_MEAN, OVER_VALID_TOKENS),
    "values_mean": Name(value.PREDICTION_MEAN, OVER_VALID_TOKENS),
    "kl_loss": Name(surrogate.KL_TO_TEACHER, OVER_VALID_TOKENS),
**GRPO_STEP_KEYS,
**PPO_KEYS,
}.items()
        },
        **{key: name for key, name in {**GRPO_STEP_KEYS, **PPO_KEYS}.items() if "/" in key},
        "validation/accuracy": Name(outcome.EVAL_ACCURACY, "mean reward of the validation set"),
        "validation/loss": Name(optimiser.EVAL_LOSS),
        "timing/train/total_step_time": Name(throughput.STEP_TIME),
        "performance/tokens_per_sec_per_gpu": Name(throughput.TOKENS_PER_SECOND_PER_DEVICE),
        "performance/tokens_per_sec": Name(throughput.TOKENS_PER_SECOND),
        "performance/samples_per_sec": Name(throughput.SAMPLES_PER_SECOND),
    },
    families=(
        Family(
            r"validation/(.*(?:accuracy|reward|pass[@_]?\w*).*)",
            Name(outcome.EVAL_TASK, "validation set"),
        ),
        Family(r"(validation/avg_length)", Name(rollouts.LENGTH_OF, "of the validation")),
        Family(
            r"train/reward/((?!mean$|std$|max$|min$)[^/]+)",
            Name(reward.COMPONENT, OVER_GENERATED_BATCH),
        ),
        Family(
            r"train/((?:natural_termination|max_turns_reached)_rate)",
            Name(rollouts.STOP_REASON, "share of the batch"),
        ),
        Family(
            r"train/(invalid_tool_call_rate|malformed_thinking_rate)",
            Name(rollouts.ERRORS, "share of the assistant's messages"),
        ),
        Family(r"(?:train/)?(?:rollout|gen_fleet|router)/(.*(?:drops?|skipped).*)",
               Name(rollouts.DROPPED, "since the start")),
        Family(r"(?:train/)?(?:rollout|router)/(.*(?:failure|error|retry|no_healthy).*)",
               Name(rollouts.ERRORS, "since the start")),
        Family(r"(?:train/)?((?:delta|delta_verify|payload_bytes)/.+)", Name(throughput.DATA_SIZE)),
        Family(r"(?:train/)?payload_ratio/(.+)", Name(rollouts.SHARE_OF, "of the bytes sent")),
        Family(r"(?:train/)?(payload_counts/.+|wasted/failed_trajectory)", Name(rollouts.COUNT)),
        Family(r"(?:train/)?(advantages/(?:sum|std))", Name(rollouts.EXTREME)),
        Family(r"(?:train/)?(?:on_policy_distillation|mtp)/(.+)", Name(surrogate.DISTILLATION)),
        Family(r"(?:train/)?(?:moe|r3)/(.+)", Name(sampler.ROUTING)),
        Family(r"(?:train/)?reward_model_env/(\w+)_reward", Name(reward.COMPONENT)),
        Family(r"(?:train/)?(vllm/spec_acceptance_length)", Name(rollouts.LENGTH_OF)),
        Family(r"(?:train/)?efficiency/(.+)_pct", Name(throughput.PHASE_SHARE, "per cent",
                                                       scale=PER_CENT)),
        Family(r"(train/(?:num_\w+|global_\w+|buffer_size))", Name(rollouts.COUNT)),
        Family(r"(train/(?:\w+_sq_mean|values_m\w+))", Name(rollouts.EXTREME)),
        Family(r"train/avg_trajectory_age", Name(optimiser.POLICY_LAG, "versions, mean")),
        Family(r"train/vf_clipfrac", Name(value.CLIP_FRACTION, "over tokens")),
        Family(r"(reward_model_env/num_\w+)", Name(rollouts.COUNT)),
        Family(r"(?:train/)?(efficiency/\w+_s|transfer/\w+_s)", Name(throughput.PHASE_TIME)),
        Family(r"(train/kl_loss_scale)", Name(rollouts.LOGGED_SETTING)),
        Family(
            r"train/((?:token|seq|mean_seq|max_seq|min_seq)_mult_prob_error\w*"
            r"|policy_kl_error|js_divergence_error|probs_ratio_\w+"
            r"|positive_nll_loss|preference_loss|ce_loss)",
            Name(surrogate.LOSS_WEIGHT),
        ),
        Family(r"timing/(.+)", Name(throughput.PHASE_TIME, "seconds of one step")),
    ),
    other_prefixes=(
        r"(?:train/)?(?:rollout|gen_fleet|router|wasted|transfer|turns_per_sample"
        r"|max_gen_tokens_per_turn|vllm)"
    ),
    settings={
        "policy/model_name": "model",
        "policy/optimizer/kwargs/lr": "learning_rate",
        "policy/optimizer/kwargs/weight_decay": "weight_decay",
        "policy/max_grad_norm": "max_grad_norm",
        "policy/train_global_batch_size": "minibatch_size",
        "policy/generation/max_new_tokens": "max_completion_length",
        "policy/generation/temperature": "temperature",
        "grpo/num_prompts_per_step": "prompt_batch_size",
        "grpo/num_generations_per_prompt": "num_generations",
        "grpo/max_num_steps": "total_steps",
        "grpo/seed": "seed",
        "loss_fn/reference_policy_kl_penalty": "beta",
        "loss_fn/ratio_clip_min": "clip_range",
        "loss_fn/ratio_clip_max": "clip_range_high",
    },
    marks=(
        ("train/token_mult_prob_error",),
        ("train/gen_kl_error",),
        ("train/baseline_reward/pct_0",),
        ("baseline_reward/pct_0",),
        ("train/mean_gen_tokens_per_sample",),
        ("train/probs_ratio",),
        ("timing/train/total_step_time",),
    ),
    step_unit="steps",
    read_from="NVIDIA-NeMo/RL 7ea279a: nemo_rl/algorithms/grpo.py (grpo_train, validate,"
    " _log_baseline_reward), algorithms/loss/loss_functions.py (ClippedPGLossFn, DPOLossFn),"
    " algorithms/ppo.py, algorithms/opd.py, experience/rollouts.py",
)  # fmt: skip
