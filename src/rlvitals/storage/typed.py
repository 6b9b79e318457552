"""Parse JSON and convert its fields to the types that they must have.

A field of another type is dropped and named in `wrong`, once: no consumer checks it again.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

FieldT = TypeVar("FieldT")
MAX_JSON_DEPTH = 64  # levels of nesting: consumers recurse
INT64_RANGE = range(-(2**63), 2**63)
MAX_FIELD_NOTES = 8  # dropped fields that a person reads of
MAX_FLOAT_INTEGER = 2**1023  # integers up to here convert to float64


class WrongTypeError(ValueError):
    """A value is not of the type that its field must have."""


def load(data: bytes | bytearray | memoryview | str) -> object:
    """Parse JSON. Raises ValueError, for too deep a nesting and bytes that are no UTF-8 too."""
    try:
        return json.loads(data if isinstance(data, str | bytes) else bytes(data))
    except RecursionError:
        raise WrongTypeError("nested too deep") from None


def integer(value: object) -> int:
    """Return an int64. Raises ValueError."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value not in INT64_RANGE:
        raise WrongTypeError("is not a 64-bit integer")
    return value


def count(value: object) -> int:
    """Return an int64 of 0 or more. Raises ValueError."""
    if (number := integer(value)) < 0:
        raise WrongTypeError("is negative")
    return number


def real(value: object) -> float:
    """Return a float64, NaN and infinities among them. Raises ValueError."""
    if isinstance(value, float):
        return value
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= MAX_FLOAT_INTEGER:
        raise WrongTypeError("is not a number")
    return float(value)


def number(value: object) -> float:
    """Return a finite float64. Raises ValueError."""
    if not math.isfinite(result := real(value)):
        raise WrongTypeError("is not a finite number")
    return result


def seed(value: object) -> int | None:
    """Return an integer of any size within float64's range, None for None. Raises ValueError."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= MAX_FLOAT_INTEGER:
        raise WrongTypeError("is not an integer")
    return value


def moment(value: object) -> float:
    """Return seconds since the epoch, 0 to the year 9999. Raises ValueError."""
    # To the last second of the year 9999.
    if not 0.0 <= (seconds := number(value)) <= 253_402_300_799.0:
        raise WrongTypeError("is not a time in seconds since the epoch")
    return seconds


def text(value: object) -> str:
    """Return a text that UTF-8 can encode: a lone surrogate as its escape. Raises ValueError."""
    if not isinstance(value, str):
        raise WrongTypeError("is not a text")
    if value.isascii():  # known without a look at the characters
        return value
    return value.encode("utf-8", "backslashreplace").decode()


def texts(value: object) -> tuple[str, ...]:
    """Return a list of texts. Raises ValueError."""
    if not isinstance(value, list):
        raise WrongTypeError("is not a list of texts")
    return tuple(map(text, value))


def cell(value: object) -> object:
    """Return a table's cell: an integer beyond float64 as hexadecimal text. Raises ValueError."""
    if isinstance(value, str):
        return text(value)
    if isinstance(value, int) and abs(value) >= MAX_FLOAT_INTEGER:
        return f"{value:#x}"
    if isinstance(value, list | dict):
        return Fields({"": value}, "cell").tidy({"": value})[""]
    return value


def summary(wrong: Sequence[str]) -> list[str]:
    """Return the first few notes, and how many more there are."""
    notes = list(dict.fromkeys(wrong))
    more = len(notes) - MAX_FIELD_NOTES
    return notes if more <= 0 else [*notes[:MAX_FIELD_NOTES], f"{more:,} more fields are dropped"]


class Fields:
    """The fields of a JSON object; `where` is the file or line that `wrong` names."""

    def __init__(self, value: object, where: str) -> None:
        """Begin with an object. Raises ValueError for what is none."""
        if not isinstance(value, dict):
            raise WrongTypeError("is not a JSON object")
        self.values: Mapping[str, object] = value
        self.where = where
        self.wrong: list[str] = []

    def take(self, name: str, typed: Callable[[object], FieldT], default: FieldT) -> FieldT:
        """Return a field as its type; the default where it is absent or of another type."""
        if name not in self.values:
            return default
        try:
            return typed(self.values[name])
        except ValueError as error:
            self.drop(name, error)
            return default

    def mapping(self, name: str) -> dict[str, object]:
        """Return a field that is an object of anything, without what no consumer can use."""
        if not isinstance(value := self.values.get(name, {}), dict):
            self.drop(name, WrongTypeError("is not a JSON object"))
            return {}
        return self.tidy(value, name)

    def tidy(self, value: Mapping[str, object], name: str = "") -> dict[str, object]:
        """Copy an object: surrogates escaped; numbers beyond float64 and deep levels dropped."""
        result = {}
        for key, item in value.items():
            path = f"{name}/{text(key)}" if name else text(key)
            try:
                result[text(key)] = self._tidy(item, path, MAX_JSON_DEPTH)
            except ValueError as error:
                self.drop(path, error)
        return result

    def _tidy(self, value: object, path: str, depth: int) -> object:
        if not depth:
            raise WrongTypeError(f"is nested more than {MAX_JSON_DEPTH} deep")
        if isinstance(value, str):
            return text(value)
        if (
            isinstance(value, int)
            and not isinstance(value, bool)
            and abs(value) >= MAX_FLOAT_INTEGER
        ):
            raise WrongTypeError("exceeds the range of float64")
        if isinstance(value, Mapping):
            result = {}
            for key, item in value.items():
                inner = f"{path}/{text(key)}"
                try:
                    result[text(key)] = self._tidy(item, inner, depth - 1)
                except ValueError as error:
                    self.drop(inner, error)
            return result
        if isinstance(value, Sequence):
            return [self._tidy(item, path, depth - 1) for item in value]
        return value

    def drop(self, name: str, error: ValueError) -> None:
        """Name a field that is dropped."""
        self.wrong.append(f"{self.where}: {name[:80]} {error}: dropped")
