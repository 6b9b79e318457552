"""Observations of a scheduler: features of each replica, then of the cluster.

Each has its bounds, which the space declares and which values are cut at. Windows slide: nothing is
a mean over a lifetime. Output lengths are not seen: no router knows them.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rlvitals.trainers.ppo.cluster.config import ClusterConfig
from rlvitals.trainers.ppo.cluster.replicas import Bools, Floats, Ints, Replicas
from rlvitals.trainers.ppo.cluster.reward_inputs import deviation
from rlvitals.trainers.ppo.cluster.windows import Windows

TREND_DECISIONS = 5  # decisions that the trend is taken over
LONG_WAIT_SECONDS = 10.0  # s, the wait that counts as 1


class Feature(NamedTuple):
    """A feature of the observation."""

    name: str
    low: float
    high: float
    meaning: str


REPLICA_FEATURES = (
    Feature("queue_length", 0, 1, "requests that wait / queue limit"),
    Feature("running", 0, 1, "requests in the batch / max_batch"),
    Feature("kv_used", 0, 1, "tokens in the KV cache / its capacity"),
    Feature("kv_reserved", 0, 1, "tokens reserved for the batch / capacity"),
    Feature("prompt_tokens", 0, 16, "prompt tokens not yet prefilled / KV capacity"),
    Feature("work", 0, 16, "outstanding requests / (max_batch * speed)"),
    Feature("speed", 0, 1, "speed / that of the fastest replica"),
    Feature("oldest_wait", 0, 1, "ln(1 + s) / ln(1 + 10) of the oldest that waits"),
    Feature("mean_wait", 0, 1, "sqrt(s / 10), mean over those that wait"),
    Feature("queue_urgency", 0, 4, "seconds waited by all / (10 s * max_batch)"),
    Feature("load_ema", 0, 16, "moving average (0.3) of outstanding / max_batch"),
    Feature("load_delta", -4, 4, "change of outstanding / max_batch since the last decision"),
    Feature("kv_delta", -1, 1, "change of kv_used since the last decision"),
    Feature("load_trend", -4, 4, "least-squares slope of outstanding / max_batch, last 5"),
    Feature("load_deviation", 0, 4, "its standard deviation, last 5"),
    Feature("load_peak", 0, 16, "its highest, last 5"),
    Feature("load_low", 0, 16, "its lowest, last 5"),
    Feature("time_since_peak", 0, 1, "decisions since that peak / 4"),
)
GLOBAL_FEATURES = (
    Feature("request_prompt", 0, 1, "prompt tokens of the request to route / max_prompt"),
    Feature("queue_total", 0, 1, "requests that wait / (queue limit * replicas)"),
    Feature("queue_total_delta", -1, 1, "its change since the last decision"),
    Feature("load_balance", 0, 1, "1 / (1 + coefficient of variation of work)"),
    Feature("throughput", 0, 4, "finished requests/s in the window / arrival rate"),
    Feature("latency", 0, 10, "mean latency in the window / its threshold"),
    Feature("latency_p95", 0, 10, "95th percentile in the window / threshold"),
    Feature("completion_rate", 0, 2, "finished / arrived in the window"),
    Feature("qps", 0, 4, "arrivals/s in the window / arrival rate"),
    Feature("qps_recent", 0, 4, "the same, moving average (0.2) of the gaps"),
    Feature("qps_trend", -4, 4, "qps_recent - qps"),
    Feature("burstiness", 0, 4, "coefficient of variation of the window's gaps"),
)
CLUSTER_FEATURES = tuple(feature.name for feature in GLOBAL_FEATURES)


def of_replica(config: ClusterConfig) -> tuple[Feature, ...]:
    """Return the features of a replica: its own, those of its oldest requests, `up`."""
    waiting = (
        feature._replace(name=f"request_{i}_{feature.name}")
        for i in range(config.queued_requests)
        for feature in (
            Feature("age", 0, 1, "ln(1 + s) / ln(1 + 10) since it arrived"),
            Feature("prompt", 0, 1, "its prompt tokens / max_prompt"),
        )
    )
    fails = config.failures.mean_time_to_failure > 0
    up_feature = Feature("up", 0, 1, "1 where it is up, 0 where it is down")  # where replicas fail
    return (*REPLICA_FEATURES, *waiting, *([up_feature] if fails else []))


def bounds(config: ClusterConfig) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the lowest and the highest observation, each [N * F + G]."""
    features = of_replica(config) * config.replicas + GLOBAL_FEATURES
    low, high = [feature.low for feature in features], [feature.high for feature in features]
    return np.array(low, np.float32), np.array(high, np.float32)


