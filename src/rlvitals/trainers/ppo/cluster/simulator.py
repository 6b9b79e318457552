"""Simulate a batch of clusters: route one request in each, advance to the next arrival."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import rlvitals
from rlvitals.trainers.ppo.cluster.arrivals import Arrivals
from rlvitals.trainers.ppo.cluster.backends import advance_of, resolve_backend
from rlvitals.trainers.ppo.cluster.config import ClusterConfig
from rlvitals.trainers.ppo.cluster.failures import Failures, send_again
from rlvitals.trainers.ppo.cluster.observation import Observer
from rlvitals.trainers.ppo.cluster.replicas import (
    Bools,
    Finished,
    Floats,
    Ints,
    Replicas,
    clear,
    costs,
    idle_replicas,
    least_work,
    route,
)
from rlvitals.trainers.ppo.cluster.reward import Reward
from rlvitals.trainers.ppo.cluster.reward_inputs import Signals
from rlvitals.trainers.ppo.cluster.windows import Windows


class Outcome(NamedTuple):
    """The outcome of a decision in each of B clusters."""

    reward: Floats
    terminated: Bools
    truncated: Bools
    info: dict[str, NDArray[Any]]


class Cluster:
    """B clusters of N replicas. Random numbers come from the generator that each call is given."""

    def __init__(self, config: ClusterConfig, batch: int = 1) -> None:
        """Begin with idle clusters; `reset` before the first step. Raises VitalsError."""
        self.config, self.batch = config, batch
        self.backend = resolve_backend(config.backend)
        self.costs = costs(config)
        self.arrivals = Arrivals(config, batch)
        self.replicas = idle_replicas(batch, config)
        self.windows = Windows(batch, config.window)
        self.reward = Reward(config.reward, batch, config.safety.failure_penalty)
        self.observer = Observer(config, batch)
        fails = config.failures.mean_time_to_failure > 0
        shape = (batch, config.replicas)
        self.failures = Failures(config.failures, shape) if fails else None
        self.speeds = np.tile(np.array(config.all_speeds), (batch, 1))
        self.now = np.zeros(batch)  # s
        self.prompt = np.zeros(batch, np.int64)  # tokens of the request to route
        self.output = np.zeros(batch, np.int64)
        self.age = np.zeros(batch, np.int64)  # decisions of the episode
        self.decisions = 0  # of all clusters, ever: the curriculum's clock
        self.finished = Finished(np.zeros(0, np.int64), np.zeros(0))  # in the last step

    @property
    def up(self) -> Bools:
        """The replicas that are up, [B, N]."""
        if self.failures is None:
            return np.ones((self.batch, self.config.replicas), np.bool_)
        return self.failures.up

    @property
    def stage(self) -> float:
        """Progress of the curriculum, from 0 to 1; 1 if there is none."""
        decisions = self.config.curriculum.decisions
        return min(self.decisions / decisions, 1.0) if decisions else 1.0

    def reset(self, generator: np.random.Generator, clusters: Bools | None = None) -> None:
        """Begin an episode in the given clusters, [B]; in all where none are given."""
        mask = np.ones(self.batch, np.bool_) if clusters is None else clusters
        clear(self.replicas, mask)
        for component in (self.windows, self.reward, self.observer):
            component.clear(mask)
        self.now[mask], self.age[mask] = 0, 0
        stage, curriculum = self.stage, self.config.curriculum
        load = curriculum.start_load + (1 - curriculum.start_load) * stage
        spread = curriculum.start_heterogeneity + (1 - curriculum.start_heterogeneity) * stage
        speeds = np.array(self.config.all_speeds)
        if stage < 1:
            speeds = speeds.mean() + spread * (speeds - speeds.mean())
        full = self.arrivals.full_rate
        self.arrivals.rate[mask] = full if stage >= 1 else load * full
        self.speeds[mask] = speeds
        self.arrivals.begin(generator, mask)
        if self.failures is not None:
            self.failures.begin(generator, mask)
        self._next_request(generator, mask)

    def step(
        self, actions: Ints, generator: np.random.Generator, active: Bools | None = None
    ) -> Outcome:
        """Route each active cluster's request to the replica chosen, and run on to the next.

        Raises UsageError for a replica that there is not.
        """
        if active is None:
            active = np.ones(self.batch, np.bool_)
        targets, overridden = self._safe(np.asarray(actions, np.int64))
        rows = np.flatnonzero(active)
        rejected = np.zeros(self.batch, np.bool_)
        rejected[rows] = route(
            self.replicas,
            rows,
            targets[rows],
            self.now[rows],
            self.prompt[rows],
            self.output[rows],
        )
        gap = np.where(active, self.arrivals.gaps(generator), 0.0)
        self.now += gap
        advance = advance_of(self.backend)
        self.finished = advance(self.replicas, self.costs, self.now, self.speeds)
        finished_counts = self.windows.add(self.finished, gap, active)
        failure_info = self._fail(generator, active)
        self.observer.note(self.replicas, active)
        self._next_request(generator, active)
        self.age += active
        self.decisions += len(rows)
        signals = self._signals(targets, finished_counts, rejected, active)
        faster, slower = self.reward.changes(signals)
        reward, parts = self.reward(signals)
        info = {"replica": targets, "overridden": overridden & active, **parts}
        info |= {"delta_throughput": faster, "delta_latency": slower, **failure_info}
        truncated = active & (self.age >= self.config.horizon) & ~signals.failed
        return Outcome(
            reward, signals.failed, truncated, self._info(signals, info, finished_counts)
        )

    def observe(self) -> NDArray[np.float32]:
        """Return what a scheduler sees, [B, N * F + G]."""
        up = None if self.failures is None else self.failures.up
        return self.observer(
            self.replicas, self.windows, self.now, self.prompt, self.speeds, self.arrivals.rate, up
        )

    def state_dict(self) -> dict[str, Any]:
        """Return all that changes, but the generator: arrays by their names, copied."""
        state = {name: array.copy() for name, array in self._arrays().items()}
        return {**state, "decisions": self.decisions}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put a state back. Raises ValueError where it is that of another cluster."""
        arrays = self._arrays()
        if {*arrays, "decisions"} != set(state):
            raise ValueError(f"other parts: {sorted({*arrays, 'decisions'} ^ set(state))}")
        for name, array in arrays.items():
            if array.shape != state[name].shape:
                raise ValueError(f"{name}: shape {state[name].shape} does not fit {array.shape}")
            array[...] = state[name]
        self.decisions = int(state["decisions"])
        self.windows.seen = None

    def _arrays(self) -> dict[str, NDArray[Any]]:
        arrays = dict(zip(Replicas._fields, self.replicas, strict=True))
        components = [self, self.arrivals, self.windows, self.reward, self.observer]
        if self.failures is not None:
            components.append(self.failures)
        for component in components:
            kind = type(component).__name__.lower()
            for name, value in vars(component).items():
                if isinstance(value, np.ndarray):
                    arrays[f"{kind}.{name}"] = value
        return arrays

    def _safe(self, targets: Ints) -> tuple[Ints, Bools]:
        """Return the replicas to use, and where they are not those that were chosen."""
        count = self.config.replicas
        if targets.shape != (self.batch,) or targets.min() < 0 or targets.max() >= count:
            problem = f"an action is no replica: {targets!r}"
            hint = f"{self.batch} numbers from 0 to {count - 1}"
            raise rlvitals.UsageError(problem, where="Cluster.step", hint=hint)
        limit = self.config.safety.queue_limit
        if not limit and self.failures is None:
            return targets, np.zeros(self.batch, np.bool_)
        usable = self.up
        if limit:
            below = usable & (self.replicas.size < limit)
            usable = np.where(np.any(below, axis=1, keepdims=True), below, usable)
        is_overridden = ~usable[np.arange(self.batch), targets]
        return np.where(
            is_overridden, least_work(self.replicas, self.speeds, usable), targets
        ), is_overridden

    def _fail(self, generator: np.random.Generator, active: Bools) -> dict[str, NDArray[Any]]:
        """Apply failures and returns up to now; return their entries of `info`."""
        if self.failures is None:
            return {}
        failed = self.failures.advance(self.now, generator, active)
        up = self.failures.up
        resent, lost_counts = send_again(self.replicas, failed, up, self.speeds, self.now)
        return {"replicas_up": up.sum(axis=1), "sent_again": resent, "lost": lost_counts}

    def _next_request(self, generator: np.random.Generator, clusters: Bools) -> None:
        prompt, output = self.arrivals.lengths(generator)
        self.prompt = np.where(clusters, prompt, self.prompt)
        self.output = np.where(clusters, output, self.output)

    def _signals(
        self, targets: Ints, finished_counts: Ints, rejected: Bools, active: Bools
    ) -> Signals:
        replicas, rate, windows = self.replicas, self.arrivals.rate, self.windows
        outstanding, limit = replicas.outstanding, self.config.safety.max_latency
        cached = self._fill_missing(replicas.cached.astype(np.float64))
        failed = np.zeros(self.batch, np.bool_)
        if limit:
            failed = active & (windows.look().latency > limit)
        return Signals(
            throughput=finished_counts * rate,
            steady_throughput=windows.look().finished,
            latency=outstanding.sum(axis=1) / rate,
            p95=windows.look().p95,
            rate=rate,
            chosen=targets,
            gap=np.ptp(cached, axis=1) / self.config.kv_capacity,
            work=self._fill_missing(outstanding / self.speeds),
            queue=replicas.size,
            queue_limit=self.config.queue_limit,
            rejected=rejected,
            failed=failed,
            active=active,
        )

    def _fill_missing(self, values: Floats) -> Floats:
        """Return values of replicas, [B, N], with the mean of the others for those that are down.

        A policy is not penalised for sending nothing to a replica that is down.
        """
        if self.failures is None or self.failures.up.all():
            return values
        up = self.failures.up
        mean = (values * up).sum(axis=1) / up.sum(axis=1)
        return np.where(up, values, mean[:, None])

    def _info(
        self, signals: Signals, info: dict[str, NDArray[Any]], finished_counts: Ints
    ) -> dict[str, NDArray[Any]]:
        summary, limit = self.windows.look(), self.config.reward.latency_threshold
        return {
            **info,
            "throughput": summary.finished,
            "latency": summary.latency,
            "latency_p90": summary.p90,
            "latency_p95": summary.p95,
            "latency_p99": summary.p99,
            "tail_latency_samples": np.minimum(self.windows.finished, self.windows.length),
            "tail_latency_violations": (self.windows.latencies > limit).sum(axis=1),
            "estimated_throughput": signals.throughput,
            "estimated_latency": signals.latency,
            "throughput_ema": self.reward.throughput_ema.copy(),
            "latency_ema": self.reward.latency_ema.copy(),
            "qps": summary.arrived,
            "target_qps": signals.rate.copy(),
            "finished": finished_counts,
            "rejected": signals.rejected,
            "failed": signals.failed,
            "queue": signals.queue.sum(axis=1),
            "queue_lengths": signals.queue.copy(),
            "utilisation": self.replicas.cached / self.config.kv_capacity,
            "utilisation_gap": signals.gap,
            "curriculum_stage": np.full(self.batch, self.stage),
        }
