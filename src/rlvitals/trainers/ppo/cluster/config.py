"""What a cluster, its requests and its reward are: every setting, with its unit and its bounds."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from math import inf
from typing import Any, Literal, Self, cast

import rlvitals

ARRIVALS = ("poisson", "gamma", "trace")
MODES = ("instant", "delta", "hybrid")
BACKENDS = ("auto", "numba", "numpy")


class Section:
    """A section of settings: made from JSON as from Python, and checked as it is made."""

    __slots__ = ()

    @classmethod
    def of(cls, values: "Mapping[str, Any] | Section") -> Self:
        """Return the section from a mapping; itself comes back as it is. Raises UsageError."""
        if isinstance(values, cls):
            return values
        known = [each.name for each in fields(cls)]  # type: ignore[arg-type] # sections are dataclasses
        given = cast("Mapping[str, Any]", values)
        for name in given:
            if name not in known:
                near = get_close_matches(name, known, n=1)
                hint = f"did you mean {near[0]}?" if near else f"one of {', '.join(known)}"
                raise rlvitals.UsageError(
                    f"{name} is no setting of {cls.__name__}", where=name, hint=hint
                )
        return cls(**given)

    def bounds(self, **limits: tuple[float, float]) -> None:
        """Refuse numbers that are out of bounds (both included) or no numbers; None is no number
        that was given. Raises UsageError.
        """  # fmt: skip
        whole = {each.name: str(each.type) for each in fields(self)}  # type: ignore[arg-type]
        for name, (low, high) in limits.items():
            value = getattr(self, name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise self.refused(name, "a number")
            if "int" in whole[name] and not isinstance(value, int):
                raise self.refused(name, "a whole number")
            if not low <= value <= high:
                raise self.refused(name, f"between {low:g} and {high:g}")

    def among(self, name: str, known: tuple[str, ...]) -> None:
        """Refuse a word that is not known. Raises UsageError."""
        if getattr(self, name) not in known:
            raise self.refused(name, f"one of {', '.join(known)}")

    def refused(self, name: str, wanted: str) -> "rlvitals.UsageError":
        """Return the error that says which setting is wrong, and what it may be."""
        where = f"{type(self).__name__}.{name}"
        return rlvitals.UsageError(
            f"{name} is {getattr(self, name)!r}", where=where, hint=f"give {wanted}"
        )


@dataclass(frozen=True, slots=True)
class RewardConfig(Section):
    """The reward's weights; the formula of each part stands in `reward.py` and in the manual."""

    mode: Literal["instant", "delta", "hybrid"] = "hybrid"
    absolute_weight: float = 0.6  # of throughput and latency as they are (hybrid)
    delta_weight: float = 0.4  # of their change against their moving average (hybrid)
    alpha: float = 3.0  # of latency / threshold within the absolute score
    beta: float = 0.0  # of throughput's relative change within the delta score
    gamma: float = 0.6  # of latency's relative change within the delta score
    latency_weight: float = 1.0  # of latency / threshold (instant and delta)
    ema_alpha: float = 0.2  # share of the newest value in the moving averages
    throughput_target: float | None = None  # requests/s; None: the arrival rate
    latency_threshold: float = 4.0  # s
    kappa: float = 0.1  # of the logistic penalty of latency about its threshold (hybrid)
    sigma: float = 1.0  # s, width of the logistic
    threshold_penalty: float = 0.5  # most of the soft penalty above it (instant and delta)
    balance_penalty: float = 0.1  # of max - min KV-cache utilisation
    load_balance_penalty: float = 0.1  # of cv * exp(cv) of outstanding requests / speed
    imbalance_penalty: float = 0.0  # of the queues' standard deviation / queue limit (hybrid)
    extreme_imbalance_penalty: float = 0.0  # of one replica holding > 80 % of the queue (hybrid)
    asymmetry_penalty: float = 0.0  # of efficiency below 80 % (hybrid)
    trend_weight: float = 0.0  # of efficiency's slope over three decisions (hybrid)
    tail_penalty: float = 0.0  # of p95 latency above its threshold
    rejection_penalty: float = 3.0  # of a request refused
    scale: float = 1.2  # every part is divided by it
    limit: float = 4.0  # beyond it the reward grows with the logarithm

    def __post_init__(self) -> None:
        """Check every value. Raises UsageError."""
        self.among("mode", MODES)
        weights = [each.name for each in fields(self) if each.name.endswith(("weight", "penalty"))]
        self.bounds(**dict.fromkeys((*weights, "alpha", "beta", "gamma", "kappa"), (0, inf)))
        positive = ("throughput_target", "latency_threshold", "sigma", "scale", "limit")
        self.bounds(**dict.fromkeys(positive, (1e-6, inf)), ema_alpha=(1e-6, 1))


