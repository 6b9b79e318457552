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
from rlvitals.metrics.frameworks.key import Family, Name, Table

OVER_MINIBATCHES = "mean over all epochs and minibatches"

# Both logs take these from the same numbers, so they are described once.
APPROX_KL = Name(
    policy.APPROX_KL,
    f"k1, clamped at 0 where a minibatch's mean is negative; {OVER_MINIBATCHES}",
    estimator="k1 clamped",
)
CLIP_FRACTION = Name(policy.CLIP_FRACTION, f"|ratio - 1| > clip_ratio, {OVER_MINIBATCHES}")
ENTROPY = Name(exploration.ENTROPY, f"of the distribution that is trained, {OVER_MINIBATCHES}")
POLICY_LOSS = Name(policy.LOSS, f"clipped surrogate, {OVER_MINIBATCHES}; advantages whitened")
VALUE_LOSS = Name(value.LOSS, f"half the clipped squared error, {OVER_MINIBATCHES}")
EXPLAINED_VARIANCE = Name(value.EXPLAINED_VARIANCE, f"within a minibatch, {OVER_MINIBATCHES}")
GRAD_NORM = Name(optimiser.GRAD_NORM, f"before clipping, {OVER_MINIBATCHES}")
LEARNING_RATE = Name(optimiser.LEARNING_RATE)
REWARD_MEAN = Name(outcome.REWARD, "mean over the rollout's decisions, after scaling")
REWARD_STD = Name(reward.STD, "over the rollout's decisions")
REWARD_MIN = Name(reward.MIN, "over the rollout's decisions")
REWARD_MAX = Name(reward.MAX, "over the rollout's decisions")
VALUE_MEAN = Name(value.MEAN, "over the rollout's decisions")
RETURN_MEAN = Name(value.RETURN_MEAN, "advantage + value, over the rollout's decisions")
ADVANTAGE_STD = Name(policy.ADVANTAGE_STD, "after whitening: 1 by construction")
ACTION_COUNT = Name(policy.ACTION_COUNT, "count in the rollout, not a share")
REWARD = Name(reward.STEP, "one decision, after scaling")
ACTION = Name(policy.ACTION, "one decision")
BALANCE = Name(scheduler.BALANCE_PENALTY, "one decision; not part of the hybrid reward")
THROUGHPUT = Name(outcome.THROUGHPUT, "average over the run so far")
LATENCY = Name(outcome.LATENCY, "average over all requests so far")
SKIPPED = Name(scheduler.SKIPPED_METRICS, "one decision")
BUFFER = Name(scheduler.BUFFER_PROGRESS)
QUEUE = Name(scheduler.QUEUE_LENGTH, "one decision")
RAW_REWARD = Name(reward.RAW, "one decision, before scaling and compression")
RAW_THROUGHPUT = Name(scheduler.RAW_THROUGHPUT, "one decision")
RAW_LATENCY = Name(scheduler.RAW_LATENCY, "one decision")
DELTA_THROUGHPUT = Name(scheduler.DELTA_THROUGHPUT, "one decision")
DELTA_LATENCY = Name(scheduler.DELTA_LATENCY, "one decision")
TEMPERATURE = Name(exploration.TEMPERATURE, "one decision, the value sampled with")

TENSORBOARD = {
    "Training/PolicyLoss": POLICY_LOSS,
    "Training/ValueLoss": VALUE_LOSS,
    "Training/Entropy": ENTROPY,
    "Training/ApproxKL": APPROX_KL,
    "Training/ClipFraction": CLIP_FRACTION,
    "Training/ExplainedVariance": EXPLAINED_VARIANCE,
    "Training/GradientNorm": GRAD_NORM,
    "Training/LearningRate": LEARNING_RATE,
    "Reward/Total": REWARD,
    "Reward/Throughput": THROUGHPUT,
    "Reward/Latency": LATENCY,
    "Reward/BalancePenalty": BALANCE,
    "Reward/DeltaThroughput": DELTA_THROUGHPUT,
    "Reward/DeltaLatency": DELTA_LATENCY,
    "Debug/RawReward": RAW_REWARD,
    "Debug/RewardClipped": Name(reward.CLIPPED, "one decision"),
    "Debug/RawThroughput": RAW_THROUGHPUT,
    "Debug/RawLatency": RAW_LATENCY,
    "Debug/SkippedInvalidMetrics": SKIPPED,
    "Rollout/RewardMean": REWARD_MEAN,
    "Rollout/RewardStd": REWARD_STD,
    "Rollout/RewardMin": REWARD_MIN,
    "Rollout/RewardMax": REWARD_MAX,
    "Rollout/ValueMean": VALUE_MEAN,
    "Rollout/ReturnMean": RETURN_MEAN,
    "Rollout/AdvantageStd": ADVANTAGE_STD,
    "System/BufferProgress": BUFFER,
    "System/QueueLength": QUEUE,
    "System/SelectedReplica": ACTION,
    "System/EpisodeMask": Name(scheduler.EPISODE_MASK, "one decision"),
}

