"""Read the plain content of a Python pickle: numbers, texts, containers and arrays of numpy.

What a pickle names is never imported or called: arrays, numpy's numbers and Python's containers
have stand-ins here, and any other class or function is a blank. Sources: "Restricting Globals" in
the documentation of `pickle`; `numpy/_core/src/multiarray/methods.c`, `array_setstate`.
"""

import io
import json
import pickle
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np

MAX_PICKLE_ITEMS = 2_000_000  # a pickle of a few bytes may name one list again and again
PICKLE_HINT = (
    "save its numbers in Python: json.dump({'rewards': rewards}, open('rewards.json', 'w'))"
)


class NotPlainError(ValueError):
    """A pickle that is damaged, or too large to be a log."""


class _Blank:
    """Whatever is not plain: it takes every argument, state and item, and holds none."""

    def __new__(cls, *_: object, **__: object) -> Self:
        """Return an empty one."""
        return super().__new__(cls)

    def __setstate__(self, _: object) -> None:
        """Hold nothing."""

    def __setitem__(self, _: object, __: object) -> None:
        """Hold nothing."""

    def append(self, _: object) -> None:
        """Hold nothing."""

    extend = add = append


class _NumberType:
    """Stand-in for `numpy.dtype`."""

    def __init__(self, code: object = "", *_: object) -> None:
        self.code = str(code)
        self.order = "="

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.order = state[1] if state[1] in ("<", ">") else "="

    def decode(self, data: object, shape: object = (), *, by_column: bool = False) -> object:
        """Return the numbers of an array's or a number's bytes; a blank for other types."""
        raw = data.encode("latin1") if isinstance(data, str) else data  # of Python 2
        if self.code.startswith("O"):  # of Python's objects
            return raw
        if not re.fullmatch(r"[fiub][1248]", self.code) or not isinstance(raw, (bytes, bytearray)):
            return _Blank()
        numbers = np.frombuffer(raw, self.order + self.code)
        sizes = shape if isinstance(shape, tuple) else (shape,)
        return numbers.reshape(sizes, order="F" if by_column else "C")


class _Array:
    """Stand-in for `numpy.ndarray`."""

    def __init__(self, *_: object) -> None:
        self.content: object = None

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, number_type, by_column, data = state
        self.content = number_type.decode(data, shape, by_column=bool(by_column))


PICKLED_NAMES: Mapping[tuple[str, str], Callable[..., Any]] = {
    ("numpy", "dtype"): _NumberType,
    ("numpy", "ndarray"): _Array,
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy.core.multiarray", "scalar"): lambda kind, data=b"": kind.decode(data),
    ("numpy.core.numeric", "_frombuffer"): lambda data, kind, shape, order="C": kind.decode(
        bytes(data), shape, by_column=order == "F"
    ),
    ("collections", "deque"): lambda items=(), _=None: list(items),
    ("collections", "OrderedDict"): lambda items=(): dict(items),
    ("collections", "defaultdict"): lambda _=None: {},
    ("_codecs", "encode"): lambda text, _="latin1": text.encode("latin1"),  # bytes, protocol 2
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str, /) -> object:
        module = module_name.replace("numpy._core", "numpy.core")
        return PICKLED_NAMES.get((module, global_name), _Blank)


def is_pickle(path: Path, head: bytes = b"") -> bool:
    """Return True if a file is named as pickles are, or starts as one of them."""
    return (
        path.suffix.lower() in (".pkl", ".pickle", ".p", ".joblib")
        or re.fullmatch(r"log_\d+", path.name) is not None  # Dopamine's
        or re.match(rb"\x80[\x02-\x05]", head) is not None  # protocols from 2 on
    )


def as_json(data: bytes, name: str) -> str:
    """Return a pickle's plain content as a JSON document; a list of rows is called `name`.

    Dopamine's rows, {"iteration_0": {"train_episode_returns": [...]}}, have the mean of each list.
    Raises NotPlainError.
    """
    content = read_plain(data)
    rows = content if isinstance(content, dict) else {}
    if rows and all(re.fullmatch(r"iteration_\d+", key) for key in rows):
        content = [
            {"iteration": int(key.split("_")[1])} | {k: _mean(v) for k, v in row.items()}
            for key, row in rows.items()
            if isinstance(row, dict)
        ]
    if isinstance(content, list) and any(isinstance(item, dict) for item in content):
        content = {name: content}
    return json.dumps(content)


def _mean(value: object) -> object:
    numbers = [n for n in value if isinstance(n, (int, float))] if isinstance(value, list) else []
    return sum(numbers) / len(numbers) if numbers else value


def read_plain(data: bytes) -> object:
    """Return a pickle's dicts, lists, numbers and texts; None for whatever is not plain.

    Arrays are lists. Raises NotPlainError for damage, and for more than 2 million items.
    """
    try:
        content = _Unpickler(io.BytesIO(data), encoding="latin1").load()
        return _Copy().plain(content)
    # What `pickle` raises on damage: its documentation says "not necessarily limited to".
    except (
        *(pickle.UnpicklingError, ValueError, TypeError, LookupError, AttributeError, EOFError),
        *(MemoryError, OverflowError, RecursionError, AssertionError),
    ) as error:
        raise NotPlainError(str(error)[:200] or type(error).__name__) from error


class _Copy:
    """Copies plain content, and counts it."""

    def __init__(self) -> None:
        self.items = 0

    def plain(self, value: object) -> object:
        """Return the plain part of a value."""
        if isinstance(value, _Array):
            value = value.content
        self.items += value.size if isinstance(value, np.ndarray) else 1
        if self.items > MAX_PICKLE_ITEMS:
            raise NotPlainError("too many items")
        if isinstance(value, np.ndarray):
            return value.tolist()
        if isinstance(value, dict):
            return {str(k): self.plain(v) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.plain(item) for item in value]
        return value if isinstance(value, (bool, int, float, str)) else None
