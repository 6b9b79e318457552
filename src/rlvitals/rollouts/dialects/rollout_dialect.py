"""Interface of a rollout dialect: which files hold a framework's rollouts, and what they mean."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Literal

from rlvitals.rollouts.sample import RewardPart, Sample, to_text
from rlvitals.startup.fast_dataclass import dataclass

Record = Mapping[str, object]
Layout = Literal["lines", "document", "parquet", "frames"]


@dataclass(frozen=True, slots=True)
class Dialect:
    """Reads one framework's rollouts.

    `layout` says what a file is: JSON "lines", one JSON "document", a "parquet" table, or "frames"
    of zstd that hold JSON lines each. `claims` gets a file's path and its first record, and is
    False for records that it cannot read. `samples` converts a record: none, one or several.
    """

    name: str
    title: str
    files: tuple[str, ...]  # patterns of file names
    layout: Layout
    claims: Callable[[Path, Record], bool]
    samples: Callable[[Path, Record], Sequence[Sample]]
    example: str  # a path such as one finds on disk
    home: Callable[[Path], Path] | None = None  # the run's folder of a file; None: where it lies


def number(value: object) -> float | None:
    """Return a finite number, a truth value as 0 or 1, the only cell of a list; None for others."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, bool | int | float) and isfinite(value):
        return float(value)
    return None


def integer(value: object) -> int | None:
    """Return a whole number; None for others."""
    single = number(value)
    return None if single is None or not single.is_integer() else int(single)


def numbers(values: object) -> tuple[float, ...]:
    """Return the numbers of a list; nothing where a cell is none."""
    if not isinstance(values, list):
        return ()
    cells = [number(cell) for cell in values]
    return () if None in cells else tuple(cell for cell in cells if cell is not None)


def token_total(counts: Iterable[object]) -> int | None:
    """Sum the tokens of a rollout's turns; None where a turn has no count, or there is none.

    A sum over some turns would be a shorter text than was written.
    """
    tokens = [integer(count) for count in counts]
    numbers_only = [count for count in tokens if count is not None]
    is_complete = bool(tokens) and len(numbers_only) == len(tokens)
    return sum(numbers_only) if is_complete else None


def mapping(value: object) -> Record:
    """Return a mapping; an empty one for anything else."""
    return value if isinstance(value, Mapping) else {}


def mappings(values: object) -> list[Record]:
    """Return the mappings of a list."""
    return (
        [value for value in values if isinstance(value, Mapping)]
        if isinstance(values, list)
        else []
    )


def scores(record: Record, skip: Iterable[str] = ()) -> dict[str, RewardPart]:
    """Return the numbers of a record as reward parts of weight 1, without the keys to `skip`."""
    skipped = set(skip)
    values = {key: number(value) for key, value in record.items() if key not in skipped}
    return {key: RewardPart(value) for key, value in values.items() if value is not None}


def step_in(path: Path, pattern: re.Pattern[str]) -> int | None:
    """Return the step that the nearest part of a path names: the pattern's first group."""
    for part in reversed(path.parts):
        if match := pattern.fullmatch(part):
            return int(match[1])
    return None


def first_text(record: Mapping[str, object], keys: Sequence[str]) -> str:
    """Return the text under the first of some keys that a record holds; empty for none."""
    return next((to_text(record[key]) for key in keys if key in record), "")