UPDATE_COLUMNS = {
    "pi_loss": POLICY_LOSS,
    "vf_loss": VALUE_LOSS,
    "entropy": ENTROPY,
    "approx_kl": APPROX_KL,
    "clipfrac": CLIP_FRACTION,
    "explained_var": EXPLAINED_VARIANCE,
    "pg_grad_norm": GRAD_NORM,
    "lr": LEARNING_RATE,
    "rollout_length": Name(progress.ROLLOUT_LENGTH),
    "buffer_size": Name(progress.BATCH_SIZE),
    "entropy_coef": Name(exploration.ENTROPY_COEF),
    "reward_mean": REWARD_MEAN,
    "reward_std": REWARD_STD,
    "reward_min": REWARD_MIN,
    "reward_max": REWARD_MAX,
    "value_mean": VALUE_MEAN,
    "return_mean": RETURN_MEAN,
    "advantage_std": ADVANTAGE_STD,
    "buffer_progress": BUFFER,
    "obs_norm_count": Name(progress.NORMALISER_COUNT, "observations"),
}

DECISION_COLUMNS = {
    "reward": REWARD,
    "total_reward": REWARD,
    "reward_total_reward": REWARD,
    "action": ACTION,
    "action_value": ACTION,  # the action's index, not a Q value
    "selected_replica": Name(scheduler.SELECTED_REPLICA, "one decision"),
    "replica_id": Name(scheduler.SELECTED_REPLICA, "one decision"),
    "value_estimate": Name(value.STEP, "one decision"),
    "log_probability": Name(policy.LOG_PROBABILITY, "one decision"),
    "queue_length": QUEUE,
    "queue_size": QUEUE,
    "throughput": THROUGHPUT,
    "latency": LATENCY,
    "balance_penalty": BALANCE,
    "delta_throughput": DELTA_THROUGHPUT,
    "delta_latency": DELTA_LATENCY,
    "temperature": TEMPERATURE,
    "temp_current_temperature": TEMPERATURE,
    "temp_base_temperature": Name(exploration.BASE_TEMPERATURE),
    "temp_is_pulsing": Name(exploration.IS_PULSING, "one decision; 0 on a pulse's last step"),
    "temp_pulse_remaining": Name(exploration.PULSE_REMAINING, "one decision"),
    "temp_stagnation_level": Name(exploration.STAGNATION, "most of the last decisions"),
    "temp_qps_pressure_ema": Name(scheduler.QPS_PRESSURE, "moving average, alpha 0.1"),
    "temp_latency_pressure_ema": Name(scheduler.LATENCY_PRESSURE, "moving average, alpha 0.1"),
    "temp_step_count": Name(progress.DECISIONS, "of the temperature controller"),
    "step_count": Name(progress.DECISIONS, "of the reward"),
    "reward_step_count": Name(progress.DECISIONS, "of the reward"),
    "skipped_invalid_metrics": SKIPPED,
}

# The reward's parts stand twice in the CSV, plainly and with "reward_" before them.
BREAKDOWN = {
    "absolute_score": Name(reward.ABSOLUTE, "one decision"),
    "delta_score": Name(reward.DELTA, "one decision; 0 at the first step"),
    "raw_reward": RAW_REWARD,
    "raw_throughput": RAW_THROUGHPUT,
    "raw_latency": RAW_LATENCY,
    "throughput_ema": Name(scheduler.THROUGHPUT_EMA),
    "throughput_var": Name(scheduler.THROUGHPUT_VAR),
    "latency_ema": Name(scheduler.LATENCY_EMA),
    "latency_var": Name(scheduler.LATENCY_VAR),
}

PARTS = (
    "logistic_penalty|load_balance_penalty|direct_imbalance_penalty|extreme_imbalance_penalty"
    "|asymmetric_penalty|beta_exploration_bonus|temporal_trend_bonus|latency_threshold_penalty"
)

NAMES = Table(
    "scheduler",
    "PPO request scheduler",
    keys={
        **TENSORBOARD,
        **UPDATE_COLUMNS,
        **DECISION_COLUMNS,
        **BREAKDOWN,
        **{f"reward_{key}": name for key, name in BREAKDOWN.items()},
    },
    families=(
        Family(r"Actions/Replica_(\d+)", ACTION_COUNT),
        Family(r"action_replica_(\d+)", ACTION_COUNT),
        Family(rf"(?:reward_)?({PARTS})", Name(reward.COMPONENT, "one decision, unweighted")),
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
    read_from="Archer222arc/Vidurrl: src/core/algorithms/ppo_trainer.py (update),"
    " rewards/reward_calculator.py, src/core/utils/temperature_controller.py, the TensorBoard"
    " and CSV exporters",
)
