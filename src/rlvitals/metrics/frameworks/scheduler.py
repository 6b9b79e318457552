"""The PPO request scheduler for a serving cluster: its TensorBoard tags and CSV columns.

The CSV mixes three kinds of rows: training (one decision), ppo_update, rollout. Its TensorBoard
writer turns NaN and infinity into 0, so a zero there may hide a divergence.
"""

from rlvitals.metrics.catalogue import (
    exploration,
    optimiser,
    outcome,
    policy,
    progress,
    reward,
    scheduler,
    value,
)
from rlvitals.metrics.frameworks.key import OVER_ALL_MINIBATCHES, Family, Name, Table

# Both logs take these from the same numbers, so they are described once.
SCHEDULER_NUMBERS = {
    "approx_kl": Name(
        policy.APPROX_KL,
        f"k1, clamped at 0 where a minibatch's mean is negative; {OVER_ALL_MINIBATCHES}",
        estimator="k1 clamped",
    ),
    "clipfrac": Name(policy.CLIP_FRACTION, f"|ratio - 1| > clip_ratio, {OVER_ALL_MINIBATCHES}"),
    "entropy": Name(
        exploration.ENTROPY, f"of the distribution that is trained, {OVER_ALL_MINIBATCHES}"
    ),
    "pi_loss": Name(policy.LOSS, f"clipped surrogate, {OVER_ALL_MINIBATCHES}; advantages whitened"),
    "vf_loss": Name(value.LOSS, f"half the clipped squared error, {OVER_ALL_MINIBATCHES}"),
    "explained_var": Name(value.EXPLAINED_VARIANCE, f"within a minibatch, {OVER_ALL_MINIBATCHES}"),
    "pg_grad_norm": Name(optimiser.GRAD_NORM, f"before clipping, {OVER_ALL_MINIBATCHES}"),
    "reward_mean": Name(outcome.REWARD, "mean over the rollout's decisions, after scaling"),
    "reward_std": Name(reward.STD, "over the rollout's decisions"),
    "reward_min": Name(reward.MIN, "over the rollout's decisions"),
    "reward_max": Name(reward.MAX, "over the rollout's decisions"),
    "value_mean": Name(value.MEAN, "over the rollout's decisions"),
    "return_mean": Name(value.RETURN_MEAN, "advantage + value, over the rollout's decisions"),
    "advantage_std": Name(policy.ADVANTAGE_STD, "after whitening: 1 by construction"),
    "action_replica": Name(policy.ACTION_COUNT, "count in the rollout, not a share"),
    "reward": Name(reward.STEP, "one decision, after scaling"),
    "action": Name(policy.ACTION, "one decision"),
    "balance_penalty": Name(
        scheduler.BALANCE_PENALTY, "one decision; not part of the hybrid reward"
    ),
    "throughput": Name(outcome.THROUGHPUT, "average over the run so far"),
    "latency": Name(outcome.LATENCY, "average over all requests so far"),
    "skipped_invalid_metrics": Name(scheduler.SKIPPED_METRICS, "one decision"),
    "queue_length": Name(scheduler.QUEUE_LENGTH, "one decision"),
    "raw_reward": Name(reward.RAW, "one decision, before scaling and compression"),
    "raw_throughput": Name(scheduler.RAW_THROUGHPUT, "one decision"),
    "raw_latency": Name(scheduler.RAW_LATENCY, "one decision"),
    "delta_throughput": Name(scheduler.DELTA_THROUGHPUT, "one decision"),
    "delta_latency": Name(scheduler.DELTA_LATENCY, "one decision"),
    "temperature": Name(exploration.TEMPERATURE, "one decision, the value sampled with"),
}


# The reward's parts stand twice in the CSV, plainly and with "reward_" before them.
BREAKDOWN = {
    "absolute_score": Name(reward.ABSOLUTE, "one decision"),
    "delta_score": Name(reward.DELTA, "one decision; 0 at the first step"),
    "raw_reward": SCHEDULER_NUMBERS["raw_reward"],
    "raw_throughput": SCHEDULER_NUMBERS["raw_throughput"],
    "raw_latency": SCHEDULER_NUMBERS["raw_latency"],
    "throughput_ema": Name(scheduler.THROUGHPUT_EMA),
    "throughput_var": Name(scheduler.THROUGHPUT_VAR),
    "latency_ema": Name(scheduler.LATENCY_EMA),
    "latency_var": Name(scheduler.LATENCY_VAR),
}

PENALTY_PARTS = (
    "logistic_penalty|load_balance_penalty|direct_imbalance_penalty|extreme_imbalance_penalty"
    "|asymmetric_penalty|beta_exploration_bonus|temporal_trend_bonus|latency_threshold_penalty"
)

