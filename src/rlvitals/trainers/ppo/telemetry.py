"""Metrics of an update, its log lines, and the tags of TensorBoard."""

import re
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from rlvitals.trainers.ppo.cluster import ID as CLUSTER
from rlvitals.trainers.ppo.cluster.reward import REWARD_PARTS
from rlvitals.trainers.ppo.config import Config, MonitoringConfig
from rlvitals.trainers.ppo.ppo import PPO
from rlvitals.trainers.ppo.rollout import Rollout
from rlvitals.trainers.ppo.temperature import Fixed

LOG_FORMAT = "%(asctime)s %(levelname)s %(message)s"
Numbers = dict[str, float]

# How TensorBoard calls a number; any other keeps its own name.
TENSORBOARD_TAGS = {
    "pi_loss": "Training/PolicyLoss",
    "vf_loss": "Training/ValueLoss",
    "entropy": "Training/Entropy",
    "approx_kl": "Training/ApproxKL",
    "clipfrac": "Training/ClipFraction",
    "explained_var": "Training/ExplainedVariance",
    "pg_grad_norm": "Training/GradientNorm",
    "lr": "Training/LearningRate",
    "reward": "Reward/Total",
    "throughput": "Reward/Throughput",
    "latency": "Reward/Latency",
    "balance_penalty": "Reward/BalancePenalty",
    "delta_score": "Reward/DeltaScore",
    "delta_throughput": "Reward/DeltaThroughput",
    "delta_latency": "Reward/DeltaLatency",
    "absolute_score": "Reward/AbsoluteScore",
    "raw_reward": "Debug/RawReward",
    "estimated_throughput": "Debug/RawThroughput",
    "estimated_latency": "Debug/RawLatency",
    "buffer_progress": "System/BufferProgress",
    "selected_replica": "System/SelectedReplica",
    "episode_mask": "System/EpisodeMask",
    "queue": "System/QueueLength",
    "curriculum_stage": "curriculum/stage",
    "latency_p90": "tail_latency/latency_p90",
    "latency_p95": "tail_latency/latency_p95",
    "latency_p99": "tail_latency/latency_p99",
    "tail_latency_samples": "tail_latency/tail_latency_samples",
    "tail_latency_violations": "tail_latency/tail_latency_violations",
    "tail_latency_violation_rate": "tail_latency/tail_latency_violation_rate",
    "tail_latency_alerts": "tail_latency/tail_latency_alerts",
    "reward_mean": "Rollout/RewardMean",
    "reward_std": "Rollout/RewardStd",
    "reward_min": "Rollout/RewardMin",
    "reward_max": "Rollout/RewardMax",
    "value_mean": "Rollout/ValueMean",
    "return_mean": "Rollout/ReturnMean",
    "advantage_std": "Rollout/AdvantageStd",
    "temperature": "Temperature/Current",
    "temp_base_temperature": "Temperature/Base",
    "temp_qps_pressure_ema": "Temperature/QPSPressure",
    "temp_latency_pressure_ema": "Temperature/LatencyPressure",
    "temp_is_pulsing": "Temperature/IsPulsing",
    "temp_stagnation_level": "Temperature/Stagnation",
    "temp_current_temperature": "Temperature/Last",
    "temp_pulse_remaining": "Temperature/PulseRemaining",
    "temp_step_count": "Temperature/Decisions",
}
# What an update's numbers may be, in the order of the exported table.
LOGGED_UPDATE_COLUMNS = (
    "update", "pi_loss", "vf_loss", "loss", "entropy", "entropy_policy", "approx_kl",
    "approx_kl_k1", "clipfrac", "ratio_mean", "ratio_max", "kl_ref", "first_kl", "first_clipfrac",
    "first_ratio_max", "lr", "entropy_coef", "entropy_min", "kl_coef", "kl_ref_coef",
    "explained_var", "advantage_std", "raw_advantage_mean", "raw_advantage_min",
    "raw_advantage_max", "value_mean", "value_var", "return_mean", "return_std", "minibatch_size",
    "minibatches", "pg_grad_norm", "skipped_minibatches", "stopped_early", "collect_seconds",
    "learn_seconds", "sps", "reward", "reward_mean", "reward_std", "reward_min", "reward_max",
    "ep_return", "ep_length", "episodes", "buffer_progress", "episode_mask", "temperature",
    "obs_norm_count", "obs_norm_mean", "obs_norm_std", "reward_norm_count", "reward_norm_std",
)  # fmt: skip
TEMPERATURE_COLUMNS = (
    "current_temperature", "base_temperature", "qps_pressure_ema", "latency_pressure_ema",
    "is_pulsing", "pulse_remaining", "step_count", "stagnation_level",
)  # fmt: skip
SERVING_COLUMNS = (
    "throughput", "latency", "latency_p90", "latency_p95", "latency_p99", "tail_latency_samples",
    "tail_latency_violations", "tail_latency_violation_rate", "tail_latency_alerts",
    "delta_throughput", "delta_latency", "estimated_throughput", "estimated_latency",
    "throughput_ema", "latency_ema", "qps", "target_qps", "queue", "utilisation_gap", "finished",
    "rejected", "failed", "overridden", "curriculum_stage", "raw_reward",
)  # fmt: skip
REWARD_SUFFIXES = ("_score", "_penalty", "_bonus")  # how the reward's parts end


