"""What a fault is: a mistake made on purpose, and what the diagnosis should say of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

PPO, A2C, DQN, SAC = "PPO", "A2C", "DQN", "SAC"
EVERY = (PPO, A2C, DQN, SAC)
ON_POLICY = (PPO, A2C)
ANY = ("CartPole-v1", "Acrobot-v1", "MountainCar-v0", "Pendulum-v1")
FAILED = "failed"  # stands for the verdict in a fault's `expects`: it ends the run


class Onset(StrEnum):
    """When a fault sets in."""

    START = "start"
    MIDDLE = "middle"  # at half of the run: what was learned by then can be lost


@dataclass(slots=True)
class Clock:
    """How far a training run is, for whatever acts in it."""

    onset: int  # environment steps
    steps: int = 0

    @property
    def struck(self) -> bool:
        """Whether the fault has set in."""
        return self.steps >= self.onset


@dataclass(slots=True)
class Injection:
    """What a fault does to a run: to its environment, its model, or each of its steps.

    `world` puts a wrapper around the environment, `change` is called with the model when the fault
    sets in, `options` replace the algorithm's own from the start.
    """

    clock: Clock
    world: Callable[[Any, Clock, int], Any] | None = None  # environment, clock, seed
    change: Callable[[Any], None] | None = None
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fault:
    """A mistake, by its own name. A test holds `expects` to the names of the rules."""

    name: str
    about: str
    inject: Callable[[Injection], None]
    expects: tuple[str, ...]  # any of these rules as the first case names the root cause
    visible_in: tuple[str, ...]  # metrics, any of which shows the cause; empty: no log shows it
    algorithms: tuple[str, ...] = EVERY
    tasks: tuple[str, ...] = ANY
    onsets: tuple[Onset, ...] = (Onset.START, Onset.MIDDLE)
    hidden_from_start: bool = False  # only a change in mid-run shows it: there is no before
    hidden_while_learning: bool = False  # healthy runs look like this until learning stops
    tampers: bool = False  # what is logged as the outcome is not what was earned
    # What a run's settings say of a fault that is there from the start, by the library's names.
    sets: Mapping[str, float] = field(default_factory=dict)
    scales: Mapping[str, float] = field(default_factory=dict)  # the same: times the one that works
    proven: bool = False  # the mechanism is broken by construction, whatever the outcome

    @property
    def changed(self) -> frozenset[str]:
        """The settings that it changes."""
        return frozenset((*self.sets, *self.scales))

    def visible(self, onset: Onset, logged: frozenset[str], *, settings: bool = True) -> bool:
        """Tell whether a log of these metrics, and with its settings, can show the cause."""
        if onset is Onset.START and settings and self.changed:
            return True
        if onset is Onset.START and self.hidden_from_start:
            return False
        return any(name in logged for name in self.visible_in)
