"""verl: RayPPOTrainer and its relatives, 0.1 to 0.8; the file of its recipes' extra keys too.

One row per training step: one batch of prompts, several minibatches, `ppo_epochs` passes. What
the actor logs is the mean over the step's microbatches and processes, but a key with "max" or
"min" in its name is their maximum or minimum.
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
from rlvitals.metrics.frameworks.key import OVER_RESPONSE_TOKENS, Family, Name, Table

OVER_MICROBATCHES = "mean over microbatches and processes"
OVER_UNABORTED_SEQUENCES = "over sequences that were not aborted"
AGGREGATED = "as loss_agg_mode says, by default the mean over response tokens"


CORRECTION_KEYS = {
    "kl": Name(sampler.KL_SIGNED, f"k1, {OVER_RESPONSE_TOKENS}", estimator="k1"),
    "k3_kl": Name(sampler.KL, f"k3, {OVER_RESPONSE_TOKENS}", estimator="k3"),
    "chi2_token": Name(sampler.CHI2_TOKEN),
    "chi2_seq": Name(sampler.CHI2_SEQUENCE, "log-ratios summed and cut at 20"),
    "rollout_is_mean": Name(sampler.RATIO_MEAN, f"truncated weights, {OVER_RESPONSE_TOKENS}"),
    "rollout_is_max": Name(sampler.RATIO_MAX),
    "rollout_is_min": Name(sampler.RATIO_MIN),
    "rollout_is_eff_sample_size": Name(sampler.ESS, "of weights cut to their thresholds"),
    "rollout_is_ratio_fraction_high": Name(sampler.RATIO_HIGH_SHARE),
    "rollout_is_ratio_fraction_low": Name(sampler.RATIO_LOW_SHARE),
    "rollout_rs_masked_fraction": Name(sampler.REJECTED_TOKENS),
    "rollout_rs_seq_masked_fraction": Name(sampler.REJECTED_SEQUENCES),
}


VALIDATION_TASK = Name(
    outcome.EVAL_TASK,
    "validation set; mean@k over k answers, best@k and maj@k by resampling; the core ones are"
    " those of the most answers",
)
DROPPED_ROLLOUTS = Name(rollouts.DROPPED, "since the start, fully asynchronous trainer")
AT_MARK = r"(?:@|_at_)"  # MLflow takes no "@"

NAMES = Table(
    "verl",
    "verl",
    keys={
        # core_algos.py, compute_policy_loss_*; dp_actor.py, update_policy; apply_kl_penalty
        "actor/pg_loss": Name(
            policy.LOSS, f"{AGGREGATED}; from 0.7 added up over the step's minibatches and epochs"
        ),
        "actor/loss": Name(optimiser.LOSS, f"policy, entropy and KL terms, {AGGREGATED}"),
        "actor/pg_clipfrac": Name(
            policy.CLIP_FRACTION_EFFECTIVE,
            f"clipped loss above the plain one, {OVER_RESPONSE_TOKENS}, {OVER_MICROBATCHES};"
            " CISPO counts every clipped ratio, Clip-Cov the tokens it cuts",
        ),
        "actor/pg_clipfrac_lower": Name(
            surrogate.DUAL_CLIP_FRACTION,
            f"r > clip_ratio_c and A < 0, {OVER_RESPONSE_TOKENS}, {OVER_MICROBATCHES}",
        ),
        "actor/ppo_kl": Name(
            policy.KL_SIGNED,
            f"k1, {OVER_RESPONSE_TOKENS}, {OVER_MICROBATCHES}; 0 where one update is made of each"
            " batch; KL-Cov logs |k1|",
            estimator="k1",
        ),
        "actor/entropy": Name(
            exploration.ENTROPY,
            f"of the softmax, {AGGREGATED}; since 0.4 before the update, but for calculate_entropy",
        ),
        "actor/entropy_loss": Name(
            exploration.ENTROPY, f"the entropy itself, positive, {AGGREGATED}, while updating"
        ),
        "actor/kl_loss": Name(
            surrogate.KL_LOSS,
            f"kl_loss_type, by default k3, {AGGREGATED}; from 0.7 added up over the step's"
            " minibatches and epochs, and 0 where use_kl_loss is off",
            zero_if_off=True,
        ),
        "actor/kl_coef": Name(policy.KL_COEF, "kl_loss_coef, constant"),
        "actor/reward_kl_penalty": Name(
            policy.KL_TO_REFERENCE_PER_TOKEN,
            "algorithm.kl_penalty, by default k1: mean over tokens, then over sequences",
            estimator="k1",
        ),
        "actor/reward_kl_penalty_coeff": Name(policy.KL_COEF, "before this step's adaptation"),
        "critic/kl": Name(
            policy.KL_TO_REFERENCE_PER_TOKEN,
            "by default k1: mean over tokens, then over sequences (verl before 0.4)",
            estimator="k1",
        ),
        "critic/kl_coeff": Name(policy.KL_COEF, "before this step's adaptation (verl before 0.4)"),
        "actor/grad_norm": Name(optimiser.GRAD_NORM, "before clipping, mean over minibatches"),
        # Consoles before 0.5 print three digits: a rate of 1e-6 reads 0.
        "actor/lr": Name(optimiser.LEARNING_RATE, "of the step", zero_if_off=True),
        # metric_utils.py, compute_data_metrics
        "critic/score/mean": Name(
            outcome.SCORE,
            f"sum of the token-level scores before the KL penalty, mean {OVER_UNABORTED_SEQUENCES}",
        ),
        "critic/score/max": Name(reward.MAX, f"of the scores, {OVER_UNABORTED_SEQUENCES}"),
        "critic/score/min": Name(reward.MIN, f"of the scores, {OVER_UNABORTED_SEQUENCES}"),
        "critic/rewards/mean": Name(
            outcome.RLHF_REWARD,
            f"score less the KL penalty, mean {OVER_UNABORTED_SEQUENCES};"
            " the score itself where use_kl_in_reward is off",
        ),
        "critic/advantages/mean": Name(policy.ADVANTAGE_MEAN, OVER_RESPONSE_TOKENS),
        "critic/advantages/max": Name(surrogate.ADVANTAGE_MAX, "over response tokens"),
        "critic/advantages/min": Name(surrogate.ADVANTAGE_MIN, "over response tokens"),
        "critic/returns/mean": Name(
            value.RETURN_MEAN, f"{OVER_RESPONSE_TOKENS}; without a critic the advantages once more"
        ),
        "critic/values/mean": Name(value.MEAN, OVER_RESPONSE_TOKENS),
        "critic/vf_explained_var": Name(
            value.EXPLAINED_VARIANCE, "over response tokens, values before the update"
        ),
        "critic/vf_loss": Name(
            value.LOSS,
            f"half the clipped squared error, {AGGREGATED}; from 0.7 added up over the step's"
            " minibatches and epochs",
        ),
        "critic/vf_clipfrac": Name(
            value.CLIP_FRACTION, f"{OVER_RESPONSE_TOKENS}, {OVER_MICROBATCHES}"
        ),
        "critic/vpred_mean": Name(
            value.PREDICTION_MEAN, f"{OVER_RESPONSE_TOKENS}, {OVER_MICROBATCHES}"
        ),
        "critic/grad_norm": Name(
            optimiser.CRITIC_GRAD_NORM, "before clipping, mean over minibatches"
        ),
        "critic/lr": Name(optimiser.CRITIC_LEARNING_RATE, "of the step", zero_if_off=True),
        "response_length/mean": Name(
            language.LENGTH_MEAN, "over all responses, tool output included"
        ),
        "response_length/max": Name(language.LENGTH_MAX, "over all responses"),
        "response_length/min": Name(
            language.LENGTH_MIN, "over all responses; 0 where one was aborted"
        ),
        "response_length/clip_ratio": Name(
            language.TRUNCATED_SHARE,
            "as long as the response limit, also those that end just there",
        ),
        "response/aborted_ratio": Name(rollouts.ABORTED_SHARE),
        "prompt_length/mean": Name(language.QUERY_LENGTH_MEAN, "over sequences"),
        "prompt_length/max": Name(rollouts.QUERY_LENGTH_MAX),
        "prompt_length/min": Name(rollouts.QUERY_LENGTH_MIN),
        "prompt_length/clip_ratio": Name(rollouts.QUERY_TRUNCATED_SHARE),
        "num_turns/mean": Name(rollouts.TURNS_MEAN, "messages of the conversation, over sequences"),
        "num_turns/max": Name(rollouts.TURNS_MAX),
        "num_turns/min": Name(rollouts.TURNS_MIN),
        "tool_call_counts/mean": Name(language.TOOL_CALLS, "over sequences"),
        "training/num_turns/mean": Name(rollouts.TURNS_MEAN, "messages of the conversation"),
        "training/num_turns/max": Name(rollouts.TURNS_MAX),
        "training/num_turns/min": Name(rollouts.TURNS_MIN),
        # verl-agent and its forks: metric_utils.py, compute_data_metrics
        "episode/reward/max": Name(outcome.RETURN_MAX, "over the batch's episodes"),
        "episode/reward/min": Name(outcome.RETURN_MIN, "over the batch's episodes"),
        "episode/length/mean": Name(rollouts.TURNS_MEAN, "steps of the environment, over episodes"),
        "episode/length/max": Name(rollouts.TURNS_MAX, "steps of the environment"),
        "episode/length/min": Name(rollouts.TURNS_MIN, "steps of the environment"),
        "train/num_gen_batches": Name(rollouts.GENERATION_BATCHES, "DAPO: of this update"),
        # debug/metrics.py, calculate_debug_metrics; rollout_corr_helper.py
        "training/rollout_probs_diff_mean": Name(
            sampler.PROB_DIFFERENCE_MEAN, OVER_RESPONSE_TOKENS
        ),
        "training/rollout_probs_diff_max": Name(sampler.PROB_DIFFERENCE_MAX),
        "training/rollout_probs_diff_std": Name(sampler.PROB_DIFFERENCE_STD),
        "training/rollout_actor_probs_pearson_corr": Name(sampler.PROB_CORRELATION),
        **{f"rollout_corr/{key}": name for key, name in CORRECTION_KEYS.items()},
        # 0.6.0 said it so
        **{f"mismatch/mismatch_{key}": name for key, name in CORRECTION_KEYS.items()},
        **{f"mismatch/{key}": name for key, name in CORRECTION_KEYS.items() if "rollout" in key},
        # metric_utils.py, compute_timing_metrics, compute_throughout_metrics; fsdp_workers.py
        "timing_s/step": Name(throughput.STEP_TIME, "one training step, generation included"),
        "perf/time_per_step": Name(throughput.STEP_TIME, "one training step, generation included"),
        "perf/throughput": Name(
            throughput.TOKENS_PER_SECOND_PER_DEVICE, "prompt and response tokens, of the whole step"
        ),
        "perf/total_num_tokens": Name(
            progress.TOKENS_NEW, "prompt and response tokens of the step"
        ),
        "training/global_step": Name(progress.ITERATION, "training steps"),
        "training/epoch": Name(progress.EPOCH, "whole passes over the prompts"),
        # fsdp_sft_trainer.py, sft_trainer.py
        "train/loss": Name(optimiser.LOSS, "supervised: mean over tokens"),
        "train/lr": Name(optimiser.LEARNING_RATE),
        "train/lr(1e-3)": Name(optimiser.LEARNING_RATE, "logged in thousandths", scale=1e-3),
        "train/grad_norm": Name(optimiser.GRAD_NORM),
        "train/global_tokens": Name(progress.TOKENS_NEW),
        "val/loss": Name(optimiser.EVAL_LOSS),
        # experimental/fully_async_policy/detach_utils.py, assemble_batch, aggregate
        "fully_async/count/current_param_version": Name(sampler.VERSION, "synchronisations so far"),
        "fully_async/partial/partial_ratio": Name(rollouts.PARTIAL_SHARE, "of the batch"),
        "fully_async/partial/max_partial_span": Name(
            optimiser.POLICY_LAG_MAX, "versions between a response's first and last token"
        ),
        "fully_async/processing_time/tp50": Name(rollouts.RESPONSE_TIME_MEDIAN),
        "fully_async/processing_time/tp99": Name(rollouts.RESPONSE_TIME_P99),
        "training/off_policy/trajectory_staleness/mean": Name(
            optimiser.POLICY_LAG, "versions behind, of a response's newest tokens"
        ),
        "training/off_policy/trajectory_staleness_worst/max": Name(
            optimiser.POLICY_LAG_MAX, "versions behind, of a response's oldest tokens"
        ),
        "trainer/idle_ratio": Name(throughput.WAIT_SHARE, "waiting for samples / step"),
    },
    families=(
        Family(
            rf"val-(?:core|aux)/(.+/(?:mean{AT_MARK}\d+|(?:best|maj){AT_MARK}\d+/mean))",
            VALIDATION_TASK,
        ),
        Family(r"(?:val/)?test_score/(.+)", VALIDATION_TASK),  # before 0.4
        Family(
            r"(?:timing_s|timing)/(.+)", Name(throughput.PHASE_TIME, "seconds of one training step")
        ),
        Family(r"timing_per_token_ms/(.+)", Name(throughput.TOKEN_TIME)),
        Family(r"perf/mfu/(.+)", Name(throughput.MFU)),
        Family(r"(?:actor/|critic/)?perf/((?:max|cpu)_memory_\w+)_gb", Name(throughput.MEMORY)),
        Family(r"(?:fully_async/)?count/(dropped_stale_samples)", DROPPED_ROLLOUTS),
        Family(
            r"(?:\w+/)?(?:filter_groups|off_policy|rollout_failure)/(evicted_samples\w*)(?:/\w+)?",
            DROPPED_ROLLOUTS,
        ),
        Family(r"distillation/(.+)", Name(surrogate.DISTILLATION, OVER_RESPONSE_TOKENS)),
        Family(r"(?:reward_extra_info|gdpo)/(.+)/mean", Name(reward.COMPONENT, "mean")),
        Family(r"(?:reward_extra_info|gdpo)/(.+)/std", Name(reward.COMPONENT_STD)),
        Family(r"reward_extra_info/([^/]+)", Name(reward.COMPONENT, "mean (forks of verl)")),
        Family(r"rollout_corr/(.*ppl.*)", Name(sampler.PERPLEXITY)),
        Family(r"(?:rollout_corr|variance_proxy)/(.+)", Name(surrogate.LOSS_WEIGHT)),
        Family(r"(?:actor/)?token_kl/(.+)", Name(surrogate.LOSS_WEIGHT)),
        Family(r"(?:router_replay|rollout/moe|r3)/(.+)", Name(sampler.ROUTING)),
        Family(r"(?:rollout|actor)/(?:\w+/)*((?:max|min|avg)_vio/.+)", Name(sampler.ROUTING)),
        Family(r"(agent_loop/\w*/?num_preempted\w*(?:/\w+)?)", Name(rollouts.COUNT, "requests")),
        Family(r"(agent_loop/slowest/\w+_length)", Name(rollouts.LENGTH_OF, "slowest response")),
        Family(r"agent_loop/(.+)", Name(throughput.PHASE_TIME, "seconds of one response")),
        Family(r"(?:perf|train)/(mfu)", Name(throughput.MFU)),
        Family(
            r"(response_length_non_aborted/mean)",
            Name(rollouts.LENGTH_OF, "without aborted responses"),
        ),
        Family(r"(val-aux/num_turns/mean)", Name(rollouts.COUNT, "turns of an evaluation")),
        Family(r"((?:gdpo|reward_extra_info)/.+/(?:max|min))", Name(rollouts.EXTREME)),
        Family(r"(training/off_policy/\w+_worst/\w+)", Name(rollouts.EXTREME, "oldest token")),
    ),
    other_prefixes=(
        r"response_length_non_aborted|global_seqlen|num_turns|tool_call_counts|prompt_length"
        r"|critic/rewards|critic/returns|critic/values|training|fully_async|count|static|monitor"
        r"|dynamic_resource|hybrid|separate_async|checkpoint_engine|rollout|val-aux/num_turns"
        r"|generation_timing|val"
    ),
    settings={
        "algorithm/adv_estimator": "algorithm",
        "algorithm/gamma": "gamma",
        "algorithm/lam": "gae_lambda",
        "algorithm/kl_ctrl/kl_coef": "kl_coef",
        "actor_rollout_ref/model/path": "model",
        "actor_rollout_ref/actor/optim/lr": "learning_rate",
        "actor_rollout_ref/actor/optim/weight_decay": "weight_decay",
        "actor_rollout_ref/actor/optim/lr_warmup_steps": "warmup_steps",
        "actor_rollout_ref/actor/clip_ratio": "clip_range",
        "actor_rollout_ref/actor/clip_ratio_high": "clip_range_high",
        "actor_rollout_ref/actor/entropy_coeff": "entropy_coef",
        "actor_rollout_ref/actor/ppo_epochs": "n_epochs",
        "actor_rollout_ref/actor/ppo_mini_batch_size": "prompt_minibatch_size",
        "actor_rollout_ref/actor/grad_clip": "max_grad_norm",
        "actor_rollout_ref/actor/policy_loss/loss_mode": "loss_type",
        "actor_rollout_ref/rollout/n": "num_generations",
        "actor_rollout_ref/rollout/temperature": "temperature",
        "critic/cliprange_value": "clip_range_value",
        "data/train_files": "dataset",
        "data/train_batch_size": "prompt_batch_size",
        "data/max_response_length": "max_completion_length",
        "data/max_prompt_length": "max_prompt_length",
        "data/seed": "seed",
        "trainer/total_training_steps": "total_steps",
        "trainer/total_epochs": "total_epochs",
    },
    sources=(),
    prefixes=("data/",),  # its own file nests a row's metrics
    read_from="volcengine/verl b178a3c (0.8.0.dev) and v0.1 to v0.7.0:"
    " verl/trainer/ppo/ray_trainer.py (fit, apply_kl_penalty, _val_metrics_update),"
    " metric_utils.py (compute_data_metrics, compute_timing_metrics, compute_throughout_metrics),"
    " core_algos.py (compute_policy_loss_vanilla, compute_value_loss, kl_penalty_forward,"
    " agg_loss), rollout_corr_helper.py (compute_offpolicy_metrics, compute_is_metrics),"
    " verl/workers/actor/dp_actor.py (update_policy), verl/utils/metric/utils.py"
    " (reduce_metrics), verl/utils/debug/metrics.py (calculate_debug_metrics),"
    " verl/experimental/fully_async_policy/detach_utils.py",
)