def action_tags(actions: int) -> dict[str, str]:
    """Return TensorBoard's tags of the shares and counts of `actions` actions."""
    return {f"action_replica_{i}": f"Actions/Share_{i}" for i in range(actions)} | {
        f"action_count_{i}": f"Actions/Replica_{i}" for i in range(actions)
    }


def select_metrics(metrics: Mapping[str, float], config: MonitoringConfig) -> Numbers:
    """Return those of an update's numbers that are to be recorded."""
    tracks, tail = config.advanced_metrics, config.tail_latency_tracking
    # Which numbers a key of `monitoring.advanced_metrics` logs.
    off = "|".join(
        pattern
        for name, pattern in {
            "track_policy_entropy": r"entropy_policy",
            "track_value_function_variance": r"value_var",
            "track_action_distribution": r"action_(replica|count)_\d+|selected_replica",
            "track_kl_divergence": r"first_\w+|ratio_(mean|max)",
            "track_advantage_statistics": r"raw_advantage_(mean|min|max)",
        }.items()
        if not getattr(tracks, name)
    )
    left_out = re.compile(off) if off else None
    percentiles = tail.percentiles if tail.enable else ()
    selected = {
        name: value
        for name, value in metrics.items()
        if not (left_out and left_out.fullmatch(name))
        and not (
            (slow := re.fullmatch(r"latency_p(\d+)", name)) and int(slow[1]) not in percentiles
        )
        and (tail.enable or not name.startswith("tail_latency_"))
    }
    if "tail_latency_samples" in selected:
        selected["tail_latency_alerts"] = float(is_slow(metrics, config))
    return selected


def is_slow(metrics: Mapping[str, float], config: MonitoringConfig) -> bool:
    """Return True if the 99th percentile of latency is above its alert threshold."""
    tail = config.tail_latency_tracking
    return tail.enable and 0.0 < tail.alert_threshold_p99 < metrics.get("latency_p99", 0.0)


def columns(config: Config, ppo: PPO, *, evaluated: bool) -> tuple[str, ...]:
    """Return the names of all that is recorded of updates and evaluations: one table's columns.

    `evaluated`: whether the policy is evaluated as it goes.
    The `info` of other environments is not known before the first step.
    """
    names = [*LOGGED_UPDATE_COLUMNS]
    if ppo.spikes is not None:
        names += ("gradient_spike", "lr_factor", "minibatch_size_next", "grad_norm_usual")
    if config.temperature_control.enabled:
        names += [f"temp_{name}" for name in TEMPERATURE_COLUMNS]
    if not ppo.envs.continuous:
        for prefix in ("action_replica", "action_count"):
            names += [f"{prefix}_{i}" for i in range(ppo.envs.actions)]
        names += ["selected_replica"]
    if config.training.env == CLUSTER:
        percentiles = [
            f"latency_p{each}" for each in config.monitoring.tail_latency_tracking.percentiles
        ]
        names += [*SERVING_COLUMNS, *REWARD_PARTS, *percentiles]
        names += (
            ("replicas_up", "sent_again", "lost")
            if config.cluster.failures.mean_time_to_failure
            else ()
        )
        evaluation = [
            f"{policy}_{name}"
            for policy in ("eval", "baseline")
            for name in ("return", "latency", "latency_p95", "latency_p99")
        ]
        names += evaluation if evaluated else []
    elif evaluated:
        names += ["eval_return", "eval_length"]
    never = {"kl_ref"} if ppo.frozen is None else set()
    if isinstance(ppo.temperature, Fixed) and ppo.temperature.value == 1.0:
        never.add("entropy_policy")
    logged = select_metrics(dict.fromkeys(names, 0.0), config.monitoring)
    return tuple(name for name in logged if name not in never)


def numbers(ppo: PPO, rollout: Rollout, stats: Mapping[str, float]) -> Numbers:
    """Return all numbers of one update, under the names they are logged by."""
    # The replica is a label: its mean means nothing.
    facts = {name: value for name, value in rollout.facts.items() if name != "replica"}
    metrics = dict(stats) | facts
    if rollout.episodes:
        returns, lengths = zip(*rollout.episodes, strict=True)
        metrics |= {
            "ep_return": float(np.mean(returns)), "ep_length": float(np.mean(lengths)),
            "episodes": float(len(returns)),
        }  # fmt: skip
    metrics |= {
        "buffer_progress": len(rollout.rewards) / ppo.config.rollout_length,
        "episode_mask": 1.0 - float(rollout.dones[rollout.valid].mean()),
    }
    if "compression" in metrics:
        metrics["raw_reward"] = metrics["reward"] - metrics["compression"]
    if metrics.get("tail_latency_samples"):
        metrics["tail_latency_violation_rate"] = (
            metrics["tail_latency_violations"] / metrics["tail_latency_samples"]
        )
    if not ppo.envs.continuous:
        metrics |= action_shares(rollout, ppo.envs.actions)
    metrics["temperature"] = float(rollout.temperatures.mean())
    controller_stats = getattr(ppo.temperature, "stats", None)
    if controller_stats is not None:
        metrics |= {f"temp_{name}": value for name, value in controller_stats().items()}
    return metrics | normaliser_numbers(ppo) | {"update": float(ppo.counters.updates)}


