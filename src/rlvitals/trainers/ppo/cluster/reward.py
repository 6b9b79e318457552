"""The reward of a decision: parts that have their sign and weight and add up to it, bit for bit.

Throughput is that of the last gap: requests finished in it times the arrival rate. Latency is
what the requests now in the cluster wait on average, by Little's law: their number over the
arrival rate. Both answer at once to what was decided; means over a lifetime fade.
"""

import numpy as np

from rlvitals.trainers.ppo.cluster.config import RewardConfig
from rlvitals.trainers.ppo.cluster.replicas import Bools, Floats
from rlvitals.trainers.ppo.cluster.signals import Signals

PARTS = (
    "absolute_score",
    "delta_score",
    "balance_penalty",
    "load_balance_penalty",
    "direct_imbalance_penalty",
    "extreme_imbalance_penalty",
    "logistic_penalty",
    "latency_threshold_penalty",
    "asymmetric_penalty",
    "temporal_trend_bonus",
    "tail_penalty",
    "rejection_penalty",
    "failure_penalty",
    "compression",  # what the logarithm takes off beyond the limit
)
SPAN = 4  # efficiencies of the last decisions: three differences
LEAST = 0.1  # of target and threshold: relative changes of less are not told apart
CROWDED = 0.8  # of all that wait: more at one replica is an extreme
EFFICIENT = 0.8  # less is penalised
MOST = 10.0  # efficiency is bounded: latency is near 0 in an empty cluster