@dataclass(frozen=True, slots=True)
class CurriculumConfig(Section):
    """Easy at first: load and differences of speed grow linearly over `decisions`.

    An episode keeps the stage that it begins with. 0 decisions: no curriculum.
    """

    decisions: int = 0
    start_load: float = 0.5  # times the full load
    start_heterogeneity: float = 0.0  # 0: all replicas at the mean speed; 1: as they are

    def __post_init__(self) -> None:
        """Check every value. Raises UsageError."""
        self.bounds(decisions=(0, inf), start_load=(0.01, 10), start_heterogeneity=(0, 1))


@dataclass(frozen=True, slots=True)
class SafetyConfig(Section):
    """Limits that no policy may overstep; None: no limit."""

    queue_limit: int | None = None  # a replica with so long a queue gets no more while others can
    max_latency: float | None = None  # s, mean of the window; above it the episode ends
    failure_penalty: float = 10.0  # taken off the reward where it ends so

    def __post_init__(self) -> None:
        """Check every value. Raises UsageError."""
        self.bounds(queue_limit=(1, inf), max_latency=(1e-6, inf), failure_penalty=(0, inf))


@dataclass(frozen=True, slots=True)
class ClusterConfig(Section):
    """A cluster that serves a language model, and the requests it gets."""

    replicas: int = 4
    speeds: tuple[float, ...] = (2.0, 1.0, 1.0, 0.5)  # repeated where there are more replicas
    max_batch: int = 32  # requests that one replica runs at once
    kv_capacity: int = 24_000  # tokens in the KV cache of one replica
    chunk: int = 512  # prompt tokens prefilled in one iteration
    queue_limit: int = 64  # requests that wait at one replica; more are refused
    iteration_cost: float = 0.012  # s, of any iteration at speed 1
    prefill_cost: float = 6e-5  # s per prompt token
    decode_cost: float = 2e-4  # s per request that decodes
    cache_cost: float = 2e-7  # s per token in the KV cache
    arrivals: Literal["poisson", "gamma", "trace"] = "poisson"
    load: float = 0.75  # of the cluster's capacity, where `qps` is not given; not for traces
    qps: float | None = None  # requests/s; rescales a trace
    cv: float = 2.0  # coefficient of variation of gamma arrivals
    trace: str | None = None  # CSV with time (s), prompt tokens, output tokens
    prompt_mean: float = 700.0  # tokens; lengths are lognormal
    prompt_sigma: float = 1.0  # of their logarithm
    output_mean: float = 180.0
    output_sigma: float = 0.8
    max_prompt: int = 6000
    max_output: int = 1500
    window: int = 128  # decisions and finished requests that the sliding windows hold
    horizon: int = 1024  # decisions, then the episode is truncated
    backend: Literal["auto", "numba", "numpy"] = "auto"  # auto: numba where it is installed
    reward: RewardConfig = field(default_factory=RewardConfig)
    curriculum: CurriculumConfig = field(default_factory=CurriculumConfig)
    safety: SafetyConfig = field(default_factory=SafetyConfig)

    def __post_init__(self) -> None:
        """Check every value, and make JSON's lists and objects what they stand for.

        Raises UsageError.
        """
        put = object.__setattr__  # frozen
        put(self, "speeds", tuple(float(speed) for speed in self.speeds))
        put(self, "reward", RewardConfig.of(self.reward))
        put(self, "curriculum", CurriculumConfig.of(self.curriculum))
        put(self, "safety", SafetyConfig.of(self.safety))
        self.among("arrivals", ARRIVALS)
        self.among("backend", BACKENDS)
        self._check_numbers()
        if not 1 <= len(self.speeds) <= self.replicas or min(self.speeds) <= 0:
            raise self.refused("speeds", f"1 to {self.replicas} speeds above 0")
        if (self.arrivals == "trace") != (self.trace is not None):
            raise self.refused("trace", "a CSV with arrivals='trace', and only then")
        if self.max_prompt + self.max_output > self.kv_capacity:
            raise self.refused("kv_capacity", "room for max_prompt + max_output tokens")

    @property
    def all_speeds(self) -> tuple[float, ...]:
        """The speed of each replica, relative to the iteration costs."""
        return tuple(self.speeds[i % len(self.speeds)] for i in range(self.replicas))

    def _check_numbers(self) -> None:
        tokens = dict.fromkeys(("kv_capacity", "max_prompt", "max_output", "chunk"), (1, 2**31))
        counts = dict.fromkeys(("max_batch", "queue_limit", "horizon"), (1, 2**20))
        costs = dict.fromkeys(("prefill_cost", "decode_cost", "cache_cost"), (0, inf))
        positive = ("iteration_cost", "load", "qps", "cv", "prompt_mean", "output_mean")
        self.bounds(
            **tokens,
            **counts,
            **costs,
            **dict.fromkeys(positive, (1e-9, inf)),
            replicas=(2, 64),
            window=(8, 2**16),
            prompt_sigma=(0, 5),
            output_sigma=(0, 5),
        )
