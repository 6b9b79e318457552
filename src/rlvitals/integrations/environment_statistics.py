"""Summarise rewards, actions and observations of environments at intervals."""

from collections.abc import Iterator, Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

if TYPE_CHECKING:
    from rlvitals.tracking.run import Run

MAX_ACTION_SERIES = 64  # beyond it, one series for each action is not useful
BOUND_MARGIN = 0.01  # of an action's range: a squashed action never quite reaches the bound


def leaves(observation: object) -> Iterator[NDArray[Any]]:
    """Yield the arrays of an observation, including nested dictionaries and tuples."""
    if isinstance(observation, Mapping):
        for value in observation.values():
            yield from leaves(value)
    elif isinstance(observation, tuple):
        for value in observation:
            yield from leaves(value)
    else:
        yield np.asarray(observation)


class Statistics:
    """Sums over the steps of `n` environments, logged at intervals."""

    def __init__(self, run: "Run", action_space: spaces.Space[Any], n: int, every: int) -> None:
        """Log into `run` every `every` steps of all environments together."""
        self.run = run
        self.space = action_space  # of one environment
        self.n = n
        self.every = every
        self.step = 0
        self.due = every
        self.marked = (0, perf_counter())
        self.rewards: list[NDArray[np.float64]] = []
        self.actions: list[NDArray[Any]] = []
        self.ends: list[tuple[NDArray[Any], NDArray[Any]]] = []  # lowest and highest observation
        self.broken = 0  # numbers of observations that are not finite
        self.seen = 0
        self.looks = 0
        self.reported = False

    def add(self, observation: object, action: object, reward: object) -> None:
        """Add one step of all environments: arrays [n, ...] where there are several."""
        self.step += self.n
        self.actions.append(np.array(action))
        self.rewards.append(np.array(reward, dtype=np.float64))
        self.add_observation(observation)
        if self.step >= self.due:
            self.due = self.step + self.every
            self.log()

    def add_observation(self, observation: object) -> None:
        """Add an observation; pixels are not checked, they are always finite."""
        self.looks += 1
        numbers = (values for values in leaves(observation) if values.dtype.kind == "f")
        for i, values in enumerate(numbers):
            self.seen += values.size
            if not np.isfinite(values.sum(dtype=np.float64)):
                self._report_nonfinite(values)
            if i == len(self.ends):
                self.ends.append((values.copy(), values.copy()))
            low, high = self.ends[i]
            self.ends[i] = np.fmin(low, values), np.fmax(high, values)

    def _report_nonfinite(self, values: NDArray[Any]) -> None:
        wrong = ~np.isfinite(values)
        self.broken += int(wrong.sum())
        if wrong.any() and not self.reported:
            self.reported = True
            index = [int(j) for j in np.argwhere(wrong)[0]]
            value = str(values[wrong][0])
            self.run.event(
                "not-a-number", step=self.step, variable="observation", value=value, at=index
            )
            self.run.note(f"observation{index} is {value} at step {self.step}")

    def log(self) -> None:
        """Log the sums since the last call, and reset them."""
        end_time, (start_step, start_time) = perf_counter(), self.marked
        numbers: dict[str, float] = {}
        if end_time > start_time:
            numbers["throughput/steps_per_second"] = (self.step - start_step) / (
                end_time - start_time
            )
        if self.rewards:
            rewards = np.stack(self.rewards)
            numbers |= {
                "reward/mean": float(rewards.mean()),
                "reward/std": float(rewards.std()),
                "reward/min": float(rewards.min()),
                "reward/max": float(rewards.max()),
            }
            numbers |= self._summarise_actions(np.stack(self.actions))
        numbers |= self._summarise_observations()
        self.run.log(self.step, numbers)
        self.marked = self.step, end_time
        self.rewards, self.actions, self.ends = [], [], []
        self.broken = self.seen = self.looks = 0

    def _summarise_actions(self, actions: NDArray[Any]) -> dict[str, float]:
        space = self.space
        if isinstance(space, spaces.Discrete) and space.n <= MAX_ACTION_SERIES:
            indices = actions.ravel().astype(np.int64) - int(space.start)
            counts = np.bincount(indices[indices >= 0], minlength=int(space.n))
            return {f"policy/action_count/{i}": float(count) for i, count in enumerate(counts)}
        if isinstance(space, spaces.Box) and space.is_bounded():
            edge = BOUND_MARGIN * (space.high - space.low)
            flat = actions.reshape(-1, *space.shape)
            at_bound = (flat <= space.low + edge) | (flat >= space.high - edge)
            return {"policy/action_at_bound_share": float(at_bound.mean())}
        return {}

    def _summarise_observations(self) -> dict[str, float]:
        if not self.seen:
            return {}
        sizes = [np.abs(end[np.isfinite(end)]).max(initial=0) for pair in self.ends for end in pair]
        numbers = {
            "observation/finite_share": 1 - self.broken / self.seen,
            "observation/largest": float(max(sizes)),
        }
        if self.looks > 1:  # one observation cannot vary
            varies = [(low < high).ravel() for low, high in self.ends]
            numbers["observation/varying_share"] = float(np.concatenate(varies).mean())
        return numbers


def episode(reward: float, length: int, seconds: float) -> dict[str, float]:
    """Return the metrics of an episode: return, length, duration in s."""
    return {
        "outcome/return": reward,
        "outcome/episode_length": float(length),
        "throughput/phase_time/episode": seconds,
    }
