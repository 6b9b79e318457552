"""Settings of one training of the small scheduler: learner, reward, cluster, temperature."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Run:
    """One training run: what is not said is the healthy setting."""

    name: str
    fault: str | None = None
    seed: int = 0
    decisions: int = 960
    # learner
    lr: float = 3e-3
    gamma: float = 0.95
    gae_lambda: float = 0.9
    clip_ratio: float = 0.15
    epochs: int = 6
    rollout_length: int = 16
    minibatch_size: int = 64
    entropy_coef: float = 0.01
    value_coef: float = 0.5
    max_grad_norm: float = 1.0
    target_kl: float = 0.02
    entropy_min: float = 0.3
    # reward: weighted sum of the absolute and the delta score, less the weighted imbalance
    qps: float = 3.0
    absolute_weight: float = 1.0
    delta_weight: float = 0.3
    balance_weight: float = 0.2
    delta_latency_weight: float = 1.0
    punishes_rises_only: bool = False
    latency_weight: float = 0.5
    throughput_target: float = 3.0
    latency_threshold: float = 6.0
    affinity_bonus: float = 0.0
    latency_lost_after: float = 1.0  # share of the run after which latency reads 0
    replica_lost_after: float = 1.0  # share of the run after which replica 2 serves no more
    # sampling temperature
    temperature_base: float = 1.0
    temperature_min: float = 0.5
    temperature_max: float = 2.0
    latency_sensitivity: float = 0.1
    pulse_interval: int = 0  # decisions between pulses; 0: none
    pulse_magnitude: float = 1.0
