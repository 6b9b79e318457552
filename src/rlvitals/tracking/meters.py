"""Helpers for training loops that return dicts for `run.log`: averages, speeds, action shares."""

import math
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from rlvitals.errors import UsageError, join_first
from rlvitals.startup.fast_dataclass import dataclass


class Ema:
    """An exponential moving average that is unbiased from its first value on.

    After n values it is sum_i alpha (1 - alpha)^(n - i) x_i / (1 - (1 - alpha)^n): the zero it
    starts from has no weight (Kingma and Ba, 2015, section 3). NaN and None leave it as it is.

    Parameters
    ----------
    name : str
        The average is logged as `<name>_ema`.
    alpha : float
        Weight of a new value, above 0 and at most 1.

    Raises
    ------
    UsageError
        If `alpha` is out of range.
    """

    def __init__(self, name: str, alpha: float = 0.05) -> None:
        """Begin without a value."""
        if not 0 < alpha <= 1:
            raise UsageError(f"alpha cannot be {alpha}", hint="a share: 0 < alpha <= 1")
        self.name, self.alpha = name, alpha
        self._sum = 0.0  # of the weighted values
        self._weight = 0.0  # of all of them: 1 - (1 - alpha)^n

    @property
    def value(self) -> float:
        """The average so far; NaN before the first value."""
        return self._sum / self._weight if self._weight else math.nan

    def update(self, value: float | None) -> dict[str, float]:
        """Take a value and return `{"<name>_ema": average}`."""
        if value is not None and not math.isnan(number := float(value)):
            self._sum += self.alpha * (number - self._sum)
            self._weight += self.alpha * (1 - self._weight)
        return {f"{self.name}_ema": self.value}

    def state_dict(self) -> dict[str, float]:
        """Return the state that a checkpoint needs to resume the average."""
        return {"alpha": self.alpha, "sum": self._sum, "weight": self._weight}

    def load_state_dict(self, state: Mapping[str, float]) -> None:
        """Resume from a checkpoint. Raises UsageError where it has no average."""
        try:
            alpha, total, weight = (float(state[key]) for key in ("alpha", "sum", "weight"))
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(f"no state of an average: {error}", where=self.name) from None
        self.alpha, self._sum, self._weight = alpha, total, weight


class Recorder(Protocol):
    """The interface that reports how long recording took: a Run."""

    @property
    def overhead(self) -> float:
        """CPU seconds so far."""


@dataclass(slots=True)
class _Totals:
    time: float = 0.0
    steps: int = 0
    updates: int = 0
    episodes: int = 0
    collecting: float = 0.0
    learning: float = 0.0
    recording: float = 0.0


