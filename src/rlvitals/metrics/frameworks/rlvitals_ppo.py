"""Our own PPO trainer, `rlvitals train ppo`, by its run folder or the CSV files in it."""

from rlvitals.metrics.catalogue import (
    baseline_metrics,
    exploration,
    optimiser,
    outcome,
    policy,
    progress,
    reward,
    scheduler,
    surrogate,
    throughput,
    value,
)
from rlvitals.metrics.frameworks.key import Family, Name, Table

OVER_UPDATE_MINIBATCHES = "mean over the update's minibatches"
OVER_ROLLOUT = "mean over the rollout"
SCALED = "over the rollout, as normalised for training"
OVER_WINDOW = "of a sliding window, mean over the rollout"
LIKELIEST_ACTIONS = "of the likeliest actions, on the same {} each time"
ONCE = "of `baseline_scheduler` on the evaluation's arrivals, once"
AFTER_ROLLOUT = "after the rollout's last step"

NAMES = Table(
    "rlvitals-ppo",
    "rlvitals train ppo",
    keys={
        "ep_return": Name(outcome.RETURN, "mean of the episodes that ended in the rollout"),
        "ep_length": Name(outcome.EPISODE_LENGTH, "mean of the episodes that ended in the rollout"),
        "episodes": Name(progress.EPISODE, "that ended in the rollout"),
        "eval_return": Name(outcome.EVAL_RETURN, LIKELIEST_ACTIONS.format("arrivals or episodes")),
        "eval_length": Name(outcome.EVAL_EPISODE_LENGTH, LIKELIEST_ACTIONS.format("episodes")),
        "eval_latency": Name(baseline_metrics.EVAL_LATENCY, LIKELIEST_ACTIONS.format("arrivals")),
        "baseline_return": Name(baseline_metrics.BASELINE_RETURN, ONCE),
        "baseline_latency": Name(baseline_metrics.BASELINE_LATENCY, ONCE),
        "throughput": Name(outcome.THROUGHPUT, OVER_WINDOW),
        "latency": Name(outcome.LATENCY, OVER_WINDOW),
        "reward": Name(reward.MEAN, f"{OVER_ROLLOUT}, as the environment gave it"),
        "reward_mean": Name(reward.TRAINED_MEAN, SCALED),
        "reward_std": Name(reward.STD, SCALED),
        "reward_min": Name(reward.MIN, SCALED),
        "reward_max": Name(reward.MAX, SCALED),
        "absolute_score": Name(reward.ABSOLUTE, OVER_ROLLOUT),
        "delta_score": Name(reward.DELTA, OVER_ROLLOUT),
        "raw_reward": Name(reward.RAW, f"{OVER_ROLLOUT}, before the logarithm beyond its limit"),
        "estimated_throughput": Name(
            scheduler.RAW_THROUGHPUT, f"finished in the last gap times the rate, {OVER_ROLLOUT}"
        ),
        "estimated_latency": Name(scheduler.RAW_LATENCY, f"by Little's law, {OVER_ROLLOUT}"),
        "delta_throughput": Name(scheduler.DELTA_THROUGHPUT, OVER_ROLLOUT),
        "delta_latency": Name(scheduler.DELTA_LATENCY, OVER_ROLLOUT),
        "buffer_progress": Name(scheduler.BUFFER_PROGRESS, "this rollout's share of its length"),
        "episode_mask": Name(scheduler.EPISODE_MASK, OVER_ROLLOUT),
        "utilisation_gap": Name(scheduler.BALANCE_PENALTY, OVER_ROLLOUT),
        "queue": Name(scheduler.QUEUE_LENGTH, OVER_ROLLOUT),
        "qps": Name(scheduler.ARRIVALS, OVER_WINDOW),
        "pi_loss": Name(
            policy.LOSS, f"clipped surrogate, {OVER_UPDATE_MINIBATCHES}; advantages whitened"
        ),
        "vf_loss": Name(
            value.LOSS, f"half the squared error, clipped where set, {OVER_UPDATE_MINIBATCHES}"
        ),
        "loss": Name(optimiser.LOSS, OVER_UPDATE_MINIBATCHES),
        "entropy": Name(
            exploration.ENTROPY,
            f"of the distribution drawn from, tempered; {OVER_UPDATE_MINIBATCHES}",
        ),
        "approx_kl": Name(policy.APPROX_KL, f"k3, {OVER_UPDATE_MINIBATCHES}", estimator="k3"),
        "approx_kl_k1": Name(policy.KL_SIGNED, f"k1, {OVER_UPDATE_MINIBATCHES}", estimator="k1"),
        "clipfrac": Name(
            policy.CLIP_FRACTION, f"|ratio - 1| > clip_ratio, {OVER_UPDATE_MINIBATCHES}"
        ),
        "ratio_mean": Name(policy.RATIO, OVER_UPDATE_MINIBATCHES),
        "first_kl": Name(surrogate.FIRST_KL, "k3", estimator="k3"),
        "first_clipfrac": Name(surrogate.FIRST_CLIP_FRACTION, "|ratio - 1| > clip_ratio"),
        "first_ratio_max": Name(surrogate.FIRST_RATIO_MAX),
        "raw_advantage_min": Name(surrogate.ADVANTAGE_MIN, "over the rollout, before whitening"),
        "raw_advantage_max": Name(surrogate.ADVANTAGE_MAX, "over the rollout, before whitening"),
        "value_var": Name(value.VAR, "over the rollout"),
        "kl_ref": Name(
            policy.KL_TO_WARM_START,
            f"exact, to the frozen warm start, {OVER_UPDATE_MINIBATCHES}",
            estimator="exact",
        ),
        "kl_coef": Name(policy.KL_COEF, "of the KL to the policy that collected"),
        "entropy_coef": Name(exploration.ENTROPY_COEF),
        "explained_var": Name(value.EXPLAINED_VARIANCE, "of the rollout, before the update"),
        "pg_grad_norm": Name(optimiser.GRAD_NORM, f"before clipping, {OVER_UPDATE_MINIBATCHES}"),
        "lr": Name(optimiser.LEARNING_RATE),
        "value_mean": Name(value.MEAN, OVER_ROLLOUT),
        "return_mean": Name(value.RETURN_MEAN, f"advantage + value, {OVER_ROLLOUT}"),
        "advantage_std": Name(policy.ADVANTAGE_STD, "over the rollout, before whitening"),
        "minibatches": Name(optimiser.UPDATES, "steps of the optimiser in the update"),
        "update": Name(progress.ITERATION),
        "temperature": Name(exploration.TEMPERATURE, OVER_ROLLOUT),
        "temp_base_temperature": Name(exploration.BASE_TEMPERATURE),
        "temp_is_pulsing": Name(exploration.IS_PULSING, "of the rollout's last decision"),
        "temp_pulse_remaining": Name(exploration.PULSE_REMAINING, AFTER_ROLLOUT),
        "temp_stagnation_level": Name(exploration.STAGNATION, "most of the last changes"),
        "temp_qps_pressure_ema": Name(scheduler.QPS_PRESSURE, AFTER_ROLLOUT),
        "temp_latency_pressure_ema": Name(scheduler.LATENCY_PRESSURE, AFTER_ROLLOUT),
        "temp_step_count": Name(progress.DECISIONS, "of the temperature controller"),
        "obs_norm_count": Name(progress.NORMALISER_COUNT, "observations"),
        "sps": Name(throughput.STEPS_PER_SECOND, "of the update: its rollout and its learning"),
    },
    families=(
        Family(r"action_count_(\d+)", Name(policy.ACTION_COUNT, "count in the rollout")),
        Family(r"action_replica_(\d+)", Name(exploration.ACTION_SHARE, "of the rollout's choices")),
        Family(r"latency_(p\d+)", Name(outcome.TAIL_LATENCY, OVER_WINDOW)),
        Family(
            r"eval_latency_(p\d+)",
            Name(baseline_metrics.EVAL_TAIL_LATENCY, LIKELIEST_ACTIONS.format("arrivals")),
        ),
        Family(r"baseline_latency_(p\d+)", Name(baseline_metrics.BASELINE_TAIL_LATENCY, ONCE)),
        Family(
            r"(\w+_(?:penalty|bonus|score))", Name(reward.COMPONENT, f"{OVER_ROLLOUT}, weighted")
        ),
        Family(r"(collect|learn)_seconds", Name(throughput.PHASE_TIME, "s of the update")),
        Family(r"(tail_latency_\w+)", Name(scheduler.TAIL_LATENCY_ALERTS, OVER_ROLLOUT)),
        Family(r"curriculum/(.+)", Name(scheduler.CURRICULUM)),
    ),
    settings={
        "env": "env_id",
        "n_actions": "n_actions",
        "learning_rate": "learning_rate",
        "gamma": "gamma",
        "gae_lambda": "gae_lambda",
        "clip_ratio": "clip_range",
        "epochs": "n_epochs",
        "minibatch_size": "minibatch_size",
        "rollout_length": "n_steps",
        "entropy_coef": "entropy_coef",
        "value_coef": "value_coef",
        "max_grad_norm": "max_grad_norm",
        "target_kl": "target_kl",
        "entropy_min": "entropy_min",
        "kl_coef": "kl_coef",
        "total_steps": "total_steps",
        "num_envs": "n_envs",
        "seed": "seed",
        "temperature_control.min_temperature": "min_temperature",
        "temperature_control.max_temperature": "max_temperature",
        "temperature_control.base_temperature": "temperature",
        "warm_start.skip_warmstart": "skip_warmstart",
        "cluster.replicas": "n_replicas",
        "cluster.speeds": "replica_speeds",
    },
    step_unit="environment steps",
    marks=(("approx_kl_k1", "minibatch_size", "reward_norm_std"),),
    read_from="rlvitals/trainers/ppo/telemetry.py and ppo.py",
)
