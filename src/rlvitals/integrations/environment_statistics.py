"""What goes into and comes out of environments, summed up between two points of a run."""

from collections.abc import Iterator, Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

if TYPE_CHECKING:
    from rlvitals.tracking.run import Run

MOST_ACTIONS = 64  # beyond it, one series for each action says nothing
EDGE = 0.01  # of an action's range


def leaves(observation: object) -> Iterator[NDArray[Any]]:
    """Go through the arrays of an observation: dictionaries and tuples are opened."""
    if isinstance(observation, Mapping):
        for part in observation.values():
            yield from leaves(part)
    elif isinstance(observation, tuple):
        for part in observation:
            yield from leaves(part)
    else:
        yield np.asarray(observation)


class Statistics:
    """Sums over the steps of `n` environments; logs them every so many steps."""

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
        """Take one step of all environments, arrays with one row each where there are several."""
        self.step += self.n
        self.actions.append(np.array(action))
        self.rewards.append(np.array(reward, dtype=np.float64))
        self.observed(observation)
        if self.step >= self.due:
            self.due = self.step + self.every
            self.log()

    def observed(self, observation: object) -> None:
        """Take an observation: pixels are counted, but cannot be NaN and always vary."""
        self.looks += 1
        numbers = (values for values in leaves(observation) if values.dtype.kind == "f")
        for i, values in enumerate(numbers):
            self.seen += values.size
            if not np.isfinite(values.sum(dtype=np.float64)):
                self._broken(values)
            if i == len(self.ends):
                self.ends.append((values.copy(), values.copy()))
            low, high = self.ends[i]
            self.ends[i] = np.fmin(low, values), np.fmax(high, values)

    def _broken(self, values: NDArray[Any]) -> None:
        wrong = ~np.isfinite(values)
        self.broken += int(wrong.sum())
        if wrong.any() and not self.reported:
            self.reported = True
            at = [int(i) for i in np.argwhere(wrong)[0]]
            value = str(values[wrong][0])
            self.run.event(
                "not-a-number", step=self.step, variable="observation", value=value, at=at
            )
            self.run.note(f"observation{at} is {value} at step {self.step}")

    def log(self) -> None:
        """Log what came together since the last time, and begin anew."""
        now, (steps, began) = perf_counter(), self.marked
        found: dict[str, float] = {}
        if now > began:
            found["throughput/steps_per_second"] = (self.step - steps) / (now - began)
        if self.rewards:
            rewards = np.stack(self.rewards)
            found |= {
                "reward/mean": float(rewards.mean()),
                "reward/std": float(rewards.std()),
                "reward/min": float(rewards.min()),
                "reward/max": float(rewards.max()),
            }
            found |= self._acted(np.stack(self.actions))
        found |= self._saw()
        self.run.log(self.step, found)
        self.marked = self.step, now
        self.rewards, self.actions, self.ends = [], [], []
        self.broken = self.seen = self.looks = 0

    def _acted(self, actions: NDArray[Any]) -> dict[str, float]:
        space = self.space
        if isinstance(space, spaces.Discrete) and space.n <= MOST_ACTIONS:
            chosen = actions.ravel().astype(np.int64) - int(space.start)
            counts = np.bincount(chosen[chosen >= 0], minlength=int(space.n))
            return {f"policy/action_count/{i}": float(count) for i, count in enumerate(counts)}
        if isinstance(space, spaces.Box) and space.is_bounded():
            edge = EDGE * (space.high - space.low)
            flat = actions.reshape(-1, *space.shape)
            at = (flat <= space.low + edge) | (flat >= space.high - edge)
            return {"policy/action_at_bound_share": float(at.mean())}
        return {}

    def _saw(self) -> dict[str, float]:
        if not self.seen:
            return {}
        sizes = [np.abs(end[np.isfinite(end)]).max(initial=0) for pair in self.ends for end in pair]
        found = {
            "observation/finite_share": 1 - self.broken / self.seen,
            "observation/largest": float(max(sizes)),
        }
        if self.looks > 1:  # one look alone cannot vary
            varies = [(low < high).ravel() for low, high in self.ends]
            found["observation/varying_share"] = float(np.concatenate(varies).mean())
        return found


def episode(reward: float, length: int, seconds: float) -> dict[str, float]:
    """Name what an episode earned, how many steps it had and how long it took."""
    return {
        "outcome/return": reward,
        "outcome/episode_length": float(length),
        "throughput/phase_time/episode": seconds,
    }
