"""ROLL: pipelines for verifiable rewards, agents, distillation and preferences.

One row per training step. "@sum", "@mean" and "@max" say how microbatches are put together and are
left out of the logged key; a domain or a role may stand before a key.
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
from rlvitals.metrics.frameworks.key import OVER_RESPONSE_TOKENS, Family, Name, Table

OVER_BATCH = "mean over the batch"

WORKER_KEYS = {  # pipeline/rlvr/actor_worker.py, loss_func; pipeline/base_worker.py
    "actor/pg_loss": Name(policy.LOSS, OVER_RESPONSE_TOKENS),
    "actor/total_loss": Name(optimiser.LOSS, "policy, entropy and KL terms"),
    "actor/loss": Name(optimiser.LOSS, "policy, entropy and KL terms"),
    "actor/clipfrac": Name(policy.CLIP_FRACTION_EFFECTIVE, OVER_RESPONSE_TOKENS),
    "actor/ppo_ratio_clipfrac": Name(policy.CLIP_FRACTION, OVER_RESPONSE_TOKENS),
    "actor/ppo_ratio_high_clipfrac": Name(policy.CLIP_FRACTION_HIGH, OVER_RESPONSE_TOKENS),
    "actor/ppo_ratio_low_clipfrac": Name(policy.CLIP_FRACTION_LOW, OVER_RESPONSE_TOKENS),
    "actor/approxkl": Name(policy.APPROX_KL, f"k2, {OVER_RESPONSE_TOKENS}", estimator="k2"),
    "actor/policykl": Name(policy.KL_SIGNED, f"k1, {OVER_RESPONSE_TOKENS}", estimator="k1"),
    "actor/ratio_mean": Name(policy.RATIO, OVER_RESPONSE_TOKENS),
    "actor/tis_total_clipfrac": Name(sampler.RATIO_CLIPPED_SHARE, OVER_RESPONSE_TOKENS),
    "actor/tis_upper_clipfrac": Name(sampler.RATIO_HIGH_SHARE, OVER_RESPONSE_TOKENS),
    "actor/tis_lower_clipfrac": Name(sampler.RATIO_LOW_SHARE, OVER_RESPONSE_TOKENS),
    "actor/kl_loss": Name(surrogate.KL_LOSS, "k3 to the reference", zero_if_off=True),
    "actor/grad_norm": Name(optimiser.GRAD_NORM, "before clipping"),
    "actor/lr": Name(optimiser.LEARNING_RATE),
    "actor/acc": Name(preference.ACCURACY, "DPO: mean over pairs"),
    "actor/chosen_reward": Name(preference.CHOSEN_REWARD, "DPO: mean over pairs"),
    "actor/reject_reward": Name(preference.REJECTED_REWARD, "DPO: mean over pairs"),
    "critic/kl": Name(policy.KL_TO_REFERENCE_PER_TOKEN, OVER_RESPONSE_TOKENS),
    "critic/kl_coef": Name(policy.KL_COEF),
    "critic/entropy/mean": Name(exploration.ENTROPY, OVER_RESPONSE_TOKENS),
    "critic/ref_log_prob/mean": Name(language.REF_LOGPROBS, OVER_RESPONSE_TOKENS),
    "critic/old_log_prob/mean": Name(language.LOGPROBS, OVER_RESPONSE_TOKENS),
    "critic/loss": Name(value.LOSS),
    "critic/value": Name(value.PREDICTION_MEAN),
    "critic/vpred": Name(value.PREDICTION_MEAN),
    "critic/clipfrac": Name(value.CLIP_FRACTION),
    "critic/lr": Name(optimiser.CRITIC_LEARNING_RATE),
    "critic/grad_norm": Name(optimiser.CRITIC_GRAD_NORM),
    "critic/values/mean": Name(value.MEAN, OVER_RESPONSE_TOKENS),
    "critic/returns/mean": Name(value.RETURN_MEAN, OVER_RESPONSE_TOKENS),
    "critic/advantages/mean": Name(policy.ADVANTAGE_MEAN, OVER_RESPONSE_TOKENS),
    "critic/advantages/max": Name(surrogate.ADVANTAGE_MAX),
    "critic/advantages/min": Name(surrogate.ADVANTAGE_MIN),
}
DATA = {  # rlvr_pipeline.py and agentic_pipeline.py, compute_data_metrics
    "critic/score/mean": Name(outcome.SCORE, f"{OVER_BATCH}, before penalties"),
    "critic/score/max": Name(reward.MAX),
    "critic/score/min": Name(reward.MIN),
    "critic/rewards/mean": Name(
        outcome.RLHF_REWARD, f"after normalisation and penalties, {OVER_BATCH}"
    ),
    "rollout/score/mean": Name(outcome.SCORE, "mean over the rollouts"),
    "rollout/score/max": Name(reward.MAX, "over the rollouts"),
    "rollout/score/min": Name(reward.MIN, "over the rollouts"),
    "score/max": Name(reward.MAX),
    "score/min": Name(reward.MIN),
    "rollout/response_length/mean": Name(language.LENGTH_MEAN, "over the rollouts"),
    "rollout/response_length/max": Name(language.LENGTH_MAX, "over the rollouts"),
    "rollout/response_length/min": Name(language.LENGTH_MIN, "over the rollouts"),
    "rollout/prompt_length/mean": Name(language.QUERY_LENGTH_MEAN, "over the rollouts"),
    "rollout/prompt_length/max": Name(rollouts.QUERY_LENGTH_MAX, "over the rollouts"),
    "rollout/prompt_length/min": Name(rollouts.QUERY_LENGTH_MIN, "over the rollouts"),
    "tokens/prompt_length/max": Name(rollouts.QUERY_LENGTH_MAX, OVER_BATCH),
    "tokens/prompt_length/min": Name(rollouts.QUERY_LENGTH_MIN, OVER_BATCH),
    "tokens/response_length/mean": Name(language.LENGTH_MEAN, OVER_BATCH),
    "tokens/response_length/max": Name(language.LENGTH_MAX),
    "tokens/response_length/min": Name(language.LENGTH_MIN),
    "response_length/mean": Name(language.LENGTH_MEAN, OVER_BATCH),
    "response_length/max": Name(language.LENGTH_MAX),
    "response_length/min": Name(language.LENGTH_MIN),
    "total_response_length/clip": Name(language.TRUNCATED_SHARE, "at the length limit"),
    "tokens/prompt_length/mean": Name(language.QUERY_LENGTH_MEAN, OVER_BATCH),
    "prompt_length/mean": Name(language.QUERY_LENGTH_MEAN, OVER_BATCH),
    "scheduler/off_policy_ratio": Name(rollouts.PARTIAL_SHARE, "samples of an older policy"),
    "val_correct/all/mean": Name(outcome.EVAL_ACCURACY, "all validation sets"),
    "val_score/all/mean": Name(outcome.EVAL_REWARD, "all validation sets"),
    "val/score/mean": Name(outcome.EVAL_REWARD, "validation episodes"),
    "sft_train/loss": Name(optimiser.LOSS, "supervised"),
    "train/loss": Name(optimiser.LOSS, "supervised or distillation"),
    "sft_train/val_loss": Name(optimiser.EVAL_LOSS),
    "student/val_loss": Name(optimiser.EVAL_LOSS),
    "student/lr": Name(optimiser.LEARNING_RATE),
    "system/tps": Name(throughput.TOKENS_PER_SECOND),
    "system/tps_gpu": Name(throughput.TOKENS_PER_SECOND_PER_DEVICE),
    "system/batch_size": Name(progress.BATCH_SIZE),
    "system/global_step": Name(progress.ITERATION),
    "time/step_total": Name(throughput.STEP_TIME),
}
SUFFIX = r"(?:@(?:sum|mean|max|min))?"
DATA_MEASURES = (
    r"(?:raw_)?advantages|returns|values|rewards|score|response_length\w*|prompt_length"
    r"|non_prompt_length|total_length|old_log_prob|ref_log_prob|entropy"
    r"|episode_rewards_norm|step_rewards_norm|token_level_rewards_mean"
)


def _add_reductions(names: dict[str, Name]) -> dict[str, Name]:
    """Name a key with its reduction too, as files before the reduction hold it."""
    ways = ("sum", "mean", "max", "min")
    return {f"{key}@{way}": name for key, name in names.items() for way in ways}


NAMES = Table(
    "roll",
    "ROLL",
    keys={**WORKER_KEYS, **DATA, **_add_reductions(WORKER_KEYS),
          "sft_train/loss@sum": DATA["sft_train/loss"], "train/loss@sum": DATA["train/loss"]},
    families=(
        Family(r"val_(?:correct|score)/((?!all/).+)/mean", Name(outcome.EVAL_TASK, "mean")),
        Family(r"val/(.+/score/mean)", Name(outcome.EVAL_TASK, "mean over its episodes")),
        Family(rf"(actor/tis_(?:lower|upper)_bound){SUFFIX}", Name(rollouts.LOGGED_SETTING)),
        Family(
            rf"(actor/(?:total_samples|valid_samples|samples_\w+|backward_steps|topr_\w+_samples)){SUFFIX}",
            Name(rollouts.COUNT),
        ),
        Family(rf"actor/(train_infer_\w+|tis_\w+|is_weight_\w+){SUFFIX}",
               Name(surrogate.LOSS_WEIGHT)),
        Family(
            rf"actor/((?:cispo|topr|kimi15|sample_weights|weighted|ratio|valid|final|max_len|error"
            rf"|difficulty|samples|total_samples|backward)\w*){SUFFIX}",
            Name(surrogate.LOSS_WEIGHT),
        ),
        Family(r"env/(.+)", Name(outcome.DOMAIN, "as the environment logs it")),
        Family(
            rf"((?:(?:critic|rollout|tokens)/)?(?:{DATA_MEASURES})/(?:max|min|std|diff))",
            Name(rollouts.EXTREME),
        ),
        Family(
            r"((?:rollout|tokens)/(?:response_length\w*|non_prompt_length|prompt_length"
            r"|total_length)/mean)",
            Name(rollouts.LENGTH_OF),
        ),
        Family(
            r"(critic/(?:episode|step)_rewards_norm/mean|scheduler/\w+/score/mean|score/mean)",
            Name(outcome.DOMAIN, "mean reward of a part of the pipeline"),
        ),
        Family(
            rf"((?:(?:critic|rollout|tokens)/)?(?:{DATA_MEASURES})/(?:mean|max|min|std|diff|clip))",
            Name(rollouts.STATISTIC),
        ),
        Family(r"critic/(\w+_clip_frac|error)", Name(surrogate.LOSS_WEIGHT)),
        Family(r"(?:train|student)/(\w*loss)" + SUFFIX, Name(surrogate.DISTILLATION)),
        Family(r"scheduler/(\w+)_filter_count", Name(rollouts.DROPPED, "of the step")),
        Family(r"memory/(.+)", Name(throughput.MEMORY)),
        Family(r"system/(max_memory\w+)" + SUFFIX, Name(throughput.MEMORY)),
        Family(r"latency/(.+)", Name(throughput.PHASE_TIME)),
        Family(r"efficiency/(.+)_pct", Name(throughput.PHASE_SHARE, "per cent", scale=0.01)),
        Family(r"time/(.+)", Name(throughput.PHASE_TIME, "seconds of one step")),
    ),
    other_prefixes="val|scheduler|expand|shrink|system",
    settings={
        "pretrain": "model",
        "seed": "seed",
        "max_steps": "total_steps",
        "rollout_batch_size": "prompt_batch_size",
        "num_return_sequences_in_group": "num_generations",
        "response_length": "max_completion_length",
        "prompt_length": "max_prompt_length",
        "ppo_epochs": "n_epochs",
        "adv_estimator": "algorithm",
        "pg_clip": "clip_range",
        "pg_clip_high": "clip_range_high",
        "value_clip": "clip_range_value",
        "init_kl_coef": "kl_coef",
        "kl_loss_coef": "beta",
        "entropy_loss_coef": "entropy_coef",
        "gamma": "gamma",
        "lambd": "gae_lambda",
        "async_generation_ratio": "max_policy_lag",
        "actor_train/training_args/learning_rate": "learning_rate",
        "actor_train/training_args/weight_decay": "weight_decay",
    },
    marks=(
        ("actor/approxkl",),
        ("actor/approxkl@sum",),
        ("actor/policykl",),
        ("tokens/response_length/mean",),
        ("val_correct/all/mean",),
        ("actor/ratio_mean",),
        ("sft_train/loss",),
        ("sft_train/loss@sum",),
        ("actor/chosen_reward", "actor/reject_reward"),
    ),
    step_unit="steps",
    read_from="alibaba/ROLL 8eb27cc: roll/pipeline/rlvr (actor_worker.py, rlvr_pipeline.py),"
    " roll/pipeline/agentic/agentic_pipeline.py, roll/pipeline/base_worker.py,"
    " roll/pipeline/dpo, roll/pipeline/distill, roll/utils/metrics",
)  # fmt: skip