def action_shares(rollout: Rollout, actions: int) -> Numbers:
    """Return how often each action was taken, as a share and as a count."""
    counts = np.bincount(rollout.actions[rollout.valid].reshape(-1), minlength=actions)
    shares = counts / max(int(counts.sum()), 1)
    metrics = {f"action_replica_{i}": float(share) for i, share in enumerate(shares)}
    metrics |= {f"action_count_{i}": float(count) for i, count in enumerate(counts)}
    return metrics | {"selected_replica": float(counts.argmax())}  # most often


def normaliser_numbers(ppo: PPO) -> Numbers:
    """Return what the normalisers hold."""
    obs_moments, reward_moments = ppo.normalise_obs.moments, ppo.normalise_reward.moments
    return {
        "obs_norm_count": obs_moments.count,
        "obs_norm_mean": float(np.abs(obs_moments.mean).mean()),
        "obs_norm_std": float(np.sqrt(obs_moments.var).mean()),
        "reward_norm_count": reward_moments.count,
        "reward_norm_std": float(np.sqrt(reward_moments.var)),
    }


def shares_by_environment(rollout: Rollout, actions: int) -> NDArray[np.float64]:
    """Return how often each environment took each action: shares [n, actions]."""
    taken_actions = np.where(rollout.valid, rollout.actions, -1)
    counts = np.stack([(taken_actions == i).sum(0) for i in range(actions)], 1)
    shares: NDArray[np.float64] = counts / np.maximum(rollout.valid.sum(0), 1)[:, None]
    return shares


def format_shares(values: Iterable[float]) -> str:
    """Return shares as a list."""
    return f"[{', '.join(f'{value:.2f}' for value in values)}]"


def init_line(config: Config, ppo: PPO) -> str:
    """Return the line that describes a training."""
    ppo_config, reward = config.ppo_config, config.reward_config
    return (
        f"[PPO:init] env={config.training.env} x{ppo.envs.count} mode={reward.mode} | "
        f"h={'x'.join(map(str, config.network.hidden_sizes))} | lr={ppo_config.learning_rate:.2e} "
        f"gamma={ppo_config.gamma:.3f} lam={ppo_config.gae_lambda:.3f} "
        f"clip={ppo_config.clip_ratio:.2f} ent={ppo_config.entropy_coef:.3f} "
        f"vf={ppo_config.value_coef:.3f} epochs={ppo_config.epochs} "
        f"roll={ppo_config.rollout_length} mb={ppo_config.minibatch_size} "
        f"gnorm={ppo_config.max_grad_norm:.2f} | "
        f"lat_w={reward.alpha:.2f} bal_w={reward.load_balance_penalty:.2f}"
    )


def rollout_line(step: int, steps_done: int, length: int, reward: float) -> str:
    """Return the line about a rollout's progress."""
    return f"[PPO:rollout] step={step} buf_ptr={steps_done}/{length} current_r={reward:.4f}"


def update_line(step: int, metrics: Mapping[str, float]) -> str:
    """Return the line about an update, with the parts of the reward."""
    line = (
        f"[PPO:update] step={step} pi={metrics['pi_loss']:.6f} vf={metrics['vf_loss']:.6f} "
        f"ent={metrics['entropy']:.4f} kl={metrics['approx_kl']:.5f} "
        f"clip={metrics['clipfrac']:.3f} ev={metrics['explained_var']:.3f} "
        f"gnorm={metrics['pg_grad_norm']:.3f} lr={metrics['lr']:.2e} "
        f"R({metrics['reward_mean']:.3f}/{metrics['reward_std']:.3f}/{metrics['reward_min']:.3f}"
        f"/{metrics['reward_max']:.3f}) Adv_std={metrics['advantage_std']:.3f} "
        f"V/Ret={metrics['value_mean']:.3f}/{metrics['return_mean']:.3f}"
    )
    if "ep_return" in metrics:
        line += f" ep_return={metrics['ep_return']:.1f}"
    shares = [metrics[name] for name in metrics if name.startswith("action_replica_")]
    if shares:
        line += f" act={format_shares(shares)}"
    terms = [
        f"{name}={value:.4f}"
        for name, value in metrics.items()
        if name.endswith(REWARD_SUFFIXES) and value
    ]
    return f"{line} | {' '.join(terms)}" if terms else line
