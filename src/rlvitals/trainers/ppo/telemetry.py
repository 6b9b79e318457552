"""What a training tells: the numbers of an update, its log lines, and TensorBoard's tags."""

import logging
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from rlvitals.trainers.ppo.config import Config
from rlvitals.trainers.ppo.ppo import PPO
from rlvitals.trainers.ppo.rollout import Rollout

LOG = "ppo_training.log"
Numbers = dict[str, float]

# How TensorBoard calls a number; any other keeps its own name.
TAGS = {
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
    "absolute_score": "Reward/AbsoluteScore",
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
}
# What the lines say already, or what is only of use in a plot.
PARTS_LEFT_OUT = ("reward", "qps", "throughput", "latency")


def numbers(ppo: PPO, rollout: Rollout, stats: Mapping[str, float]) -> Numbers:
    """Return all numbers of one update, under the names they are logged by."""
    found = dict(stats) | dict(rollout.facts)
    if rollout.episodes:
        returns, lengths = zip(*rollout.episodes, strict=True)
        found |= {
            "ep_return": float(np.mean(returns)), "ep_length": float(np.mean(lengths)),
            "episodes": float(len(returns)),
        }  # fmt: skip
    if not ppo.envs.continuous:
        found |= action_shares(rollout, ppo.envs.actions)
    found["temperature"] = float(rollout.temperatures.mean())
    told = getattr(ppo.temperature, "told", None)
    if told is not None:
        found |= {f"temp_{name}": value for name, value in told().items()}
    return found | normaliser_numbers(ppo) | {"update": float(ppo.at.updates)}


def action_shares(rollout: Rollout, actions: int) -> Numbers:
    """Return how often each action was taken, as a share and as a count."""
    counts = np.bincount(rollout.actions[rollout.valid].reshape(-1), minlength=actions)
    shares = counts / max(int(counts.sum()), 1)
    return {f"action_replica_{i}": float(share) for i, share in enumerate(shares)} | {
        f"action_count_{i}": float(count) for i, count in enumerate(counts)
    }


def normaliser_numbers(ppo: PPO) -> Numbers:
    """Return what the normalisers hold."""
    seen, paid = ppo.observe.moments, ppo.scale.moments
    return {
        "obs_norm_count": seen.count,
        "obs_norm_mean": float(np.abs(seen.mean).mean()),
        "obs_norm_std": float(np.sqrt(seen.var).mean()),
        "reward_norm_count": paid.count,
        "reward_norm_std": float(np.sqrt(paid.var)),
    }


def logger(folder: Path, *, verbose: bool) -> logging.Logger:
    """Return what writes lines to the console and, all of them, to `ppo_training.log`."""
    made = logging.getLogger(f"rlvitals.ppo.{id(folder)}")
    made.setLevel(logging.DEBUG)
    made.propagate = False
    console = logging.StreamHandler(sys.stdout)
    console.setLevel(logging.DEBUG if verbose else logging.INFO)
    console.setFormatter(logging.Formatter("%(message)s"))
    file = logging.FileHandler(folder / LOG, encoding="utf-8")
    file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    for handler in (console, file):
        made.addHandler(handler)
    return made


def close(log: logging.Logger) -> None:
    """Close what a logger writes to."""
    for handler in list(log.handlers):
        log.removeHandler(handler)
        handler.close()


def init_line(config: Config, ppo: PPO) -> str:
    """Say what is trained, and how."""
    own = config.ppo_config
    return (
        f"[PPO:init] env={config.training.env} x{ppo.envs.count} | "
        f"h={'x'.join(map(str, config.network.hidden_sizes))} | lr={own.learning_rate:.2e} "
        f"gamma={own.gamma:.3f} lam={own.gae_lambda:.3f} clip={own.clip_ratio:.2f} "
        f"ent={own.entropy_coef:.3f} vf={own.value_coef:.3f} epochs={own.epochs} "
        f"roll={own.rollout_length} mb={own.minibatch_size} gnorm={own.max_grad_norm:.2f}"
    )


def rollout_line(step: int, done: int, length: int, reward: float) -> str:
    """Say how far a rollout is."""
    return f"[PPO:rollout] step={step} buf_ptr={done}/{length} current_r={reward:.4f}"


def update_line(step: int, told: Mapping[str, float], facts: Mapping[str, float]) -> str:
    """Say what an update did; `facts` are the means of what the environments told."""
    line = (
        f"[PPO:update] step={step} pi={told['pi_loss']:.6f} vf={told['vf_loss']:.6f} "
        f"ent={told['entropy']:.4f} kl={told['approx_kl']:.5f} clip={told['clipfrac']:.3f} "
        f"ev={told['explained_var']:.3f} gnorm={told['pg_grad_norm']:.3f} lr={told['lr']:.2e} "
        f"R({told['reward_mean']:.3f}/{told['reward_std']:.3f}/{told['reward_min']:.3f}"
        f"/{told['reward_max']:.3f})"
    )
    if "ep_return" in told:
        line += f" ep_return={told['ep_return']:.1f}"
    shares = [told[name] for name in told if name.startswith("action_replica_")]
    if shares:
        line += f" act=[{', '.join(f'{share:.2f}' for share in shares)}]"
    parts = [
        f"{name}={value:.4f}"
        for name, value in facts.items()
        if name.endswith(("_score", "_penalty", "_bonus")) and value
    ]
    return f"{line} | {' '.join(parts)}" if parts else line
