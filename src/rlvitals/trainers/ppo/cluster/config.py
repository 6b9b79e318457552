"""Settings of a cluster, its requests and its reward, with units and bounds."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from math import inf
from typing import Any

from rlvitals import UsageError
from rlvitals.lab import option
from rlvitals.trainers import schema

SCHEDULERS = ("random", "round_robin", "lor", "lor/speed", "tokens/speed")  # the baselines


@dataclass(frozen=True, slots=True)
class RewardConfig:
    """The reward's weights; every part is divided by `scale`."""

    mode: str = option(
        "hybrid", "levels, their changes, or both", choices=("instant", "delta", "hybrid")
    )
    absolute_weight: float = option(0.6, "of throughput and latency as they are (hybrid)", item="W")
    delta_weight: float = option(0.05, "of their change against their average (hybrid)", item="W")
    alpha: float = option(1.5, "of latency within the absolute score", item="W")
    beta: float = option(0.0, "of throughput's relative change in the delta score", item="W")
    gamma: float = option(0.6, "of latency's relative change in the delta score", item="W")
    latency_weight: float = option(1.0, "of latency over its threshold (instant, delta)", item="W")
    ema_alpha: float = option(0.2, "weight of the newest value in the averages", item="SHARE")
    throughput_target: float = option(0.0, "requests/s (0: those that arrive)", item="QPS")
    latency_threshold: float = option(4.0, "seconds of latency that count as 1", item="SECONDS")
    kappa: float = option(0.0, "of the logistic penalty about the threshold (hybrid)", item="W")
    sigma: float = option(1.0, "width of the logistic", item="SECONDS")
    threshold_penalty: float = option(
        0.5, "most of the soft penalty above the threshold (instant, delta)", item="W"
    )
    balance_penalty: float = option(
        0.1, "of the gap between the fullest KV cache and the emptiest", item="W"
    )
    load_balance_penalty: float = option(
        0.3, "of cv * exp(cv) of outstanding requests over speed", item="W"
    )
    imbalance_penalty: float = option(
        0.0, "of the queues' standard deviation over the queue limit (hybrid)", item="W"
    )
    extreme_imbalance_penalty: float = option(
        0.0, "of one replica with more than 80 % of all that wait, squared (hybrid)", item="W"
    )
    asymmetry_penalty: float = option(0.0, "of efficiency below 80 % (hybrid)", item="W")
    trend_weight: float = option(0.0, "of efficiency's slope over three decisions", item="W")
    action_balance: float = option(
        0.0, "of how evenly the last 50 decisions are spread: 1 over all, -1 on one", item="W"
    )
    tail_penalty: float = option(0.0, "of p95 latency above the threshold", item="W")
    rejection_penalty: float = option(3.0, "of a request that is refused", item="W")
    scale: float = option(1.2, "what every part is divided by", item="X")
    limit: float = option(4.0, "beyond it the reward grows with the logarithm", item="X")

    def __post_init__(self) -> None:
        """Check what a table of types cannot. Raises UsageError."""
        weights = [setting.name for setting in fields(self) if setting.metadata["item"] == "W"]
        _check_range(self, 0, inf, *weights, "throughput_target")
        _check_range(self, 1e-6, inf, "latency_threshold", "sigma", "scale", "limit")
        _check_range(self, 1e-6, 1, "ema_alpha")
        _check_choice(self, "mode")


@dataclass(frozen=True, slots=True)
class CurriculumConfig:
    """Easy at first: load and differences of speed grow straight; an episode keeps its stage."""

    decisions: int = option(0, "until all is as hard as it is (0: from the start)", item="N")
    start_load: float = option(0.5, "times the full load at first", item="X")
    start_heterogeneity: float = option(
        0.0, "differences of speed at first: 0 none, 1 all", item="SHARE"
    )

    def __post_init__(self) -> None:
        """Check what a table of types cannot. Raises UsageError."""
        _check_range(self, 0, inf, "decisions")
        _check_range(self, 0.01, 10, "start_load")
        _check_range(self, 0, 1, "start_heterogeneity")


@dataclass(frozen=True, slots=True)
class SafetyConfig:
    """Limits that no policy may overstep."""

    queue_limit: int = option(
        0, "a replica with so many waiting gets no more while others can (0: off)", item="N"
    )
    max_latency: float = option(
        0.0, "mean latency of the window at which the episode ends (0: never)", item="SECONDS"
    )
    failure_penalty: float = option(10.0, "taken off the reward where it ends so", item="W")

    def __post_init__(self) -> None:
        """Check what a table of types cannot. Raises UsageError."""
        _check_range(self, 0, inf, "queue_limit", "max_latency", "failure_penalty")


@dataclass(frozen=True, slots=True)
class FailureConfig:
    """Replicas that fail and return; both times are exponential."""

    mean_time_to_failure: float = option(
        0.0, "of a replica that is up (0: none fails)", item="SECONDS"
    )
    mean_time_to_repair: float = option(30.0, "of a replica that is down", item="SECONDS")

    def __post_init__(self) -> None:
        """Check what a table of types cannot. Raises UsageError."""
        _check_range(self, 0, inf, "mean_time_to_failure")
        _check_range(self, 1e-6, inf, "mean_time_to_repair")


