"""The sampling temperature of actions: fixed, or controlled by load and stagnation."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from rlvitals import UsageError
from rlvitals.trainers.ppo.config import TemperatureConfig

REQUIRED_INFO = ("qps", "latency", "throughput", "utilisation")


class Temperature(Protocol):
    """The interface of a temperature for each step of a rollout."""

    @property
    def value(self) -> float:
        """The temperature of the next step, above 0."""

    def after(self, info: Mapping[str, Any]) -> None:
        """Update from the `info` of a step."""


class Fixed:
    """The same temperature throughout."""

    def __init__(self, value: float = 1.0) -> None:
        """Draw at `value`."""
        self.value = value

    def after(self, info: Mapping[str, Any]) -> None:
        """Stay as it is."""


@dataclass(frozen=True, slots=True)
class Pulse:
    """A pulse that began."""

    step: int
    cause: str  # "stagnation" or "interval"
    level: float  # the largest relative change of late; NaN: not known yet


class Controller:
    """Lowers the temperature under load and latency, raises it in imbalance, and pulses.

    A step is one decision of each environment; their `info` is averaged. Pressures are relative
    to their targets, positive where there is more than that; without a set target the run's own
    slow average is it. Raises UsageError if the environments' `info` lacks a number.
    """

    def __init__(self, config: TemperatureConfig) -> None:
        """Start at the base temperature, without pressure."""
        self.config = config
        self.value = config.base_temperature
        self._drawn_at, self._drawn_in_pulse = self.value, False  # of the last decision
        self.qps_pressure = self.latency_pressure = 0.0
        self.target_qps, self.target_latency = config.target_qps, config.target_latency
        self.step_count = 0
        self.pulse_remaining = 0
        self.pulses: deque[Pulse] = deque(maxlen=1000)  # until they are asked for
        self._since_pulse = config.pulse_interval
        self._changes: deque[float] = deque(maxlen=config.stagnation_memory)
        self._window: list[tuple[float, float]] = []
        self._before: tuple[float, float] | None = None

    def after(self, info: Mapping[str, Any]) -> None:
        """Take in the means over the environments: qps, latency, throughput, utilisation."""
        self._drawn_at, self._drawn_in_pulse = self.value, self.pulse_remaining > 0
        missing = [name for name in REQUIRED_INFO if name not in info]
        if missing:
            raise UsageError(
                f"temperature control needs {', '.join(missing)} of the environment",
                hint="set temperature_control.enabled to false",
            )
        qps, latency, throughput = (float(np.mean(info[name])) for name in REQUIRED_INFO[:3])
        busy = np.asarray(info["utilisation"], float)
        imbalance = float(np.mean(busy.max(-1) - busy.min(-1)))
        self.step_count += 1
        alpha = self.config.pressure_ema_alpha
        if not self.config.target_qps:
            self.target_qps += _target_step(self.target_qps, qps, alpha)
        if not self.config.target_latency:
            self.target_latency += _target_step(self.target_latency, latency, alpha)
        excess_qps = _relative_change(qps, self.target_qps)
        excess_latency = max(_relative_change(latency, self.target_latency), 0.0)
        self.qps_pressure += alpha * (excess_qps - self.qps_pressure)
        self.latency_pressure += alpha * (excess_latency - self.latency_pressure)
        self._look_for_stagnation(throughput, latency)
        self._pulse()
        config = self.config
        shift = (
            -config.qps_sensitivity * self.qps_pressure
            - config.latency_sensitivity * self.latency_pressure
            + 0.1 * imbalance  # at most 0.1
        )
        pulsing = self.pulse_remaining > 0
        boost = config.pulse_magnitude * config.base_temperature if pulsing else 0.0
        highest = config.max_temperature * (2.0 if pulsing else 1.0)
        temperature = config.base_temperature + shift + boost
        self.value = min(max(temperature, config.min_temperature), highest)

    def stats(self) -> dict[str, float]:
        """Return the numbers to log; temperature and pulse are those of the last decision."""
        return {
            "current_temperature": self._drawn_at,
            "base_temperature": self.config.base_temperature,
            "qps_pressure_ema": self.qps_pressure,
            "latency_pressure_ema": self.latency_pressure,
            "is_pulsing": float(self._drawn_in_pulse),
            "pulse_remaining": float(self.pulse_remaining),
            "step_count": float(self.step_count),
            "stagnation_level": self.stagnation_level,
        }

    @property
    def stagnation_level(self) -> float:
        """The largest relative change of late; NaN until enough is seen."""
        full = len(self._changes) == self.config.stagnation_memory
        return max(self._changes) if full else float("nan")

    def _look_for_stagnation(self, throughput: float, latency: float) -> None:
        self._window.append((throughput, latency))
        if len(self._window) < self.config.stagnation_window:
            return
        columns = zip(*self._window, strict=True)
        means = tuple(float(np.mean(column)) for column in columns)
        self._window.clear()
        if self._before is not None:
            pairs = zip(means, self._before, strict=True)
            self._changes.append(sum(abs(_relative_change(a, b)) for a, b in pairs))
        self._before = (means[0], means[1])

    def _pulse(self) -> None:
        self._since_pulse += 1
        if self.pulse_remaining:
            self.pulse_remaining -= 1
        if not self.config.enable_pulse or self.pulse_remaining:
            return
        if self._since_pulse < self.config.pulse_interval:
            return
        stagnant = self.stagnation_level < self.config.stagnation_threshold
        if stagnant or self.config.periodic_pulses:
            cause = "stagnation" if stagnant else "interval"
            self.pulses.append(Pulse(self.step_count, cause, self.stagnation_level))
            self.pulse_remaining, self._since_pulse = self.config.pulse_duration, 0
            self._changes.clear()  # what a pulse stirs up is to be seen before the next


def _relative_change(value: float, target: float) -> float:
    return (value - target) / target if target else 0.0


def _target_step(target: float, value: float, alpha: float) -> float:
    """Return what a learned target moves by; the first value is taken as it is."""
    # 0.1 times the pressure's own alpha: how fast a target that is not set is learned.
    return 0.1 * alpha * (value - target) if target else value
