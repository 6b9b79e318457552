"""Read JSON lines, one object per line, of a log that may be growing or damaged.

    with opened(path) as file:
        objects = Objects(Lines(file, since))
        for number, item in objects:            # line from 1, dict[str, object]
            for key, value in flatten(item): ...
        cursor, notes = objects.position(), objects.notes()

Python's words for what JSON has none for (`NaN`, `Infinity`) are read.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from rlvitals.errors import quantity
from rlvitals.readers.formats.columns import json_number
from rlvitals.readers.formats.lines import Lines, Position
from rlvitals.readers.formats.rows import Refusals

MAX_ROW_DEPTH = 16  # of nesting; deeper is left out
MAX_NULL_KEYS = 3  # keys that a note names


def flatten(item: Mapping[str, object], within: str = "") -> Iterator[tuple[str, object]]:
    """Yield the leaves of nested objects under names joined by "/", in order.

    Lists are leaves. Nesting deeper than MAX_ROW_DEPTH is left out.
    """
    stack = [(within, iter(item.items()))]
    while stack:
        prefix, items = stack[-1]
        for key, value in items:
            name = f"{prefix}/{key}" if prefix else str(key)
            if isinstance(value, Mapping):
                if len(stack) < MAX_ROW_DEPTH:
                    stack.append((name, iter(value.items())))
                    break
            else:
                yield name, value
        else:
            stack.pop()


def parse_object(text: str) -> dict[str, object] | None:
    """Return a JSON object; None for anything else, nesting too deep to read included."""
    try:
        item = json.loads(text)
        if "\\ud" in text.lower():  # half a surrogate pair is a string that cannot be shown
            text_shown = json.dumps(item, ensure_ascii=False).encode(errors="replace")
            item = json.loads(text_shown)
    except (ValueError, RecursionError):
        return None
    return item if isinstance(item, dict) else None


class Nulls:
    """Counts the nulls under each key: a value that its writer did not have, no point here."""

    def __init__(self) -> None:
        """Start at none."""
        self._counts: Counter[str] = Counter()

    def number(self, key: str, value: object) -> float | None:
        """Return a value as a number, None for what is none; count it where it is null."""
        if value is None:
            self._counts[key] += 1
        return json_number(value)

    def numbers(self, row: Iterable[tuple[str, object]]) -> Iterator[tuple[str, float | None]]:
        """Yield a row's values as numbers."""
        return ((key, self.number(key, value)) for key, value in row)

    def notes(self) -> list[str]:
        """Return "5 nulls left out: 3 under `reward`, 2 under `kl`", or nothing."""
        if not self._counts:
            return []
        ranked = self._counts.most_common()
        keys = ", ".join(f"{count:,} under `{key}`" for key, count in ranked[:MAX_NULL_KEYS])
        more = (
            f" and {len(ranked) - MAX_NULL_KEYS} more keys" if len(ranked) > MAX_NULL_KEYS else ""
        )
        total = self._counts.total()
        return [f"{quantity(total, 'null')} left out: {keys}{more}"]


class Objects:
    """Iterates over (line number, object); see the module for its use.

    Lines that are no JSON object are refused and counted; blank lines are none.
    """

    def __init__(self, lines: Lines, refused: Refusals | None = None) -> None:
        """Read the objects of these lines."""
        self.refused = refused or Refusals("line")
        self._lines = lines

    def position(self) -> Position:
        """Return the position to resume from: after the last complete line."""
        return self._lines.position()

    def notes(self) -> list[str]:
        """Return notes for the user; empty without problems."""
        return [*self._lines.notes(), *self.refused.notes()]

    def __iter__(self) -> Iterator[tuple[int, dict[str, object]]]:
        """Yield every complete object once, in order."""
        for line in self._lines:
            if not line.text or line.text.isspace():
                continue
            item = parse_object(line.text)
            if item is None:
                self.refused.add(line.number, "is not a JSON object")
            else:
                yield line.number, item