class Observer:
    """Observes B clusters; keeps what the last observations were for trends and changes."""

    def __init__(self, config: ClusterConfig, batch: int) -> None:
        """Begin without a past."""
        shape = (batch, config.replicas)
        self.config = config
        self.low, self.high = bounds(config)
        self.loads = np.zeros((TREND_DECISIONS, *shape))  # outstanding / max_batch, the newest last
        self.queued = np.zeros((2, batch))  # queue_total before, and now
        self.kv_used = np.zeros((2, *shape))  # before, and now
        self.load_ema = np.zeros(shape)

    def clear(self, clusters: Bools) -> None:
        """Forget the past of some clusters, [B]."""
        self.loads[:, clusters] = 0
        self.queued[:, clusters] = 0
        self.kv_used[:, clusters] = 0
        self.load_ema[clusters] = 0

    def note(self, replicas: Replicas, clusters: Bools) -> None:
        """Take note of some clusters, [B], for trends: once after each decision."""
        loads, queued, used, columns = self.loads, self.queued, self.kv_used, clusters[:, None]
        load = replicas.outstanding / self.config.max_batch
        np.copyto(loads[:-1], loads[1:], where=columns)
        np.copyto(loads[-1], load, where=columns)
        np.copyto(used[0], used[1], where=columns)
        np.copyto(used[1], replicas.cached / self.config.kv_capacity, where=columns)
        np.copyto(queued[0], queued[1], where=clusters)
        total = replicas.size.sum(axis=1) / (self.config.queue_limit * self.config.replicas)
        np.copyto(queued[1], total, where=clusters)
        load_ema = self.load_ema + 0.3 * (load - self.load_ema)
        np.copyto(self.load_ema, load_ema, where=columns)

    def __call__(  # noqa: PLR0913, PLR0917 - all that there is to see
        self,
        replicas: Replicas,
        windows: Windows,
        time_s: Floats,
        prompt: Ints,
        speeds: Floats,
        rate: Floats,
        up: Bools | None = None,
    ) -> NDArray[np.float32]:
        """Return the observations, [B, N * F + G] in float32.

        `up` is [B, N], None where no replica fails.
        """
        replica_columns = self._replicas(replicas, time_s, speeds)
        if up is not None:
            replica_columns.append(up.astype(np.float64))
        cluster_columns = self._cluster(replicas, windows, prompt, speeds, rate)
        batch = len(time_s)
        obs = np.concatenate(
            [np.stack(replica_columns, axis=2).reshape(batch, -1), *cluster_columns], axis=1
        )
        return np.asarray(np.clip(obs, self.low, self.high), np.float32)

    def _replicas(self, replicas: Replicas, time_s: Floats, speeds: Floats) -> list[Floats]:
        config = self.config
        load = self.loads[-1]
        slot = *np.indices(speeds.shape, sparse=True), replicas.head
        waits = replicas.size > 0
        oldest = np.where(waits, time_s[:, None] - replicas.queue_born[slot], 0.0)
        waited = replicas.size * time_s[:, None] - replicas.waiting_born
        waited = np.maximum(waited, 0.0)  # of rounding
        mean = waited / np.maximum(replicas.size, 1)
        loads = self.loads
        steps = np.arange(TREND_DECISIONS) - (TREND_DECISIONS - 1) / 2
        slope = np.tensordot(steps / (steps * steps).sum(), loads, axes=1)
        deviations = loads - loads.sum(axis=0) / TREND_DECISIONS
        spread = np.sqrt((deviations * deviations).sum(axis=0) / TREND_DECISIONS)
        peak_age = loads[::-1].argmax(axis=0) / (TREND_DECISIONS - 1)
        return [
            replicas.size / config.queue_limit,
            replicas.running / config.max_batch,
            self.kv_used[1],
            replicas.reserved / config.kv_capacity,
            replicas.prompts_left / config.kv_capacity,
            load / speeds,
            speeds / max(config.all_speeds),
            np.log1p(oldest) / np.log1p(LONG_WAIT_SECONDS),
            np.sqrt(mean / LONG_WAIT_SECONDS),
            waited / (LONG_WAIT_SECONDS * config.max_batch),
            self.load_ema,
            load - self.loads[-2],
            self.kv_used[1] - self.kv_used[0],
            slope,
            spread,
            loads.max(axis=0),
            loads.min(axis=0),
            peak_age,
            *self._requests(replicas, time_s),
        ]

    def _requests(self, replicas: Replicas, time_s: Floats) -> list[Floats]:
        """Return age and prompt of the oldest that wait at each replica; 0 where none does."""
        count = self.config.queued_requests
        if not count:
            return []
        nth = np.arange(count)
        slots = (replicas.head[..., None] + nth) % self.config.queue_limit
        is_waiting = nth < replicas.size[..., None]
        born = np.take_along_axis(replicas.queue_born, slots, axis=2)
        age = np.log1p(np.where(is_waiting, time_s[:, None, None] - born, 0.0)) / np.log1p(
            LONG_WAIT_SECONDS
        )
        prompt = np.take_along_axis(replicas.queue_prompt, slots, axis=2) / self.config.max_prompt
        prompt = np.where(is_waiting, prompt, 0.0)
        return [column[..., i] for i in range(count) for column in (age, prompt)]

    def _cluster(
        self, replicas: Replicas, windows: Windows, prompt: Ints, speeds: Floats, rate: Floats
    ) -> list[Floats]:
        config, threshold = self.config, self.config.reward.latency_threshold
        work = replicas.outstanding / speeds
        variation = deviation(work) / np.maximum(work.mean(axis=1), 1e-9)
        summary = windows.look()
        arrived, finished = summary.arrived, summary.finished
        recent = np.where(windows.decisions > 0, 1.0 / np.maximum(windows.recent_gap, 1e-9), rate)
        qps = np.where(windows.decisions > 0, arrived, rate)
        columns = (
            prompt / config.max_prompt,
            self.queued[1],
            self.queued[1] - self.queued[0],
            1.0 / (1.0 + variation),
            finished / rate,
            summary.latency / threshold,
            summary.p95 / threshold,
            np.where(windows.decisions > 0, finished / np.maximum(arrived, 1e-9), 0.0),
            qps / rate,
            recent / rate,
            (recent - qps) / rate,
            summary.burstiness,
        )
        return [column[:, None] for column in columns]
