"""A measure and its number on a line of their own, again and again, with no step anywhere.

`Average reward: 0.53`   `Percentage of correct examples:  0.6875`   `Batch: mean_reward=0.1`

For logs that no other dialect reads. The key that first comes ten times begins a row; rows are
counted. A plain `Reward: 1.0` is left out: loops print it for every response. Where rows of another
dialect have no reward, a mean reward on a line of its own belongs to the row before it; to the row
after it in a log that prints one before its first row.
"""

import re
from collections import Counter
from dataclasses import field
from typing import ClassVar

from rlvitals.readers.console_dialects.dialect import Dialect, Page, Pair, is_reward, number
from rlvitals.readers.formats import column_guess
from rlvitals.startup.fast_dataclass import dataclass


@dataclass(slots=True)
class LoneLines:
    """The lines that wait until a key has come often enough, and the rows since."""

    min_lines: ClassVar[int] = 10  # of a key
    max_waiting_lines: ClassVar[int] = 1000
    max_length: ClassVar[int] = 160  # characters of a line
    open: bool = False
    early_lines: list[tuple[Pair, float]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    first: str = ""  # the key that begins a row
    rows: int = 0
    is_before: bool | None = None  # rewards are printed before their rows; None: not known yet
    waiting: tuple[int, Pair, float] | None = None  # the rows before a reward, it and its time

    def take(self, page: Page) -> None:
        """Read a line."""
        shared = page.shared
        if shared.sure or (not self.first and shared.rows):
            return  # another dialect knows this log
        if self.waiting and shared.regular > self.waiting[0]:
            _, reward, time = self.waiting
            page.columns.add_row(shared.last_regular, [reward], time)
            self.waiting = None
        pair = _pair(page.message) if len(page.text) <= self.max_length else None
        if pair is None:
            return
        if not self.first and shared.regular:
            if is_reward(pair[0]) and not any(map(is_reward, shared.regular_keys)):
                self._add_reward(page, pair)
            return
        if self.first:
            self._add(page, pair, page.time)
            return
        if len(self.early_lines) < self.max_waiting_lines:
            self.early_lines.append((pair, page.time))
            self.counts[pair[0]] += 1
        if self.counts[pair[0]] == self.min_lines:
            self.first = pair[0]
            shared.notes["rows without a step: counted"] = None
            for waiting_pair, time in self.early_lines:
                self._add(page, waiting_pair, time)
            self.early_lines = []

    def _add_reward(self, page: Page, pair: Pair) -> None:
        """Add a mean reward to its row of another dialect, which knew that row a few rows late."""
        shared = page.shared
        if self.is_before is None:
            rewards = [line for line in self.early_lines if is_reward(line[0][0])]
            self.is_before = len(rewards) == shared.regular
            if len(rewards) in {shared.regular - 1, shared.regular}:
                for step, (reward, time) in zip(shared.first_regular, rewards, strict=False):
                    page.columns.add_row(step, [reward], time)
        if self.is_before:
            self.waiting = (shared.regular, pair, page.time)
        else:
            page.columns.add_row(shared.last_regular, [pair], page.time)

    def _add(self, page: Page, pair: Pair, time: float) -> None:
        if pair[0] == self.first:
            self.rows += 1
            page.add_regular(self.rows, [pair], "rows", time)
        elif self.rows:
            page.columns.add_row(self.rows, [pair], time)


def _pair(text: str) -> Pair | None:
    """Return the measure and the number of a line that holds nothing else."""
    line = re.fullmatch(
        r"\W{0,4}(?:[A-Za-z]\w{0,20}: )?"
        r"([A-Za-z_][\w/()-]{0,40}(?: [\w/()-]{1,40}){0,5}?) ?[:=]\s{0,12}"
        r"([-+]?(?:\d[\d.]{0,40}(?:e[-+]?\d{1,3})?|nan|inf))( ?%)?",
        text,
        re.IGNORECASE,
    )
    value = number(line[2]) if line else None
    if line is None or value is None:
        return None
    key = re.sub(r"[\s-]+", "_", re.sub(r"[()]", "", line[1])).lower()
    averaged = re.search(r"avg|average|mean|percent|fraction|share|rate|^episode_re", key)
    single = re.search(r"reward|return|score|profit|fitness|correct", key) and not averaged
    if single or not (column_guess.is_measure(key) or "correct" in key):
        return None
    return key, value / 100.0 if line[3] else value


DIALECT = Dialect(
    "lone lines",
    "a measure and its number a line, without a step",
    ("oss", "eward", "core", "orrect", "ccuracy", "KL", "kl", "eturn", "ntropy"),
    LoneLines,
)
