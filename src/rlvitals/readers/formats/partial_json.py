"""Parse a JSON document that may be cut short, value by value.

A value counts only where something after it proves that it is whole: a comma or a bracket
("12" may be the start of "120"). Python's words for what JSON has none for are read.
"""

import json
import re
from collections.abc import Iterator

JSON_SPACE = re.compile(r"[ \t\r\n]*")
JSON_DECODER = json.JSONDecoder()
JSON_DELIMITER = re.compile(r"[ \t\r\n]*([,}\]])")


class CutShortError(ValueError):
    """The document ends, or goes wrong, before it is complete."""


def _skip(text: str, offset: int) -> int:
    match = JSON_SPACE.match(text, offset)
    return match.end() if match else offset


def _decode(text: str, offset: int) -> tuple[object, int]:
    try:
        return JSON_DECODER.raw_decode(text, offset)
    except (ValueError, RecursionError):
        raise CutShortError(f"character {offset}") from None


def _value(text: str, offset: int) -> tuple[object, int, str]:
    """Return a value that is proven whole, where it ends, and the delimiter after it."""
    value, end = _decode(text, offset)
    after = JSON_DELIMITER.match(text, end)
    if after is None:
        raise CutShortError(f"character {end}")
    return value, after.end(), after[1]


def items(text: str, offset: int = 0) -> Iterator[object]:
    """Yield the items of the array at `at`. Raises CutShortError where it breaks off."""
    for value, _ in items_with_ends(text, offset):
        yield value


def items_with_ends(text: str, offset: int = 0) -> Iterator[tuple[object, int]]:
    """Yield (item, end offset). Raises CutShortError if the text ends early."""
    offset = _skip(text, offset)
    if not text.startswith("[", offset):
        raise CutShortError(f"character {offset}")
    offset = _skip(text, offset + 1)
    if text.startswith("]", offset):
        return
    delimiter = ","
    while delimiter == ",":
        value, offset, delimiter = _value(text, _skip(text, offset))
        yield value, offset
    if delimiter != "]":
        raise CutShortError(f"character {offset}")


def members(text: str, array: str = "") -> Iterator[tuple[str, object]]:
    """Yield the members of the object that `text` is. Raises CutShortError where it breaks off.

    The items of the member named `array` come one by one, each under that name; that it is no
    array counts as broken off.
    """
    offset = _skip(text, 0)
    if not text.startswith("{", offset):
        raise CutShortError(f"character {offset}")
    offset = _skip(text, offset + 1)
    if text.startswith("}", offset):
        return
    delimiter = ","
    while delimiter == ",":
        name, offset = _decode(text, _skip(text, offset))
        offset = _skip(text, offset)
        if not isinstance(name, str) or not text.startswith(":", offset):
            raise CutShortError(f"character {offset}")
        offset = _skip(text, offset + 1)
        if name == array:
            end = 0
            for item, after in items_with_ends(text, offset):
                yield name, item
                end = after
            offset, delimiter = _after_array(text, end, offset)
        else:
            value, offset, delimiter = _value(text, offset)
            yield name, value
    if delimiter != "}":
        raise CutShortError(f"character {offset}")


def _after_array(text: str, end: int, start: int) -> tuple[int, str]:
    """Return the offset after an array whose items were read, and the delimiter."""
    if not end:  # an empty array
        end = text.index("]", start) + 1
    after = JSON_DELIMITER.match(text, end)
    if after is None:
        raise CutShortError(f"character {end}")
    return after.end(), after[1]
