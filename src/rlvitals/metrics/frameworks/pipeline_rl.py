"""PipelineRL: generation goes on while weights are updated in flight.

"rl/" and "stats/" are the trainer's, a row per optimiser step; "actor/" are the generating side's,
a row per published batch, each measure with its mean, variance, maximum and minimum. A data set's
name may stand before an actor's measure.
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
from rlvitals.metrics.frameworks.key import Family, Name, Table

TOKENS_THEN_SEQUENCES = "token mean, then mean over sequences"
OVER_PUBLISHED_ROLLOUTS = "mean over the published rollouts"

RL = {  # finetune/rl/__init__.py, rl_step
    "loss": Name(optimiser.LOSS, "policy, entropy and KL terms"),
    "reward": Name(reward.TRAINED_MEAN, TOKENS_THEN_SEQUENCES),
    "max_reward": Name(reward.MAX),
    "min_reward": Name(reward.MIN),
    "entropy": Name(exploration.ENTROPY, TOKENS_THEN_SEQUENCES),
    "kl": Name(policy.KL_TO_REFERENCE_PER_TOKEN, f"k3, {TOKENS_THEN_SEQUENCES}", estimator="k3"),
    # The old log-probabilities are the engine's, so this is staleness and mismatch together.
    "kl_new_old": Name(sampler.KL, f"k3, {TOKENS_THEN_SEQUENCES}", estimator="k3"),
    "mean_abs_log_ratio_new_old": Name(sampler.LOGP_DIFFERENCE_MEAN, TOKENS_THEN_SEQUENCES),
    "ratio_new_old": Name(sampler.RATIO_MEAN, TOKENS_THEN_SEQUENCES),
    "clamp_log_ratio_new_old_indicator": Name(policy.CLIP_FRACTION, TOKENS_THEN_SEQUENCES),
    "advantage": Name(policy.ADVANTAGE_MEAN, TOKENS_THEN_SEQUENCES),
    "max_advantage": Name(surrogate.ADVANTAGE_MAX),
    "min_advantage": Name(surrogate.ADVANTAGE_MIN),
    "new_logprobs": Name(language.LOGPROBS, TOKENS_THEN_SEQUENCES),
    "ref_logprobs": Name(language.REF_LOGPROBS, TOKENS_THEN_SEQUENCES),
    "kl_coef": Name(policy.KL_COEF),
    "entropy_bonus_coef": Name(exploration.ENTROPY_COEF),
    "ess": Name(sampler.ESS),
    "num_output_tokens_sum": Name(progress.TOKENS_NEW, "trained on in the step"),
    "value_mean": Name(value.PREDICTION_MEAN, TOKENS_THEN_SEQUENCES),
    "value_loss": Name(value.LOSS),
}

NAMES = Table(
    "pipeline-rl",
    "PipelineRL",
    keys={
        **{f"rl/{key}": name for key, name in RL.items()},
        "stats/lr": Name(optimiser.LEARNING_RATE),
        "stats/grad_norm": Name(optimiser.GRAD_NORM, "before clipping"),
        "stats/lag": Name(optimiser.POLICY_LAG, "samples between generation and training"),
        "stats/completed_steps": Name(optimiser.UPDATES),
        "stats/epoch": Name(progress.EPOCH),
        "stats/tokens": Name(throughput.TOKENS, "since the start"),
        "actor/reward_mean": Name(outcome.REWARD, OVER_PUBLISHED_ROLLOUTS),
        "actor/success_mean": Name(outcome.ACCURACY, OVER_PUBLISHED_ROLLOUTS),
        "actor/output_tokens_mean": Name(language.LENGTH_MEAN, OVER_PUBLISHED_ROLLOUTS),
        "actor/output_tokens_max": Name(language.LENGTH_MAX),
        "actor/output_tokens_min": Name(language.LENGTH_MIN),
        "actor/prompt_tokens_mean": Name(language.QUERY_LENGTH_MEAN, OVER_PUBLISHED_ROLLOUTS),
        "actor/overflow_mean": Name(language.TRUNCATED_SHARE, "without an end token"),
        "actor/num_turns_mean": Name(rollouts.TURNS_MEAN, OVER_PUBLISHED_ROLLOUTS),
        "actor/no_error_mean": Name(rollouts.KEPT_SHARE, "again", again=True),
        "actor/test_reward_mean": Name(outcome.EVAL_REWARD, "test rollouts"),
        "actor/test_success_mean": Name(outcome.EVAL_ACCURACY, "test rollouts"),
    },
    families=(
        Family(r"actor/(?:test_)?domain_mix_(\w+/.+)", Name(rollouts.STATISTIC)),
        Family(r"(?:preprocessor|stats)/(.*(?:filtered_out|too_old)\w*)",
               Name(rollouts.DROPPED, "since the start")),
        Family(r"((?:preprocessor|stats)/queue/.+)", Name(rollouts.COUNT, "in the queue")),
        Family(r"rl/value_mse", Name(value.LOSS, "squared error, mean over tokens")),
        Family(
            r"rl/(ratio_ref_\w+|token_weight|old_logprobs|clamp_log_ratio_ref_new_indicator)",
            Name(surrogate.LOSS_WEIGHT, TOKENS_THEN_SEQUENCES),
        ),
        Family(r"rl/((?:max|min)_token_weight)", Name(surrogate.LOSS_WEIGHT, "over the step")),
        Family(
            r"rl/(ratio_new_old(?:_squared)?_sum)",
            Name(surrogate.LOSS_WEIGHT, "over tokens: what rl/ess is made of"),
        ),
        Family(r"(throughput/\w+_per_(?:micro_batch|step))", Name(rollouts.COUNT)),
    ),
    other_prefixes="preprocessor|stats|actor|throughput|rl",
    settings={
        "model_path": "model",
        "attempts": "num_generations",
        "seed": "seed",
        "finetune/learning_rate": "learning_rate",
        "finetune/rl/kl_coef": "beta",
        "finetune/rl/epsilon_low": "clip_range",
        "finetune/rl/epsilon_high": "clip_range_high",
        "finetune/rl/policy_loss": "loss_type",
        "finetune/max_lag": "max_policy_lag",
        "finetune/max_train_steps": "total_steps",
        "llm/parameters/max_tokens": "max_completion_length",
        "llm/parameters/temperature": "temperature",
    },
    marks=(("rl/ess",), ("stats/lag",), ("rl/ratio_new_old",), ("stats/samples_too_old_to_train",)),
    step_unit="steps",
    read_from="ServiceNow/PipelineRL 58d3934: pipelinerl/finetune/rl/__init__.py (rl_step),"
    " pipelinerl/finetune_loop.py, pipelinerl/actor.py (publish_stats), preprocess.py",
)  # fmt: skip
