"""A small simulated serving cluster, and its scheduler's sampling temperature."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from scheduler_run import Run

REPLICAS = 4
SPEEDS = (1.5, 1.1, 0.8, 0.6)  # requests per second that each replica completes
WINDOW = 12.0  # seconds over which throughput and latency are measured
QUEUE_LIMIT = 16  # requests that fill a replica's memory


class Cluster:
    """Four replicas, each a queue served in order. Time in seconds of simulation."""

    def __init__(self, run: Run, rng: np.random.Generator) -> None:
        self.run, self.rng = run, rng
        self.now = 0.0
        self.waiting: list[list[list[float]]] = [[] for _ in range(REPLICAS)]  # [arrival, work]
        self.finished: list[tuple[float, float]] = []  # (time, latency), the last WINDOW seconds
        self.throughput, self.latency = 0.0, 0.0
        self.throughput_ema, self.latency_ema = 0.0, 0.0
        self.last_replica = -1

    def observe(self) -> np.ndarray:
        """Queue lengths, each as a share of the replica's memory. Shape (4,)."""
        return np.array([len(queue) for queue in self.waiting], np.float32) / QUEUE_LIMIT

    def _serve(self, seconds: float, speeds: tuple[float, ...]) -> None:
        for queue, speed in zip(self.waiting, speeds, strict=True):
            free = self.now
            while queue:
                arrival, work = queue[0]
                needed = work / speed
                if free + needed > self.now + seconds:
                    queue[0][1] = work - (self.now + seconds - free) * speed
                    break
                free += needed
                queue.pop(0)
                self.finished.append((free, free - arrival))
        self.now += seconds
        self.finished = [request for request in self.finished if request[0] > self.now - WINDOW]

    def route(self, replica: int, progress: float) -> dict[str, float]:
        """Send one request to `replica`, serve until the next arrives, and answer the reward."""
        run, queue = self.run, self.waiting[replica]
        rejected = len(queue) >= QUEUE_LIMIT
        if not rejected:
            queue.append([self.now, float(self.rng.gamma(4.0, 0.25))])
        speeds = (1.5, 1.1, 1e-9, 0.6) if progress >= run.replica_lost_after else SPEEDS
        self._serve(float(self.rng.exponential(1.0 / run.qps)), speeds)
        before = self.throughput, self.latency
        self.throughput = len(self.finished) / WINDOW
        waits = [latency for _, latency in self.finished]
        is_latency_lost = progress >= run.latency_lost_after
        self.latency = 0.0 if is_latency_lost or not waits else float(np.mean(waits))
        delta_throughput = self.throughput - before[0]
        delta_latency = self.latency - before[1]
        self.throughput_ema += 0.1 * (self.throughput - self.throughput_ema)
        self.latency_ema += 0.1 * (self.latency - self.latency_ema)
        load = self.observe()
        absolute = self.throughput / run.throughput_target
        absolute -= run.latency_weight * min(self.latency / run.latency_threshold, 3.0)
        risen = self.latency - self.latency_ema
        risen = max(risen, 0.0) if run.punishes_rises_only else risen
        delta = (self.throughput - self.throughput_ema) / run.throughput_target
        delta -= run.delta_latency_weight * risen / run.latency_threshold
        imbalance = float(load.max() - load.min())
        affinity = run.affinity_bonus * (replica == self.last_replica)
        self.last_replica = replica
        reward = run.absolute_weight * absolute + run.delta_weight * delta
        reward += affinity - run.balance_weight * imbalance
        return {
            "reward": reward,
            "throughput": self.throughput,
            "latency": self.latency,
            "delta_throughput": delta_throughput,
            "delta_latency": delta_latency,
            "throughput_ema": self.throughput_ema,
            "latency_ema": self.latency_ema,
            "absolute_score": absolute,
            "delta_score": delta,
            "balance_penalty": imbalance,
            "queue_length": float(len(queue)),
        }


class Thermostat:
    """Sampling temperature: cooler under latency pressure, hotter in pulses of three decisions."""

    def __init__(self, run: Run) -> None:
        self.run, self.step, self.pressure, self.left = run, 0, 0.0, 0

    def next(self, latency: float) -> dict[str, float | bool]:
        run = self.run
        excess = max(0.0, latency / run.latency_threshold - 1.0)
        self.pressure += 0.1 * (excess - self.pressure)
        self.step += 1
        self.left = max(0, self.left - 1)
        if run.pulse_interval and self.step % run.pulse_interval == 0:
            self.left = 3
        value = run.temperature_base - run.latency_sensitivity * self.pressure
        value += run.pulse_magnitude * run.temperature_base * (self.left > 0)
        top = run.temperature_max * (2.0 if self.left > 0 else 1.0)
        return {
            "temp_current_temperature": min(max(value, run.temperature_min), top),
            "temp_is_pulsing": self.left > 0,
            "temp_pulse_remaining": self.left,
            "temp_latency_pressure_ema": self.pressure,
        }