class Reward:
    """The rewards of B clusters, and the moving averages that they compare with."""

    def __init__(self, config: RewardConfig, batch: int, failure_penalty: float) -> None:
        """Begin without a past."""
        self.config, self.failure_penalty = config, failure_penalty
        self.throughput_ema = np.zeros(batch)
        self.latency_ema = np.zeros(batch)
        self.last_throughput = np.zeros(batch)
        self.last_latency = np.zeros(batch)
        self.efficiency = np.zeros((batch, SPAN))  # the newest last
        self.decisions = np.zeros(batch, np.int64)

    def clear(self, clusters: Bools) -> None:
        """Forget the past of some clusters, [B]."""
        for array in vars(self).values():
            if isinstance(array, np.ndarray):
                array[clusters] = 0

    def __call__(self, signals: Signals) -> tuple[Floats, dict[str, Floats]]:
        """Return the rewards, [B], and their parts in the order of `PARTS`.

        Clusters that are not active get 0, and their past stays as it is.
        """
        target = self.config.throughput_target or signals.rate
        self._note_efficiency(signals, target)
        hybrid = self.config.mode == "hybrid"
        found = self._hybrid(signals, target) if hybrid else self._plain(signals, target)
        found |= self._penalties(signals)
        scale = np.where(signals.active, 1.0 / self.config.scale, 0.0)
        none = np.zeros(len(signals.rate))
        parts = {name: found[name] * scale if name in found else none for name in PARTS}
        raw = added(parts)
        parts["compression"] = compressed(raw, self.config.limit) - raw
        self._remember(signals)
        return added(parts), parts

    def _hybrid(self, signals: Signals, target: Floats | float) -> dict[str, Floats]:
        config, threshold = self.config, self.config.latency_threshold
        throughput, latency = signals.throughput, signals.latency
        absolute = throughput / target - config.alpha * latency / threshold
        ema = self.throughput_ema
        faster = (throughput - ema) / np.maximum(ema, LEAST * np.asarray(target))
        ema = self.latency_ema
        slower = (latency - ema) / np.maximum(ema, LEAST * threshold)
        delta = np.where(self.decisions > 0, config.beta * faster - config.gamma * slower, 0.0)
        # The sigmoid, in a form that cannot overflow.
        logistic = 0.5 * (1.0 + np.tanh((latency - threshold) / config.sigma / 2.0))
        deviation = signals.queue.std(axis=1) / signals.queue_limit
        waiting = signals.queue.sum(axis=1)
        # Fewer than one for each replica cannot be spread evenly.
        told = waiting >= signals.queue.shape[1]
        crowd = np.where(told, signals.queue.max(axis=1) / np.maximum(waiting, 1) - CROWDED, 0.0)
        lack = np.maximum(EFFICIENT - self.efficiency[:, -1], 0.0)
        known = self.decisions >= SPAN - 1
        slope = np.where(known, (self.efficiency[:, -1] - self.efficiency[:, 0]) / (SPAN - 1), 0.0)
        return {
            "absolute_score": config.absolute_weight * absolute,
            "delta_score": config.delta_weight * delta,
            "direct_imbalance_penalty": -config.imbalance_penalty * deviation,
            "extreme_imbalance_penalty": -config.extreme_imbalance_penalty
            * np.maximum(crowd, 0.0) ** 2,
            "logistic_penalty": -config.kappa * logistic,
            "asymmetric_penalty": -config.asymmetry_penalty * lack,
            "temporal_trend_bonus": config.trend_weight * slope,
        }

    def _plain(self, signals: Signals, target: Floats | float) -> dict[str, Floats]:
        """Return the parts of the modes instant (levels) and delta (their differences)."""
        config, threshold = self.config, self.config.latency_threshold
        level = signals.throughput / target - config.latency_weight * signals.latency / threshold
        name = "absolute_score"
        if config.mode == "delta":
            name = "delta_score"
            last = self.last_throughput / target
            last = last - config.latency_weight * self.last_latency / threshold
            level = np.where(self.decisions > 0, level - last, 0.0)
        excess = np.maximum(signals.latency / threshold - 1.0, 0.0)
        soft = -config.threshold_penalty * (1.0 - np.exp(-excess))
        return {name: level, "latency_threshold_penalty": soft}

    def _penalties(self, signals: Signals) -> dict[str, Floats]:
        """Return the parts that every mode has."""
        config, use = self.config, signals.utilisation
        # One added: few requests are not uneven because they cannot be divided.
        cv = signals.work.std(axis=1) / (signals.work.mean(axis=1) + 1.0)
        late = np.maximum(signals.p95 / config.latency_threshold - 1.0, 0.0)
        return {
            "balance_penalty": -config.balance_penalty * (use.max(axis=1) - use.min(axis=1)),
            "load_balance_penalty": -config.load_balance_penalty * (cv * np.exp(cv)),
            "tail_penalty": -config.tail_penalty * late,
            "rejection_penalty": -config.rejection_penalty * signals.rejected,
            "failure_penalty": -self.failure_penalty * signals.failed,
        }

    def _note_efficiency(self, signals: Signals, target: Floats | float) -> None:
        """Efficiency: throughput over its target, over latency over its threshold."""
        slowness = np.maximum(signals.latency / self.config.latency_threshold, 1e-9)
        now = np.minimum(signals.steady_throughput / target / slowness, MOST)
        moved = np.concatenate([self.efficiency[:, 1:], now[:, None]], axis=1)
        self.efficiency = np.where(signals.active[:, None], moved, self.efficiency)

    def _remember(self, signals: Signals) -> None:
        active, alpha = signals.active, self.config.ema_alpha
        throughput, latency = signals.throughput, signals.latency
        weight = np.where(active, np.where(self.decisions > 0, alpha, 1.0), 0.0)
        self.throughput_ema += weight * (throughput - self.throughput_ema)
        self.latency_ema += weight * (latency - self.latency_ema)
        self.last_throughput = np.where(active, throughput, self.last_throughput)
        self.last_latency = np.where(active, latency, self.last_latency)
        self.decisions += active


def added(parts: dict[str, Floats]) -> Floats:
    """Add the parts one after the other, in the order of `PARTS`: the same sum every time."""
    total = parts[PARTS[0]]
    for name in PARTS[1:]:
        total = total + parts[name]
    return total


def compressed(raw: Floats, limit: float) -> Floats:
    """Return the reward as it is within the limit, its logarithm beyond: no sign is lost."""
    beyond = np.log1p(np.maximum(np.abs(raw) - limit, 0.0))
    return np.where(np.abs(raw) > limit, np.sign(raw) * (limit + beyond), raw)
