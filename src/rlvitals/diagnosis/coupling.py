"""Checks of a scheduler besides its reward: the correlation of its temperature with latency, and
the distance of its choices from the optimum by the replicas' speeds.
"""

from collections.abc import Mapping

import numpy as np

from rlvitals.metrics.catalogue import outcome, scheduler
from rlvitals.metrics.catalogue.exploration import TEMPERATURE
from rlvitals.metrics.metric import Metric
from rlvitals.rules.derived_series import outside_pulses, temperature_lag
from rlvitals.rules.workload import SPEEDS_SETTING, Optimum, latest_shares, misplaced_share, optimum
from rlvitals.signals.lagged import MIN_LAGGED_POINTS, Lagged
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Profile, Trace

LATENCY_METRICS = (
    outcome.LATENCY, scheduler.LATENCY_EMA, scheduler.RAW_LATENCY, scheduler.LATENCY_PRESSURE,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Coupling:
    """How the temperature, outside of pulses, and latency change together."""

    latency: Metric
    found: Lagged | None  # None: too little is logged

    @property
    def sentence(self) -> str:
        """Say it with its interval, or that nobody can tell."""
        name = self.latency.title.lower()
        open_ = f"whether temperature and {name} go together cannot be told"
        if self.found is None:
            return f"{open_}: fewer than {MIN_LAGGED_POINTS} rows outside of pulses change in both"
        strongest = f"{self.found.correlation:+.2f}"
        if not self.found.is_significant:
            return (
                f"{open_}: the strongest correlation of their changes, {strongest}"
                f"{_lag(self.found.lag)}, may be chance (within ±{self.found.limit:.2f})"
            )
        low, high = self.found.interval
        return (
            f"{_order(self.found.lag, name)}: correlation of their changes {strongest} "
            f"({low:+.2f} to {high:+.2f}); that says nothing of causes"
        )

    @property
    def short(self) -> str:
        """Say it in few words."""
        name = self.latency.title.lower()
        if self.found is None:
            return "cannot tell: too few rows outside of pulses"
        strongest = f"{self.found.correlation:+.2f}"
        if not self.found.is_significant:
            return f"cannot tell: the strongest, {strongest}{_lag(self.found.lag)}, may be chance"
        low, high = self.found.interval
        return f"{_order(self.found.lag, name)}: {strongest} ({low:+.2f} to {high:+.2f})"


def _lag(lag: int) -> str:
    return f" at a lag of {_rows(lag)}" if lag else " at once"


def _rows(lag: int) -> str:
    return "1 row" if abs(lag) == 1 else f"{abs(lag)} rows"


def _order(lag: int, name: str) -> str:
    if lag == 0:
        return f"temperature and {name} change together, at once"
    if lag > 0:
        return f"temperature follows {name} by {_rows(lag)}"
    return f"{name} follows temperature by {_rows(lag)}"


def coupling(trace: Trace) -> Coupling | None:
    """Correlate temperature and latency over their lags; None where one is not logged."""
    latency = next((m for m in LATENCY_METRICS if trace.numbers(m.name)), None)
    if latency is None or trace.numbers(TEMPERATURE.name) is None:
        return None
    return Coupling(latency, temperature_lag(trace[latency.name], outside_pulses(trace)))


@dataclass(frozen=True, slots=True)
class Spread:
    """Which share of its last choices each replica got, and which one it should have."""

    shares: Mapping[str, float]  # of the last fifth of the choices
    best: Optimum
    elsewhere: float  # share of the choices that would have to go to another replica

    @property
    def short(self) -> str:
        """Say it in few words."""
        if not self.best.known:
            return f"no {SPEEDS_SETTING} is set: which shares are best is not known"
        return f"{self.elsewhere:.0%} of the last choices belong elsewhere"

    @property
    def sentence(self) -> str:
        """Say how far off the choices are, and what that rests on."""
        off = f"{self.elsewhere:.0%} of the last choices"
        if self.best.known:
            return f"{off} belong elsewhere: {self.best.assumption}"
        return (
            f"what would be best is not known: no {SPEEDS_SETTING} is set; were all equal, {off} "
            "would belong elsewhere"
        )


def spread(trace: Trace) -> Spread | None:
    """Hold a scheduler's last choices against the best shares; None where they are not known."""
    if trace.profile is not Profile.SCHEDULER_PPO:
        return None
    shares = latest_shares(trace)
    best = optimum(trace, len(shares)) if shares else None
    far = None if best is None else misplaced_share(shares, best)
    if best is None or far is None or not np.isfinite(far):
        return None
    return Spread(shares, best, far)
