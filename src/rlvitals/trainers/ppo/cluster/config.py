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
        "hybrid",
        "reward levels (instant), their changes (delta), or both (hybrid)",
        choices=("instant", "delta", "hybrid"),
    )
    absolute_weight: float = option(
        0.6, "weight of the levels of throughput and latency (hybrid)", item="W"
    )
    delta_weight: float = option(
        0.05, "weight of their changes relative to the average (hybrid)", item="W"
    )
    alpha: float = option(1.5, "weight of latency in the absolute score", item="W")
    beta: float = option(
        0.0, "weight of the relative change of throughput in the delta score", item="W"
    )
    gamma: float = option(
        0.6, "weight of the relative change of latency in the delta score", item="W"
    )
    latency_weight: float = option(
        1.0, "weight of latency divided by its threshold (instant, delta)", item="W"
    )
    ema_alpha: float = option(0.2, "weight of the newest value in moving averages", item="SHARE")
    throughput_target: float = option(0.0, "reference throughput (0: the arrival rate)", item="QPS")
    latency_threshold: float = option(4.0, "latency that counts as 1", item="SECONDS")
    kappa: float = option(
        0.0, "weight of the logistic penalty around the threshold (hybrid)", item="W"
    )
    sigma: float = option(1.0, "width of the logistic penalty", item="SECONDS")
    threshold_penalty: float = option(
        0.5, "maximum of the soft penalty above the threshold (instant, delta)", item="W"
    )
    balance_penalty: float = option(
        0.1, "weight of the difference between the fullest and the emptiest KV cache", item="W"
    )
    load_balance_penalty: float = option(
        0.3, "weight of cv * exp(cv) of outstanding requests divided by speed", item="W"
    )
    imbalance_penalty: float = option(
        0.0,
        "weight of the standard deviation of queue lengths divided by the queue limit (hybrid)",
        item="W",
    )
    extreme_imbalance_penalty: float = option(
        0.0,
        "weight of the squared excess of one replica over 80 % of all waiting requests (hybrid)",
        item="W",
    )
    asymmetry_penalty: float = option(0.0, "weight of efficiency below 80 % (hybrid)", item="W")
    trend_weight: float = option(
        0.0, "weight of the slope of efficiency over three decisions", item="W"
    )
    action_balance: float = option(
        0.0,
        "weight of the evenness of the last 50 decisions: 1 if even, -1 if all chose one replica",
        item="W",
    )
    tail_penalty: float = option(0.0, "weight of p95 latency above the threshold", item="W")
    rejection_penalty: float = option(3.0, "penalty for a refused request", item="W")
    scale: float = option(1.2, "divisor of every part", item="X")
    limit: float = option(4.0, "magnitude beyond which the reward grows logarithmically", item="X")

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

    decisions: int = option(0, "decisions until full difficulty (0: from the start)", item="N")
    start_load: float = option(0.5, "initial load relative to the full load", item="X")
    start_heterogeneity: float = option(
        0.0, "initial share of the speed differences: 0 none, 1 all", item="SHARE"
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
        0,
        "queue length at which a replica gets no requests while another can take them (0: off)",
        item="N",
    )
    max_latency: float = option(
        0.0, "mean latency of the window that ends the episode (0: never)", item="SECONDS"
    )
    failure_penalty: float = option(10.0, "penalty for such an end", item="W")

    def __post_init__(self) -> None:
        """Check what a table of types cannot. Raises UsageError."""
        _check_range(self, 0, inf, "queue_limit", "max_latency", "failure_penalty")


@dataclass(frozen=True, slots=True)
class FailureConfig:
    """Replicas that fail and return; both times are exponential."""

    mean_time_to_failure: float = option(
        0.0, "mean time until a running replica fails (0: never)", item="SECONDS"
    )
    mean_time_to_repair: float = option(
        30.0, "mean time until a failed replica returns", item="SECONDS"
    )

    def __post_init__(self) -> None:
        """Check what a table of types cannot. Raises UsageError."""
        _check_range(self, 0, inf, "mean_time_to_failure")
        _check_range(self, 1e-6, inf, "mean_time_to_repair")


@dataclass(frozen=True, slots=True)
class ServingConfig:
    """A cluster that serves a language model, and the requests it gets (`cluster`)."""

    replicas: int = option(4, "number of replicas, 2 to 64", item="N")
    speeds: tuple[float, ...] = option(
        (2.0, 1.0, 1.0, 0.5),
        "speeds of the replicas, repeated if there are more replicas",
        item="X",
    )
    max_batch: int = option(
        32, "maximum number of requests that a replica runs concurrently", item="N"
    )
    kv_capacity: int = option(24_000, "capacity of a replica's KV cache", item="TOKENS")
    chunk: int = option(512, "prompt tokens prefilled per iteration", item="TOKENS")
    queue_limit: int = option(
        64, "maximum queue length of a replica; further requests are refused", item="N"
    )
    iteration_cost: float = option(0.012, "time of an iteration at speed 1", item="SECONDS")
    prefill_cost: float = option(6e-5, "additional time per prompt token", item="SECONDS")
    decode_cost: float = option(2e-4, "additional time per decoding request", item="SECONDS")
    cache_cost: float = option(2e-7, "additional time per token in the KV cache", item="SECONDS")
    arrivals: str = option(
        "poisson", "arrival process of requests", choices=("poisson", "gamma", "trace")
    )
    load: float = option(
        0.75, "arrival rate as a share of the cluster's capacity; ignored for traces", item="X"
    )
    qps: float = option(
        0.0, "arrival rate, instead of `load` (0: by load, or as in the trace)", item="QPS"
    )
    cv: float = option(2.0, "coefficient of variation of gamma arrivals", item="X")
    trace: str = option("", "CSV file with time (s), prompt tokens and output tokens", item="FILE")
    prompt_mean: float = option(700.0, "mean length of prompts (lognormal)", item="TOKENS")
    prompt_sigma: float = option(
        1.0, "standard deviation of the logarithm of prompt lengths", item="X"
    )
    output_mean: float = option(180.0, "mean length of answers (lognormal)", item="TOKENS")
    output_sigma: float = option(
        0.8, "standard deviation of the logarithm of answer lengths", item="X"
    )
    max_prompt: int = option(6000, "maximum length of a prompt", item="TOKENS")
    max_output: int = option(1500, "maximum length of an answer", item="TOKENS")
    window: int = option(
        128, "length of sliding windows in decisions and finished requests", item="N"
    )
    queued_requests: int = option(
        0, "number of oldest waiting requests per replica in the observation", item="N"
    )
    horizon: int = option(1024, "decisions per episode", item="N")
    backend: str = option(
        "auto",
        "implementation of the replicas; auto is numba if installed",
        choices=("auto", "numba", "numpy"),
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
