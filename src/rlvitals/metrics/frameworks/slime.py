"""slime: Megatron trainer and SGLang rollouts.

"rollout/", "perf/" and "eval/" count rollouts, "train/" counts optimiser steps: several for each
rollout. What is averaged per sample is first a mean over the sample's tokens, unless
calculate_per_token_loss asks for the mean over all tokens.
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
from rlvitals.metrics.frameworks.key import Family, Name, OffAxis, Table

TOKENS_THEN_SAMPLES = "token mean, then mean over samples"
OVER_ROLLOUT_BATCH = "mean over the rollout batch"


NAMES = Table(
    "slime",
    "slime",
    keys={
        # backends/megatron_utils/loss.py, policy_loss_function, value_loss_function; model.py
        **{
            f"train/{key}": name
            for key, name in {
                "loss": Name(
                    optimiser.LOSS, f"policy, entropy and KL terms, {TOKENS_THEN_SAMPLES}"
                ),
                "pg_loss": Name(policy.LOSS, TOKENS_THEN_SAMPLES),
                "entropy_loss": Name(
                    exploration.ENTROPY, f"the entropy itself, positive, {TOKENS_THEN_SAMPLES}"
                ),
                "pg_clipfrac": Name(
                    policy.CLIP_FRACTION_EFFECTIVE,
                    f"clipped loss above the plain one, {TOKENS_THEN_SAMPLES};"
                    " CISPO counts capped weights",
                ),
                "ppo_kl": Name(
                    policy.KL_SIGNED,
                    f"k1, {TOKENS_THEN_SAMPLES}; 0 in the first step of each rollout",
                    estimator="k1",
                ),
                "kl_loss": Name(
                    policy.KL_TO_REFERENCE_PER_TOKEN,
                    f"kl_loss_type, by default k1, {TOKENS_THEN_SAMPLES}",
                ),
                "train_rollout_logprob_abs_diff": Name(
                    sampler.LOGP_DIFFERENCE_MEAN, TOKENS_THEN_SAMPLES
                ),
                "ois": Name(policy.RATIO, TOKENS_THEN_SAMPLES),
                "tis": Name(sampler.RATIO_MEAN, f"before it is cut, {TOKENS_THEN_SAMPLES}"),
                "tis_clipfrac": Name(sampler.RATIO_CLIPPED_SHARE, TOKENS_THEN_SAMPLES),
                "tis_abs": Name(sampler.RATIO_DEVIATION, TOKENS_THEN_SAMPLES),
                "opd_reverse_kl": Name(surrogate.KL_TO_TEACHER, TOKENS_THEN_SAMPLES),
                "opsm_clipfrac": Name(surrogate.MASKED_SHARE, "sequences that are masked"),
                "grad_norm": Name(optimiser.GRAD_NORM, "before clipping"),
                "lr-pg_0": Name(optimiser.LEARNING_RATE, "of the first parameter group"),
                "global_batch_size": Name(progress.BATCH_SIZE, "samples of the optimiser step"),
                "critic-value_loss": Name(
                    value.LOSS, f"clipped squared error, not halved, {TOKENS_THEN_SAMPLES}"
                ),
                "critic-value_clipfrac": Name(
                    value.CLIP_FRACTION, f"|V - V_old| > value_clip, {TOKENS_THEN_SAMPLES}"
                ),
                "critic-grad_norm": Name(optimiser.CRITIC_GRAD_NORM, "before clipping"),
                "critic-lr-pg_0": Name(
                    optimiser.CRITIC_LEARNING_RATE, "of the first parameter group"
                ),
            }.items()
        },
        **{
            f"rollout/{key}": name
            # observability/train_metric_utils.py, log_rollout_data; rollout_metrics.py
            for key, name in {
                "raw_reward": Name(
                    outcome.REWARD, f"{OVER_ROLLOUT_BATCH}, after the dynamic filter"
                ),
                "rewards": Name(
                    reward.SHAPED, f"after the group's baseline and scaling, {OVER_ROLLOUT_BATCH}"
                ),
                "truncated": Name(
                    language.TRUNCATED_SHARE,
                    f"cut at rollout_max_response_len, {OVER_ROLLOUT_BATCH}",
                ),
                "truncated_ratio": Name(
                    language.TRUNCATED_SHARE,
                    f"cut at rollout_max_response_len, {OVER_ROLLOUT_BATCH}",
                ),
                "response_lengths": Name(
                    language.LENGTH_MEAN, f"tool output included, {OVER_ROLLOUT_BATCH}"
                ),
                "response_len/mean": Name(
                    language.LENGTH_MEAN, f"trained tokens alone, {OVER_ROLLOUT_BATCH}"
                ),
                "response_len/max": Name(language.LENGTH_MAX, "trained tokens alone"),
                "response_len/min": Name(language.LENGTH_MIN, "trained tokens alone"),
                "total_lengths": Name(rollouts.SEQUENCE_LENGTH_MEAN, OVER_ROLLOUT_BATCH),
                "log_probs": Name(language.LOGPROBS, TOKENS_THEN_SAMPLES),
                "ref_log_probs": Name(language.REF_LOGPROBS, TOKENS_THEN_SAMPLES),
                "kl": Name(
                    policy.KL_TO_REFERENCE_PER_TOKEN,
                    "kl_loss_type, by default k1, mean over tokens, before the update;"
                    " 0 where kl_coef is 0;"
                    " with a critic up to v0.3.1 the shaped reward by mistake",
                    zero_if_off=True,
                ),
                "advantages": Name(policy.ADVANTAGE_MEAN, TOKENS_THEN_SAMPLES),
                "returns": Name(
                    value.RETURN_MEAN,
                    f"{TOKENS_THEN_SAMPLES}; without a critic the advantages once more",
                ),
                "values": Name(value.MEAN, TOKENS_THEN_SAMPLES),
                "repetition_frac": Name(rollouts.REPETITION_SHARE, OVER_ROLLOUT_BATCH),
                "entropy": Name(exploration.ENTROPY, f"before the update, {TOKENS_THEN_SAMPLES}"),
                "opd_reverse_kl": Name(surrogate.KL_TO_TEACHER, TOKENS_THEN_SAMPLES),
            }.items()
        },
        "perf/wait_time_ratio": Name(throughput.WAIT_SHARE, "waiting for the rollout / step"),
        "perf/step_time": Name(throughput.STEP_TIME, "waiting for the rollout and training"),
        "perf/tokens_per_gpu_per_sec": Name(
            throughput.TOKENS_PER_SECOND_PER_DEVICE, "response tokens of the rollout alone"
        ),
    },
    families=(
        Family(
            r"eval/((?!step$)[^/]+(?<!-truncated_ratio))",
            Name(outcome.EVAL_TASK, "mean reward of the set's samples; pass@k the best of k"),
        ),
        Family(r"passrate/(pass@\d+)", Name(outcome.PASS_RATE, "reward exactly 1")),
        Family(r"rollout/zero_std/count_(.+)", Name(reward.GROUP_ZERO_STD_COUNT)),
        Family(
            r"rollout/dynamic_filter/drop_(.+)", Name(rollouts.DROPPED, "groups of this rollout")
        ),
        Family(r"perf/(.+)_time", Name(throughput.PHASE_TIME, "seconds of one rollout")),
        Family(r"rollout/(rollout_log_probs)", Name(sampler.PERPLEXITY, "mean log-probability")),
        Family(
            r"rollout/((?:prefix_cache|spec|avg_cached|top_p|reward_cat|error_cat)\w*(?:/.+)?)",
            Name(rollouts.SHARE_OF),
        ),
        Family(r"(eval/.+-truncated_ratio)", Name(rollouts.SHARE_OF, "of an evaluation")),
        Family(r"(?:rollout/)?(?:error_cat)/(.+)", Name(rollouts.ERRORS, "share of the samples")),
        Family(r"zero_std/count_(.+)", Name(reward.GROUP_ZERO_STD_COUNT)),
        Family(
            r"(?:rollout/)?correct_length/(.+)",
            Name(rollouts.RIGHT_LENGTHS, "of the answers with a reward of 1"),
        ),
        Family(  # observability/train_metric_utils.py, log_multi_turn_data
            r"(?:multi_turn/)?wo_obs_response_length/response_length_mean",
            Name(rollouts.POLICY_TOKENS_MEAN, "trained tokens alone"),
        ),
        Family(r"train/value_(?:loss|clipfrac)", Name(value.CLIP_FRACTION, "again", again=True)),
        Family(r"multi_turn_metric/round_number_mean", Name(rollouts.TURNS_MEAN)),
        Family(r"multi_turn_metric/round_number_(?:min|max)", Name(rollouts.TURNS_MAX, again=True)),
        Family(r"((?:eval|rollout|train)/step)", Name(rollouts.COUNT)),
        Family(r"train/(mtp\w*)", Name(surrogate.DISTILLATION)),
        Family(r"train/lr-pg_[1-9]\d*", Name(optimiser.LEARNING_RATE, "again", again=True)),
        Family(r"perf/(\w+_(?:tflops|tok_per_s))", Name(throughput.PHASE_RATE)),
        Family(r"multi_turn/multi_turn_metric/round_number_mean", Name(rollouts.TURNS_MEAN)),
        Family(r"multi_turn/multi_turn_metric/round_number_max", Name(rollouts.TURNS_MAX)),
        Family(r"multi_turn/multi_turn_metric/round_number_min", Name(rollouts.TURNS_MIN)),
    ),
    other_prefixes=r"(?:multi_turn/|rollout/)?(?:raw|wo_obs)_response_length|perf(?=/update_weights_)",
    settings={
        "hf_checkpoint": "model",
        "prompt_data": "dataset",
        "seed": "seed",
        "advantage_estimator": "algorithm",
        "num_epoch": "total_epochs",
        "rollout_batch_size": "prompt_batch_size",
        "global_batch_size": "minibatch_size",
        "n_samples_per_prompt": "num_generations",
        "rollout_max_response_len": "max_completion_length",
        "rollout_max_prompt_len": "max_prompt_length",
        "rollout_temperature": "temperature",
        "lr": "learning_rate",
        "weight_decay": "weight_decay",
        "clip_grad": "max_grad_norm",
        "eps_clip": "clip_range",
        "eps_clip_high": "clip_range_high",
        "value_clip": "clip_range_value",
        "kl_coef": "kl_coef",
        "kl_loss_coef": "beta",
        "entropy_coef": "entropy_coef",
        "gamma": "gamma",
        "lambd": "gae_lambda",
    },
    sources=(),
    step_unit="rollouts",
    off_axis=OffAxis(
        r"train/.+", clock=("rollout/raw_reward", "perf/step_time")
    ),  # optimiser steps
    marks=(
        ("train/pg_loss",),
        ("rollout/raw_reward",),
        ("rollout/response_len/mean",),
        ("train/loss", "train/lr-pg_0"),
        ("perf/rollout_time",),
    ),
    read_from="THUDM/slime 624b824 (after v0.3.1): slime/backends/megatron_utils/loss.py"
    " (compute_advantages_and_returns, policy_loss_function, value_loss_function), model.py"
    " (train), slime/observability/train_metric_utils.py (log_rollout_data, log_perf_data,"
    " log_passrate), rollout_metrics.py (compute_metrics_from_samples, log_eval_rollout_data),"
    " slime/utils/ppo_utils.py (compute_policy_loss, compute_approx_kl)",
)
