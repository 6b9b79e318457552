"""A JSON document that may be cut short: what stands before the cut, value by value.

A value counts only where something after it proves that it is whole: a comma or a bracket
("12" may be the start of "120"). Python's words for what JSON has none for are read.
"""

import json
import re
from collections.abc import Iterator

SPACE = re.compile(r"[ \t\r\n]*")
DECODER = json.JSONDecoder()
DELIMITER = re.compile(r"[ \t\r\n]*([,}\]])")


class CutShortError(ValueError):
    """The document ends, or goes wrong, before it is complete."""


def _skip(text: str, at: int) -> int:
    found = SPACE.match(text, at)
    return found.end() if found else at


def _decode(text: str, at: int) -> tuple[object, int]:
    try:
        return DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        raise CutShortError(f"character {at}") from None


def _value(text: str, at: int) -> tuple[object, int, str]:
    """Return a value that is proven whole, where it ends, and the delimiter after it."""
    value, end = _decode(text, at)
    after = DELIMITER.match(text, end)
    if after is None:
        raise CutShortError(f"character {end}")
    return value, after.end(), after[1]


def items(text: str, at: int = 0) -> Iterator[object]:
    """Yield the items of the array at `at`. Raises CutShortError where it breaks off."""
    for value, _ in placed_items(text, at):
        yield value


def placed_items(text: str, at: int = 0) -> Iterator[tuple[object, int]]:
    """Yield (item, where the text goes on after it). Raises CutShortError where it breaks off."""
    at = _skip(text, at)
    if not text.startswith("[", at):
        raise CutShortError(f"character {at}")
    at = _skip(text, at + 1)
    if text.startswith("]", at):
        return
    delimiter = ","
    while delimiter == ",":
        value, at, delimiter = _value(text, _skip(text, at))
        yield value, at
    if delimiter != "]":
        raise CutShortError(f"character {at}")


def members(text: str, array: str = "") -> Iterator[tuple[str, object]]:
    """Yield the members of the object that `text` is. Raises CutShortError where it breaks off.

    The items of the member named `array` come one by one, each under that name; that it is no
    array counts as broken off.
    """
    at = _skip(text, 0)
    if not text.startswith("{", at):
        raise CutShortError(f"character {at}")
    at = _skip(text, at + 1)
    if text.startswith("}", at):
        return
    delimiter = ","
    while delimiter == ",":
        name, at = _decode(text, _skip(text, at))
        at = _skip(text, at)
        if not isinstance(name, str) or not text.startswith(":", at):
            raise CutShortError(f"character {at}")
        at = _skip(text, at + 1)
        if name == array:
            end = 0
            for item, after in placed_items(text, at):
                yield name, item
                end = after
            at, delimiter = _after_array(text, end, at)
        else:
            value, at, delimiter = _value(text, at)
            yield name, value
    if delimiter != "}":
        raise CutShortError(f"character {at}")


def _after_array(text: str, end: int, start: int) -> tuple[int, str]:
    """Return where the text goes on after an array whose items were read, and the delimiter."""
    if not end:  # an empty array
        end = text.index("]", start) + 1
    after = DELIMITER.match(text, end)
    if after is None:
        raise CutShortError(f"character {end}")
    return after.end(), after[1]