class SpeedMeter:
    """Counts the work of a loop and reports its speeds over the last seconds.

    Parameters
    ----------
    window : float
        Length of the period that `read` reports on, in seconds.
    run : Run, optional
        A run whose recording time is reported as a share of the time.
    clock : callable
        Returns the time in seconds; takes no arguments.
    """

    def __init__(
        self,
        window: float = 30.0,
        *,
        run: Recorder | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Begin to count."""
        self.window = window
        self._run, self._clock = run, clock
        self._now = _Totals(time=clock())
        self._past: deque[_Totals] = deque([self._copy()])

    def step(self, count: int = 1) -> None:
        """Count environment steps."""
        self._now.steps += count

    def update(self, count: int = 1) -> None:
        """Count gradient updates."""
        self._now.updates += count

    def episode(self, count: int = 1) -> None:
        """Count finished episodes."""
        self._now.episodes += count

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Time the part of the loop that collects experience."""
        start = self._clock()
        try:
            yield
        finally:
            self._now.collecting += self._clock() - start

    @contextmanager
    def learning(self) -> Iterator[None]:
        """Time the part of the loop that learns."""
        start = self._clock()
        try:
            yield
        finally:
            self._now.learning += self._clock() - start

    def read(self) -> dict[str, float]:
        """Return the speeds and shares of the last `window` seconds.

        Returns
        -------
        dict of str to float
            `throughput/steps_per_second`, `updates_per_second` and `episodes_per_second`,
            `throughput/collect_share` and `learn_share` of the time (0 to 1),
            `throughput/sampler_rate` (steps per second of collecting), and with a run
            `throughput/recorder_share`. What was never counted is left out; empty if no time has
            passed.
        """
        totals = self._now
        totals.time = self._clock()
        if self._run is not None:
            totals.recording = self._run.overhead
        while len(self._past) > 1 and self._past[1].time <= totals.time - self.window:
            self._past.popleft()
        oldest = self._past[0]
        seconds = totals.time - oldest.time
        self._past.append(self._copy())
        return self._speeds(oldest, seconds) if seconds > 0 else {}

    def _speeds(self, oldest: _Totals, seconds: float) -> dict[str, float]:
        totals, speeds = self._now, {}
        for name in ("steps", "updates", "episodes"):
            if total := getattr(totals, name):
                count = total - getattr(oldest, name)
                speeds[f"throughput/{name}_per_second"] = count / seconds
        for phase, verb in (("collecting", "collect"), ("learning", "learn")):
            if total := getattr(totals, phase):
                duration = total - getattr(oldest, phase)
                speeds[f"throughput/{verb}_share"] = duration / seconds
        if totals.collecting > oldest.collecting and totals.steps:
            count = totals.steps - oldest.steps
            speeds["throughput/sampler_rate"] = count / (totals.collecting - oldest.collecting)
        if self._run is not None:
            speeds["throughput/recorder_share"] = (totals.recording - oldest.recording) / seconds
        return speeds

    def _copy(self) -> _Totals:
        totals = self._now
        return _Totals(
            totals.time, totals.steps, totals.updates, totals.episodes, totals.collecting,
            totals.learning, totals.recording,
        )  # fmt: skip


def reward_parts(
    parts: Mapping[str, float], total: float | None = None, *, tolerance: float = 1e-6
) -> dict[str, float]:
    """Return a reward's parts as metrics, with their sum.

    Parameters
    ----------
    parts : mapping of str to float
        The parts by name, with the signs and weights that they have in the total.
    total : float, optional
        The reward that the loop uses. Default: the sum of the parts.
    tolerance : float
        Allowed difference of `total` from the sum, as a share of the largest absolute value of the
        parts and the total. A difference below 1.2e-38, the least normal float32, is rounding.

    Returns
    -------
    dict of str to float
        `reward/component/<name>` of each part, and `outcome/reward`, the total.

    Raises
    ------
    UsageError
        If `total` differs from the sum of the parts by more: a part is missing, counted twice, or
        of another sign. Where a part is NaN or infinite, `total` has to be what they add up to, NaN
        or the same infinity.
    """
    numbers = {name: float(value) for name, value in parts.items()}
    sum_of_parts = _add_up(numbers.values())
    row = {f"reward/component/{name}": value for name, value in numbers.items()}
    row["outcome/reward"] = sum_of_parts if total is None else float(total)
    scale = max([abs(row["outcome/reward"]), *map(abs, numbers.values())])
    if not _agree(row["outcome/reward"], sum_of_parts, tolerance * scale):
        terms = " + ".join(f"{name} {value:g}" for name, value in numbers.items())
        not_finite = [name for name, value in numbers.items() if not math.isfinite(value)]
        raise UsageError(
            f"the parts of the reward add up to {sum_of_parts:g}, not {row['outcome/reward']:g}",
            where=terms,
            hint=f"a part that is not finite makes the total so: check {join_first(not_finite, 3)}"
            if not_finite
            else "log every part with the sign and the weight it has in the total",
        )
    return row


def _add_up(numbers: Collection[float]) -> float:
    """Return the sum, exact where it is finite; NaN or an infinity as additions give it."""
    try:
        return math.fsum(numbers)
    except (OverflowError, ValueError):  # beyond float64, infinities of both signs
        return float(sum(numbers))


def _agree(total: float, sum_of_parts: float, allowed: float) -> bool:
    """Return whether two sums differ by no more than allowed, or by float32's smallest steps."""
    if math.isfinite(total) and math.isfinite(sum_of_parts):
        return abs(total - sum_of_parts) <= max(allowed, float(np.finfo(np.float32).tiny))
    return total == sum_of_parts or (math.isnan(total) and math.isnan(sum_of_parts))


def action_shares(
    actions: ArrayLike, count: int | None = None, *, names: Sequence[str] = ()
) -> dict[str, float]:
    """Count discrete actions: the count and share of each, the largest share.

    Parameters
    ----------
    actions : array_like of int
        Actions from 0 on, of any shape.
    count : int, optional
        Number of actions: those never chosen are reported as 0. Default: the highest action and the
        `names` decide.
    names : sequence of str
        Names of the actions, by number. An action without one has its number as name.

    Returns
    -------
    dict of str to float
        `policy/action_count/<name>`, `policy/action_share/<name>` (0 to 1) and
        `policy/action_share_max`.

    Raises
    ------
    UsageError
        If an action is not a whole number of at least 0.
    """
    counts = _count_actions(actions, max(count or 0, len(names)))
    total = max(int(counts.sum()), 1)
    labels = [names[i] if i < len(names) else str(i) for i in range(len(counts))]
    row = {f"policy/action_count/{name}": float(n) for name, n in zip(labels, counts, strict=True)}
    shares = counts / total
    row |= {f"policy/action_share/{name}": float(s) for name, s in zip(labels, shares, strict=True)}
    if len(shares):
        row["policy/action_share_max"] = float(shares.max())
    return row


def action_histogram(
    actions: ArrayLike, count: int | None = None
) -> tuple[list[float], list[float]]:
    """Count discrete actions for `run.log_histogram`.

    Parameters
    ----------
    actions : array_like of int
        Actions from 0 on, of any shape.
    count : int, optional
        Number of actions: those never chosen are counted as 0. Default: the highest action decides.

    Returns
    -------
    edges : list of float
        Edges of the bins, [n + 1]: action i lies between i - 0.5 and i + 0.5.
    counts : list of float
        How often each action was chosen, [n].

    Raises
    ------
    UsageError
        If an action is not a whole number of at least 0.
    """
    counts = _count_actions(actions, count or 0)
    return [i - 0.5 for i in range(len(counts) + 1)], [float(n) for n in counts]


def _count_actions(
    actions: ArrayLike, min_length: int
) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    flat = np.asarray(actions).ravel()
    if flat.dtype.kind in "iuf":
        integers = flat.astype(np.int64)
        if (integers == flat).all() and (integers >= 0).all():
            return np.bincount(integers, minlength=min_length)
    raise UsageError("discrete actions are whole numbers from 0 on")