@dataclass(frozen=True, slots=True)
class ServingConfig:
    """A cluster that serves a language model, and the requests it gets (`cluster`)."""

    replicas: int = option(4, "replicas, 2 to 64", item="N")
    speeds: tuple[float, ...] = option(
        (2.0, 1.0, 1.0, 0.5), "their speeds; repeated where there are more replicas", item="X"
    )
    max_batch: int = option(32, "requests that a replica runs at once", item="N")
    kv_capacity: int = option(24_000, "tokens in the KV cache of a replica", item="TOKENS")
    chunk: int = option(512, "prompt tokens prefilled in one iteration", item="TOKENS")
    queue_limit: int = option(64, "requests that wait at a replica; more are refused", item="N")
    iteration_cost: float = option(0.012, "of any iteration, at speed 1", item="SECONDS")
    prefill_cost: float = option(6e-5, "of each prompt token in it", item="SECONDS")
    decode_cost: float = option(2e-4, "of each request that decodes in it", item="SECONDS")
    cache_cost: float = option(2e-7, "of each token in the KV cache", item="SECONDS")
    arrivals: str = option("poisson", "of requests", choices=("poisson", "gamma", "trace"))
    load: float = option(
        0.75, "arrivals as a share of the cluster's capacity; not for traces", item="X"
    )
    qps: float = option(0.0, "requests/s instead (0: by load, or as in the trace)", item="QPS")
    cv: float = option(2.0, "coefficient of variation of gamma arrivals", item="X")
    trace: str = option("", "CSV of time (s), prompt tokens, output tokens", item="FILE")
    prompt_mean: float = option(700.0, "of the lognormal prompts", item="TOKENS")
    prompt_sigma: float = option(1.0, "standard deviation of their logarithm", item="X")
    output_mean: float = option(180.0, "of the lognormal answers", item="TOKENS")
    output_sigma: float = option(0.8, "standard deviation of their logarithm", item="X")
    max_prompt: int = option(6000, "longest prompt", item="TOKENS")
    max_output: int = option(1500, "longest answer", item="TOKENS")
    window: int = option(
        128, "decisions, and finished requests, that sliding windows hold", item="N"
    )
    queued_requests: int = option(
        0, "oldest waiting requests of each replica that are seen one by one", item="N"
    )
    horizon: int = option(1024, "decisions of an episode", item="N")
    backend: str = option(
        "auto", "what runs the replicas: numba where installed", choices=("auto", "numba", "numpy")
    )
    safety: SafetyConfig = field(default_factory=SafetyConfig)
    failures: FailureConfig = field(default_factory=FailureConfig)

    def __post_init__(self) -> None:
        """Check what a table of types cannot. Raises UsageError."""
        _check_range(self, 2, 64, "replicas")
        _check_range(self, 1, 2**20, "max_batch", "queue_limit", "horizon")
        _check_range(self, 1, 2**31, "kv_capacity", "chunk", "max_prompt", "max_output")
        _check_range(self, 0, inf, "prefill_cost", "decode_cost", "cache_cost", "qps")
        _check_range(self, 1e-6, inf, "iteration_cost", "load", "cv", "prompt_mean", "output_mean")
        _check_range(self, 0, 5, "prompt_sigma", "output_sigma")
        _check_range(self, 8, 2**16, "window")
        _check_range(self, 0, self.queue_limit, "queued_requests")
        _check_choice(self, "arrivals")
        _check_choice(self, "backend")
        if not (1 <= len(self.speeds) <= self.replicas and min(self.speeds) > 0):
            raise _usage_error(self, "speeds", f"1 to {self.replicas} speeds above 0")
        if (self.arrivals == "trace") != bool(self.trace):
            raise _usage_error(self, "trace", "a CSV with arrivals=trace, and only then")
        if self.max_prompt + self.max_output > self.kv_capacity:
            raise _usage_error(self, "kv_capacity", "room for max_prompt + max_output tokens")

    @property
    def all_speeds(self) -> tuple[float, ...]:
        """The speed of each replica, relative to the iteration costs."""
        return tuple(float(self.speeds[i % len(self.speeds)]) for i in range(self.replicas))


@dataclass(frozen=True, slots=True)
class ClusterConfig(ServingConfig):
    """A cluster with its reward and its curriculum."""

    reward: RewardConfig = field(default_factory=RewardConfig)
    curriculum: CurriculumConfig = field(default_factory=CurriculumConfig)


def build_config(
    config: ClusterConfig | Mapping[str, Any] | None, settings: Mapping[str, object]
) -> ClusterConfig:
    """Return a config with some settings replaced; sections may be mappings.

    Raises UsageError for a setting that there is not, or that cannot be.
    """
    base = schema.to_dict(config) if isinstance(config, ClusterConfig) else dict(config or {})
    for name, value in settings.items():
        base[name] = schema.to_dict(value) if is_dataclass(value) else value
    return schema.read(ClusterConfig, base, "ClusterConfig")


def _check_range(section: object, low: float, high: float, *names: str) -> None:
    """Refuse numbers out of bounds, both included. NaN is out of all bounds."""
    for name in names:
        if not low <= getattr(section, name) <= high:
            raise _usage_error(
                section, name, f"{low:g} to {high:g}" if high < inf else f"from {low:g}"
            )


def _check_choice(section: Any, name: str) -> None:  # noqa: ANN401 - any section
    choices = next(
        setting.metadata["choices"] for setting in fields(section) if setting.name == name
    )
    if getattr(section, name) not in choices:
        raise _usage_error(section, name, f"one of {', '.join(choices)}")


def _usage_error(section: object, name: str, hint: str) -> UsageError:
    location = f"{type(section).__name__}.{name}"
    return UsageError(f"{name} cannot be {getattr(section, name)!r}", where=location, hint=hint)
