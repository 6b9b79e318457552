"""What a dialect of console output is, and what all dialects of one log share."""

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from typing import Protocol

import numpy as np

from rlvitals.readers.console_dialects import text as console_text
from rlvitals.readers.formats.columns import NAN, Columns, parse_number
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Setting

Pair = tuple[str, float]


def number(cell: str) -> float | None:
    """Return the number that a printed cell holds; None for anything else."""
    try:
        return parse_number(cell)
    except ValueError:
        return None


def mean_and_std(numbers: Sequence[float]) -> tuple[float, float]:
    """Return the mean and the spread of printed numbers; NaN and infinite ones have no spread."""
    with np.errstate(over="ignore", invalid="ignore"):
        std = float(np.std(numbers, ddof=1)) if len(numbers) > 1 else NAN
        return float(np.mean(numbers)), std


def reward_pairs(name: str, rewards: Sequence[float]) -> list[Pair]:
    """Return the mean of a batch's rewards under TRL's key, and of several their spread."""
    mean, std = mean_and_std(rewards)
    pairs = [(f"rewards/{name}/mean", mean)]
    return [*pairs, (f"rewards/{name}/std", std)] if len(rewards) > 1 else pairs


@dataclass(slots=True)
class Progress:
    """The progress bar that counts the run's steps."""

    step: int
    total: int


@dataclass(slots=True)
class Shared:
    """What is known of a log beyond one dialect; kept from one reading to the next."""

    unit: str = ""  # what its steps are: those of the first rows that say so
    sure: bool = False  # a format of its own said so, not lines that merely look regular
    bar: Progress | None = None
    drawn: int = 0  # states of that bar so far
    settings: dict[str, Setting] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)  # in order
    left_out: int = 0  # rows that count other steps
    rows: int = 0  # of formats of their own
    regular: int = 0  # rows of lines that merely look regular
    last_regular: int = 0  # the step of the last of these
    first_regular: list[int] = field(default_factory=list)  # the steps of the first eight of these
    regular_keys: set[str] = field(default_factory=set)  # of these
    timed: bool = False  # rows say how long a step takes, better than a bar does


def is_reward(key: str) -> bool:
    """Return True for the key of a reward, a return or a score."""
    return re.search("reward|return|score", key) is not None


class Page:
    """Where dialects put what they read; carries the piece of text in hand."""

    def __init__(self, shared: Shared) -> None:
        """Start with no points."""
        self.shared = shared
        self.columns = Columns()
        self.text = ""  # without colours
        self._message: str | None = None
        self._time: float | None = None

    def turn(self, text: str) -> None:
        """Take the next piece in hand."""
        self.text = console_text.plain(text)
        self._message = self._time = None

    @property
    def message(self) -> str:
        """What the piece says, without date, level and process before it."""
        if self._message is None:
            self._message = console_text.message(self.text)
        return self._message

    @property
    def time(self) -> float:
        """When the piece was printed, in epoch seconds; NaN where it does not say."""
        if self._time is None:
            self._time = console_text.printed_at(self.text)
        return self._time

    def add(self, step: int, pairs: Iterable[Pair], unit: str, time: float | None = None) -> None:
        """Add a row of a format of its own: it decides what the log's steps are."""
        shared = self.shared
        if not shared.sure:
            shared.unit, shared.sure = unit, True
        if unit != shared.unit:
            shared.left_out += 1
            return
        shared.rows += 1
        self.columns.add_row(step, pairs, self.time if time is None else time)

    def add_regular(self, step: int, pairs: Iterable[Pair], unit: str, time: float = NAN) -> None:
        """Add a row of lines that look regular, unless the log counts other steps.

        The first row with an outcome decides what its steps are: epochs of updates are printed
        between two episodes.
        """
        shared, row = self.shared, tuple(pairs)
        shared.unit = shared.unit or unit
        if (
            unit != shared.unit
            and not shared.sure
            and any(is_reward(key) for key, _ in row)
            and not any(map(is_reward, shared.regular_keys))
        ):
            shared.left_out += shared.regular
            shared.unit, shared.regular, shared.regular_keys = unit, 0, set()
            shared.first_regular = []
            self.columns = Columns()
        if unit != shared.unit:
            shared.left_out += 1
            return
        shared.regular += 1
        shared.last_regular = step
        shared.first_regular += [step] if len(shared.first_regular) < 8 else []
        shared.regular_keys.update(key for key, _ in row)
        self.columns.add_row(step, row, time)


class Parser(Protocol):
    """A dialect's own state over one log: a dataclass that compares by its fields."""

    @property
    def open(self) -> bool:
        """Whether the next piece belongs to this parser, whatever it holds."""

    @abstractmethod
    def take(self, page: Page) -> None:
        """Read the piece in hand: add its numbers, or leave it."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """One way of printing numbers. `hints`: a piece that holds none of them is not its own."""

    name: str
    title: str
    hints: Sequence[str]
    start: Callable[[], Parser]