NAMES = Table(
    "scheduler",
    "PPO request scheduler",
    keys={
        "Training/PolicyLoss": SCHEDULER_NUMBERS["pi_loss"],
        "Training/ValueLoss": SCHEDULER_NUMBERS["vf_loss"],
        "Training/Entropy": SCHEDULER_NUMBERS["entropy"],
        "Training/ApproxKL": SCHEDULER_NUMBERS["approx_kl"],
        "Training/ClipFraction": SCHEDULER_NUMBERS["clipfrac"],
        "Training/ExplainedVariance": SCHEDULER_NUMBERS["explained_var"],
        "Training/GradientNorm": SCHEDULER_NUMBERS["pg_grad_norm"],
        "Training/LearningRate": Name(optimiser.LEARNING_RATE),
        "Reward/Total": SCHEDULER_NUMBERS["reward"],
        "Reward/Throughput": SCHEDULER_NUMBERS["throughput"],
        "Reward/Latency": SCHEDULER_NUMBERS["latency"],
        "Reward/BalancePenalty": SCHEDULER_NUMBERS["balance_penalty"],
        "Reward/DeltaThroughput": SCHEDULER_NUMBERS["delta_throughput"],
        "Reward/DeltaLatency": SCHEDULER_NUMBERS["delta_latency"],
        "Debug/RawReward": SCHEDULER_NUMBERS["raw_reward"],
        "Debug/RewardClipped": Name(reward.CLIPPED, "one decision"),
        "Debug/RawThroughput": SCHEDULER_NUMBERS["raw_throughput"],
        "Debug/RawLatency": SCHEDULER_NUMBERS["raw_latency"],
        "Debug/SkippedInvalidMetrics": SCHEDULER_NUMBERS["skipped_invalid_metrics"],
        "Rollout/RewardMean": SCHEDULER_NUMBERS["reward_mean"],
        "Rollout/RewardStd": SCHEDULER_NUMBERS["reward_std"],
        "Rollout/RewardMin": SCHEDULER_NUMBERS["reward_min"],
        "Rollout/RewardMax": SCHEDULER_NUMBERS["reward_max"],
        "Rollout/ValueMean": SCHEDULER_NUMBERS["value_mean"],
        "Rollout/ReturnMean": SCHEDULER_NUMBERS["return_mean"],
        "Rollout/AdvantageStd": SCHEDULER_NUMBERS["advantage_std"],
        "System/BufferProgress": Name(scheduler.BUFFER_PROGRESS),
        "System/QueueLength": SCHEDULER_NUMBERS["queue_length"],
        "System/SelectedReplica": SCHEDULER_NUMBERS["action"],
        "System/EpisodeMask": Name(scheduler.EPISODE_MASK, "one decision"),
        "pi_loss": SCHEDULER_NUMBERS["pi_loss"],
        "vf_loss": SCHEDULER_NUMBERS["vf_loss"],
        "entropy": SCHEDULER_NUMBERS["entropy"],
        "approx_kl": SCHEDULER_NUMBERS["approx_kl"],
        "clipfrac": SCHEDULER_NUMBERS["clipfrac"],
        "explained_var": SCHEDULER_NUMBERS["explained_var"],
        "pg_grad_norm": SCHEDULER_NUMBERS["pg_grad_norm"],
        "lr": Name(optimiser.LEARNING_RATE),
        "rollout_length": Name(progress.ROLLOUT_LENGTH),
        "buffer_size": Name(progress.BATCH_SIZE),
        "entropy_coef": Name(exploration.ENTROPY_COEF),
        "reward_mean": SCHEDULER_NUMBERS["reward_mean"],
        "reward_std": SCHEDULER_NUMBERS["reward_std"],
        "reward_min": SCHEDULER_NUMBERS["reward_min"],
        "reward_max": SCHEDULER_NUMBERS["reward_max"],
        "value_mean": SCHEDULER_NUMBERS["value_mean"],
        "return_mean": SCHEDULER_NUMBERS["return_mean"],
        "advantage_std": SCHEDULER_NUMBERS["advantage_std"],
        "buffer_progress": Name(scheduler.BUFFER_PROGRESS),
        "obs_norm_count": Name(progress.NORMALISER_COUNT, "observations"),
        "reward": SCHEDULER_NUMBERS["reward"],
        "total_reward": SCHEDULER_NUMBERS["reward"],
        "reward_total_reward": SCHEDULER_NUMBERS["reward"],
        "action": SCHEDULER_NUMBERS["action"],
        "action_value": SCHEDULER_NUMBERS["action"],  # the action's index, not a Q value
        "selected_replica": Name(scheduler.SELECTED_REPLICA, "one decision"),
        "replica_id": Name(scheduler.SELECTED_REPLICA, "one decision"),
        "value_estimate": Name(value.STEP, "one decision"),
        "log_probability": Name(policy.LOG_PROBABILITY, "one decision"),
        "queue_length": SCHEDULER_NUMBERS["queue_length"],
        "queue_size": SCHEDULER_NUMBERS["queue_length"],
        "throughput": SCHEDULER_NUMBERS["throughput"],
        "latency": SCHEDULER_NUMBERS["latency"],
        "balance_penalty": SCHEDULER_NUMBERS["balance_penalty"],
        "delta_throughput": SCHEDULER_NUMBERS["delta_throughput"],
        "delta_latency": SCHEDULER_NUMBERS["delta_latency"],
        "temperature": SCHEDULER_NUMBERS["temperature"],
        "temp_current_temperature": SCHEDULER_NUMBERS["temperature"],
        "temp_base_temperature": Name(exploration.BASE_TEMPERATURE),
        "temp_is_pulsing": Name(exploration.IS_PULSING, "one decision; 0 on a pulse's last step"),
        "temp_pulse_remaining": Name(exploration.PULSE_REMAINING, "one decision"),
        "temp_stagnation_level": Name(exploration.STAGNATION, "most of the last decisions"),
        "temp_qps_pressure_ema": Name(scheduler.QPS_PRESSURE, "moving average, alpha 0.1"),
        "temp_latency_pressure_ema": Name(scheduler.LATENCY_PRESSURE, "moving average, alpha 0.1"),
        "temp_step_count": Name(progress.DECISIONS, "of the temperature controller"),
        "step_count": Name(progress.DECISIONS, "of the reward"),
        "reward_step_count": Name(progress.DECISIONS, "of the reward"),
        "skipped_invalid_metrics": SCHEDULER_NUMBERS["skipped_invalid_metrics"],
        **BREAKDOWN,
        **{f"reward_{key}": name for key, name in BREAKDOWN.items()},
    },
    families=(
        Family(r"Actions/Replica_(\d+)", SCHEDULER_NUMBERS["action_replica"]),
        Family(r"action_replica_(\d+)", SCHEDULER_NUMBERS["action_replica"]),
        Family(
            rf"(?:reward_)?({PENALTY_PARTS})", Name(reward.COMPONENT, "one decision, unweighted")
        ),
        Family(r"tail_latency/latency_(p\d+)", Name(outcome.TAIL_LATENCY, "last 1000 requests")),
        Family(r"tail_latency/(tail_latency_\w+)", Name(scheduler.TAIL_LATENCY_ALERTS)),
        Family(r"curriculum/(.+)", Name(scheduler.CURRICULUM)),
    ),
    settings={
        "lr": "learning_rate",
        "gamma": "gamma",
        "lambda": "gae_lambda",
        "lambda_": "gae_lambda",
        "gae_lambda": "gae_lambda",
        "clip_ratio": "clip_range",
        "ppo_clip": "clip_range",
        "epochs": "n_epochs",
        "rollout_len": "batch_size",
        "rollout_length": "batch_size",
        "minibatch_size": "minibatch_size",
        "entropy_coef": "entropy_coef",
        "value_coef": "value_coef",
        "max_grad_norm": "max_grad_norm",
        "target_kl": "target_kl",
        "entropy_min": "entropy_min",
        "kl_coef": "kl_coef",
        "min_temperature": "min_temperature",
        "max_temperature": "max_temperature",
        "base_temperature": "temperature",
        "qps_sensitivity": "qps_sensitivity",
        "latency_sensitivity": "latency_sensitivity",
        "beta": "reward_beta",
        "reward_gamma": "reward_gamma",
        "num_replicas": "n_replicas",
        "replica_speeds": "replica_speeds",
        "statistics_stabilization_steps": "stabilization_steps",
        "total_requests": "total_steps",
        "seed": "seed",
    },
    sources=("scheduler-csv",),
    # A log of another writer is the scheduler's only with a key that nobody else has.
    mark_pattern=(
        r"(?:Training|Reward|Debug|Rollout|System)/[A-Z]\w+|Actions/Replica_\d+|replica_id"
        r"|selected_replica|balance_penalty|reward_total_reward|step_count|skipped_invalid_metrics"
        r"|temp_current_temperature|obs_norm_count|pi_loss"
    ),
    read_from="Archer222arc/Vidurrl: src/core/algorithms/ppo_trainer.py (update),"
    " rewards/reward_calculator.py, src/core/utils/temperature_controller.py, the TensorBoard"
    " and CSV exporters",
)
