"""Define a fault: its injection into a run, and the findings that are expected."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

FAILED_VERDICT = "failed"  # in a fault's `expects`, the verdict: the fault ends the run


class Algorithm(StrEnum):
    """An algorithm of Stable-Baselines3."""

    PPO = "PPO"
    A2C = "A2C"
    DQN = "DQN"
    SAC = "SAC"


ON_POLICY_ALGORITHMS = (Algorithm.PPO, Algorithm.A2C)


class Onset(StrEnum):
    """When a fault starts."""

    START = "start"
    MIDDLE = "middle"  # at half of the run


@dataclass(slots=True)
class Clock:
    """The progress of a training run."""

    onset: int  # environment steps
    steps: int = 0

    @property
    def struck(self) -> bool:
        """True from the onset of the fault."""
        return self.steps >= self.onset


@dataclass(slots=True)
class Injection:
    """The changes that a fault makes to a run.

    `world` wraps the environment, `change` is called with the model at the onset, `options` replace
    options of the algorithm from the start.
    """

    clock: Clock
    world: Callable[[Any, Clock, int], Any] | None = None  # environment, clock, seed
    change: Callable[[Any], None] | None = None
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault. A test checks that `expects` are names of rules."""

    name: str
    about: str
    inject: Callable[[Injection], None]
    expects: tuple[str, ...]  # any of these rules as the first case names the root cause
    visible_in: tuple[str, ...]  # metrics, any of which shows the cause; empty: no log shows it
    algorithms: tuple[Algorithm, ...] = tuple(Algorithm)
    tasks: tuple[str, ...] = ("CartPole-v1", "Acrobot-v1", "MountainCar-v0", "Pendulum-v1")
    onsets: tuple[Onset, ...] = (Onset.START, Onset.MIDDLE)
    hidden_from_start: bool = False  # only a change in mid-run shows it: there is no before
    hidden_while_learning: bool = False  # healthy runs look like this until learning stops
    tampers: bool = False  # the logged outcome is not the true one
    # What a run's settings say of a fault that is there from the start, by the library's names.
    sets: Mapping[str, float] = field(default_factory=dict)
    scales: Mapping[str, float] = field(default_factory=dict)  # the same: times the one that works
    proven: bool = False  # the mechanism is broken by construction, whatever the outcome

    @property
    def changed_settings(self) -> frozenset[str]:
        """Names of the settings that it changes."""
        return frozenset((*self.sets, *self.scales))

    def visible(self, onset: Onset, logged: frozenset[str], *, settings: bool = True) -> bool:
        """Return whether a log with these metrics (and settings) can show the cause."""
        if onset is Onset.START and settings and self.changed_settings:
            return True
        if onset is Onset.START and self.hidden_from_start:
            return False
        return any(name in logged for name in self.visible_in)
