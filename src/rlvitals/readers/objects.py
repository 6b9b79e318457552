"""JSON lines: one object a line, in a log that may still be growing or be damaged.

    with opened(path) as file:
        objects = Objects(Lines(file, since))
        for number, item in objects:            # line from 1, dict[str, object]
            for key, value in flatten(item): ...
        cursor, notes = objects.position(), objects.notes()

Python's words for what JSON has none for (`NaN`, `Infinity`) are read.
"""

import json
from collections.abc import Iterator, Mapping

from rlvitals.readers.lines import Lines, Position
from rlvitals.readers.rows import Refused

MAX_DEPTH = 16  # of nesting; deeper is left out


def flatten(item: Mapping[str, object], within: str = "") -> Iterator[tuple[str, object]]:
    """Yield the leaves of nested objects under names joined by "/", in order.

    Lists are leaves. Nesting deeper than MAX_DEPTH is left out.
    """
    stack = [(within, iter(item.items()))]
    while stack:
        prefix, items = stack[-1]
        for key, value in items:
            name = f"{prefix}/{key}" if prefix else str(key)
            if isinstance(value, Mapping):
                if len(stack) < MAX_DEPTH:
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
            whole = json.dumps(item, ensure_ascii=False).encode(errors="replace")
            item = json.loads(whole)
    except (ValueError, RecursionError):
        return None
    return item if isinstance(item, dict) else None


class Objects:
    """Iterates over (line number, object); see the module for its use.

    Lines that are no JSON object are refused and counted; blank lines are none.
    """

    def __init__(self, lines: Lines, refused: Refused | None = None) -> None:
        """Read the objects of these lines."""
        self.refused = refused or Refused("line")
        self._lines = lines

    def position(self) -> Position:
        """Return where to go on: after the last complete line."""
        return self._lines.position()

    def notes(self) -> list[str]:
        """Say what a person should know of this reading: empty where all is well."""
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
