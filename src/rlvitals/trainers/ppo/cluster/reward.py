"""The reward of a decision: signed and weighted parts that add up to it, bit for bit.

Throughput is that of the last gap: requests finished in it times the arrival rate. Latency is
what the requests now in the cluster wait on average, by Little's law: their number over the
arrival rate. Both answer at once to what was decided; means over a lifetime fade.
"""

import numpy as np

from rlvitals.trainers.ppo.cluster.config import RewardConfig
from rlvitals.trainers.ppo.cluster.replicas import Bools, Floats, Ints
from rlvitals.trainers.ppo.cluster.reward_inputs import Signals, deviation

REWARD_PARTS = (
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
    "action_balance_bonus",
    "tail_penalty",
    "rejection_penalty",
    "failure_penalty",
    "compression",  # what the logarithm takes off beyond the limit
)
SPREAD_DECISIONS = 50  # decisions whose spread over the replicas counts
EFFICIENCY_DECISIONS = 4  # efficiencies of the last decisions: three differences
MIN_RELATIVE_BASE = 0.1  # of target and threshold: the base of a relative change is not below it


class Reward:
    """The rewards of B clusters, and the moving averages that they compare with."""

    def __init__(self, config: RewardConfig, batch: int, failure_penalty: float) -> None:
        """Begin without a past."""
        self.config, self.failure_penalty = config, failure_penalty
        self.throughput_ema = np.zeros(batch)
        self.latency_ema = np.zeros(batch)
        self.last_throughput = np.zeros(batch)
        self.last_latency = np.zeros(batch)
        self.efficiency = np.zeros((batch, EFFICIENCY_DECISIONS))  # the newest last
        self.decisions = np.zeros(batch, np.int64)
        if config.action_balance:
            self.chosen = np.zeros(
                (batch, SPREAD_DECISIONS), np.int64
            )  # a ring: from 1, 0 is none yet

    def clear(self, clusters: Bools) -> None:
        """Forget the past of some clusters, [B]."""
        for array in vars(self).values():
            if isinstance(array, np.ndarray):
                array[clusters] = 0

    def __call__(self, signals: Signals) -> tuple[Floats, dict[str, Floats]]:
        """Return the rewards, [B], and their parts in the order of `PARTS`.

        Clusters that are not active get 0, and their past stays as it is. A part without weight
        is 0 and costs nothing.
        """
        target = self.config.throughput_target or signals.rate
        hybrid = self.config.mode == "hybrid"
        terms = self._hybrid(signals, target) if hybrid else self._plain(signals, target)
        terms |= self._penalties(signals)
        scale = np.where(signals.active, 1.0 / self.config.scale, 0.0)
        none = np.zeros(len(signals.rate))
        # 0.0 added: a penalty of nothing is 0, not -0.
        parts = {
            name: terms[name] * scale + 0.0 if name in terms else none for name in REWARD_PARTS
        }
        raw = sum_parts(parts)
        parts["compression"] = compress(raw, self.config.limit) - raw
        active, alpha = signals.active, self.config.ema_alpha
        throughput, latency = signals.throughput, signals.latency
        weight = np.where(active, np.where(self.decisions > 0, alpha, 1.0), 0.0)
        self.throughput_ema += weight * (throughput - self.throughput_ema)
        self.latency_ema += weight * (latency - self.latency_ema)
        self.last_throughput = np.where(active, throughput, self.last_throughput)
        self.last_latency = np.where(active, latency, self.last_latency)
        self.decisions += active
        return raw + parts["compression"], parts

    def _hybrid(self, signals: Signals, target: Floats | float) -> dict[str, Floats]:
        config, threshold, latency = self.config, self.config.latency_threshold, signals.latency
        absolute = signals.throughput / target - config.alpha * latency / threshold
        terms = {"absolute_score": config.absolute_weight * absolute}
        if config.delta_weight:
            terms["delta_score"] = config.delta_weight * self._delta(signals, target)
        if config.kappa:
            # The sigmoid, in a form that cannot overflow.
            logistic = 0.5 * (1.0 + np.tanh((latency - threshold) / config.sigma / 2.0))
            terms["logistic_penalty"] = -config.kappa * logistic
        if config.imbalance_penalty:
            uneven = deviation(signals.queue) / signals.queue_limit
            terms["direct_imbalance_penalty"] = -config.imbalance_penalty * uneven
        if config.extreme_imbalance_penalty:
            crowd = -config.extreme_imbalance_penalty * crowding(signals.queue) ** 2
            terms["extreme_imbalance_penalty"] = crowd
        if config.asymmetry_penalty or config.trend_weight:
            # Efficiency: throughput over its target, over latency over its threshold.
            slowness = np.maximum(signals.latency / self.config.latency_threshold, 1e-9)
            # Efficiency is bounded: latency is near 0 in an empty cluster.
            efficiency = np.minimum(signals.steady_throughput / target / slowness, 10.0)
            shifted = np.concatenate([self.efficiency[:, 1:], efficiency[:, None]], axis=1)
            self.efficiency = np.where(signals.active[:, None], shifted, self.efficiency)
            latest, oldest = self.efficiency[:, -1], self.efficiency[:, 0]
            lack = np.maximum(0.8 - latest, 0.0)
            terms["asymmetric_penalty"] = -config.asymmetry_penalty * lack
            slope = np.where(
                self.decisions >= EFFICIENCY_DECISIONS - 1,
                (latest - oldest) / (EFFICIENCY_DECISIONS - 1),
                0.0,
            )
            terms["temporal_trend_bonus"] = config.trend_weight * slope
        return terms

    def changes(self, signals: Signals) -> tuple[Floats, Floats]:
        """Return how throughput [requests/s] and latency [s] differ from the last decision's.

        0 at first; to be asked before the reward, which remembers the new ones.
        """
        has_previous = self.decisions > 0
        faster = np.where(has_previous, signals.throughput - self.last_throughput, 0.0)
        return faster, np.where(has_previous, signals.latency - self.last_latency, 0.0)

    def _delta(self, signals: Signals, target: Floats | float) -> Floats:
        """Return the change against the moving averages, as shares of them; 0 at first."""
        config, threshold = self.config, self.config.latency_threshold
        floor = MIN_RELATIVE_BASE * np.asarray(target)
        ema = self.throughput_ema
        faster = config.beta * (signals.throughput - ema) / np.maximum(ema, floor)
        ema = self.latency_ema
        slower = (
            config.gamma * (signals.latency - ema) / np.maximum(ema, MIN_RELATIVE_BASE * threshold)
        )
        return np.where(self.decisions > 0, faster - slower, 0.0)

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
        config = self.config
        terms: dict[str, Floats] = {}
        if config.balance_penalty:
            terms["balance_penalty"] = -config.balance_penalty * signals.gap
        if config.load_balance_penalty:
            # One added: few requests are not uneven because they cannot be divided.
            cv = deviation(signals.work) / (signals.work.mean(axis=1) + 1.0)
            terms["load_balance_penalty"] = -config.load_balance_penalty * (cv * np.exp(cv))
        if config.action_balance:
            # How evenly the last decisions are spread: entropy over its most, -1 to 1.
            rows, replicas = np.flatnonzero(signals.active), signals.queue.shape[1]
            self.chosen[rows, self.decisions[rows] % SPREAD_DECISIONS] = signals.chosen[rows] + 1
            counts = np.stack([(self.chosen == i + 1).sum(axis=1) for i in range(replicas)], axis=1)
            shares = counts / np.maximum(counts.sum(axis=1), 1)[:, None]
            entropy = -(shares * np.log(np.maximum(shares, 1e-12))).sum(axis=1)
            terms["action_balance_bonus"] = config.action_balance * np.asarray(
                2.0 * entropy / np.log(replicas) - 1.0
            )
        if config.tail_penalty:
            late = np.maximum(signals.p95 / config.latency_threshold - 1.0, 0.0)
            terms["tail_penalty"] = -config.tail_penalty * late
        terms["rejection_penalty"] = np.where(signals.rejected, -config.rejection_penalty, 0.0)
        terms["failure_penalty"] = np.where(signals.failed, -self.failure_penalty, 0.0)
        return terms


def sum_parts(parts: dict[str, Floats]) -> Floats:
    """Add the parts one after the other, in the order of `PARTS`: the same sum every time."""
    total = parts[REWARD_PARTS[0]]
    for name in REWARD_PARTS[1:]:
        total = total + parts[name]
    return total


def crowding(queue: Ints) -> Floats:
    """Return how far the fullest queue's share of all that wait is above 80 %, [B].

    Fewer requests than replicas cannot be spread evenly: 0.
    """
    waiting = queue.sum(axis=1)
    share = queue.max(axis=1) / np.maximum(waiting, 1)
    return np.where(waiting >= queue.shape[1], np.maximum(share - 0.8, 0.0), 0.0)


def compress(raw: Floats, limit: float) -> Floats:
    """Return the reward as it is within the limit, its logarithm beyond: no sign is lost."""
    beyond = np.log1p(np.maximum(np.abs(raw) - limit, 0.0))
    return np.where(np.abs(raw) > limit, np.sign(raw) * (limit + beyond), raw)
